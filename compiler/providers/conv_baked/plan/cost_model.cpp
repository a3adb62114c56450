#include "compiler/providers/conv_baked/plan/cost_model.h"

#include <algorithm>
#include <cmath>

#include "compiler/launch_time.h"
#include "compiler/providers/conv_baked/plan/search.h"
#include "compiler/providers/conv_baked/plan/shared_layout.h"
#include "ir/baked_plan_pool.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// What the generated code is made of. Counted in the baked template and its machine code.
constexpr int kInstructionBytes = 16;
constexpr double kFrameInstructions =
    120;  // locating the tile, prologue, end; the first block's are in LaunchWork::waits
constexpr double kOutputInstructions = 4;     // per accumulator: bias, residual, activation, store
constexpr double kSplitInstructions = 2;      // per accumulator: publish, gather
constexpr double kClusterInstructions = 30;   // barriers and mapped addresses
constexpr double kPartialInstructions = 3;    // per partial sum that passes between blocks: store, load, add
constexpr double kPoolInstructions = 40;      // per output of a pool: its place, its number, the store
constexpr double kPoolLatencyClocks = 100;    // of a round of outputs: loads, and the number that leads to the store
constexpr double kPoolCode = 120;             // instructions that every slice has for it, beside 2 for each channel
constexpr double kLocateInstructions = 40;    // an address that is not held in registers is computed again per stage
constexpr int kHeldPositions = 4;             // addresses of a thread that stay in registers through all stages
constexpr int kRegistersPerHeldPosition = 4;  // 64-bit source, target, validity
constexpr int kSchedulers = 4;                // of a multiprocessor, each issues one warp per clock
constexpr double kIssueLanes = 128;           // lanes that all schedulers issue per clock

// These stand beside the constants of ArchSpec. They are from H200 measurements of the baked prototype where a figure
// is given, and else fitted to 38 measured plans (docs/experiments.md).
constexpr double kOverlapLoss = 0.5;        // copies contend with arithmetic: 1x1 512@14 b32 10.8 + 32.9 -> 38.8 us
constexpr double kPairedFetchLoss = 1.15;   // of two multiprocessors on one code: 6.4 to 7.4 clocks, by codes in flight
constexpr double kBulkOverlapLoss = 0.25;   // copies that no thread issues, and direct loads
constexpr double kLoadLatencyClocks = 600;  // of a direct load
constexpr double kCopyLatencyClocks = 1000;  // of a copy under load; bytes in flight / latency bounds the rate
constexpr double kBarrierClocks = 30;        // of a barrier, and for each warp: 205 for 25 warps, measured with
constexpr double kBarrierClocksPerWarp = 7;  // c128@28 b32, 8 to 32 stages, or one barrier per 96 multiply-adds
constexpr double kScratchReadGain = 2;       // reads of partial sums against 4-byte copies, by bandwidth
constexpr double kMergedReadGain = 3;        // one tile: all blocks read the same activations; 1x1 512@14 b1
constexpr double kFullestScheduler = 0.75;   // its share in what all take; chosen by networks (docs/experiments.md)
constexpr double kMergedCopyGain = 2.5;      // the same of bulk copies: 1x1 512->1024@28/2 b1
constexpr double kDirectLoadGain = 1.3;      // loads of whole warps against 4-byte copies, by bandwidth: 1x1 512@14 b32
constexpr double kStridedLoss = 1.7;         // of direct loads that use every other word of what they bring
// What clusters of several tiles took beyond the other terms where input is staged: fitted to nine plans at batch 1, of
// which the model made too much.
constexpr double kClusterTilesUs = 0.9;
constexpr double kCachedBytes = 32 << 20;   // what the L2 cache surely holds of one launch's data
constexpr double kUncachedLoss = 2;         // time of partial sums that go through device memory
constexpr int kMaxResidentBlocks = 32;      // hardware limit
constexpr int kSharedBytesPerBlock = 1024;  // reserved by the driver
constexpr double kSectorBytes = 32;         // the smallest unit of a memory access

