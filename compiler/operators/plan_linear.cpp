// Fully connected layers, dense or sparse, whichever streams fewer bytes: how outputs, images and threads are shared
// out.
#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "compiler/operators/plan_parts.h"
#include "compiler/operators/sparse_rows.h"
#include "ir/kernel_plan.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kMaxRows = 4, kMaxImages = 8;  // of a block: templates/operators/linear.cu
constexpr int kPiecesAtOnce = 8;             // the same
constexpr int kMaxThreads = 128;
constexpr int kWordBytes = 4;

// Several rows of a block share their loads of the input; with one image, filling the GPU comes first.
int rows_of_block(int out_features, const Target& target) {
  if (target.batch > 1) return kMaxRows;
  constexpr int kBlocksOfMultiprocessor = 4;
  const int wanted = out_features / (target.arch.multiprocessors * kBlocksOfMultiprocessor);
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

// A row as templates/operators/linear.cu reads it.
void append_row(std::vector<std::uint32_t>& words, std::span<const float> row, int vector, ElementType storage) {
  if (storage == ElementType::f32) {
    for (const float value : row) words.push_back(std::bit_cast<std::uint32_t>(value));
  } else if (vector == 1) {
    for (std::size_t i = 0; i < row.size(); i += 2) {
      words.push_back(half_word(storage, row[i], i + 1 < row.size() ? row[i + 1] : 0));
    }
  } else {
    for (std::size_t first = 0; first < kVectorWords; first += 2) {
      for (std::size_t i = first; i < row.size(); i += kVectorWords) {
        words.push_back(half_word(storage, row[i], row[i + 1]));
      }
    }
  }
}

PlannedOperator plan_dense(const Linear& op, const BufferPlace& input, const BufferPlace& output, const Target& target,
                           ElementType storage) {
  PlannedOperator result;
  OperatorPlan& plan = result.plan;
  plan.template_name = "linear";
  plan.input = tensor_at(input, op.in_features);
  plan.output = tensor_at(output, op.out_features);
  plan.output.aligned = 1;
  const bool vectors = op.in_features % kVectorWords == 0 && plan.input.aligned > 1;
  if (!vectors) plan.input.aligned = 1;
  const int vector = vectors ? kVectorWords : 1, rows = rows_of_block(op.out_features, target);
  plan.block_images = std::min<int>(kMaxImages, static_cast<int>(std::bit_ceil(static_cast<unsigned>(target.batch))));
  plan.threads = threads_of_block(op.in_features / vector, kPiecesAtOnce / rows);
  plan.group_blocks = static_cast<int>(ceil_div(op.out_features, rows));
  const std::int64_t exchanged = std::int64_t{rows} * plan.block_images * (plan.threads / kWarpSize) * kWordBytes;
  plan.shared_bytes = static_cast<int>(round_up(kSharedReserveBytes + exchanged, kVectorWords * kWordBytes));
  plan.integers["in_features"] = op.in_features;
  plan.integers["out_features"] = op.out_features;
  const std::int64_t row_words = ceil_div(op.in_features, elements_per_word(storage));
  plan.integers["row_words"] = static_cast<int>(row_words);
  plan.integers["block_rows"] = rows;
  plan.integers["has_bias"] = !op.bias.empty();
  plan.integers["vector"] = vector;
  plan.integers["half_values"] = storage != ElementType::f32;
  set_function(plan, op.activation, op.leaky_slope);
  result.weights.reserve(static_cast<std::size_t>(row_words * op.out_features) + op.bias.size());
  const auto features = static_cast<std::size_t>(op.in_features);
  for (std::size_t first = 0; first < op.weights.size(); first += features) {
    append_row(result.weights, std::span(op.weights).subspan(first, features), vector, storage);
  }
  for (const float value : op.bias) result.weights.push_back(std::bit_cast<std::uint32_t>(value));
  plan.weight_words = static_cast<std::int64_t>(result.weights.size());
  return result;
}

constexpr int kSparseImages = 4;  // side by side in shared memory, one load each: templates/operators/linear_sparse.cu
constexpr int kMaxSparseWarps = 16;

std::int64_t sparse_shared_bytes(int in_features, int images) {
  return round_up(kSharedReserveBytes + std::int64_t{in_features} * images * kWordBytes, kVectorWords * kWordBytes);
}

// 0: not even one fits.
int sparse_images(int in_features, const Target& target) {
  const int most = target.arch.max_shared_per_block;
  if (target.batch > 1 && sparse_shared_bytes(in_features, kSparseImages) <= most) return kSparseImages;
  return sparse_shared_bytes(in_features, 1) <= most ? 1 : 0;
}

PlannedOperator plan_sparse(const Linear& op, const BufferPlace& input, const BufferPlace& output, const Target& target,
                            std::vector<std::uint32_t> weights, int delta_words, ElementType storage) {
  PlannedOperator result;
  OperatorPlan& plan = result.plan;
  plan.template_name = "linear_sparse";
  plan.input = tensor_at(input, op.in_features);
  plan.output = tensor_at(output, op.out_features);
  plan.input.aligned = plan.output.aligned = 1;
  plan.block_images = sparse_images(op.in_features, target);
  plan.shared_bytes = static_cast<int>(sparse_shared_bytes(op.in_features, plan.block_images));
  // As many blocks as run at once, each with many outputs: every block copies its images.
  const int resident = plan.shared_bytes <= target.arch.max_shared_per_block / 2 ? 2 : 1;
  const std::int64_t groups = ceil_div(target.batch, plan.block_images);
  const std::int64_t blocks = std::max<std::int64_t>(1, target.arch.multiprocessors * resident / groups);
  const auto warps = std::clamp<std::int64_t>(ceil_div(op.out_features, blocks), 1, kMaxSparseWarps);
  const std::int64_t rows = ceil_div(op.out_features, blocks * warps);
  plan.threads = static_cast<int>(warps * kWarpSize);
  plan.group_blocks = static_cast<int>(ceil_div(op.out_features, rows * warps));
  plan.integers["in_features"] = op.in_features;
  plan.integers["out_features"] = op.out_features;
  plan.integers["warp_rows"] = static_cast<int>(rows);
  plan.integers["has_bias"] = !op.bias.empty();
  plan.integers["delta_words"] = delta_words;
  plan.integers["half_values"] = storage != ElementType::f32;
  set_function(plan, op.activation, op.leaky_slope);
  result.weights = std::move(weights);
  plan.weight_words = static_cast<std::int64_t>(result.weights.size());
  return result;
}

// Words that are streamed, over all groups of images.
std::int64_t streamed(const PlannedOperator& planned, const Target& target) {
  return planned.plan.weight_words * ceil_div(target.batch, planned.plan.block_images);
}

}  // namespace

PlannedOperator plan_linear(const Linear& op, const BufferPlace& input, const BufferPlace& output, const Target& target,
                            ElementType storage) {
  const auto zeros = std::count(op.weights.begin(), op.weights.end(), 0.0F);
  constexpr int kWorthwhile = 8;  // below an eighth of zeros the distances alone take more
  if (zeros * kWorthwhile < static_cast<std::int64_t>(op.weights.size()) ||
      sparse_images(op.in_features, target) == 0) {
    return plan_dense(op, input, output, target, storage);
  }
  std::vector<std::uint32_t> narrow = pack_sparse_rows(op, 1, storage), wide = pack_sparse_rows(op, 2, storage);
  const bool is_narrow = narrow.size() <= wide.size();
  PlannedOperator sparse = plan_sparse(op, input, output, target, is_narrow ? std::move(narrow) : std::move(wide),
                                       is_narrow ? 1 : 2, storage);
  PlannedOperator dense = plan_dense(op, input, output, target, storage);
  return streamed(sparse, target) < streamed(dense, target) ? sparse : dense;
}

}  // namespace burin
