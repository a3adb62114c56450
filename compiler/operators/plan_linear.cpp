// Fully connected layers: how rows, images and threads are shared out.
#include <algorithm>
#include <bit>

#include "compiler/operators/plan_parts.h"
#include "ir/kernel_plan.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kMaxRows = 4, kMaxImages = 8;  // of a block: templates/operators/linear.cu
constexpr int kPiecesAtOnce = 8;             // the same
constexpr int kMaxThreads = 128;
constexpr int kMultiprocessors = 132;
constexpr int kWordBytes = 4;

// Several rows of a block share their loads of the input; with one image, filling the GPU comes first.
int rows_of_block(int out_features, int batch) {
  if (batch > 1) return kMaxRows;
  constexpr int kBlocksOfMultiprocessor = 4;
  const int wanted = out_features / (kMultiprocessors * kBlocksOfMultiprocessor);
  return wanted >= 4 ? 4 : wanted >= 2 ? 2 : 1;
}

// The most with which each has full rounds of loads, if possible without a rest.
int threads_of_block(std::int64_t pieces, int steps) {
  const int most =
      static_cast<int>(std::clamp<std::int64_t>(pieces / steps / kWarpSize * kWarpSize, kWarpSize, kMaxThreads));
  for (int threads = most; threads >= 2 * kWarpSize; threads -= kWarpSize) {
    if (pieces % (threads * steps) == 0) return threads;
  }
  return most;
}

}  // namespace

PlannedOperator plan_linear(const Linear& op, const BufferPlace& input, const BufferPlace& output, int batch) {
  PlannedOperator result;
  OperatorPlan& plan = result.plan;
  plan.template_name = "linear";
  plan.input = tensor_at(input, op.in_features);
  plan.output = tensor_at(output, op.out_features);
  plan.output.aligned = 1;
  const bool vectors = op.in_features % kVectorWords == 0 && plan.input.aligned > 1;
  if (!vectors) plan.input.aligned = 1;
  const int vector = vectors ? kVectorWords : 1, rows = rows_of_block(op.out_features, batch);
  plan.block_images = std::min<int>(kMaxImages, static_cast<int>(std::bit_ceil(static_cast<unsigned>(batch))));
  plan.threads = threads_of_block(op.in_features / vector, kPiecesAtOnce / rows);
  plan.group_blocks = static_cast<int>(ceil_div(op.out_features, rows));
  const std::int64_t exchanged = std::int64_t{rows} * plan.block_images * (plan.threads / kWarpSize) * kWordBytes;
  plan.shared_bytes = static_cast<int>(round_up(kSharedReserveBytes + exchanged, kVectorWords * kWordBytes));
  plan.integers["in_features"] = op.in_features;
  plan.integers["out_features"] = op.out_features;
  plan.integers["row_words"] = op.in_features;
  plan.integers["block_rows"] = rows;
  plan.integers["has_bias"] = !op.bias.empty();
  plan.integers["vector"] = vector;
  set_function(plan, op.activation, op.leaky_slope);
  result.weights.reserve(op.weights.size() + op.bias.size());
  for (const auto* values : {&op.weights, &op.bias}) {
    for (const float value : *values) result.weights.push_back(std::bit_cast<std::uint32_t>(value));
  }
  plan.weight_words = static_cast<std::int64_t>(result.weights.size());
  return result;
}

}  // namespace burin