// The parts of one multiprocessor's time, in clocks. The busiest multiprocessor decides.
class LaunchModel {
 public:
  LaunchModel(const LaunchFigures& figures, const ArchSpec& arch) : f_(figures), arch_(arch) {
    clustered_ = f_.reduction == Reduction::cluster;
    capacity_ = std::max(1, resident_blocks(f_.threads, f_.registers, f_.shared_bytes, arch));
    // Clusters that find no whole multiprocessors share some with others, if there is room.
    cluster_blocks_ = std::max(f_.cluster.blocks(), clustered_ ? f_.splits : 1);
    const bool crowded = arch.clusters && capacity_ == 1;
    reachable_ = crowded ? arch.clustered_blocks.at(cluster_blocks_ - 1) : arch.multiprocessors;
    blocks_ = static_cast<double>(ceil_div(f_.tiles, f_.cluster.tiles) * f_.cluster.tiles) * f_.slices;
    per_sm_ = std::ceil(blocks_ / reachable_);
    active_ = std::min<double>(blocks_, reachable_);
    resident_ = std::min(per_sm_, capacity_);
    multiply_adds_ = typical(f_.mean.multiply_adds, f_.fullest.multiply_adds);
    loads_ = typical(f_.mean.loads, f_.fullest.loads);
    sums_ = static_cast<double>(f_.group_capacity) * f_.sums_per_channel;
    channels_ = typical(f_.mean.channels, f_.fullest.channels);
    stages_ = std::ceil(channels_ / f_.stage_channels);
    instructions_ =
        multiply_adds_ * f_.tap_instructions + loads_ * f_.unpack_instructions + stages_ * f_.jump_instructions;
    positions_per_thread_ = std::ceil(static_cast<double>(f_.patch_positions) / f_.threads);
    direct_ = f_.staging == Staging::direct;
    copied_by_threads_ = f_.staging == Staging::shared;
    held_ = !copied_by_threads_ || positions_per_thread_ <= kHeldPositions;
    warps_ = static_cast<double>(f_.threads) / kWarpSize;
    // A scheduler that has a warp more than the others holds them up, but not all the time.
    const double fullest = resident_ > 1 ? 0 : kFullestScheduler;
    rounds_ = fullest * std::ceil(warps_ / kSchedulers) + (1 - fullest) * warps_ / kSchedulers;
    sm_bytes_per_clock_ = arch.l2_bytes_per_clock / arch.multiprocessors;
    partial_bytes_ = sums_ * f_.threads * sizeof(float);
  }

  CostBreakdown cost() const {
    const double us_per_clock = clocks_us(1, arch_);
    const double issue = issue_clocks();
    const double busy =
        per_sm_ * (issue + barrier_clocks() + pool_clocks()) + (per_sm_ - 1) * kFrameInstructions * rounds_;
    const double starved = cold_blocks() * std::max(0.0, code() * fetch_clocks_per_instruction() - issue);
    CostBreakdown cost;
    cost.issue_us = busy * us_per_clock;
    cost.fetch_us = starved * us_per_clock;
    cost.staging_us = exposed_memory_clocks(busy + starved) * us_per_clock;
    if (f_.strided) {
      cost.issue_us *= kStridedLoss;
      cost.staging_us *= kStridedLoss;
    }
    if (clustered_) {
      cost.reduction_us = arch_.cluster_reduction_us + cluster_clocks() * us_per_clock;
    } else if (f_.reduction == Reduction::last_block) {
      cost.reduction_us = arch_.split_reduction_us + reduction_clocks() * us_per_clock;
    }
    const double busy_us = cost.issue_us + cost.fetch_us + cost.staging_us + cost.reduction_us;
    LaunchWork work{.busy_us = busy_us,
                    .blocks = per_sm_,
                    .resident = resident_,
                    .waits = kConvolutionWaits,
                    .activation_bytes = f_.traffic_bytes};
    cost.total_us = launch_time_us(work, arch_);
    work.activation_bytes = 0;
    cost.fixed_us = launch_time_us(work, arch_) - busy_us;
    cost.staging_us += cost.total_us - busy_us - cost.fixed_us;  // from device memory, and to it
    if (f_.cluster.tiles > 1 && !direct_) {
      cost.fixed_us += kClusterTilesUs;
      cost.total_us += kClusterTilesUs;
    }
    cost.waves = blocks_ / (reachable_ * capacity_);
    return cost;
  }

 private:
  // The fullest slice decides where there are few blocks, and nearly the mean where there are many.
  double typical(double mean, double fullest) const { return mean + (fullest - mean) / per_sm_; }

