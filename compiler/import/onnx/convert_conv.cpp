// Convolutions and fully connected layers.
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/moves.h"
#include "compiler/import/onnx/products.h"
#include "compiler/import/onnx/window.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

constexpr std::size_t kFilterRank = 4;  // OIHW
constexpr int kBiasInput = 2;           // of Conv and Gemm

// Rows and columns of the filter [K,C,R,S], or of that of a row [K,C,S], for which they are one row.
std::pair<std::int64_t, std::int64_t> filter_of(const Node& node, const StoredTensor& weight, bool row) {
  const std::vector<std::int64_t>& shape = weight.shape();
  const std::string text = extents_text(shape);
  const std::size_t rank = row ? kFilterRank - 1 : kFilterRank;
  if (shape.size() != rank && shape.size() >= kFilterRank - 1 && shape.size() <= kFilterRank + 1) {
    node.unsupported(
        "its weights {} make it a {}-D convolution, its input is that of a {}-D one; burin compiles 1-D and 2-D "
        "convolutions",
        text, shape.size() - 2, rank - 2);
  }
  if (shape.size() != rank) node.bad_input("its weights have the shape {}; they must be [K,C,R,S]", text);
  for (const std::int64_t extent : shape) {
    if (extent < 1) node.bad_input("its weights have the shape {}; no extent may be 0", text);
  }
  if (shape[0] > kMaxChannels || shape[1] > kMaxChannels) {
    node.unsupported("its weights {} exceed burin's limit of {} channels", text, kMaxChannels);
  }
  if (weight.elements() > kMaxLayerWeights) {
    node.unsupported("its weights {} exceed burin's limit of {} weights", text, kMaxLayerWeights);
  }
  if (const auto kernel = node.attributes().integers("kernel_shape");
      kernel && *kernel != std::vector<std::int64_t>(shape.begin() + 2, shape.end())) {
    node.bad_input("attribute 'kernel_shape' is [{}], but its weights have the shape {}", numbers_text(*kernel), text);
  }
  return {row ? 1 : shape[2], shape.back()};
}

bool is_too_large(const ConvShape& shape) {
  return shape.kernel_h > kMaxKernelExtent || shape.kernel_w > kMaxKernelExtent;
}

// Windows that lie side by side and fill the image.
bool has_patches(const ConvShape& shape) {
  return shape.stride_h == shape.kernel_h && shape.stride_w == shape.kernel_w && shape.dilation_h == 1 &&
         shape.dilation_w == 1 && shape.pad == Padding{} && shape.in_h % shape.kernel_h == 0 &&
         shape.in_w % shape.kernel_w == 0;
}

// The image whose pixels are these windows, each with all values of one as its channels, in the order of weights; what
// is left to do of the convolution is `shape`.
int emit_patches(const Node& node, GraphBuilder& graph, int x, ConvShape& shape) {
  const std::int64_t in = shape.in_channels, rows = shape.kernel_h, cols = shape.kernel_w;
  const std::int64_t made_h = shape.in_h / rows, made_w = shape.in_w / cols;
  shape.in_channels = checked_int(node, in * rows * cols, 1, kMaxChannels, "the number of values of its windows");
  shape.in_h = static_cast<int>(made_h), shape.in_w = static_cast<int>(made_w);
  shape.kernel_h = shape.kernel_w = shape.stride_h = shape.stride_w = 1;
  x = graph.emit_inner(node, "windows", Reshape{{in, made_h, rows, made_w, cols}}, {x});
  x = graph.emit_inner(node, "turned", Transpose{{0, 2, 4, 1, 3}}, {x});
  return graph.emit_inner(node, "patches", Reshape{{in * rows * cols, made_h, made_w}}, {x});
}

