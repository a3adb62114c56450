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
#include "ir/element_function.h"

namespace burin {

// One of Network::layers. A second input is added before the layer's activation, when the layer's epilogue says so.
struct Convolution {
  int layer = 0;  // index into Network::layers
};

// A fully connected layer: output[k] = sum of weights[k][c] * input[c], then bias and a function.
struct Linear {
  int in_features = 0, out_features = 0;
  std::vector<float> weights;                // [out_features][in_features]
  std::vector<float> bias;                   // out_features values, or empty
  std::optional<Elementwise> function = {};  // of the sums
};

// Numbers of the model that an operator takes beside its inputs: a tensor that has as many axes as one image of what it
// is combined with, and along each of them as many values or one for all.
struct ConstantOperand {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// output = scale[channel] * input + shift[channel]: what is left of a batch normalization when it is not trained.
struct ChannelAffine {
  std::vector<float> scale, shift;
  std::optional<Elementwise> then = {};  // of the result
};

// Combine has two operands: its inputs, or its input and `constant`. The second has along each axis of one image as
// many values as the first, or one for all:
//   prelu                        a, below zero a b
//   equal, less, less_or_equal   1 where that is so of a and b, else 0: such numbers are the network's booleans
//   remainder                    of a / b cut off towards zero: it has the sign of a
//   keep, drop                   a where b is not zero, or where it is; `otherwise` in all other places
//   user                         what Combine::user says
enum class Combination {
  add,
  multiply,
  subtract,
  divide,
  power,
  smaller,
  larger,
  prelu,
  equal,
  less,
  less_or_equal,
  keep,
  drop,
  remainder,
  user
};
constexpr EnumNames<15> names_of(Combination) {
  return {"a combination",
          {"add", "multiply", "subtract", "divide", "power", "smaller", "larger", "prelu", "equal", "less",
           "less_or_equal", "keep", "drop", "remainder", "user"}};
}
constexpr bool chooses(Combination combination) {
  return combination == Combination::keep || combination == Combination::drop;
}
struct Combine {
  Combination combination = Combination::add;
  std::optional<Elementwise> then = {};  // of the result
  bool swapped = false;                  // b - a, b / a, ...
  float otherwise = 0;                   // of keep and drop; it may be infinite
  std::optional<ConstantOperand> constant = {};
  SharedFunction user = {};  // of two inputs
};

// Products of matrices, which lie along the last two axes of both operands: output[i][j] = scale * sum of
// left[i][k] right[k][j]. Along each of the axes before, an operand has as many matrices as the other, or one for all.
// The operands are its two inputs, or its input and `constant`.
struct MatMul {
  // Axis i of an operand is axis order[i] of its tensor; empty: axis i. Of a constant it is empty.
  std::vector<int> left_order = {}, right_order = {};
  std::optional<ConstantOperand> constant = {};
  bool constant_first = false;  // it is the left operand
  float scale = 1;
  std::optional<Elementwise> then = {};  // of the sums
};

struct GlobalAveragePool {};

// Squeeze-and-excitation multiplies each channel by what two fully connected layers make of the means of all channels.
// Squeeze is its first half: what parts of the image add to the sums of the first layer. A part has so many channels
// and pixels, or what is left of them; parts of the same channels follow each other. Its output is parts x features.
struct Squeeze {
  int features = 1;
  std::vector<float> weights;  // features x channels
  int part_channels = 1, part_pixels = 1;

