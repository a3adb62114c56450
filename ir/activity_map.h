// ActivityMap: which channels of a tensor hold nothing but zeros, cell by cell. After a ReLU many do, and whoever reads
// the tensor next need not multiply them.
//
// A cell covers `images` x `rows` x `cols` places of the tensor; a kernel's output has the kernel's tiles as cells.
// Cells are counted like tiles: columns fastest, then rows, then images. The map has one byte for each cell and
// channel, channels side by side:
//   byte(cell, channel) = cell * channels + channel
// It is 0 when all values of the channel in the cell are zero (-0 too), else not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace burin {

struct ActivityMap {
  int images = 1, rows = 1, cols = 1;  // of a cell; the last ones may reach beyond the tensor
  bool operator==(const ActivityMap&) const = default;
};

// The tensor that a map is of. Filling channels and images of its layout are not in the map.
struct ActivityExtent {
  int images = 1, channels = 1, rows = 1, cols = 1;
};

// Counts, saturated (ir/saturate.h).
std::int64_t cells_per_images(const ActivityMap& map, const ActivityExtent& extent);  // of one cell's images
std::int64_t cells(const ActivityMap& map, const ActivityExtent& extent);
std::int64_t map_bytes(const ActivityMap& map, const ActivityExtent& extent);
std::int64_t cell_at(const ActivityMap& map, const ActivityExtent& extent, int image, int row, int col);

// How many cells of `cell` places, of those that `extent` places fall into, some window reaches: windows of `reach`
// places begin at first + i * step for i from 0 to count - 1. A window beyond the extent reaches the nearest cell.
int most_cells_reached(int extent, int cell, int first, int step, int count, int reach);

// All faults; `what` names the map in them. `images_together`: images that share a word belong to one cell.
std::vector<std::string> verify(const ActivityMap& map, const ActivityExtent& extent, int images_together,
                                std::string_view what);

// "2x14x14"
std::string print(const ActivityMap& map);

// The map of a tensor in NCHW, with 1 where it is not 0. NaN is not zero.
std::vector<std::uint8_t> activity_of(const ActivityMap& map, const ActivityExtent& extent,
                                      std::span<const float> nchw);

}  // namespace burin
