#include "compiler/plan/cost_model.h"

#include <algorithm>
#include <cmath>

#include "compiler/plan/shared_layout.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// What the generated code is made of. Counted in the baked template and its machine code.
constexpr int kInstructionBytes = 16;
// Prologue and end are in ArchSpec::launch_us of the first block and in kBlockStartUs of the others.
constexpr double kOutputInstructions = 4;     // per accumulator: bias, residual, activation, store
constexpr double kLocateInstructions = 40;    // an address that is not held in registers is computed again per stage
constexpr int kHeldPositions = 4;             // addresses of a thread that stay in registers through all stages
constexpr int kRegistersPerHeldPosition = 4;  // 64-bit source, target, validity
constexpr int kSchedulers = 4;                // of a multiprocessor, each issues one warp per clock
constexpr double kIssueLanes = 128;           // lanes that all schedulers issue per clock

// What was measured on the H200 beside the constants of ArchSpec; the figures are of the baked prototype.
constexpr double kOverlapLoss = 0.5;         // copies contend with arithmetic: 1x1 512@14 b32 10.8 + 32.9 -> 38.8 us
constexpr double kSharersOfFetch = 8;        // multiprocessors served by one fetch of the same code
constexpr double kCopyLatencyClocks = 1000;  // of a copy under load; bytes in flight / latency bounds the rate
constexpr double kBarrierClocks = 30;        // of a barrier, and for each warp: 205 for 25 warps, measured with
constexpr double kBarrierClocksPerWarp = 7;  // c128@28 b32, 8 to 32 stages, or one barrier per 96 multiply-adds
constexpr double kBlockStartUs = 1.0;        // a following block's first copies, when no other block covers them
constexpr double kScratchReadGain = 2;       // reads of partial sums against 4-byte copies, by bandwidth
constexpr double kCachedPartialBytes = 32 << 20;  // partial sums of one launch that the L2 cache holds
constexpr double kUncachedLoss = 2;               // time of partial sums that go through device memory
constexpr int kMaxResidentBlocks = 32;            // hardware limit
constexpr int kSharedBytesPerBlock = 1024;        // reserved by the driver
constexpr double kUsPerClockOfGhz = 1e-3;

}  // namespace

int needed_registers(int group_capacity, std::int64_t patch_positions, int threads) {
  const std::int64_t per_thread = ceil_div(patch_positions, threads);
  // kRegisterOverhead covers one held position; computing addresses again takes the registers of two.
  const int held = per_thread > kHeldPositions ? 2 : static_cast<int>(per_thread) - 1;
  return group_capacity + kRegisterOverhead + held * kRegistersPerHeldPosition;
}

int resident_blocks(int threads, int registers, int shared_bytes, const ArchSpec& arch) {
  const std::int64_t rounded = ceil_div(registers, kRegisterGranularity) * kRegisterGranularity;
  std::int64_t blocks = kMaxResidentBlocks;
  blocks = std::min<std::int64_t>(blocks, arch.max_threads_per_multiprocessor / threads);
  blocks = std::min(blocks, arch.registers_per_multiprocessor / (rounded * threads));
  blocks = std::min<std::int64_t>(blocks, arch.max_shared_per_multiprocessor / (shared_bytes + kSharedBytesPerBlock));
  return static_cast<int>(blocks);
}

