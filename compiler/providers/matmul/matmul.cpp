// Products of matrices, of two tensors or of a tensor and numbers of the model.
#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/providers/template_provider.h"
#include "compiler/providers/walked_axes.h"
#include "ir/saturate.h"

namespace burin {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::size_t kMatrixAxes = 4;  // of matmul.cu
constexpr int kMatMulChunk = 16, kMatMulQuad = 4;

// An operand as it is multiplied: its extents, and how far a step along each axis moves.
struct MatMulOperand {
  Shape shape, steps;
};

MatMulOperand operand_of(const Shape& tensor, const std::vector<int>& order) {
  const Shape steps = steps_in(tensor);
  if (order.empty()) return {tensor, steps};
  MatMulOperand operand;
  for (const int axis : order) {
    operand.shape.push_back(tensor[static_cast<std::size_t>(axis)]);
    operand.steps.push_back(steps[static_cast<std::size_t>(axis)]);
  }
  return operand;
}

struct MatMulOperands {
  MatMulOperand left, right;
  Shape output;

  std::int64_t rows() const { return output[output.size() - 2]; }
  std::int64_t cols() const { return output.back(); }
  std::int64_t terms() const { return left.shape.back(); }
  // The axes that matrices lie along.
  std::vector<WalkedAxis> matrices() const {
    std::vector<WalkedAxis> axes;
    for (std::size_t i = 0; i + 2 < output.size(); ++i) axes.push_back({output[i], {left.steps[i], right.steps[i]}});
    return merged(axes);
  }
};

MatMulOperands operands_of(const Task& task) {
  const MatMul& op = *task.get<MatMul>();
  if (!op.constant) {
    return {operand_of(task.inputs[0], op.left_order), operand_of(task.inputs[1], op.right_order), task.output};
  }
  const MatMulOperand constant = operand_of(op.constant->shape, {});
  if (op.constant_first) return {constant, operand_of(task.inputs[0], op.right_order), task.output};
  return {operand_of(task.inputs[0], op.left_order), constant, task.output};
}

// What a block has: rows and columns of threads, and quads of both for each of them.
struct MatMulTile {
  int row_threads, col_threads, row_quads, col_quads;
  int rows() const { return kMatMulQuad * row_quads * row_threads; }
  int cols() const { return kMatMulQuad * col_quads * col_threads; }
  int threads() const { return row_threads * col_threads; }
  int shared_bytes() const {
    constexpr int kBuffers = 2;
    return static_cast<int>(kSharedReserveBytes) +
           kBuffers * kMatMulChunk * (rows() + cols() + 2 * kMatMulQuad) * static_cast<int>(kWordBytes);
  }
  std::int64_t blocks(const MatMulOperands& operands) const {
    const std::int64_t matrices = saturating_product(operands.output) / (operands.rows() * operands.cols());
    return ceil_div(operands.rows(), rows()) * ceil_div(operands.cols(), cols()) * matrices;
  }
};
constexpr std::array kTiles = {MatMulTile{8, 8, 1, 1},   MatMulTile{2, 16, 1, 1}, MatMulTile{16, 2, 1, 1},
                               MatMulTile{16, 16, 1, 1}, MatMulTile{8, 16, 2, 2}, MatMulTile{16, 16, 2, 2}};

// Estimated, not fitted: a thread's quads are loaded from shared memory for each term, and a chunk is waited for.
LaunchWork work_of_tile(const MatMulTile& tile, const MatMulOperands& operands, const Task& task) {
  constexpr double kChunkClocks = 500, kLoadClocks = 8;
  const ArchSpec& arch = arch_of(task);
  const double blocks = static_cast<double>(tile.blocks(operands)) * task.batch;
  const double of_multiprocessor = std::ceil(blocks / arch.multiprocessors);
  const double resident = std::min(
      of_multiprocessor, std::max(1.0, std::floor(arch.max_threads_per_multiprocessor / 2.0 / tile.threads())));
  const double warps = static_cast<double>(tile.threads()) / kWarpSize;
  const double chunks = static_cast<double>(ceil_div(operands.terms(), kMatMulChunk));
  const double area = static_cast<double>(tile.rows()) * tile.cols();
  const double of_term = std::max(area / (arch.fma_lanes_per_clock * arch.sustained_issue),
                                  warps * (tile.row_quads + tile.col_quads) * kLoadClocks);
  // Warps of few blocks leave schedulers idle.
  const double idle = std::max(1.0, kSchedulersPerMultiprocessor / (warps * resident));
  const double clocks = chunks * (kMatMulChunk * of_term * idle + kChunkClocks / resident);
  return {.busy_us = clocks_us(of_multiprocessor * clocks, arch),
          .blocks = of_multiprocessor,
          .resident = resident,
          .activation_bytes = activation_bytes(task)};
}

class MatMulProvider : public PlainProvider {
 public:
  MatMulProvider() : PlainProvider("matmul") {}

