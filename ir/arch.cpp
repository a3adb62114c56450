#include "ir/arch.h"

#include <algorithm>
#include <array>

#include "ir/error.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
// Chip figures (multiprocessors, boost clock): NVIDIA's data sheet or architecture whitepaper of the named chip.
//
// What no public document gives for the unmeasured chips is carried over from the H200: the share of peak issue in
// lockstep, the fetch clocks per instruction of one multiprocessor, the cost of a shared-memory load, launch and
// reduction overheads. Instruction fetch of the whole chip is scaled from the H200 by the bandwidth of the L2 cache.

constexpr double kLockstepIssueShare = 105.0 / 128.0;  // H200: 100-110 of 128 multiply-adds per clock with barriers
constexpr double kFetchClocks = 6.0;                   // H200: 0.17 instructions per clock on code not held
constexpr double kSharedLoadCost = 2.0;                // H200: (FMA + 2 x LDS) matched the measured kernels
constexpr double kLaunchUs = 0.2;                      // H200: these two fitted to test/models/times.tsv, in which the
constexpr double kFillUs = 0.65;                       // smallest kernels take 0.87, and convolutions wait twice
constexpr double kSplitReductionUs = 1.5;              // fence, atomic and one dependent round trip to L2 and back

constexpr ArchSpec turing() {
  ArchSpec arch;
  arch.name = "sm_75";
  arch.chip = "T4";
  arch.compute = 75;
  arch.multiprocessors = 40;  // Turing whitepaper
  arch.max_threads_per_multiprocessor = 1024;
  arch.max_shared_per_block = 64 * 1024;
  arch.max_shared_per_multiprocessor = 64 * 1024;
  arch.clock_ghz = 1.59;          // T4 data sheet, boost
  arch.fma_lanes_per_clock = 64;  // Turing whitepaper: 64 FP32 lanes
  arch.sustained_issue = kLockstepIssueShare;
  arch.fetch_clocks_per_instruction = kFetchClocks;
  arch.chip_fetch_per_clock = 5;
  arch.instruction_cache_bytes = 46 * 1024;  // "Dissecting the NVIDIA Turing T4 GPU via Microbenchmarking" (2019)
  arch.shared_load_cost = kSharedLoadCost;
  arch.l2_bytes_per_clock = 800;      // the same study: 1270 GB/s
  arch.device_bytes_per_clock = 200;  // data sheet: 320 GB/s
  arch.l2_kept_bytes = 1.3e6;         // a third of the cache
  arch.launch_us = kLaunchUs;
  arch.fill_us = kFillUs;
  arch.split_reduction_us = kSplitReductionUs;
  return arch;
}

constexpr ArchSpec ampere_a100() {
  ArchSpec arch;
  arch.name = "sm_80";
  arch.chip = "A100";
  arch.compute = 80;
  arch.async_copy = true;
  arch.multiprocessors = 108;  // A100 whitepaper
  arch.max_threads_per_multiprocessor = 2048;
  arch.max_shared_per_block = 163 * 1024;
  arch.max_shared_per_multiprocessor = 164 * 1024;
  arch.clock_ghz = 1.41;          // A100 data sheet, boost
  arch.fma_lanes_per_clock = 64;  // A100 whitepaper: 64 FP32 lanes
  arch.sustained_issue = kLockstepIssueShare;
  arch.fetch_clocks_per_instruction = kFetchClocks;
  arch.chip_fetch_per_clock = 14;
  arch.instruction_cache_bytes = 128 * 1024;  // "Demystifying the Nvidia Ampere Architecture" (2022)
  arch.shared_load_cost = kSharedLoadCost;
  arch.l2_bytes_per_clock = 2800;      // whitepaper: 5120 peak; the share of peak that 4-byte copies reach on the H200
  arch.device_bytes_per_clock = 1000;  // data sheet: 1555 GB/s; about 90 % of it
  arch.l2_kept_bytes = 13e6;           // a third of the cache
  arch.launch_us = kLaunchUs;
  arch.fill_us = kFillUs;
  arch.split_reduction_us = kSplitReductionUs;
  return arch;
}

