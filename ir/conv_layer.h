// ConvLayer: one pruned convolution, with its weights, as an importer found it.
//
// ConvShape is everything that is known without the weights; the package's manifest carries it to the runtime.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/element_function.h"
#include "ir/named_enum.h"

namespace burin {

// Rows and columns of nothing around an image.
struct Padding {
  int top = 0, bottom = 0, left = 0, right = 0;
  bool operator==(const Padding&) const = default;
};

// "3" when both are the same, else "3x5".
std::string pair_text(int h, int w);
// "1" when all sides are the same, "1x2" when opposite ones are, else "top,bottom,left,right".
std::string padding_text(const Padding& pad);

enum class PoolKind { max, average, filter };
constexpr EnumNames<3> names_of(PoolKind) { return {"a pool", {"max", "average", "filter"}}; }

// The largest or the mean value of each window of a channel; an operator of its own, or the end of a convolution
// (Epilogue). A filter is the end of a convolution alone: its weights are those of a depthwise convolution
// (ConvLayer::filters), and what lies outside the image counts as zero.
struct Pool {
  PoolKind kind = PoolKind::max;
  int kernel_h = 1, kernel_w = 1;
  int stride_h = 1, stride_w = 1;
  int dilation_h = 1, dilation_w = 1;
  Padding pad = {};
  bool round_up = false;       // the output's size; windows that begin behind the last row or column are left out
  bool count_padding = false;  // average: padding counts as zeros (never what lies beyond the padding)
  bool operator==(const Pool&) const = default;
};

// Windows of a pool or a filter along an axis: output rows or columns; 0 when there are none.
std::int64_t window_count(std::int64_t in, std::int64_t pad_before, std::int64_t pad_after, std::int64_t kernel,
                          std::int64_t stride, std::int64_t dilation, bool round_up = false);
std::int64_t pooled_rows(const Pool& pool, std::int64_t in_h);
std::int64_t pooled_cols(const Pool& pool, std::int64_t in_w);

// All faults of the attributes, and of windows of an image of these sizes: each must hold at least one element, since a
// maximum or an average of nothing has no value.
std::vector<std::string> verify(const Pool& pool, std::int64_t in_h, std::int64_t in_w);

// Whether its only output is the mean of all that an image of these sizes has.
bool averages_whole(const Pool& pool, std::int64_t in_h, std::int64_t in_w);

// Values that one output adds up; 0 of a maximum.
int summed_values(const Pool& pool);

// "max 3x3, stride 2, pad 1, rounded up".
std::string describe(const Pool& pool);

// Applied to every output in this order: bias, residual, function, pool, and what follows a pool that filters.
struct Epilogue {
  bool bias = false;
  bool residual = false;  // a tensor shaped like the convolution's output is added before the function
  std::optional<Elementwise> function = {};
  std::optional<Pool> pool = {};         // only what it makes of the function's values is stored; without dilation
  bool residual_last = false;            // the residual is added to the function's values; then there is no pool
  std::optional<Elementwise> then = {};  // of what a pool that filters makes; none of a user's own

  bool filters() const { return pool && pool->kind == PoolKind::filter; }
  bool operator==(const Epilogue&) const = default;
};

struct ConvShape {
  int in_channels = 1, out_channels = 1;
  int kernel_h = 1, kernel_w = 1;
  int stride_h = 1, stride_w = 1;
  int dilation_h = 1, dilation_w = 1;
  int groups = 1;
  Padding pad;
  int in_h = 1, in_w = 1;
  Epilogue epilogue;

  // These are the pixels that the convolution computes; a residual has a value for each.
  int conv_h() const;
  int conv_w() const;
  // These are the pixels that are stored: the same, or what the pool makes of them.
  int out_h() const;
  int out_w() const;
  int channels_per_group() const { return in_channels / groups; }
  int outputs_per_group() const { return out_channels / groups; }
  std::int64_t input_elements() const;   // of one image
  std::int64_t conv_elements() const;    // of one image, before the pool
  std::int64_t output_elements() const;  // of one image
  std::int64_t weight_elements() const;
  // The input channel that weight[k][c] multiplies.
  int input_channel(int k, int c) const { return k / outputs_per_group() * channels_per_group() + c; }
  bool operator==(const ConvShape&) const = default;
};

// A fully connected layer as a convolution: 1x1, of images of one pixel, each of whose channels is a feature.
ConvShape fully_connected_shape(int in_features, int out_features, bool bias,
                                const std::optional<Elementwise>& function);

// All faults of a shape, each a sentence that names attribute, value and what is allowed; empty when it is legal.
std::vector<std::string> verify(const ConvShape& shape);

// "3x3, stride 1, pad 1", with dilation and groups where there are any.
std::string window_text(const ConvShape& shape);
// One line: "256x14x14 -> 256x14x14, 3x3, stride 1, pad 1", and "; max 2x2, stride 2, pad 0 -> 256x7x7" with a pool.
std::string describe(const ConvShape& shape);

// "key: value" lines, for people.
std::string print(const ConvShape& shape);

struct ConvLayer {
  std::string name;
  ConvShape shape;
  std::vector<float> weights;  // OIHW: [out_channels][channels_per_group][kernel_h][kernel_w]
  std::vector<float> bias;     // out_channels values, or empty when !shape.epilogue.bias
  // Those of a pool that filters, else empty: [out_channels][pool.kernel_h][pool.kernel_w], and a value for each
  // channel.
  std::vector<float> filters = {}, filter_bias = {};

  float weight(int k, int c, int r, int s) const {
    return weights[((static_cast<std::size_t>(k) * shape.channels_per_group() + c) * shape.kernel_h + r) *
                       shape.kernel_w +
                   s];
  }
};

// Faults of the shape, sizes that do not match it, weights or biases that are not finite.
std::vector<std::string> verify(const ConvLayer& layer);

}  // namespace burin