  // What stands around the multiply-adds: outputs, and with splits publishing and the loop that gathers.
  double frame() const {
    if (clustered_) {  // of each channel one block makes the output
      const double passed = kPartialInstructions * (f_.splits - 1);
      return kClusterInstructions + (kOutputInstructions + passed) * sums_ / f_.splits;
    }
    return (f_.splits > 1 ? kOutputInstructions + kSplitInstructions : kOutputInstructions) * sums_;
  }
  // Outputs of a pool, made by all threads of a block when they have kept their values.
  double pool_clocks() const {
    if (f_.pool_positions == 0) return 0;
    const double outputs = own_channels() * static_cast<double>(f_.tile_outputs);
    const int lanes = window_lanes(f_.pool_positions, static_cast<std::int64_t>(outputs), f_.threads);
    const double rounds = std::ceil(outputs * lanes / f_.threads);
    const double positions = std::ceil(static_cast<double>(f_.pool_positions) / lanes);
    const double issued = (kPoolInstructions + f_.position_instructions * positions) * std::min(rounds_, warps_);
    return 2 * (kBarrierClocks + kBarrierClocksPerWarp * warps_) / resident_ +
           rounds * (issued + kPoolLatencyClocks / resident_);
  }
  double own_channels() const { return static_cast<double>(f_.group_capacity) / (clustered_ ? f_.splits : 1); }
  double pool_code() const { return f_.pool_positions == 0 ? 0 : kPoolCode + 2 * own_channels(); }

  double copies() const { return copied_by_threads_ ? channels_ * positions_per_thread_ : 0; }

  // All instructions of one block without waiting for anything.
  double issue_clocks() const {
    const double slots_per_instruction = kIssueLanes / arch_.fma_lanes_per_clock;
    const double loads = loads_ * f_.load_conflict;
    const double alone = instructions_ * slots_per_instruction / arch_.sustained_issue;
    const double mixed = instructions_ * slots_per_instruction + arch_.shared_load_cost * loads;
    const double load_bound =
        kSchedulers * loads * f_.load_words;  // one per clock and multiprocessor, whatever else is issued
    const double addresses = held_ ? 0 : stages_ * positions_per_thread_ * kLocateInstructions;
    return (std::max({alone, mixed, load_bound}) + copies() + addresses + frame()) * rounds_;
  }

  double barrier_clocks() const {
    double barriers = direct_ ? 0 : stages_;
    if (f_.barrier_every > 0 && stages_ > 0) {
      barriers += stages_ * std::floor(multiply_adds_ / stages_ / f_.barrier_every);
    }
    return barriers * (kBarrierClocks + kBarrierClocksPerWarp * warps_) / resident_;
  }

  // Instructions of one slice.
  double code() const {
    return instructions_ + loads_ + (held_ ? copies() : channels_ + kLocateInstructions * stages_) + frame() +
           pool_code();
  }

  // Two neighbouring multiprocessors fetch together: the same code at the rate of one, two codes at the rate that the
  // whole chip allows. Blocks are placed in the order of their numbers, tiles first, and a cluster stays together.
  double fetch_clocks_per_instruction() const {
    if (f_.slices == 1) return arch_.fetch_clocks_per_instruction;
    const bool paired = (cluster_blocks_ == 1 ? f_.tiles : f_.cluster.tiles) % 2 == 0;
    if (paired) return arch_.fetch_clocks_per_instruction * kPairedFetchLoss;
    return std::max(arch_.fetch_clocks_per_instruction, active_ / arch_.chip_fetch_per_clock);
  }

  // Blocks of one slice follow each other, so code that fits the cache is streamed once per slice.
  double cold_blocks() const {
    if (code() * kInstructionBytes > arch_.instruction_cache_bytes) return per_sm_;
    return std::min(per_sm_, std::ceil(per_sm_ * reachable_ / static_cast<double>(f_.tiles)));
  }

