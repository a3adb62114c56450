#include "ir/baked_plan_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/element_type.h"
#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// One axis of a layer's pixels and outputs.
struct Axis {
  int pixels, outputs;
  int kernel = 1, stride = 1, pad = 0;

  int outputs_of(int tile) const {
    if (tile == pixels) return outputs;
    if (tile < kernel || (tile - kernel) % stride != 0) return 0;
    return std::min((tile - kernel) / stride + 1, outputs);
  }
  int pixels_of(int wanted) const {
    if (wanted >= outputs) return pixels;
    return saturate_to_int(std::min<std::int64_t>(std::int64_t{wanted - 1} * stride + kernel, pixels));
  }
  TileSteps steps(int tile) const {
    return {tile == pixels ? 0 : -pad, saturate_to_int(saturating_product({outputs_of(tile), stride}))};
  }
  bool leaves() const { return pad > 0 || std::int64_t{outputs - 1} * stride + kernel > pixels; }
};

Axis rows_of(const ConvShape& shape) {
  const Pool pool = shape.epilogue.pool.value_or(Pool{});
  return {shape.conv_h(), shape.out_h(), pool.kernel_h, pool.stride_h, pool.pad.top};
}

Axis cols_of(const ConvShape& shape) {
  const Pool pool = shape.epilogue.pool.value_or(Pool{});
  return {shape.conv_w(), shape.out_w(), pool.kernel_w, pool.stride_w, pool.pad.left};
}

}  // namespace

OutputTile output_tile(const PixelTile& tile, const ConvShape& shape) {
  return {rows_of(shape).outputs_of(tile.rows), cols_of(shape).outputs_of(tile.cols)};
}

PixelTile pixel_tile(const OutputTile& outputs, int images, const ConvShape& shape) {
  return {images, rows_of(shape).pixels_of(outputs.rows), cols_of(shape).pixels_of(outputs.cols)};
}

std::int64_t tiles_per_image(const PixelTile& tile, const ConvShape& shape) {
  const OutputTile outputs = output_tile(tile, shape);
  if (outputs.rows < 1 || outputs.cols < 1) return 0;
  return ceil_div(shape.out_h(), outputs.rows) * ceil_div(shape.out_w(), outputs.cols);
}

TileSteps row_steps(const PixelTile& tile, const ConvShape& shape) { return rows_of(shape).steps(tile.rows); }
TileSteps col_steps(const PixelTile& tile, const ConvShape& shape) { return cols_of(shape).steps(tile.cols); }

bool windows_leave_rows(const ConvShape& shape) { return rows_of(shape).leaves(); }
bool windows_leave_cols(const ConvShape& shape) { return cols_of(shape).leaves(); }

std::int64_t bytes_of_values(int channels, int words, int threads) {
  return saturating_product({channels, saturating_product({words, threads}) + 1, kWordBytes});
}

bool may_keep_halves(Precision precision, const ConvShape& shape) {
  const std::optional<Pool>& pool = shape.epilogue.pool;
  return is_half(precision) && pool && pool->kind == PoolKind::max;
}

int window_lanes(std::int64_t positions, std::int64_t windows, int threads) {
  constexpr int kUnrolledWindow = 25, kPositionsOfLane = 4;
  if (positions <= kUnrolledWindow) return 1;
  int lanes = 1;
  while (lanes < kWarpSize && 2 * lanes * windows <= threads && 2 * lanes * kPositionsOfLane <= positions) lanes *= 2;
  return lanes;
}

int window_lanes(const BakedPlan& plan, const ConvShape& shape) {
  const std::optional<Pool>& pool = shape.epilogue.pool;
  if (!pool || !plan.outputs) return 1;
  const std::int64_t channels = plan.reduction == Reduction::cluster
                                    ? ceil_div(plan.group_capacity(), std::max(1, plan.splits))
                                    : plan.group_capacity();
  const std::int64_t windows = saturating_product({channels, plan.tile.images, plan.outputs->rows, plan.outputs->cols});
  return window_lanes(std::int64_t{pool->kernel_h} * pool->kernel_w, windows, plan.threads);
}

std::vector<std::string> pool_faults(const BakedPlan& plan, const ConvShape& shape) {
  const std::optional<Pool>& pool = shape.epilogue.pool;
  Faults faults;
  if (!pool) {
    if (plan.outputs) {
      faults.add("outputs is {}x{}, but the layer has no pool: it stores the pixels that it computes",
                 plan.outputs->rows, plan.outputs->cols);
    }
    if (plan.keeps_halves) faults.add("keeps_halves is set, but the layer has no pool: nothing is kept for one");
    return faults.take();
  }
  if (plan.keeps_halves && !is_half(plan.precision)) {
    faults.add("keeps_halves is set with {}: what is rounded before the pool would be rounded for it alone",
               to_string(plan.precision));
  }
  if (plan.keeps_halves && pool->kind != PoolKind::max) {
    faults.add("keeps_halves is set, but the pool adds up: a mean of rounded values is another than a rounded mean");
  }
  if (plan.uses_activity()) {
    faults.add("skips and marks are for layers without a pool: cells of an activity map are tiles that do not overlap");
  }
  const auto check_axis = [&](std::string_view name, int tile, const Axis& axis) {
    if (tile < 1 || tile > axis.pixels || axis.outputs_of(tile) > 0) return;
    faults.add(
        "tile {} are {}, they must be all {} of the convolution, or {} and a multiple of {} more: what whole windows "
        "of the pool cover",
        name, tile, axis.pixels, axis.kernel, axis.stride);
  };
  check_axis("rows", plan.tile.rows, rows_of(shape));
  check_axis("columns", plan.tile.cols, cols_of(shape));
  if (!faults.empty()) return faults.take();
  const OutputTile needed = output_tile(plan.tile, shape);
  if (!plan.outputs) {
    faults.add("outputs is missing, it must be {}x{}: what the pool makes of a tile", needed.rows, needed.cols);
  } else if (*plan.outputs != needed) {
    faults.add("outputs is {}x{}, it must be {}x{}: what the pool makes of a tile of {}x{} pixels", plan.outputs->rows,
               plan.outputs->cols, needed.rows, needed.cols, plan.tile.rows, plan.tile.cols);
  }
  return faults.take();
}

}  // namespace burin