// One value for each output: a list, or for Gemm also a row of a matrix, or one number that is meant for all.
std::vector<float> read_bias(const Node& node, GraphBuilder& graph, int outputs) {
  const bool repeats = node.op() == "Gemm";
  const StoredTensor tensor = graph.constant(node, kBiasInput, "bias");
  const std::vector<std::int64_t>& shape = tensor.shape();
  const bool list = shape.size() == 1 || (repeats && (shape.empty() || (shape.size() == 2 && shape[0] == 1)));
  if (repeats && shape.size() == 2 && shape[0] > 1 && (shape[1] == outputs || shape[1] == 1)) {
    node.unsupported("its bias {} has the shape {}: another one for each image of a batch", in_quotes(tensor.view.name),
                     extents_text(shape));
  }
  if (!list || (tensor.elements() != outputs && !(repeats && tensor.elements() == 1))) {
    node.bad_input("its bias {} has the shape {}, but there are {} outputs", in_quotes(tensor.view.name),
                   extents_text(shape), outputs);
  }
  std::vector<float> bias = graph.floats(node, tensor, "bias");
  if (bias.size() == 1) bias.resize(static_cast<std::size_t>(outputs), bias[0]);
  return bias;
}

// [in][out] as [out][in].
std::vector<float> transposed(const std::vector<float>& values, int rows, int columns) {
  std::vector<float> result(values.size());
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c) {
      result[c * static_cast<std::size_t>(rows) + r] = values[r * static_cast<std::size_t>(columns) + c];
    }
  }
  return result;
}

void scale(std::vector<float>& values, float factor) {
  for (float& value : values) value *= factor;
}

struct LinearForm {
  bool out_first = false;  // the matrix is [out][in]
  float alpha = 1, beta = 1;
};

// The weights and biases of a product with features that lie along one axis.
struct LinearNumbers {
  int in = 0, out = 0;
  std::vector<float> weights;  // [out][in]
  std::vector<float> bias;     // or empty
};

LinearNumbers read_linear(const Node& node, GraphBuilder& graph, std::int64_t features, const LinearForm& form) {
  const StoredTensor matrix = graph.constant(node, 1, "matrix");
  if (matrix.shape().size() != 2) {
    node.unsupported("its matrix {} has the shape {}; burin multiplies with matrices of two axes",
                     in_quotes(matrix.view.name), extents_text(matrix.shape()));
  }
  const std::int64_t in = matrix.shape()[form.out_first ? 1 : 0], out = matrix.shape()[form.out_first ? 0 : 1];
  if (in != features || out < 1) {
    node.bad_input("its input has {} features, but its matrix {} takes {} and gives {}", features,
                   in_quotes(matrix.view.name), in, out);
  }
  if (matrix.elements() > kMaxLayerWeights) {
    node.unsupported("its matrix {} exceeds burin's limit of {} weights", extents_text(matrix.shape()),
                     kMaxLayerWeights);
  }
  LinearNumbers numbers{static_cast<int>(in), static_cast<int>(out), graph.floats(node, matrix, "matrix"), {}};
  if (!form.out_first) numbers.weights = transposed(numbers.weights, numbers.in, numbers.out);
  scale(numbers.weights, form.alpha);
  graph.apply_zero_threshold(numbers.weights);
  if (node.has_input(kBiasInput)) {
    numbers.bias = read_bias(node, graph, numbers.out);
    scale(numbers.bias, form.beta);
  }
  return numbers;
}

void emit_linear(const Node& node, GraphBuilder& graph, const LinearForm& form) {
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t>& shape = graph.shape(x);
  if (shape.size() != 1) {
    node.unsupported("its input is {} for each image; burin multiplies matrices with flat features alone",
                     shape_text(shape));
  }
  LinearNumbers numbers = read_linear(node, graph, shape[0], form);
  graph.count_weights(node, std::ssize(numbers.weights));
  Linear linear;
  linear.in_features = numbers.in;
  linear.out_features = numbers.out;
  linear.weights = std::move(numbers.weights);
  linear.bias = std::move(numbers.bias);
  graph.emit(node, std::move(linear), {x});
}