constexpr ArchSpec ampere_ga10x() {
  ArchSpec arch;
  arch.name = "sm_86";
  arch.chip = "RTX 3090";
  arch.compute = 86;
  arch.async_copy = true;
  arch.multiprocessors = 82;  // GA102 whitepaper
  arch.max_threads_per_multiprocessor = 1536;
  arch.max_shared_per_block = 99 * 1024;
  arch.max_shared_per_multiprocessor = 100 * 1024;
  arch.clock_ghz = 1.695;          // GA102 whitepaper, boost
  arch.fma_lanes_per_clock = 128;  // GA102 whitepaper
  arch.sustained_issue = kLockstepIssueShare;
  arch.fetch_clocks_per_instruction = kFetchClocks;
  arch.chip_fetch_per_clock = 7;
  arch.instruction_cache_bytes = 128 * 1024;  // as A100
  arch.shared_load_cost = kSharedLoadCost;
  arch.l2_bytes_per_clock = 1400;     // twelve 512 KB slices of 64 bytes x2: 1536 peak
  arch.device_bytes_per_clock = 500;  // whitepaper: 936 GB/s; about 90 % of it
  arch.l2_kept_bytes = 2e6;           // a third of the cache
  arch.launch_us = kLaunchUs;
  arch.fill_us = kFillUs;
  arch.split_reduction_us = kSplitReductionUs;
  return arch;
}

constexpr ArchSpec ada() {
  ArchSpec arch;
  arch.name = "sm_89";
  arch.chip = "RTX 4090";
  arch.compute = 89;
  arch.async_copy = true;
  arch.multiprocessors = 128;  // Ada whitepaper
  arch.max_threads_per_multiprocessor = 1536;
  arch.max_shared_per_block = 99 * 1024;
  arch.max_shared_per_multiprocessor = 100 * 1024;
  arch.clock_ghz = 2.52;           // Ada whitepaper, boost
  arch.fma_lanes_per_clock = 128;  // Ada whitepaper
  arch.sustained_issue = kLockstepIssueShare;
  arch.fetch_clocks_per_instruction = kFetchClocks;
  arch.chip_fetch_per_clock = 10;
  arch.instruction_cache_bytes = 128 * 1024;  // as A100
  arch.shared_load_cost = kSharedLoadCost;
  arch.l2_bytes_per_clock = 2000;     // public microbenchmarks of the chip: about 5 TB/s
  arch.device_bytes_per_clock = 360;  // whitepaper: 1008 GB/s; about 90 % of it
  arch.l2_kept_bytes = 24e6;          // a third of the cache
  arch.launch_us = kLaunchUs;
  arch.fill_us = kFillUs;
  arch.split_reduction_us = kSplitReductionUs;
  return arch;
}

// This was measured on one H200; docs/experiments.md has the figures.
constexpr ArchSpec hopper() {
  ArchSpec arch;
  arch.name = "sm_90";
  arch.chip = "H200";
  arch.compute = 90;
  arch.measured = true;
  arch.async_copy = true;
  arch.clusters = true;
  arch.multiprocessors = 132;  // as the driver reports
  arch.max_threads_per_multiprocessor = 2048;
  arch.max_shared_per_block = 227 * 1024;
  arch.max_shared_per_multiprocessor = 228 * 1024;
  arch.clock_ghz = 1.98;                       // measured
  arch.fma_lanes_per_clock = 128;              // peak; about 110 reached in a loop that the instruction cache holds
  arch.sustained_issue = kLockstepIssueShare;  // measured: barriers every 256-1024 instructions
  arch.fetch_clocks_per_instruction = kFetchClocks;  // measured: one multiprocessor, code that it does not hold
  arch.chip_fetch_per_clock = 14;                    // measured: 132 different codes in flight (about 440 GB/s)
  arch.instruction_cache_bytes = 100 * 1024;         // measured within a launch; 32 KB survive to the next launch
  arch.shared_load_cost = kSharedLoadCost;           // measured: the model that held
  arch.l2_bytes_per_clock = 2830;                    // measured: 5.6 TB/s by 4-byte asynchronous copies
  arch.device_bytes_per_clock = 2170;                // measured: 4.3 TB/s by a copy
  arch.l2_kept_bytes = 16e6;                         // fitted: a third of the cache
  arch.launch_us = kLaunchUs;
  arch.fill_us = kFillUs;
  arch.split_reduction_us = kSplitReductionUs;                       // estimated: fence, atomic, round trip to L2
  arch.cluster_reduction_us = 0.4;                                   // fitted
  arch.cluster_bytes_per_clock = 20;                                 // fitted
  arch.clustered_blocks = {132, 132, 117, 120, 110, 102, 105, 120};  // the driver's answer; launches bear it out
  return arch;
}

constexpr std::array<ArchSpec, 5> kArchs = {turing(), ampere_a100(), ampere_ga10x(), ada(), hopper()};

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

const ArchSpec& arch_by_name(std::string_view name) {
  std::string names;
  for (const ArchSpec& arch : kArchs) {
    if (arch.name == name) return arch;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", arch.name);
  }
  fail(ErrorKind::unsupported, "architecture '{}' is not known; known are {}", name, names);
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
