#include "ir/activity_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/error.h"
#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {

std::int64_t cells_per_images(const ActivityMap& map, const ActivityExtent& extent) {
  return saturating_product({ceil_div(extent.rows, map.rows), ceil_div(extent.cols, map.cols)});
}

std::int64_t cells(const ActivityMap& map, const ActivityExtent& extent) {
  return saturating_product({ceil_div(extent.images, map.images), cells_per_images(map, extent)});
}

std::int64_t map_bytes(const ActivityMap& map, const ActivityExtent& extent) {
  return saturating_product({cells(map, extent), extent.channels});
}

std::int64_t cell_at(const ActivityMap& map, const ActivityExtent& extent, int image, int row, int col) {
  return image / map.images * cells_per_images(map, extent) + row / map.rows * ceil_div(extent.cols, map.cols) +
         col / map.cols;
}

int most_cells_reached(int extent, int cell, int first, int step, int count, int reach) {
  std::int64_t most = 0;
  const auto cell_of = [&](std::int64_t place) { return std::clamp<std::int64_t>(place, 0, extent - 1) / cell; };
  for (int i = 0; i < count; ++i) {
    const std::int64_t begin = first + std::int64_t{i} * step;
    most = std::max(most, cell_of(begin + reach - 1) - cell_of(begin) + 1);
  }
  return static_cast<int>(most);
}

std::vector<std::string> verify(const ActivityMap& map, const ActivityExtent& extent, int images_together,
                                std::string_view what) {
  Faults faults;
  const auto check = [&](std::string_view axis, int value, int most, std::string_view why) {
    if (value >= 1 && value <= most) return;
    faults.add("{}: cell {} is {}, allowed is 1 to {}: {}", what, axis, value, most, why);
  };
  check("images", map.images, kMaxBatch, "kMaxBatch images fit one launch");
  check("rows", map.rows, extent.rows, "the tensor has no more rows");
  check("columns", map.cols, extent.cols, "the tensor has no more columns");
  if (map.images >= 1 && map.images % images_together != 0) {
    faults.add("{}: cell images is {}, it must be a multiple of {}: that many images lie side by side", what,
               map.images, images_together);
  }
  return faults.take();
}

std::string print(const ActivityMap& map) { return fmt::format("{}x{}x{}", map.images, map.rows, map.cols); }

std::vector<std::uint8_t> activity_of(const ActivityMap& map, const ActivityExtent& extent,
                                      std::span<const float> nchw) {
  BURIN_CHECK(static_cast<std::int64_t>(nchw.size()) ==
                  std::int64_t{extent.images} * extent.channels * extent.rows * extent.cols,
              "{} values are not the tensor that the map is of", nchw.size());
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(map_bytes(map, extent)), 0);
  std::size_t i = 0;
  for (int image = 0; image < extent.images; ++image) {
    for (int channel = 0; channel < extent.channels; ++channel) {
      for (int row = 0; row < extent.rows; ++row) {
        for (int col = 0; col < extent.cols; ++col) {
          if (nchw[i++] == 0) continue;
          bytes[static_cast<std::size_t>(cell_at(map, extent, image, row, col) * extent.channels + channel)] = 1;
        }
      }
    }
  }
  return bytes;
}

}  // namespace burin
