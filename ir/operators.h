// What a network does beside its convolutions: one plain type for each kind of operator. None knows its tensors; that
// is said where they stand in the graph (ir/network.h). Sizes are of one image: the batch is never an axis here.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/conv_layer.h"

namespace burin {

// One of Network::layers. A second input is added before the layer's activation, when the layer's epilogue says so.
struct Convolution {
  int layer = 0;  // index into Network::layers
};

// A fully connected layer: output[k] = sum of weights[k][c] * input[c], then bias and activation.
struct Linear {
  int in_features = 0, out_features = 0;
  std::vector<float> weights;  // [out_features][in_features]
  std::vector<float> bias;     // out_features values, or empty
  Activation activation = Activation::none;
  float leaky_slope = 0.01F;
};

enum class ElementFunction { relu, leaky_relu, sigmoid, hard_sigmoid, hard_swish, silu, clip };
constexpr EnumNames<7> names_of(ElementFunction) {
  return {"a function", {"relu", "leaky_relu", "sigmoid", "hard_sigmoid", "hard_swish", "silu", "clip"}};
}

struct Elementwise {
  ElementFunction function = ElementFunction::relu;
  // leaky_relu: alpha is the slope; hard_sigmoid: clamp(alpha * x + beta, 0, 1); clip: from alpha to beta, which may be
  // infinite. hard_swish is x * clamp(x / 6 + 1 / 2, 0, 1).
  float alpha = 0, beta = 0;
};

// output = scale[channel] * input + shift[channel]: what is left of a batch normalization when it is not trained.
struct ChannelAffine {
  std::vector<float> scale, shift;
  std::optional<Elementwise> then = {};  // of the result
};

// Combine has two tensors of one shape; the second may have one value for each channel instead (shape {C, 1, 1}).
enum class Combination { add, multiply };
constexpr EnumNames<2> names_of(Combination) { return {"a combination", {"add", "multiply"}}; }
struct Combine {
  Combination combination = Combination::add;
  std::optional<Elementwise> then = {};  // of the result
};

struct GlobalAveragePool {};

// Local response normalization across channels: x / (bias + alpha / size * sum of squares)^beta. The window of `size`
// channels reaches (size - 1) / 2 below and size / 2 above the channel; what lies outside the image counts as zero.
struct Lrn {
  int size = 1;
  float alpha = 1e-4F, beta = 0.75F, bias = 1;
};

// Over all values of an image when it is flat, else along axis 0: over the channels of each pixel.
struct Softmax {};

// Puts all inputs behind each other along an axis of one image: 0 is the channels.
struct Concat {
  int axis = 0;
};

// Channels of its input that follow each other, from `begin` on: what lies along axis 0 is cut.
struct ChannelView {
  int begin = 0, channels = 1;
};

// Elements at regular distances. Along each axis there are `extent` of them, `step` apart, from `begin` on: a negative
// step goes backwards, and a step of 0 repeats one.
struct PickedAxis {
  std::int64_t begin = 0, step = 1, extent = 1;
  // Whether it is all of an axis of so many elements, as it lies there.
  bool is_whole(std::int64_t elements) const { return begin == 0 && (step == 1 || extent == 1) && extent == elements; }
};
struct Pick {
  std::vector<PickedAxis> axes;  // of one image, all of them
};

// What each row (or column) of an output is made of: of `count` rows (or columns) of the input, by their indices, each
// with a weight. An index below 0 is outside, and then all of the output's row (or column) is.
struct Taps {
  int count = 1;
  std::vector<std::int32_t> indices;  // [extent][count]
  std::vector<float> weights;         // as many
  std::int64_t extent() const { return std::ssize(indices) / count; }
  // Whether each is one element of the input as it is.
  bool copies() const;
};

// Weighted sums of rows and of columns: ONNX's Resize, whatever its rule, and padding that repeats pixels.
struct Resample {
  Taps rows, cols;
  float outside = 0;  // the value of what lies outside
};

struct Pad {
  Padding pad = {};
  float value = 0;
};

// The same values in the same order, in another shape.
struct Reshape {
  std::vector<std::int64_t> shape;  // of one image
};

// Axis i of the output is axis order[i] of the input.
struct Transpose {
  std::vector<int> order;  // of one image's axes
};

// What changes nothing: ONNX's Identity, Dropout.
struct Identity {};

// The same values in another format: that of its output.
struct Convert {};

using OperatorKind =
    std::variant<Convolution, Linear, ChannelAffine, Elementwise, Combine, Pool, GlobalAveragePool, Lrn, Softmax,
                 Concat, ChannelView, Pad, Reshape, Transpose, Identity, Convert, Pick, Resample>;

// For visitors: a function of several kinds of operators.
template <typename Kind, typename... Kinds>
concept OneOf = (std::same_as<Kind, Kinds> || ...);

// The function that an operator with two parts ends with; null where there is none.
inline const Elementwise* then_of(const OperatorKind& kind) {
  const std::optional<Elementwise>* then = nullptr;
  if (const auto* affine = std::get_if<ChannelAffine>(&kind)) then = &affine->then;
  if (const auto* combine = std::get_if<Combine>(&kind)) then = &combine->then;
  return then != nullptr && then->has_value() ? &**then : nullptr;
}

// "convolution", "linear", ...
constexpr std::string_view kind_name(const OperatorKind& kind) {
  constexpr std::array<std::string_view, std::variant_size_v<OperatorKind>> kNames = {
      "convolution", "linear",  "channel_affine", "elementwise",  "combine", "pool",    "global_average_pool",
      "lrn",         "softmax", "concat",         "channel_view", "pad",     "reshape", "transpose",
      "identity",    "convert", "pick",           "resample"};
  return kNames[kind.index()];
}

}  // namespace burin
