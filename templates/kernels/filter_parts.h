// Parts of a filter, which kernels multiply one after the other: a filter that reaches far reads more of the image than
// there is room for, but each of its parts does not. A chunk is of some input channels and a part; the parts of the
// same channels follow each other.
#pragma once

#include "template_kernel.h"

BURIN_DEVICE u32 part_positions() { return part_rows() * part_cols(); }
BURIN_DEVICE u32 parts_below() { return kernel_rows() / part_rows(); }
BURIN_DEVICE u32 parts_across() { return kernel_cols() / part_cols(); }
BURIN_DEVICE u32 parts() { return parts_below() * parts_across(); }

// Those of an axis that read the image; of parts that do not, the first one, if all are so.
struct PartRange {
  u32 first, count;
};
// The first one reads `extent` of the axis from `start` on, and each of the others `distance` further on.
BURIN_DEVICE PartRange parts_inside(u32 all, i32 start, u32 extent, u32 distance, i32 size) {
  if (all == 1) return {0, 1};
  PartRange inside = {0, 0};
#pragma nounroll
  for (u32 part = 0; part < all; ++part) {
    const i32 from = start + static_cast<i32>(part * distance), to = from + static_cast<i32>(extent);
    if (to <= 0 || from >= size) continue;
    if (inside.count == 0) inside.first = part;
    ++inside.count;
  }
  if (inside.count == 0) inside.count = 1;
  return inside;
}

// Where the filter, or a part of it, begins to read the image for the first pixel of a tile.
struct Corner {
  i32 row, col;
};

// Those that are multiplied, since they read more than padding.
struct FilterParts {
  PartRange rows, cols;
};
BURIN_DEVICE FilterParts parts_that_read(const Corner& corner, u32 extent_rows, u32 extent_cols) {
  return {parts_inside(parts_below(), corner.row, extent_rows, part_rows() * dilation_rows(), in_rows()),
          parts_inside(parts_across(), corner.col, extent_cols, part_cols() * dilation_cols(), in_cols())};
}
BURIN_DEVICE u32 count_of(const FilterParts& parts) { return parts.rows.count * parts.cols.count; }

// What is multiplied at once: channels number `channels` of as many as a chunk has, with a part of the filter, which
// reads `row` and `col` further on in the image than the first one.
struct Chunk {
  u32 channels, part;
  i32 row, col;
};
BURIN_DEVICE Corner corner_of(const Corner& tile, const Chunk& chunk) {
  return {tile.row + chunk.row, tile.col + chunk.col};
}
BURIN_DEVICE Chunk chunk_at(const FilterParts& inside, u32 number) {
  if (parts() == 1) return {number, 0, 0, 0};
  const u32 of_channels = number % count_of(inside);
  const u32 below = inside.rows.first + of_channels / inside.cols.count;
  const u32 across = inside.cols.first + of_channels % inside.cols.count;
  return {number / count_of(inside), below * parts_across() + across,
          static_cast<i32>(below * part_rows() * dilation_rows()),
          static_cast<i32>(across * part_cols() * dilation_cols())};
}
