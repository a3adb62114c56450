#include "compiler/dead_channels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/reference.h"
#include "ir/baked_plan_activity.h"
#include "ir/error.h"
#include "ir/saturate.h"

namespace burin {

void kill_channels(const ActivityMap& map, const ActivityExtent& extent, std::span<float> nchw, double fraction,
                   std::uint64_t seed) {
  const auto blocks = static_cast<std::size_t>(map_bytes(map, extent));
  // The blocks with the smallest random keys are the dead ones.
  const std::vector<float> keys = random_tensor(static_cast<std::int64_t>(blocks), seed);
  std::vector<std::size_t> order(blocks);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  const auto dead_blocks = static_cast<std::size_t>(std::llround(static_cast<double>(blocks) * fraction));
  std::vector<bool> dead(blocks, false);
  for (std::size_t i = 0; i < std::min(dead_blocks, blocks); ++i) dead[order[i]] = true;
  std::size_t i = 0;
  for (int image = 0; image < extent.images; ++image) {
    for (int channel = 0; channel < extent.channels; ++channel) {
      for (int row = 0; row < extent.rows; ++row) {
        for (int col = 0; col < extent.cols; ++col, ++i) {
          const std::int64_t block = cell_at(map, extent, image, row, col) * extent.channels + channel;
          if (dead[static_cast<std::size_t>(block)]) nchw[i] = 0;
        }
      }
    }
  }
}

std::string map_fault(const ActivityMap& map, const ActivityExtent& extent, std::span<const std::uint8_t> bytes,
                      std::span<const float> output, std::uint8_t unwritten) {
  const std::vector<std::uint8_t> expected = activity_of(map, extent, output);
  BURIN_CHECK(bytes.size() == expected.size(), "a map of {} bytes instead of {}", bytes.size(), expected.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == expected[i]) continue;
    const auto channels = static_cast<std::size_t>(extent.channels);
    const std::string place =
        fmt::format("activity map of the output: cell {}, channel {}", i / channels, i % channels);
    if (bytes[i] == unwritten) return fmt::format("{} was not written", place);
    return fmt::format("{} is {}, expected {}", place, bytes[i], expected[i]);
  }
  return {};
}

namespace {

// Places from the first to the last that a tile reads, of which those beyond the tensor count as the nearest.
struct Window {
  int first = 0, last = 0;
};

Window window_of(int tile, int tile_extent, int stride, int pad, int kernel, int dilation, int extent) {
  const int begin = tile * tile_extent * stride - pad;
  const int end = begin + input_reach(tile_extent, stride, kernel, dilation) - 1;
  return {std::clamp(begin, 0, extent - 1), std::clamp(end, 0, extent - 1)};
}

}  // namespace

double skipped_share(const ConvShape& shape, int batch, const ActivityMap& tile, const ActivityMap& cell,
                     std::span<const std::uint8_t> bytes) {
  const ActivityExtent extent = input_extent(shape, batch);
  const std::int64_t per_image = cells_per_images(cell, extent), across = ceil_div(shape.in_w, cell.cols);
  std::int64_t all = 0, skipped = 0;
  std::vector<std::uint8_t> live(static_cast<std::size_t>(shape.in_channels));
  for (int image = 0; image < batch; image += tile.images) {
    const int last_image = std::min(image + tile.images, batch) - 1;
    for (int row = 0; row * tile.rows < shape.out_h(); ++row) {
      const Window rows =
          window_of(row, tile.rows, shape.stride_h, shape.pad.top, shape.kernel_h, shape.dilation_h, shape.in_h);
      for (int col = 0; col * tile.cols < shape.out_w(); ++col) {
        const Window cols =
            window_of(col, tile.cols, shape.stride_w, shape.pad.left, shape.kernel_w, shape.dilation_w, shape.in_w);
        std::fill(live.begin(), live.end(), std::uint8_t{0});
        for (int i = image / cell.images; i <= last_image / cell.images; ++i) {
          for (int r = rows.first / cell.rows; r <= rows.last / cell.rows; ++r) {
            for (int c = cols.first / cell.cols; c <= cols.last / cell.cols; ++c) {
              const std::uint8_t* first =
                  &bytes[static_cast<std::size_t>((i * per_image + r * across + c) * shape.in_channels)];
              for (std::size_t channel = 0; channel < live.size(); ++channel) live[channel] |= first[channel];
            }
          }
        }
        all += shape.in_channels;
        skipped += std::count(live.begin(), live.end(), std::uint8_t{0});
      }
    }
  }
  return all == 0 ? 0 : static_cast<double>(skipped) / static_cast<double>(all);
}

}  // namespace burin