  // Copies and stores beyond what arithmetic of `compute` clocks hides. Whole warps copy one word per lane.
  double exposed_memory_clocks(double compute) const {
    const double words = std::ceil(static_cast<double>(f_.patch_positions) / kWarpSize) * kWarpSize;
    const double direct_bytes = static_cast<double>(kDirectLoadAhead) * f_.threads * sizeof(float);
    const int ahead = std::max(1, f_.buffers - 1);
    const double in_flight = resident_ * (direct_ ? direct_bytes : ahead * static_cast<double>(f_.stage_bytes));
    // Requests of many multiprocessors for the same lines merge on their way.
    const double merged = f_.tiles > 1 ? 1 : direct_ ? kMergedReadGain : kMergedCopyGain;
    const double gain = copied_by_threads_ ? 1 : direct_ ? kDirectLoadGain * merged : merged;
    const double peak = gain * sm_bytes_per_clock_;
    const double latency = direct_ ? kLoadLatencyClocks : kCopyLatencyClocks;
    const double rate = std::min(peak, std::max(1.0, in_flight / latency));
    const double per_channel = words * sizeof(float) * f_.copy_waste / rate;
    const double first_channels = direct_ ? kDirectLoadAhead : f_.stage_channels;
    const double first = per_channel * std::min<double>(channels_, first_channels) * per_sm_ / resident_;
    const double pooled = f_.pool_positions == 0 ? 1 : static_cast<double>(f_.tile_outputs) / f_.threads;
    const double stores = per_sm_ / f_.splits * partial_bytes_ * pooled * f_.store_waste / sm_bytes_per_clock_;
    const double rest = std::max(0.0, per_channel * channels_ * per_sm_ - first) + stores;
    if (!arch_.async_copy) return first + rest;
    const double loss = copied_by_threads_ ? kOverlapLoss : kBulkOverlapLoss;
    return first + std::max(0.0, rest - compute) + loss * std::min(compute, rest);
  }

  // Every block writes its sums; of the blocks of a group one reads them all.
  double reduction_clocks() const {
    const double loss = partial_bytes_ * blocks_ > kCachedBytes ? kUncachedLoss : 1;
    const double write = loss * per_sm_ * partial_bytes_ / sm_bytes_per_clock_;
    const double read_bytes = loss * f_.splits * partial_bytes_;
    const double read_instructions = 2.0 * f_.splits * sums_ * rounds_;
    return write + std::ceil(per_sm_ / f_.splits) *
                       std::max(read_bytes / (kScratchReadGain * sm_bytes_per_clock_), read_instructions);
  }

  // Every block loads the others' sums of the channels that it adds up.
  double cluster_clocks() const {
    return per_sm_ * partial_bytes_ * (f_.splits - 1) / f_.splits / arch_.cluster_bytes_per_clock;
  }

  const LaunchFigures& f_;
  const ArchSpec& arch_;
  bool clustered_;
  int cluster_blocks_;
  double reachable_;                                       // multiprocessors
  double blocks_, per_sm_, active_, capacity_, resident_;  // blocks: all, per multiprocessor, ..., at once
  double multiply_adds_, loads_, channels_, stages_;       // of a typical block
  double instructions_, sums_;                             // arithmetic of a block; FP32 sums of a thread
  double positions_per_thread_, warps_, rounds_;           // rounds: of all warps over the schedulers
  double sm_bytes_per_clock_, partial_bytes_;
  bool direct_, copied_by_threads_, held_;
};

// Memory moves in sectors: what a row of `words` that starts anywhere touches, over what it needs.
double sector_waste(int words, bool rows_are_adjacent) {
  if (rows_are_adjacent) return 1;
  const double bytes = static_cast<double>(words) * sizeof(float);
  return (bytes + kSectorBytes - sizeof(float)) / bytes;
}

}  // namespace

int needed_registers(int accumulators, std::int64_t patch_positions, int threads) {
  const std::int64_t per_thread = std::max<std::int64_t>(1, ceil_div(patch_positions, threads));
  // kRegisterOverhead covers one held position; computing addresses again takes the registers of two.
  const int held = per_thread > kHeldPositions ? 2 : static_cast<int>(per_thread) - 1;
  return accumulators + kRegisterOverhead + held * kRegistersPerHeldPosition;
}

int resident_blocks(int threads, int registers, int shared_bytes, const ArchSpec& arch) {
  const std::int64_t by_registers =
      resident_warps(arch.registers_per_multiprocessor, registers) / ceil_div(threads, kWarpSize);
  return static_cast<int>(
      std::min<std::int64_t>({kMaxResidentBlocks, arch.max_threads_per_multiprocessor / threads, by_registers,
                              arch.max_shared_per_multiprocessor / (shared_bytes + kSharedBytesPerBlock)}));
}

