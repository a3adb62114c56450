// The coarse search: means instead of exact counts, so that thousands of plans cost milliseconds.
#pragma once

#include <vector>

#include "compiler/providers/conv_baked/plan/constraints.h"
#include "compiler/providers/conv_baked/plan/cost_model.h"
#include "compiler/providers/conv_baked/plan/grouping.h"
#include "compiler/providers/conv_baked/plan/shared_layout.h"
#include "ir/arch.h"

namespace burin {

// Above this, the assembler's time for one function grows faster than the function.
inline constexpr double kMaxSliceMultiplyAdds = 8192;
// Predicted time, and what compiling costs in the same unit: a slice too large to assemble well raises it, and so does
// every slice, because each repeats the code around its multiply-adds.
double plan_score(double predicted_us, double largest_slice_multiply_adds, double slices);

// The tightest of several architectures.
struct PlanLimits {
  int shared_bytes = 0;  // of a block, kSharedReserveBytes included
  int registers_per_multiprocessor = 0;
  int registers_per_thread = 0;
  bool bulk_copies = false;
  bool clusters = true;  // all of them have clusters
};

// What is left to decide after a candidate is chosen follows from the exact pattern.
struct PlanCandidate {
  Staging staging = Staging::shared;
  PixelTile tile;
  LayoutCandidate shared;
  std::size_t option = 0;  // index of the GroupOption
  int splits = 1;
  int stage_channels = 1, buffers = 1;
  int registers = 0;
  double score = 0;  // plan_score()
  Reduction reduction = Reduction::none;
  ClusterShape cluster = {};
};

struct SearchSpace {
  const ConvShape& shape;
  const std::vector<GroupOption>& options;
  int batch;
  PlanLimits limits;
  const ArchSpec& arch;  // whose costs count
  const PlanConstraints& constraints;
  TensorLayout input = TensorLayout::nchw;
  Precision precision = Precision::fp32;
  int longest_sum = 0;  // terms of the longest

  int word_images() const { return is_half(precision) ? 2 : 1; }
  // Images, or pairs of images.
  int tiled_images() const { return (batch + word_images() - 1) / word_images(); }
};

// The `count` best, best first, no two of the same tile, option and splits. Empty when nothing fits the limits.
std::vector<PlanCandidate> search_plans(const SearchSpace& space, std::size_t count);
// The same, but unlike each other (unlike_plans.h) instead of nearly the best alone.
std::vector<PlanCandidate> search_unlike_plans(const SearchSpace& space, std::size_t count);

// Activations that a thread without staging loads ahead: enough to hide the way to L2.
inline constexpr int kDirectLoadAhead = 32;  // measured: 24, 32 and 48 within 3 %, 8 takes half as long again
inline constexpr int kLoadAhead = 8;         // from shared memory
inline constexpr int kLoadAheadOfFour = 3;   // the same of four channels at once
int load_ahead_of(Staging staging, int together);
// Registers that this takes beyond what kRegisterOverhead covers, and those of halves that have been unpacked, ahead of
// their use as the assembler likes it.
int registers_ahead(Precision precision, Staging staging, int load_ahead, int together);
int threads_of(const PixelTile& tile);
// BakedPlan::promote_every of Precision::fp16x2, where a thread adds up at most `terms`: with few, FP16 sums need no
// FP32 ones beside them.
int choose_promotion(int terms, const PlanConstraints& constraints);
int barrier_cadence(int threads, Staging staging);
// Channels rounded up to what bulk copies may bring.
int bulk_channels(const PixelTile& tile, const ConvShape& shape, TensorLayout input, int channels);
// Equal stages, as few as `stage_channels` at a time allow, in whole rows of the layout where there are several.
int even_stage(int channels, int stage_channels, const SharedLayout& layout);
// The register cap of a kernel: room to load ahead, as long as it does not cost a resident block. 0: does not fit.
int choose_registers(int group_capacity, std::int64_t patch_positions, int threads, int shared_bytes,
                     std::int64_t blocks, const PlanLimits& limits, const ArchSpec& arch);

}  // namespace burin
