// LibraryTask: what a kernel computes, where libraries of dense kernels have calls for the same: what is measured
// beside it. A convolution is said by its shape. Sizes are of one image, but for tensors that are moved, whose images
// may lie side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/conv_layer.h"
#include "ir/tensor_layout.h"

namespace burin {

// A pool that is an operator of its own. Of a global average the window is the image.
struct PooledImage {
  int channels = 1, rows = 1, cols = 1;
  Pool pool;
  bool operator==(const PooledImage&) const = default;
};

// Softmax over the channels of each pixel; a flat image has one.
struct SoftmaxImage {
  std::int64_t channels = 1, pixels = 1;
  bool operator==(const SoftmaxImage&) const = default;
};

// The same values in other places of the same number of elements.
struct MovedAxis {
  std::int64_t extent = 1;
  std::int64_t in_step = 0, out_step = 0;  // elements
  bool operator==(const MovedAxis&) const = default;
};
struct MovedTensor {
  std::vector<MovedAxis> axes;  // of the whole batch
  bool operator==(const MovedTensor&) const = default;
};

using LibraryTask = std::variant<ConvShape, PooledImage, SoftmaxImage, MovedTensor>;

// Axes that are one on both sides become one, those of extent 1 go. Nothing: a step is not positive, or too large for
// libraries, which count in 32 bits.
std::optional<MovedTensor> moved_tensor(const std::vector<MovedAxis>& axes);
// So many images from one layout to another. Nothing: what fills up images or channels would be moved as well.
std::optional<MovedTensor> moved_between(TensorLayout from, TensorLayout to, std::int64_t images, std::int64_t channels,
                                         std::int64_t pixels);

// "64x112x112 -> 64x56x56, max 3x3, stride 2, pad 1", "softmax of 21 channels, 4096 pixels", "moves 64x3136, steps
// 3136x1 -> 1x64".
std::string describe(const LibraryTask& task);

}  // namespace burin