  std::int64_t pixel_parts(const std::vector<std::int64_t>& image) const {
    return (image[1] * image[2] + part_pixels - 1) / part_pixels;
  }
  std::int64_t parts(const std::vector<std::int64_t>& image) const {
    return (image[0] + part_channels - 1) / part_channels * pixel_parts(image);
  }
};
// The second half: the rest of the first layer, the second layer, and the product. Its inputs are the image and what
// Squeeze makes of it.
struct Excite {
  std::vector<float> bias;              // of the features; empty: none
  std::optional<Elementwise> function;  // of the features
  Linear expand;
};

// One value of all that lie along some axes, which stay, with one value each.
enum class Statistic { mean, sum, largest, smallest, product, sum_of_magnitudes, sum_of_squares, log_sum_exp };
constexpr EnumNames<8> names_of(Statistic) {
  return {"a statistic",
          {"mean", "sum", "largest", "smallest", "product", "sum_of_magnitudes", "sum_of_squares", "log_sum_exp"}};
}
struct Reduce {
  Statistic statistic = Statistic::mean;
  std::vector<int> axes;                 // of one image, ascending
  std::optional<Elementwise> then = {};  // of the result
};

// All values that lie along some axes are a group, by which each of them is changed:
//   deviation    (x - mean) / sqrt(variance + epsilon)
//   root_mean_square   x / sqrt(mean of squares + epsilon)
//   magnitudes, length   x / sum of magnitudes, x / sqrt(sum of squares); zero where that is zero
//   softmax, log_softmax   e^x / sum of e^x, and its logarithm
// Then it is multiplied by `scale`, and `shift` is added, where there are any.
enum class Normalization { deviation, root_mean_square, magnitudes, length, softmax, log_softmax };
constexpr EnumNames<6> names_of(Normalization) {
  return {"a normalization", {"deviation", "root_mean_square", "magnitudes", "length", "softmax", "log_softmax"}};
}
struct Normalize {
  Normalization normalization = Normalization::deviation;
  std::vector<int> axes = {};  // of one image, ascending
  float epsilon = 0;
  std::optional<ConstantOperand> scale = {}, shift = {};  // of one shape
  std::optional<Elementwise> then = {};                   // of the result
};

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
  // Axis i of the output is what is picked of axis order[i] of the input; empty: of axis i.
  std::vector<int> order = {};
  std::size_t from(std::size_t axis) const { return order.empty() ? axis : static_cast<std::size_t>(order[axis]); }
};

// What each row (or column) of an output is made of: of `count` rows (or columns) of the input, by their indices, each
// with a weight. An index below 0 is outside, and then all of the output's row (or column) is.
struct Taps {
  int count = 1;
  std::vector<std::int32_t> indices = {};  // [extent][count]
  std::vector<float> weights = {};         // as many
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

using OperatorKind = std::variant<Convolution, Linear, ChannelAffine, Elementwise, Combine, Pool, GlobalAveragePool,
                                  Lrn, Softmax, Concat, ChannelView, Pad, Reshape, Transpose, Identity, Convert, Reduce,
                                  Normalize, Pick, Resample, Squeeze, Excite, MatMul>;

// For visitors: a function of several kinds of operators.
template <typename Kind, typename... Kinds>
concept OneOf = (std::same_as<Kind, Kinds> || ...);

// Where an operator with two parts has the function that it ends with, if any; null: it has one part.
template <typename AnyKind>  // OperatorKind, const or not
auto end_of(AnyKind& kind) -> decltype(&std::get_if<Combine>(&kind)->then) {
  if (auto* affine = std::get_if<ChannelAffine>(&kind)) return &affine->then;
  if (auto* combine = std::get_if<Combine>(&kind)) return &combine->then;
  if (auto* reduce = std::get_if<Reduce>(&kind)) return &reduce->then;
  if (auto* normalize = std::get_if<Normalize>(&kind)) return &normalize->then;
  if (auto* matmul = std::get_if<MatMul>(&kind)) return &matmul->then;
  return nullptr;
}
// That function; null where there is none.
inline const Elementwise* then_of(const OperatorKind& kind) {
  const std::optional<Elementwise>* then = end_of(kind);
  return then != nullptr && then->has_value() ? &**then : nullptr;
}

// Whether passes know what an element-wise operator computes, and not only that it does so.
inline bool has_user_function(const OperatorKind& kind) {
  const auto* element = std::get_if<Elementwise>(&kind);
  const auto* combine = std::get_if<Combine>(&kind);
  const Elementwise* then = then_of(kind);
  return (element != nullptr && element->is_user()) || (combine != nullptr && combine->user != nullptr) ||
         (then != nullptr && then->is_user());
}

// "convolution", "linear", ...
constexpr std::string_view kind_name(const OperatorKind& kind) {
  constexpr std::array<std::string_view, std::variant_size_v<OperatorKind>> kNames = {
      "convolution", "linear",  "channel_affine", "elementwise",  "combine", "pool",     "global_average_pool",
      "lrn",         "softmax", "concat",         "channel_view", "pad",     "reshape",  "transpose",
      "identity",    "convert", "reduce",         "normalize",    "pick",    "resample", "squeeze",
      "excite",      "matmul"};
  return kNames[kind.index()];
}

}  // namespace burin
