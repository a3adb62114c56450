#include "compiler/providers/conv_baked/plan/code_size.h"

#include <cmath>

#include "compiler/providers/conv_baked/plan/cost_model.h"

namespace burin {
namespace {

// Instructions, as they were fitted.
constexpr double kBytesOfInstruction = 16;
constexpr double kOfSlice = 82;          // its beginning and its end
constexpr double kOfTap = 1.03;          // of each that the model of times counts for a nonzero
constexpr double kOfLoad = 0.92;         // a load, or what unpacks it; some loads bring several words
constexpr double kOfChannel = 0.06;      // that a slice reads
constexpr double kOfStage = 9.3;         // copies and a barrier
constexpr double kOfSum = 4.2;           // bias, residual, activation, store
constexpr double kOfSplitChannel = 1.9;  // that is published and gathered
constexpr double kOfPool = 88;           // of each slice of a layer that pools
constexpr double kSkipping = 1.3;        // times as much where dead channels are jumped over, in docs/cli.md

}  // namespace

std::int64_t code_bytes(const BakedPlan& plan, const ConvShape& shape, const std::vector<SliceWork>& work) {
  LaunchFigures figures;
  figures.staging = plan.staging;
  set_precision_figures(figures, plan, shape);
  const double sums = plan.group_capacity() * figures.sums_per_channel;
  double of_slice = kOfSlice + kOfSum * sums;
  if (plan.splits > 1) of_slice += kOfSplitChannel * plan.group_capacity();
  if (shape.epilogue.pool) of_slice += kOfPool;
  double instructions = of_slice * static_cast<double>(work.size());
  for (const SliceWork& slice : work) {
    instructions += kOfTap * figures.tap_instructions * slice.multiply_adds +
                    kOfLoad * (1 + figures.unpack_instructions) * slice.loads + kOfChannel * slice.channels +
                    kOfStage * std::ceil(slice.channels / plan.stage_channels);
  }
  if (plan.skips) instructions *= kSkipping;
  return static_cast<std::int64_t>(kBytesOfInstruction * instructions);
}

}  // namespace burin