// Features along the last of several axes become channels of a 1x1 convolution, between transposes, of which passes
// remove what they can.
void emit_pixelwise(const Node& node, GraphBuilder& graph) {
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t> shape = graph.shape(x);
  const LinearNumbers numbers = read_linear(node, graph, shape.back(), {});
  const int rank = static_cast<int>(shape.size());
  Transpose forth, back;
  forth.order.push_back(rank - 1);
  for (int axis = 0; axis + 1 < rank; ++axis) {
    forth.order.push_back(axis);
    back.order.push_back(axis + 1);
  }
  back.order.push_back(0);
  int tensor = graph.emit_inner(node, "channels", forth, {x});
  const std::vector<std::int64_t> pixels(shape.begin(), shape.end() - 1);
  constexpr std::size_t kImageRank = 3;
  const bool is_image = shape.size() == kImageRank;
  const std::int64_t count = std::accumulate(pixels.begin(), pixels.end(), std::int64_t{1}, std::multiplies<>());
  if (!is_image) tensor = graph.emit_inner(node, "row", Reshape{{numbers.in, 1, count}}, {tensor});
  ConvLayer layer;
  ConvShape& conv = layer.shape;
  if (std::max(numbers.in, numbers.out) > kMaxChannels) {
    node.unsupported("its matrix takes {} features and gives {}, burin's limit is {} (kMaxChannels)", numbers.in,
                     numbers.out, kMaxChannels);
  }
  conv.in_channels = numbers.in;
  conv.out_channels = numbers.out;
  conv.in_h = checked_int(node, is_image ? pixels[0] : 1, 1, kMaxSpatialExtent, "the rows of its input");
  conv.in_w = checked_int(node, is_image ? pixels[1] : count, 1, kMaxSpatialExtent, "the pixels of its input");
  layer.weights = numbers.weights;
  tensor = graph.emit_named(node, graph.add_layer(node, std::move(layer)), {tensor});
  std::vector<std::int64_t> made = {numbers.out};
  made.insert(made.end(), pixels.begin(), pixels.end());
  if (!is_image) tensor = graph.emit_inner(node, "pixels", Reshape{made}, {tensor});
  graph.emit(node, std::move(back), {tensor});
}

// Matrices of the model as they meet an image of so many axes. ONNX counts from the last axis.
ConstantOperand matrices(const Node& node, GraphBuilder& graph, int input, std::size_t axes) {
  constexpr std::size_t kMatrixRank = 2;
  const StoredTensor tensor = graph.constant(node, input, "matrix");
  std::vector<std::int64_t> shape = tensor.shape();
  while (shape.size() > std::max(axes, kMatrixRank) && shape.front() == 1) shape.erase(shape.begin());
  const bool more_axes = tensor.shape().size() > axes + 1;  // the batch is one of them
  if (more_axes || shape.size() < kMatrixRank || shape.size() > axes) {
    node.unsupported(
        "its matrix {} has the shape {}, an image of its other operand has {} axes; burin takes matrices "
        "of at least two axes, and no other ones for each image",
        in_quotes(node.input(input)), extents_text(tensor.shape()), axes);
  }
  shape.insert(shape.begin(), axes - shape.size(), 1);
  graph.count_weights(node, tensor.elements());
  return {std::move(shape), graph.floats(node, tensor, "matrix")};
}

// Multiplies two tensors, or a tensor and matrices of the model.
void emit_products(const Node& node, GraphBuilder& graph) {
  const bool first = graph.is_activation(node, 0), second = graph.is_activation(node, 1);
  const int x = graph.activation(node, first ? 0 : 1);
  const std::size_t axes = graph.shape(x).size();
  const auto operand = [&](int input, bool tensor) -> Operand {
    if (tensor) return graph.activation(node, input);
    return matrices(node, graph, input, axes);
  };
  if (first && second && graph.shape(graph.activation(node, 1)).size() != axes) {
    node.unsupported(
        "its operands are {} and {} for each image; ONNX would let the images of one meet an axis of the other; give "
        "both as many axes (Unsqueeze)",
        shape_text(graph.shape(x)), shape_text(graph.shape(graph.activation(node, 1))));
  }
  emit(node, graph, multiplied(operand(0, first), operand(1, second)));
}

}  // namespace

