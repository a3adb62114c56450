// Convolutions and fully connected layers.
#include <fmt/ranges.h>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/window.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

constexpr std::size_t kFilterRank = 4;  // OIHW
constexpr int kBiasInput = 2;           // of Conv and Gemm

void check_weight_shape(const Node& node, const StoredTensor& weight) {
  const std::vector<std::int64_t>& shape = weight.shape();
  const std::string text = extents_text(shape);
  if (shape.size() == kFilterRank - 1 || shape.size() == kFilterRank + 1) {
    node.unsupported("its weights {} make it a {}-D convolution; burin compiles 2-D convolutions", text,
                     shape.size() - 2);
  }
  if (shape.size() != kFilterRank) node.bad_input("its weights have the shape {}; they must be [K,C,R,S]", text);
  for (const std::int64_t extent : shape) {
    if (extent < 1) node.bad_input("its weights have the shape {}; no extent may be 0", text);
  }
  if (shape[0] > kMaxChannels || shape[1] > kMaxChannels) {
    node.unsupported("its weights {} exceed burin's limit of {} channels", text, kMaxChannels);
  }
  if (shape[2] > kMaxKernelExtent || shape[3] > kMaxKernelExtent) {
    node.unsupported("its weights {} have a {}x{} kernel; burin's limit is {} rows and columns", text, shape[2],
                     shape[3], kMaxKernelExtent);
  }
  if (weight.elements() > kMaxLayerWeights) {
    node.unsupported("its weights {} exceed burin's limit of {} weights", text, kMaxLayerWeights);
  }
  if (const auto kernel = node.attributes().integers("kernel_shape");
      kernel && *kernel != std::vector<std::int64_t>{shape[2], shape[3]}) {
    node.bad_input("attribute 'kernel_shape' is [{}], but its weights have the shape {}", numbers_text(*kernel), text);
  }
}

// One value for each output: a list, or for Gemm also a row of a matrix, or one number that is meant for all.
std::vector<float> read_bias(const Node& node, GraphBuilder& graph, int outputs) {
  const bool repeats = node.op() == "Gemm";
  const StoredTensor tensor = graph.constant(node, kBiasInput, "bias");
  const std::vector<std::int64_t>& shape = tensor.shape();
  const bool list = shape.size() == 1 || (repeats && (shape.empty() || (shape.size() == 2 && shape[0] == 1)));
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

// A matrix that multiplies each pixel of an image whose channels are the last axis is a 1x1 convolution between two
// transposes, which passes take away where others meet them.
void emit_by_pixel(const Node& node, GraphBuilder& graph, int x, Linear linear) {
  const std::vector<std::int64_t> shape = graph.shape(x);
  ConvLayer layer;
  layer.shape.in_channels = checked_int(node, linear.in_features, 1, kMaxChannels, "the number of its features");
  layer.shape.out_channels = checked_int(node, linear.out_features, 1, kMaxChannels, "the number of its outputs");
  layer.shape.in_h = checked_int(node, shape[0], 1, kMaxSpatialExtent, "the rows of its input");
  layer.shape.in_w = checked_int(node, shape[1], 1, kMaxSpatialExtent, "the columns of its input");
  layer.weights = std::move(linear.weights);
  const int image = graph.emit_inner(node, "image", Transpose{{2, 0, 1}}, {x});
  const int product = graph.emit_inner(node, "product", graph.add_layer(node, std::move(layer)), {image});
  graph.emit(node, Transpose{{1, 2, 0}}, {product});
}

void emit_linear(const Node& node, GraphBuilder& graph, const LinearForm& form) {
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t> shape = graph.shape(x);
  constexpr std::size_t kImageAxes = 3;
  const bool by_pixel = shape.size() == kImageAxes && node.op() == "MatMul";
  if (shape.size() != 1 && !by_pixel) {
    node.unsupported(
        "its input is {} for each image; burin multiplies matrices with flat features, or with the last of three axes",
        shape_text(shape));
  }
  const StoredTensor matrix = graph.constant(node, 1, "matrix");
  if (matrix.shape().size() != 2) {
    node.unsupported("its matrix {} has the shape {}; burin multiplies with matrices of two axes",
                     in_quotes(matrix.view.name), extents_text(matrix.shape()));
  }
  const std::int64_t in = matrix.shape()[form.out_first ? 1 : 0], out = matrix.shape()[form.out_first ? 0 : 1];
  if (in != shape.back() || out < 1) {
    node.bad_input("its input has {} features, but its matrix {} takes {} and gives {}", shape.back(),
                   in_quotes(matrix.view.name), in, out);
  }
  if (matrix.elements() > kMaxLayerWeights) {
    node.unsupported("its matrix {} exceeds burin's limit of {} weights", extents_text(matrix.shape()),
                     kMaxLayerWeights);
  }
  if (!by_pixel) graph.count_weights(node, matrix.elements());  // a layer counts its own
  Linear linear;
  linear.in_features = static_cast<int>(in);
  linear.out_features = static_cast<int>(out);
  linear.weights = graph.floats(node, matrix, "matrix");
  if (!form.out_first) linear.weights = transposed(linear.weights, linear.in_features, linear.out_features);
  scale(linear.weights, form.alpha);
  graph.apply_zero_threshold(linear.weights);
  if (by_pixel) return emit_by_pixel(node, graph, x, std::move(linear));
  if (node.has_input(kBiasInput)) {
    linear.bias = read_bias(node, graph, linear.out_features);
    scale(linear.bias, form.beta);
  }
  graph.emit(node, std::move(linear), {x});
}

}  // namespace

void convert_conv(const Node& node, GraphBuilder& graph) {
  const StoredTensor weight = graph.constant(node, 1, "weight");
  check_weight_shape(node, weight);
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t>& image = graph.image_shape(node, x);

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
  shape.kernel_h = static_cast<int>(weight.shape()[2]), shape.kernel_w = static_cast<int>(weight.shape()[3]);
  read_window(node, image[1], image[2], shape);

  layer.weights = graph.floats(node, weight, "weight");
  graph.apply_zero_threshold(layer.weights);
  if (node.has_input(kBiasInput)) {
    shape.epilogue.bias = true;
    layer.bias = read_bias(node, graph, shape.out_channels);
  }
  graph.emit(node, graph.add_layer(node, std::move(layer)), {x});
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
  emit_linear(node, graph, form);
}

void convert_matmul(const Node& node, GraphBuilder& graph) { emit_linear(node, graph, {}); }

}  // namespace burin