CostBreakdown launch_cost(const LaunchFigures& figures, const ArchSpec& arch) {
  const double us_per_clock = kUsPerClockOfGhz / arch.clock_ghz;
  const int multiprocessors = arch.multiprocessors;
  const auto blocks = static_cast<double>(figures.tiles) * figures.slices;
  const double per_sm = std::ceil(blocks / multiprocessors);  // blocks that the busiest multiprocessor runs
  const double active = std::min<double>(blocks, multiprocessors);
  const double capacity = std::max(1, resident_blocks(figures.threads, figures.registers, figures.shared_bytes, arch));
  const double resident = std::min(per_sm, capacity);

  // The busiest multiprocessor of few blocks has the fullest slice; of many, nearly the mean.
  const auto typical = [&](double mean, double fullest) { return mean + (fullest - mean) / per_sm; };
  const double multiply_adds = typical(figures.mean.multiply_adds, figures.fullest.multiply_adds);
  const double loads = typical(figures.mean.loads, figures.fullest.loads);
  const double channels = typical(figures.mean.channels, figures.fullest.channels);

  // ---- issue: clocks of one block on a multiprocessor of its own
  const double positions_per_thread = std::ceil(static_cast<double>(figures.patch_positions) / figures.threads);
  const bool held = positions_per_thread <= kHeldPositions;
  const double stages = std::ceil(channels / figures.stage_channels);
  const double copies = channels * positions_per_thread;
  double frame = kOutputInstructions * figures.group_capacity;
  double gathers = 0;
  if (figures.splits > 1) {
    frame += 2.0 * figures.group_capacity;  // publish, and the loop that gathers
    gathers = static_cast<double>(figures.splits) * figures.group_capacity;
  }
  const double addresses = held ? 0 : stages * positions_per_thread * kLocateInstructions;
  const double warps = static_cast<double>(figures.threads) / kWarpSize;
  const double rounds = resident > 1 ? warps / kSchedulers : std::ceil(warps / kSchedulers);
  const double lanes_share = kIssueLanes / arch.fma_lanes_per_clock;
  const double load_slots = arch.shared_load_cost * loads * figures.load_conflict;
  const double pure = multiply_adds * lanes_share / arch.sustained_issue;
  const double mixed = multiply_adds * lanes_share + load_slots;
  // One load per clock and multiprocessor, whatever else is issued.
  const double load_bound = kSchedulers * loads * figures.load_conflict;
  double barriers = stages;
  if (figures.barrier_every > 0 && stages > 0) {
    barriers += stages * std::floor(multiply_adds / stages / figures.barrier_every);
  }
  const double issue = (std::max({pure, mixed, load_bound}) + copies + addresses + frame) * rounds;
  const double waiting = barriers * (kBarrierClocks + kBarrierClocksPerWarp * warps) / resident;

  // ---- fetch: clocks to stream the code of one block, once
  const double code = multiply_adds + loads + (held ? copies : channels + kLocateInstructions * stages) + frame;
  const double codes_in_flight =
      std::min<double>(figures.slices, std::ceil(active * resident / static_cast<double>(figures.tiles)));
  const double fetch_clocks = std::max(arch.fetch_clocks_per_instruction,
                                       std::min(active, kSharersOfFetch * codes_in_flight) / arch.chip_fetch_per_clock);
  const double fetch = code * fetch_clocks;
  // Blocks of one slice follow each other, so code that fits the cache is streamed once per slice.
  const bool fits = code * kInstructionBytes <= arch.instruction_cache_bytes;
  const double slices_seen = std::min(per_sm, std::ceil(per_sm * multiprocessors / static_cast<double>(figures.tiles)));
  const double cold = fits ? slices_seen : per_sm;
  const double busy = per_sm * (issue + waiting);
  const double starved = cold * std::max(0.0, fetch - issue);  // warps wait for code
  const double compute = busy + starved;

  // ---- staging: whole warps copy one word per lane
  const double sm_bytes_per_clock = arch.l2_bytes_per_clock / multiprocessors;
  const double words = std::ceil(static_cast<double>(figures.patch_positions) / kWarpSize) * kWarpSize;
  const double in_flight = resident * std::max(1, figures.buffers - 1) * static_cast<double>(figures.stage_bytes);
  const double rate = std::min(sm_bytes_per_clock, std::max(1.0, in_flight / kCopyLatencyClocks));
  const double stage_clocks = words * sizeof(float) / rate;  // of one channel
  const double first = stage_clocks * std::min<double>(channels, figures.stage_channels) * per_sm / resident;
  const double rest = std::max(0.0, stage_clocks * channels * per_sm - first);
  const double overlapped =
      arch.async_copy ? std::max(compute, rest) + kOverlapLoss * std::min(compute, rest) : compute + rest;

  CostBreakdown cost;
  cost.issue_us = busy * us_per_clock;
  cost.fetch_us = starved * us_per_clock;
  cost.staging_us = (std::max(0.0, overlapped - compute) + first) * us_per_clock;
  if (figures.splits > 1) {
    const double partial_bytes = static_cast<double>(figures.group_capacity) * figures.threads * sizeof(float);
    const double loss = partial_bytes * blocks > kCachedPartialBytes ? kUncachedLoss : 1;
    const double write = loss * per_sm * partial_bytes / sm_bytes_per_clock;
    const double gather_blocks = std::ceil(per_sm / figures.splits);
    const double read =
        gather_blocks *
        std::max(loss * figures.splits * partial_bytes / (kScratchReadGain * sm_bytes_per_clock), 2 * gathers * rounds);
    cost.reduction_us = arch.split_reduction_us + (write + read) * us_per_clock;
  }
  cost.fixed_us = arch.launch_us + (std::ceil(per_sm / resident) - 1) * kBlockStartUs / resident;
  cost.waves = blocks / (multiprocessors * capacity);
  cost.total_us = cost.issue_us + cost.fetch_us + cost.staging_us + cost.reduction_us + cost.fixed_us;
  return cost;
}

LaunchFigures figures_of(const KernelPlan& plan, const ConvShape& shape, const std::vector<SliceWork>& work) {
  LaunchFigures figures;
  figures.tiles = ceil_div(plan.batch, plan.tile.images) * plan.tiles_per_image(shape);
  figures.slices = static_cast<int>(plan.slices.size());
  figures.splits = plan.splits;
  figures.threads = plan.threads;
  figures.group_capacity = plan.group_capacity();
  figures.registers = plan.max_registers;
  figures.shared_bytes = plan.shared_bytes();
  figures.stage_bytes = plan.stage_bytes();
  figures.stage_channels = plan.stage_channels;
  figures.buffers = plan.buffers;
  figures.barrier_every = plan.barrier_every;
  figures.patch_positions = saturating_product({plan.tile.images, plan.shared.patch_rows, plan.shared.patch_cols});
  figures.load_conflict = load_conflict(plan.tile, plan.shared, shape);
  for (const SliceWork& slice : work) {
    figures.mean.multiply_adds += slice.multiply_adds;
    figures.mean.loads += slice.loads;
    figures.mean.channels += slice.channels;
    figures.fullest.multiply_adds = std::max(figures.fullest.multiply_adds, slice.multiply_adds);
    figures.fullest.loads = std::max(figures.fullest.loads, slice.loads);
    figures.fullest.channels = std::max(figures.fullest.channels, slice.channels);
  }
  const auto count = static_cast<double>(std::max<std::size_t>(1, work.size()));
  figures.mean.multiply_adds /= count;
  figures.mean.loads /= count;
  figures.mean.channels /= count;
  return figures;
}

CostBreakdown predict(const KernelPlan& plan, const ConvShape& shape, const SparsePattern& pattern,
                      const ArchSpec& arch) {
  const std::vector<std::string> faults = verify(plan, shape);
  if (!faults.empty()) fail(ErrorKind::bad_input, "a plan with faults has no cost: {}", faults.front());
  return launch_cost(figures_of(plan, shape, slice_work(plan, pattern)), arch);
}

}  // namespace burin
