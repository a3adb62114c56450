#include "compiler/providers/filter_parts.h"

#include <algorithm>
#include <cstdint>

#include "ir/saturate.h"

namespace burin {

bool is_part(const FilterPart& part, const ConvShape& shape) {
  return (part.rows == 1 || part.rows == shape.kernel_h) && (part.cols == 1 || part.cols == shape.kernel_w);
}

int count_parts(const FilterPart& part, const ConvShape& shape) {
  return shape.kernel_h / part.rows * (shape.kernel_w / part.cols);
}

PartPosition part_position(const FilterPart& part, const ConvShape& shape, int row, int col) {
  return {row / part.rows * (shape.kernel_w / part.cols) + col / part.cols,
          row % part.rows * part.cols + col % part.cols};
}

std::vector<FilterPart> proposed_parts(const ConvShape& shape, bool whole_has_plan) {
  const FilterPart whole = {shape.kernel_h, shape.kernel_w};
  std::vector<FilterPart> parts;
  const bool is_dilated = (shape.dilation_h > 1 && shape.kernel_h > 1) || (shape.dilation_w > 1 && shape.kernel_w > 1);
  if (whole_has_plan && !is_dilated) return parts;
  for (const FilterPart& part : {FilterPart{1, shape.kernel_w}, FilterPart{1, 1}}) {
    if (part != whole && std::ranges::find(parts, part) == parts.end()) parts.push_back(part);
  }
  return parts;
}

namespace {

struct PartAxis {
  int kernel = 1, part = 1, stride = 1, dilation = 1, pad = 0;
  int image = 1, pixels = 1, tile = 1;  // `pixels` are the convolution's, and a tile has so many
};

double share_of_axis(const PartAxis& axis) {
  if (axis.part == axis.kernel) return 1;
  std::int64_t reading = 0, tiles = 0;
  const std::int64_t parts = axis.kernel / axis.part;
  for (std::int64_t first = 0; first < axis.pixels; first += axis.tile, ++tiles) {
    std::int64_t of_tile = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t from = first * axis.stride - axis.pad + part * axis.part * axis.dilation;
      const std::int64_t last =
          from + std::int64_t{axis.tile - 1} * axis.stride + std::int64_t{axis.part - 1} * axis.dilation;
      of_tile += last >= 0 && from < axis.image ? 1 : 0;
    }
    reading += std::max<std::int64_t>(of_tile, 1);
  }
  return static_cast<double>(reading) / static_cast<double>(std::max<std::int64_t>(1, tiles) * parts);
}

}  // namespace

double share_that_reads(const FilterPart& part, const ConvShape& shape, int tile_rows, int tile_cols) {
  return share_of_axis({.kernel = shape.kernel_h,
                        .part = part.rows,
                        .stride = shape.stride_h,
                        .dilation = shape.dilation_h,
                        .pad = shape.pad.top,
                        .image = shape.in_h,
                        .pixels = shape.conv_h(),
                        .tile = tile_rows}) *
         share_of_axis({.kernel = shape.kernel_w,
                        .part = part.cols,
                        .stride = shape.stride_w,
                        .dilation = shape.dilation_w,
                        .pad = shape.pad.left,
                        .image = shape.in_w,
                        .pixels = shape.conv_w(),
                        .tile = tile_cols});
}

}  // namespace burin
