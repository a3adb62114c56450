#include <set>

#include "ir/arch.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "test/catch.h"

using namespace burin;

TEST_CASE("arch: every constant of every architecture is set") {
  std::set<std::string_view> names;
  for (const ArchSpec& arch : known_archs()) {
    INFO(arch.name);
    CHECK(names.insert(arch.name).second);
    CHECK(arch.name == "sm_" + std::to_string(arch.compute));
    CHECK(!arch.chip.empty());
    CHECK(arch.async_copy == (arch.compute >= 80));
    CHECK(arch.multiprocessors > 0);
    CHECK(arch.max_threads_per_multiprocessor >= kMaxThreadsPerBlock);
    CHECK(arch.max_shared_per_block >= 64 * 1024);
    CHECK(arch.max_shared_per_block <= kMaxSharedBytes);
    CHECK(arch.max_shared_per_multiprocessor >= arch.max_shared_per_block);
    CHECK(arch.clock_ghz > 1);
    CHECK(arch.sustained_issue > 0);
    CHECK(arch.sustained_issue <= 1);
    CHECK(arch.fetch_clocks_per_instruction > 0);
    CHECK(arch.chip_fetch_per_clock > 0);
    CHECK(arch.instruction_cache_bytes > 0);
    CHECK(arch.shared_load_cost > 0);
    CHECK(arch.device_bytes_per_clock > 0);
    CHECK(arch.l2_bytes_per_clock > arch.device_bytes_per_clock);
    CHECK(arch.launch_us > 0);
    CHECK(arch.split_reduction_us > 0);
    CHECK(arch.clusters == (arch.compute >= 90));
    CHECK((arch.cluster_reduction_us > 0) == arch.clusters);
    CHECK((arch.cluster_bytes_per_clock > 0) == arch.clusters);
    for (std::size_t i = 0; i < arch.clustered_blocks.size(); ++i) {
      INFO("clusters of " << i + 1);
      CHECK((arch.clustered_blocks[i] > 0) == arch.clusters);
      CHECK(arch.clustered_blocks[i] <= arch.multiprocessors);
      CHECK(arch.clustered_blocks[i] % (i + 1) == 0);
    }
  }
  CHECK(names.size() == 5);
}

TEST_CASE("arch: only the H200 was measured") {
  for (const ArchSpec& arch : known_archs()) CHECK(arch.measured == (arch.name == "sm_90"));
}

TEST_CASE("arch: an unknown name lists the known ones") {
  CHECK(arch_by_name("sm_90").multiprocessors == 132);
  try {
    arch_by_name("sm_20");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::unsupported);
    CHECK(std::string(error.what()) ==
          "architecture 'sm_20' is not known; known are sm_75, sm_80, sm_86, sm_89, sm_90");
  }
}

TEST_CASE("arch: what to compile for so that a GPU can run it") {
  CHECK(arch_for_device(90)->name == "sm_90");
  CHECK(arch_for_device(87)->name == "sm_86");
  CHECK(arch_for_device(100)->name == "sm_90");
  CHECK(arch_for_device(120)->name == "sm_89");  // plans for sm_90 may take more shared memory than it has
  CHECK(arch_for_device(70) == nullptr);
}

TEST_CASE("arch: registers are dealt to warps by scheduler, as the H200 was seen to do") {
  // 800 threads of 78 registers and 288 of 182 did not start; the driver named these limits
  CHECK(resident_warps(65536, 78) * kWarpSize == 768);
  CHECK(resident_warps(65536, 182) * kWarpSize == 256);
  CHECK(resident_warps(65536, 64) * kWarpSize == 1024);
  CHECK(most_registers(65536, 25) == 72);
  CHECK(most_registers(65536, 28) == 72);
  CHECK(most_registers(65536, 24) == 80);
  CHECK(most_registers(65536, 32) == 64);
  CHECK(most_registers(65536, 4) >= 255);
}

TEST_CASE("arch_name: number and suffix") {
  CHECK(parse_arch_name("sm_90")->compute == 90);
  CHECK(parse_arch_name("sm_90")->suffix == '\0');
  CHECK(parse_arch_name("compute_120")->compute == 120);
  CHECK(parse_arch_name("compute_120")->major() == 12);
  CHECK(parse_arch_name("sm_89")->minor() == 9);
  CHECK(parse_arch_name("sm_90a")->suffix == 'a');
  CHECK(parse_arch_name("sm_103f")->suffix == 'f');
}

TEST_CASE("arch_name: what is none") {
  for (const char* bad : {"", "sm", "sm_", "sm_9", "sm_1000", "sm_11111111111111", "sm_-90", "sm_a", "sm_9x0", "sm_90b",
                          "sm_90aa", "sm_90 ", "90", "_90", "SM_90", "compute_sm_90"}) {
    INFO(bad);
    CHECK_FALSE(parse_arch_name(bad));
  }
}