 protected:
  bool can(const Task& task) const override {
    return task.get<MatMul>() != nullptr && operands_of(task).matrices().size() <= kMatrixAxes;
  }
  std::vector<std::string> choices() const override { return {"row_threads", "col_threads", "row_quads", "col_quads"}; }
  LaunchWork work_of(const Task& task, const TemplatePlan& plan) const override {
    return work_of_tile(tile_of(plan), operands_of(task), task);
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan&) const override {
    std::vector<std::uint32_t> words;
    if (const auto& constant = task.get<MatMul>()->constant) append_words(words, constant->values);
    return words;
  }
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    std::vector<Candidate> candidates;
    for (const MatMulTile& tile : best_tiles(task)) {
      candidates.push_back(candidate(task, plan_of_tile(task, tile)));
      if (std::ssize(candidates) == options.count) break;
    }
    return candidates;
  }
  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    return plan_of_tile(task, chosen != nullptr ? tile_of(*chosen) : best_tiles(task).front());
  }

 private:
  TemplatePlan plan_of_tile(const Task& task, const MatMulTile& tile) const {
    const MatMul& op = *task.get<MatMul>();
    const MatMulOperands operands = operands_of(task);
    TemplatePlan plan = start(task);
    plan.input().alignment = plan.residual().alignment = kWordBytes;
    const bool vectors = operands.cols() % kVectorWords == 0 && is_wide(plan.output());
    if (!vectors) plan.output().alignment = kWordBytes;
    const std::size_t row = operands.output.size() - 2, col = row + 1;
    set_integers(plan, {{"rows", operands.rows()},
                        {"cols", operands.cols()},
                        {"terms", operands.terms()},
                        {"left_row", operands.left.steps[row]},
                        {"left_term", operands.left.steps[col]},
                        {"right_term", operands.right.steps[row]},
                        {"right_col", operands.right.steps[col]},
                        {"constant", op.constant ? (op.constant_first ? 1 : 2) : 0},
                        {"row_threads", tile.row_threads},
                        {"col_threads", tile.col_threads},
                        {"row_quads", tile.row_quads},
                        {"col_quads", tile.col_quads},
                        {"vector", vectors ? kVectorWords : 1}});
    set_axes(plan, "matrix", kMatrixAxes, operands.matrices(), {"left", "right"});
    set_function(plan, op.then);
    plan.reals["scale"] = op.scale;
    if (op.constant) plan.weights().run_words = std::ssize(op.constant->values);
    LaunchGeometry& launch = plan.launch();
    launch.threads = tile.threads();
    launch.tiles_per_image = tile.blocks(operands);
    launch.shared_bytes = tile.shared_bytes();
    return plan;
  }
  static MatMulTile tile_of(const TemplatePlan& plan) {
    return {plan.integers.at("row_threads"), plan.integers.at("col_threads"), plan.integers.at("row_quads"),
            plan.integers.at("col_quads")};
  }
  // All of them, that with the shortest time by the model first.
  static std::array<MatMulTile, kTiles.size()> best_tiles(const Task& task) {
    const MatMulOperands operands = operands_of(task);
    std::array<MatMulTile, kTiles.size()> tiles = kTiles;
    std::ranges::stable_sort(tiles, {}, [&](const MatMulTile& tile) {
      return launch_time_us(work_of_tile(tile, operands, task), arch_of(task));
    });
    return tiles;
  }
};

}  // namespace

const Provider& matmul_provider() { return the_only<MatMulProvider>(); }

}  // namespace burin
