#include "ir/arch.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "ir/error.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
// Chip figures (multiprocessors, boost clock): NVIDIA's data sheet or architecture whitepaper of the named chip.
//
// What no public document gives for the unmeasured chips is the H200's, as ArchSpec has it. Instruction fetch of the
// whole chip is scaled from the H200 by the bandwidth of the L2 cache.
constexpr std::array<ArchSpec, 5> kArchs = {{
    {
        .name = "sm_75",
        .chip = "T4",
        .compute = 75,
        .multiprocessors = 40,  // Turing whitepaper
        .max_threads_per_multiprocessor = 1024,
        .max_shared_per_block = 64 * 1024,
        .max_shared_per_multiprocessor = 64 * 1024,
        .clock_ghz = 1.59,          // T4 data sheet, boost
        .fma_lanes_per_clock = 64,  // Turing whitepaper: 64 FP32 lanes
        .chip_fetch_per_clock = 5,
        .instruction_cache_bytes = 46 * 1024,  // "Dissecting the NVIDIA Turing T4 GPU via Microbenchmarking" (2019)
        .l2_bytes_per_clock = 800,             // the same study: 1270 GB/s
        .device_bytes_per_clock = 200,         // data sheet: 320 GB/s
        .l2_kept_bytes = 1.3e6,                // a third of the cache
    },
    {
        .name = "sm_80",
        .chip = "A100",
        .compute = 80,
        .async_copy = true,
        .multiprocessors = 108,  // A100 whitepaper
        .max_threads_per_multiprocessor = 2048,
        .max_shared_per_block = 163 * 1024,
        .max_shared_per_multiprocessor = 164 * 1024,
        .clock_ghz = 1.41,          // A100 data sheet, boost
        .fma_lanes_per_clock = 64,  // A100 whitepaper: 64 FP32 lanes
        .chip_fetch_per_clock = 14,
        .instruction_cache_bytes = 128 * 1024,  // "Demystifying the Nvidia Ampere Architecture" (2022)
        .l2_bytes_per_clock = 2800,  // whitepaper: 5120 peak; the share of peak that 4-byte copies reach on the H200
        .device_bytes_per_clock = 1000,  // data sheet: 1555 GB/s; about 90 % of it
        .l2_kept_bytes = 13e6,           // a third of the cache
    },
    {
        .name = "sm_86",
        .chip = "RTX 3090",
        .compute = 86,
        .async_copy = true,
        .multiprocessors = 82,  // GA102 whitepaper
        .max_threads_per_multiprocessor = 1536,
        .max_shared_per_block = 99 * 1024,
        .max_shared_per_multiprocessor = 100 * 1024,
        .clock_ghz = 1.695,          // GA102 whitepaper, boost
        .fma_lanes_per_clock = 128,  // GA102 whitepaper
        .chip_fetch_per_clock = 7,
        .instruction_cache_bytes = 128 * 1024,  // as A100
        .l2_bytes_per_clock = 1400,             // twelve 512 KB slices of 64 bytes x2: 1536 peak
        .device_bytes_per_clock = 500,          // whitepaper: 936 GB/s; about 90 % of it
        .l2_kept_bytes = 2e6,                   // a third of the cache
    },
    {
        .name = "sm_89",
        .chip = "RTX 4090",
        .compute = 89,
        .async_copy = true,
        .multiprocessors = 128,  // Ada whitepaper
        .max_threads_per_multiprocessor = 1536,
        .max_shared_per_block = 99 * 1024,
        .max_shared_per_multiprocessor = 100 * 1024,
        .clock_ghz = 2.52,           // Ada whitepaper, boost
        .fma_lanes_per_clock = 128,  // Ada whitepaper
        .chip_fetch_per_clock = 10,
        .instruction_cache_bytes = 128 * 1024,  // as A100
        .l2_bytes_per_clock = 2000,             // public microbenchmarks of the chip: about 5 TB/s
        .device_bytes_per_clock = 360,          // whitepaper: 1008 GB/s; about 90 % of it
        .l2_kept_bytes = 24e6,                  // a third of the cache
    },
    // This was measured on one H200; docs/experiments.md has the figures.
    {
        .name = "sm_90",
        .chip = "H200",
        .compute = 90,
        .measured = true,
        .async_copy = true,
        .clusters = true,
        .multiprocessors = 132,  // as the driver reports
        .max_threads_per_multiprocessor = 2048,
        .max_shared_per_block = 227 * 1024,
        .max_shared_per_multiprocessor = 228 * 1024,
        .clock_ghz = 1.98,                      // measured
        .fma_lanes_per_clock = 128,             // peak; about 110 reached in a loop that the instruction cache holds
        .chip_fetch_per_clock = 14,             // measured: 132 different codes in flight (about 440 GB/s)
        .instruction_cache_bytes = 100 * 1024,  // measured within a launch; 32 KB survive to the next launch
        .l2_bytes_per_clock = 2830,             // measured: 5.6 TB/s by 4-byte asynchronous copies
        .device_bytes_per_clock = 2170,         // measured: 4.3 TB/s by a copy
        .l2_kept_bytes = 16e6,                  // fitted: a third of the cache
        .cluster_reduction_us = 0.4,            // fitted
        .cluster_bytes_per_clock = 20,          // fitted
        .clustered_blocks = {132, 132, 117, 120, 110, 102, 105, 120},  // the driver's answer; launches bear it out
    },
}};

}  // namespace

