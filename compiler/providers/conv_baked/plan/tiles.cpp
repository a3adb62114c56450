#include "compiler/providers/conv_baked/plan/tiles.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "ir/baked_plan_pool.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// Parts of `extent` of which each is at most `most`: one length for each number of parts, the longest first, at most
// `count` of them. Equal parts leave no thread without a pixel.
std::vector<int> even_lengths(int extent, int most, int count) {
  std::vector<int> lengths;
  for (std::int64_t parts = ceil_div(extent, most); parts <= extent && static_cast<int>(lengths.size()) < count;) {
    const auto length = static_cast<int>(ceil_div(extent, parts));
    lengths.push_back(length);
    if (length == 1) break;
    parts = std::max(parts + 1, ceil_div(extent, length - 1));
  }
  return lengths;
}

// Rows of outputs, so many side by side, whose pixels a block has threads for; 0: not even one.
int most_rows(const ConvShape& shape, int cols) {
  int most = std::min(shape.out_h(), kMaxThreadsPerBlock / cols);
  while (most > 0 && pixel_tile({most, cols}, 1, shape).pixels() > kMaxThreadsPerBlock) --most;
  return most;
}

}  // namespace

std::vector<PixelTile> tile_candidates(const ConvShape& shape, int batch) {
  constexpr int kLengths = 10;  // of rows, per width
  const int out_h = shape.out_h(), out_w = shape.out_w();
  std::vector<PixelTile> tiles;
  std::set<std::tuple<int, int, int>> seen;
  // Counted in outputs, which need as many pixels or with a pool more.
  const auto add = [&](int images, int rows, int cols) {
    const PixelTile tile = pixel_tile({rows, cols}, images, shape);
    if (saturating_product({tile.images, tile.rows, tile.cols}) > kMaxThreadsPerBlock) return;
    if (seen.emplace(tile.images, tile.rows, tile.cols).second) tiles.push_back(tile);
  };

  const std::int64_t pixels = std::int64_t{shape.conv_h()} * shape.conv_w();
  if (pixels <= kMaxThreadsPerBlock) {
    const int most = static_cast<int>(std::min<std::int64_t>(batch, kMaxThreadsPerBlock / pixels));
    for (const int images : even_lengths(batch, most, 2 * kLengths)) add(images, out_h, out_w);
    for (int images = 1; images <= most; images *= 2) add(images, out_h, out_w);
    // Whole warps need no idle lanes, whatever the batch divides into.
    for (int images = most; images > 0; --images) {
      if (images * pixels % kWarpSize == 0) {
        add(images, out_h, out_w);
        break;
      }
    }
  }

  // Widths: the whole row, its equal parts, and powers of two.
  std::vector<int> widths = even_lengths(out_w, std::min(out_w, kMaxThreadsPerBlock), 4);
  for (int width = 1; width <= std::min(out_w, 128); width *= 2) widths.push_back(width);
  for (const int cols : widths) {
    const int most = most_rows(shape, cols);
    if (most < 1) continue;
    for (const int rows : even_lengths(out_h, most, kLengths)) add(1, rows, cols);
    for (int rows = 1; rows <= most; rows *= 2) add(1, rows, cols);
  }
  return tiles;
}

}  // namespace burin