void convert_conv(const Node& node, GraphBuilder& graph) {
  const StoredTensor weight = graph.constant(node, 1, "weight");
  const int x = graph.activation(node, 0);
  const bool row = graph.shape(x).size() == 2;
  const auto [kernel_h, kernel_w] = filter_of(node, weight, row);
  AsImage input = image_of(node, graph, x);
  const std::vector<std::int64_t>& image = input.shape;

  ConvLayer layer;
  ConvShape& shape = layer.shape;
  shape.groups = checked_int(node, node.attributes().integer("group", 1), 1, kMaxChannels, "attribute 'group'");
  if (weight.shape()[1] * shape.groups != image[0]) {
    node.bad_input("its input {} has {} channels, but its weights {} in {} groups take {}", in_quotes(node.input(0)),
                   image[0], extents_text(weight.shape()), shape.groups, weight.shape()[1] * shape.groups);
  }
  if (weight.shape()[0] % shape.groups != 0) {
    node.bad_input("{} output channels cannot be divided into {} groups", weight.shape()[0], shape.groups);
  }
  if (image[0] > kMaxChannels)
    node.unsupported("its input has {} channels, burin's limit is {}", image[0], kMaxChannels);
  shape.in_channels = static_cast<int>(image[0]);
  shape.out_channels = static_cast<int>(weight.shape()[0]);
  shape.in_h = checked_int(node, image[1], 1, kMaxSpatialExtent, "the rows of its input");
  shape.in_w = checked_int(node, image[2], 1, kMaxSpatialExtent, "the columns of its input");
  shape.kernel_h = static_cast<int>(kernel_h), shape.kernel_w = static_cast<int>(kernel_w);
  read_window(node, image[1], image[2], row, shape);
  if (is_too_large(shape) && has_patches(shape)) input.tensor = emit_patches(node, graph, input.tensor, shape);
  if (is_too_large(shape)) {
    node.unsupported(
        "its weights {} have a {}x{} kernel; burin's limit is {} rows and columns, but for windows that lie side by "
        "side and fill the image",
        extents_text(weight.shape()), kernel_h, kernel_w, kMaxKernelExtent);
  }

  layer.weights = graph.floats(node, weight, "weight");
  graph.apply_zero_threshold(layer.weights);
  if (node.has_input(kBiasInput)) {
    shape.epilogue.bias = true;
    layer.bias = read_bias(node, graph, shape.out_channels);
  }
  emit_of_image(node, graph, input, graph.add_layer(node, std::move(layer)));
}

void convert_gemm(const Node& node, GraphBuilder& graph) {
  const Attributes& attributes = node.attributes();
  if (attributes.boolean("transA", false)) {
    node.unsupported("attribute 'transA' is 1: it would mix the images of a batch");
  }
  LinearForm form;
  form.out_first = attributes.boolean("transB", false);
  form.alpha = attributes.number("alpha", 1);
  form.beta = attributes.number("beta", 1);
  constexpr int kLastBroadcastOpset = 6;  // later the bias is repeated without being told to
  if (node.opset() <= kLastBroadcastOpset) attributes.boolean("broadcast", false);
  emit_linear(node, graph, form);
}

void convert_matmul(const Node& node, GraphBuilder& graph) {
  constexpr std::size_t kMatrixRank = 2;
  const bool first = graph.is_activation(node, 0), second = graph.is_activation(node, 1);
  if (!first || second || graph.constant(node, 1, "matrix").shape().size() > kMatrixRank) {
    return emit_products(node, graph);
  }
  if (graph.shape(graph.activation(node, 0)).size() > 1) return emit_pixelwise(node, graph);
  emit_linear(node, graph, {});
}

}  // namespace burin