int resident_warps(int registers_per_multiprocessor, int registers) {
  if (registers < 1) return 0;
  const auto rounded = static_cast<int>(ceil_div(registers, kRegisterGranularity) * kRegisterGranularity);
  return registers_per_multiprocessor / kSchedulersPerMultiprocessor / (rounded * kWarpSize) *
         kSchedulersPerMultiprocessor;
}

int most_registers(int registers_per_multiprocessor, std::int64_t warps) {
  const std::int64_t per_scheduler = std::max<std::int64_t>(1, ceil_div(warps, kSchedulersPerMultiprocessor));
  const std::int64_t registers =
      registers_per_multiprocessor / kSchedulersPerMultiprocessor / (per_scheduler * kWarpSize);
  return static_cast<int>(registers / kRegisterGranularity * kRegisterGranularity);
}

std::span<const ArchSpec> known_archs() { return kArchs; }

std::vector<std::string> known_arch_names() {
  std::vector<std::string> names;
  for (const ArchSpec& arch : kArchs) names.emplace_back(arch.name);
  return names;
}

const ArchSpec* find_arch(std::string_view name) {
  const auto found = std::ranges::find(kArchs, name, &ArchSpec::name);
  return found == kArchs.end() ? nullptr : &*found;
}

const ArchSpec& arch_by_name(std::string_view name) {
  if (const ArchSpec* arch = find_arch(name)) return *arch;
  fail(ErrorKind::unsupported, "architecture '{}' is not known; known are {}", name,
       fmt::join(known_arch_names(), ", "));
}

const ArchSpec& arch_of_code(std::string_view name) {
  const std::optional<ArchName> parsed = parse_arch_name(name);
  return parsed && parsed->suffix != '\0' ? arch_by_name(name.substr(0, name.size() - 1)) : arch_by_name(name);
}

std::optional<ArchName> parse_arch_name(std::string_view name) {
  std::string_view rest = name;
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (rest.starts_with(prefix)) {
      rest.remove_prefix(prefix.size());
      break;
    }
  }
  ArchName arch;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), arch.compute);
  const std::string_view suffix(end, rest.data() + rest.size() - end);
  constexpr int kOldest = 10;
  constexpr int kNewest = 999;
  if (rest.size() == name.size() || error != std::errc{} || arch.compute < kOldest || arch.compute > kNewest ||
      !(suffix.empty() || suffix == "a" || suffix == "f")) {
    return std::nullopt;
  }
  arch.suffix = suffix.empty() ? '\0' : suffix.front();
  return arch;
}

const ArchSpec* arch_for_device(int compute) {
  // From 12.0 on, a block has no more shared memory than on 8.9, which plans for 9.0 may exceed.
  constexpr int kLittleSharedMemory = 120, kLatestForThose = 89;
  const int latest = compute >= kLittleSharedMemory ? kLatestForThose : compute;
  const ArchSpec* best = nullptr;
  for (const ArchSpec& arch : kArchs) {
    if (arch.compute <= latest) best = &arch;
  }
  return best;
}

}  // namespace burin