CostBreakdown launch_cost(const LaunchFigures& figures, const ArchSpec& arch) {
  return LaunchModel(figures, arch).cost();
}

void set_memory_figures(LaunchFigures& figures, const ConvShape& shape, const PixelTile& tile,
                        const SharedLayout& layout, int images) {
  const bool direct = figures.staging == Staging::direct;
  figures.patch_positions =
      direct ? tile.pixels() : saturating_product({tile.images, layout.patch_rows, layout.patch_cols});
  const bool whole_rows = tile.cols == shape.conv_w();
  figures.copy_waste = sector_waste(direct ? tile.cols : std::min(layout.patch_cols, shape.in_w), whole_rows);
  figures.strided = direct && shape.stride_w > 1;
  figures.store_waste = sector_waste(tile.cols, whole_rows);
  if (const std::optional<Pool>& pool = shape.epilogue.pool) {
    const OutputTile outputs = output_tile(tile, shape);
    figures.pool_positions = pool->kernel_h * pool->kernel_w;
    figures.tile_outputs = saturating_product({tile.images, outputs.rows, outputs.cols});
    figures.store_waste = sector_waste(outputs.cols, whole_rows);
  }
  figures.traffic_bytes = activation_bytes(shape, images);
}

void set_precision_figures(LaunchFigures& figures, const BakedPlan& plan, const ConvShape& shape) {
  constexpr double kJump = 3;     // over the multiply-adds of a filter position, and together again
  constexpr double kUnpack = 2;   // a word's two values
  constexpr double kPromote = 4;  // two values unpacked, two sums
  figures.sums_per_channel = plan.sums_per_channel();
  figures.position_instructions = 2 * plan.value_words();  // halves are compared two at a time
  switch (plan.precision) {
    case Precision::fp32:
    case Precision::tf32:
      break;
    case Precision::fp16:
    case Precision::bf16:
      figures.tap_instructions = 2;
      figures.unpack_instructions = kUnpack;
      break;
    case Precision::fp16x2:
      if (plan.promote_every > 0) figures.tap_instructions = 1 + kPromote / plan.promote_every;
      if (figures.staging == Staging::bulk && shape.pad != Padding{}) {
        figures.jump_instructions = kJump * shape.kernel_h * shape.kernel_w;
      }
      break;
  }
}

LaunchFigures figures_of(const BakedPlan& plan, const ConvShape& shape, const std::vector<SliceWork>& work) {
  LaunchFigures figures;
  figures.tiles = ceil_div(plan.batch, plan.tile_images()) * plan.tiles_per_image(shape);
  figures.slices = static_cast<int>(plan.slices.size());
  figures.splits = plan.splits;
  figures.reduction = plan.reduction;
  figures.cluster = plan.cluster;
  figures.threads = plan.threads;
  figures.group_capacity = plan.group_capacity();
  figures.registers = plan.max_registers;
  figures.shared_bytes = plan.shared_bytes();
  figures.stage_bytes = plan.stage_bytes();
  figures.stage_channels = plan.stage_channels;
  figures.buffers = plan.buffers;
  figures.barrier_every = plan.barrier_every;
  figures.staging = plan.staging;
  set_precision_figures(figures, plan, shape);
  set_memory_figures(figures, shape, plan.tile, plan.shared,
                     static_cast<int>(ceil_div(plan.batch, plan.word_images())));
  figures.load_conflict =
      plan.staging == Staging::direct ? 1 : load_conflict(plan.tile, plan.shared, shape, plan.input_layout);
  figures.load_words = channels_together(plan.input_layout);
  const auto count = static_cast<double>(std::max<std::size_t>(1, work.size()));
  for (double SliceWork::* figure : {&SliceWork::multiply_adds, &SliceWork::loads, &SliceWork::channels}) {
    for (const SliceWork& slice : work) {
      figures.mean.*figure += slice.*figure;
      figures.fullest.*figure = std::max(figures.fullest.*figure, slice.*figure);
    }
    figures.mean.*figure /= count;
  }
  return figures;
}

}  // namespace burin
