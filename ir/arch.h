// What burin knows of each GPU architecture: limits a plan must keep and the constants of the cost model.
// Each constant says where it comes from; `measured` is false where it was taken from public documents.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/limits.h"

namespace burin {

struct ArchSpec {
  std::string_view name;    // "sm_90"
  std::string_view chip;    // the chip the constants describe
  int compute = 0;          // 90
  bool measured = false;    // true: the constants were measured on this chip
  bool async_copy = false;  // cp.async (sm_80 and later)
  bool clusters = false;    // blocks that read each other's shared memory (sm_90 and later)

  // limits (CUDA C++ Programming Guide, table of technical specifications per compute capability)
  int multiprocessors = 0;
  int registers_per_multiprocessor = 65536;
  int max_registers_per_thread = 255;
  int max_threads_per_multiprocessor = 0;
  int max_shared_per_block = 0;           // bytes, opt-in maximum
  int max_shared_per_multiprocessor = 0;  // bytes

  // cost model; where there is a default, it is the H200's
  double clock_ghz = 0;
  double fma_lanes_per_clock = 128;  // per multiprocessor: peak issue
  // Share of peak that lockstep warps reach on streamed code: 100-110 multiply-adds per clock with barriers every
  // 256-1024 instructions.
  double sustained_issue = 105.0 / 128.0;
  double fetch_clocks_per_instruction = 6;  // one multiprocessor streaming code it does not hold: 0.17 per clock
  double chip_fetch_per_clock = 0;          // instructions per clock, whole chip, distinct codes in flight
  int instruction_cache_bytes = 0;          // code that stays resident within one launch
  double shared_load_cost = 2;              // issue slots of one shared-memory load, in multiply-adds: what held
  double l2_bytes_per_clock = 0;            // whole chip
  double device_bytes_per_clock = 0;        // memory behind the L2 cache, reads and writes together
  double l2_kept_bytes = 0;  // of a launch's activations, what the L2 cache surely holds from the one before
  // These two are fitted to test/models/times.tsv, in which the smallest kernels take 0.87, and convolutions wait
  // twice.
  double launch_us = 0.2;           // from the end of a launch to the start of the next one in a graph
  double fill_us = 0.65;            // until a block has what it waits for from memory
  double split_reduction_us = 1.5;  // last-block reduction, estimated: fence, atomic, one round trip to L2 and back
  // Cluster reduction; meaningful where there are clusters.
  double cluster_reduction_us = 0;     // two cluster barriers and one way through distributed shared memory
  double cluster_bytes_per_clock = 0;  // of one multiprocessor, loads from others' shared memory
  // Blocks that run at once when each takes a whole multiprocessor and they come in clusters of 1, 2, ..., of which
  // each lies within one part of the chip.
  std::array<int, kMaxClusterBlocks> clustered_blocks{};
};

// A multiprocessor's registers are divided among four schedulers, and a warp takes its from one of them, in multiples
// of eight per thread. So 25 warps need what 28 would.
inline constexpr int kSchedulersPerMultiprocessor = 4;
inline constexpr int kRegisterGranularity = 8;

inline constexpr int kBulkCopyCompute = 90;  // bulk copies begin with sm_90

// Warps that fit a multiprocessor when each thread has `registers`.
int resident_warps(int registers_per_multiprocessor, int registers);
// The most registers per thread with which `warps` fit; 0: none.
int most_registers(int registers_per_multiprocessor, std::int64_t warps);

// Names of GPU architectures as CUDA's tools spell them: the number and suffix of "sm_90a" or "compute_90a": 90 and
// 'a'.
struct ArchName {
  int compute = 0;
  char suffix = '\0';  // 'a', 'f' or none
  int major() const { return compute / 10; }
  int minor() const { return compute % 10; }
};
// Nothing for what is no such name.
std::optional<ArchName> parse_arch_name(std::string_view name);

std::span<const ArchSpec> known_archs();
std::vector<std::string> known_arch_names();       // "sm_75", "sm_80", ...
const ArchSpec* find_arch(std::string_view name);  // null: it is not known
// Throws Error(unsupported) that lists the known names.
const ArchSpec& arch_by_name(std::string_view name);
// The same for the name of what code is for, which may have a suffix ("sm_90a").
const ArchSpec& arch_of_code(std::string_view name);

// What to compile for so that a GPU of compute capability `compute` (90 for 9.0) can run the package: its own
// architecture, else the latest whose code or PTX runs there. Null: burin has none for it.
const ArchSpec* arch_for_device(int compute);

}  // namespace burin
