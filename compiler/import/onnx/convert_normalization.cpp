// Normalizations of batches, and across channels.
#include <cmath>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/window.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

std::vector<float> channel_list(const Node& node, GraphBuilder& graph, int input, std::int64_t channels,
                                std::string_view what) {
  const StoredTensor tensor = graph.constant(node, input, what);
  if (tensor.shape() != std::vector<std::int64_t>{channels}) {
    node.bad_input("its {} {} has the shape {}, but its input has {} channels", what, in_quotes(node.input(input)),
                   extents_text(tensor.shape()), channels);
  }
  return graph.floats(node, tensor, what);
}

}  // namespace

void convert_batch_normalization(const Node& node, GraphBuilder& graph) {
  const Attributes& attributes = node.attributes();
  constexpr float kDefaultEpsilon = 1e-5F, kDefaultMomentum = 0.9F;
  const double epsilon = attributes.number("epsilon", kDefaultEpsilon);
  attributes.number("momentum", kDefaultMomentum);  // of training
  if (attributes.boolean("training_mode", false)) {
    node.unsupported("attribute 'training_mode' is 1; export the model for inference (model.eval())");
  }
  constexpr int kLastSpatialOpset = 8;
  if (node.opset() <= kLastSpatialOpset && !attributes.boolean("spatial", true)) {
    node.unsupported("attribute 'spatial' is 0; burin normalizes whole channels");
  }
  constexpr int kLastTestFlagOpset = 6;
  if (node.opset() <= kLastTestFlagOpset && !attributes.boolean("is_test", false)) {
    node.unsupported("attribute 'is_test' is 0; export the model for inference (model.eval())");
  }
  const int x = graph.activation(node, 0);
  const std::int64_t channels = graph.shape(x)[0];
  const auto list = [&](int input, std::string_view what) { return channel_list(node, graph, input, channels, what); };
  const std::vector<float> gamma = list(1, "scale"), beta = list(2, "bias"), mean = list(3, "mean"),
                           variance = list(4, "variance");
  graph.count_weights(node, channels);
  ChannelAffine affine;
  for (std::size_t c = 0; c < gamma.size(); ++c) {
    const double under_root = variance[c] + epsilon;
    if (!(under_root > 0)) {
      node.bad_input("the variance of channel {} is {:g}, with epsilon {:g} not above 0", c, variance[c], epsilon);
    }
    const double scale = gamma[c] / std::sqrt(under_root);
    affine.scale.push_back(static_cast<float>(scale));
    affine.shift.push_back(static_cast<float>(beta[c] - mean[c] * scale));
    if (!std::isfinite(affine.scale.back()) || !std::isfinite(affine.shift.back())) {
      node.bad_input("channel {} is scaled by {:g} and shifted by {:g}, beyond what float32 can hold", c, scale,
                     beta[c] - mean[c] * scale);
    }
  }
  graph.emit(node, std::move(affine), {x});
}

void convert_lrn(const Node& node, GraphBuilder& graph) {
  const Attributes& attributes = node.attributes();
  const Lrn defaults;
  Lrn lrn;
  if (!attributes.has("size")) node.bad_input("lacks the attribute 'size'");
  lrn.size = checked_int(node, attributes.integer("size", 0), 1, kMaxChannels, "attribute 'size'");
  lrn.alpha = attributes.number("alpha", defaults.alpha);
  lrn.beta = attributes.number("beta", defaults.beta);
  lrn.bias = attributes.number("bias", defaults.bias);
  graph.emit(node, lrn, {graph.activation(node, 0)});
}

}  // namespace burin
