// Tiles of whole windows, of convolutions that end with a pool.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "ir/conv_layer.h"
#include "ir/saturate.h"

namespace burin {

// The windows that a block has of each of its images, and the pixels of the convolution that they read.
struct WindowTile {
  int rows = 1, cols = 1;

  static std::int64_t pixels(int windows, int kernel, int stride) {
    return std::int64_t{windows - 1} * stride + kernel;
  }
  static WindowTile all_of(const ConvShape& shape) { return {shape.out_h(), shape.out_w()}; }
  std::int64_t pixel_rows(const Pool& pool) const { return pixels(rows, pool.kernel_h, pool.stride_h); }
  std::int64_t pixel_cols(const Pool& pool) const { return pixels(cols, pool.kernel_w, pool.stride_w); }
  std::int64_t tiles_per_image(const ConvShape& shape) const {
    return ceil_div(shape.out_h(), rows) * ceil_div(shape.out_w(), cols);
  }
  bool has_all(const ConvShape& shape) const { return rows >= shape.out_h() && cols >= shape.out_w(); }

  // Estimates of what threads do for the windows of an output and an image, where pixels lie in shared memory: for each
  // window its place and the store, for each pixel of it the load.
  double instructions(const Pool& pool) const {
    constexpr double kOfWindow = 20, kOfPixel = 3;
    return static_cast<double>(rows) * cols * (kOfWindow + kOfPixel * pool.kernel_h * pool.kernel_w);
  }
};

// How many parts (pixels, tiles of outputs) a block needs for a tile's windows of all its images.
using WindowParts = std::function<std::int64_t(const WindowTile&)>;

// Whether a block of so many images may have these windows: one where the layer has no pool; else no more than there
// are, in at most `most_parts`, and several images have all theirs in one block.
bool is_legal(const WindowTile& windows, const ConvShape& shape, int images, const WindowParts& parts,
              std::int64_t most_parts);

// The legal windows with which an image has the fewest tiles, and among these the ones that need the fewest parts;
// nothing: there are none.
std::optional<WindowTile> choose_windows(const ConvShape& shape, int images, const WindowParts& parts,
                                         std::int64_t most_parts);

// The windows of a block as choices of a plan, which the tiles of a provider have among theirs.
struct WindowChoice {
  int window_rows = 1, window_cols = 1;

  WindowTile windows() const { return {window_rows, window_cols}; }
  // Whether there are any to take.
  bool take(const std::optional<WindowTile>& windows) {
    if (!windows) return false;
    window_rows = windows->rows;
    window_cols = windows->cols;
    return true;
  }
  bool operator==(const WindowChoice&) const = default;
};

}  // namespace burin
