// The time of a launch, from figures that a search has before there is a plan.
#pragma once

#include <cstdint>

#include "compiler/providers/conv_baked/plan/work.h"
#include "ir/arch.h"
#include "ir/limits.h"

namespace burin {

struct LaunchFigures {
  std::int64_t tiles = 1;  // blocks in x
  int slices = 1;          // blocks in y
  int splits = 1;
  Reduction reduction = Reduction::none;
  ClusterShape cluster = {};
  int threads = kWarpSize;
  int group_capacity = 1;
  int registers = 255;  // per thread, as given out
  int shared_bytes = 0, stage_bytes = 0;
  int stage_channels = 1, buffers = 1;
  int barrier_every = 0;
  Staging staging = Staging::shared;
  std::int64_t patch_positions = 1;        // words that a block copies per channel
  int pool_positions = 0;                  // of a window; 0: the layer has no pool
  std::int64_t tile_outputs = 0;           // with a pool: of a channel, in words
  double position_instructions = 2;        // of a word's windows: loads, maxima or sums
  double copy_waste = 1, store_waste = 1;  // bytes moved over bytes needed: rows that are no whole sectors
  bool strided = false;                    // direct loads of which every other word, or fewer, is used
  double traffic_bytes = 0;                // input and output of the launch
  int load_words = 1;                      // that one activation load brings: as many channels
  double load_conflict = 1;                // clocks per activation load and word
  double tap_instructions = 1;             // per nonzero
  double unpack_instructions = 0;          // per activation load, beside the load
  double jump_instructions = 0;            // per stage
  int sums_per_channel = 1;                // words that a thread and channel exchange
  SliceWork mean, fullest;                 // over the slices; `fullest` takes each figure's largest
};

// The time of one launch in microseconds, by the model, with its terms for whoever wants to know why. They add up to
// the total.
struct CostBreakdown {
  double issue_us = 0;      // multiply-adds, shared-memory loads, barriers
  double fetch_us = 0;      // waiting for code, beyond that
  double staging_us = 0;    // copying activations, beyond what arithmetic hides
  double reduction_us = 0;  // adding up splits
  double fixed_us = 0;      // launch, first load, drain
  double waves = 0;
  double total_us = 0;
};
CostBreakdown launch_cost(const LaunchFigures& figures, const ArchSpec& arch);

// Registers that a thread needs so that no load is issued right before its use. `patch_positions`: words that the
// block's threads copy one by one per channel; 0 with other staging.
int needed_registers(int accumulators, std::int64_t patch_positions, int threads);

// Blocks that one multiprocessor holds at once; 0 when not even one.
int resident_blocks(int threads, int registers, int shared_bytes, const ArchSpec& arch);

// Sets what follows from the tile: positions, waste, traffic. `images`: or pairs of images.
void set_memory_figures(LaunchFigures& figures, const ConvShape& shape, const PixelTile& tile,
                        const SharedLayout& layout, int images);

// Sets what follows from the plan's precision (and of `plan` reads no more): what a nonzero, a load, a stage and a
// channel take. figures.staging must be set.
void set_precision_figures(LaunchFigures& figures, const BakedPlan& plan, const ConvShape& shape);

LaunchFigures figures_of(const BakedPlan& plan, const ConvShape& shape, const std::vector<SliceWork>& work);

}  // namespace burin
