#include "compiler/import/onnx/graph_builder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "compiler/import/faults.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {

GraphBuilder::GraphBuilder(const ::onnx::GraphProto& graph, const std::string& path, const ImportOptions& options)
    : source_{path}, options_(options) {
  network_.source = path;
  const auto add = [&](const std::string& name, Meaning tensor) {
    if (name.empty()) bad_input(path, "an initializer has no name");
    require_free(name, path);
    values_.emplace(name, tensor);
  };
  for (const auto& tensor : graph.initializer()) add(tensor.name(), &tensor);
  for (const auto& tensor : graph.sparse_initializer()) add(tensor.values().name(), &tensor);
  for (const auto& node : graph.node()) {
    for (const std::string& input : node.input()) ++readers_[input];
  }
  for (const auto& output : graph.output()) ++readers_[output.name()];
}

std::string GraphBuilder::unique_name(const std::string& wanted) { return names_.give(wanted); }

void GraphBuilder::require_free(const std::string& name, const std::string& at) const {
  if (is_defined(name)) bad_input(at, "{} is made twice", in_quotes(name));
}

const Flowing* GraphBuilder::flowing(const std::string& name) const {
  const auto found = values_.find(name);
  const auto* const value = found == values_.end() ? nullptr : std::get_if<Value>(&found->second);
  return value == nullptr ? nullptr : std::get_if<Flowing>(value);
}

Value GraphBuilder::value(const Node& node, int input) {
  const std::string& name = node.input(input);
  const auto found = values_.find(name);
  BURIN_CHECK(found != values_.end(), "{} is read before it is made", name);
  if (const auto* const tensor = std::get_if<const ::onnx::TensorProto*>(&found->second)) {
    return read_tensor(**tensor, name, source_);
  }
  if (const auto* const tensor = std::get_if<const ::onnx::SparseTensorProto*>(&found->second)) {
    return read_sparse_tensor(**tensor, name, source_);
  }
  return std::get<Value>(found->second);
}

int GraphBuilder::activation(const Node& node, int input) {
  const Flowing* const flowing = this->flowing(node.input(input));
  if (flowing != nullptr) return flowing->tensor;
  node.unsupported("its input {} is a constant; burin computes this operator only of activations",
                   in_quotes(node.input(input)));
}

StoredTensor GraphBuilder::constant(const Node& node, int input, std::string_view what) {
  Value value = this->value(node, input);
  if (auto* const stored = std::get_if<StoredTensor>(&value)) return std::move(*stored);
  node.unsupported("its {} {} {}; burin needs a constant there", what, in_quotes(node.input(input)),
                   std::holds_alternative<Sizes>(value) ? "is computed from shapes" : "is computed from the input");
}

std::vector<float> GraphBuilder::floats(const Node& node, const StoredTensor& tensor, std::string_view what) {
  if (!tensor.is_float()) {
    node.bad_input("its {} {} is of type {}, it must hold floating-point numbers", what, in_quotes(tensor.view.name),
                   tensor.view.type_name);
  }
  std::vector<float> values = float_values(tensor.view);
  const auto found = std::find_if_not(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  if (found != values.end()) {
    node.bad_input("element {} of its {} {} is {}; it must be finite", found - values.begin(), what,
                   in_quotes(tensor.view.name), *found);
  }
  return values;
}

float GraphBuilder::number(const Node& node, int input, std::string_view what) {
  const StoredTensor tensor = constant(node, input, what);
  if (tensor.elements() != 1) {
    node.bad_input("its {} {} has the shape {}, it must be one number", what, in_quotes(node.input(input)),
                   extents_text(tensor.shape()));
  }
  return tensor.is_float() ? float_values(tensor.view)[0] : mask_values(tensor.view)[0];
}

std::optional<Sizes> GraphBuilder::sizes(const Node& node, int input) {
  Value value = this->value(node, input);
  if (auto* const sizes = std::get_if<Sizes>(&value)) return std::move(*sizes);
  const auto* const stored = std::get_if<StoredTensor>(&value);
  if (stored == nullptr || !stored->is_integer() || stored->shape().size() > 1) return std::nullopt;
  if (stored->elements() > static_cast<std::int64_t>(kMaxSizes)) return std::nullopt;
  Sizes sizes{stored->shape().empty(), {}};
  for (const std::int64_t number : integer_values(*stored)) sizes.values.push_back({false, number});
  return sizes;
}

std::vector<std::int64_t> GraphBuilder::integers(const Node& node, int input, std::string_view what) {
  const std::optional<Sizes> sizes = this->sizes(node, input);
  if (!sizes) {
    node.unsupported("its {} {} are not a constant list of at most {} integers", what, in_quotes(node.input(input)),
                     kMaxSizes);
  }
  std::vector<std::int64_t> numbers;
  for (const Size& size : sizes->values) {
    if (size.batch) node.unsupported("its {} {} depend on the number of images", what, in_quotes(node.input(input)));
    numbers.push_back(size.value);
  }
  return numbers;
}

std::optional<std::vector<std::int64_t>> GraphBuilder::list(const Node& node, const std::string& name, int input,
                                                            int input_since) {
  if (node.opset() < input_since) return node.attributes().integers(name);
  if (!node.has_input(input)) return std::nullopt;
  return integers(node, input, name);
}

const std::vector<std::int64_t>& GraphBuilder::image_shape(const Node& node, int tensor) const {
  constexpr std::size_t kImageAxes = 3;
  if (shape(tensor).size() != kImageAxes) {
    node.unsupported("its input is {} for each image; burin computes this operator on channels x rows x columns alone",
                     shape_text(shape(tensor)));
  }
  return shape(tensor);
}

void GraphBuilder::define(const Node& node, Meaning meaning) {
  require_free(node.output(), node.at());
  values_.emplace(node.output(), std::move(meaning));
}

int GraphBuilder::add_operator(const std::string& at, Operator op, const std::string& output) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const int input : op.inputs) shapes.push_back(shape(input));
  std::vector<std::string> faults;
  std::vector<std::int64_t> made = output_shape(network_, op, shapes, faults);
  if (!faults.empty()) unsupported(at, "{}", fmt::join(faults, "; "));
  op.output = static_cast<int>(network_.tensors.size());
  if (const auto* convolution = std::get_if<Convolution>(&op.kind)) {
    network_.layers[static_cast<std::size_t>(convolution->layer)].name = op.name;
  }
  network_.tensors.push_back({output, std::move(made)});
  network_.operators.push_back(std::move(op));
  return network_.tensors.size() - 1;
}

void GraphBuilder::emit(const Node& node, OperatorKind kind, std::vector<int> inputs, int output) {
  const std::string& made = node.output(output);
  require_free(made, node.at());
  producer_of_[made] = static_cast<int>(network_.operators.size());
  tensor_names_.insert(made);
  const bool is_named = output == 0 && !named_.contains(node.name());
  const std::string name =
      is_named ? node.name() : unique_name(fmt::format("{}/{}", node.name(), output == 0 ? "output" : made));
  const int tensor = add_operator(node.at(), {name, std::move(kind), std::move(inputs), 0}, made);
  values_.emplace(made, Flowing{tensor});
}

Convolution GraphBuilder::add_layer(const Node& node, ConvLayer layer) {
  layer.name = node.name();
  if (const auto faults = verify(layer); !faults.empty()) node.unsupported("{}", fmt::join(faults, "; "));
  count_weights(node, static_cast<std::int64_t>(layer.weights.size()));
  network_.layers.push_back(std::move(layer));
  return {static_cast<int>(network_.layers.size()) - 1};
}

int GraphBuilder::emit_inner(const Node& node, std::string_view suffix, OperatorKind kind, std::vector<int> inputs) {
  const std::string name = unique_name(fmt::format("{}/{}", node.name(), suffix));
  const std::string output = inner_tensor_name(name);
  return add_operator(node.at(), {name, std::move(kind), std::move(inputs), 0}, output);
}

int GraphBuilder::emit_named(const Node& node, OperatorKind kind, std::vector<int> inputs) {
  named_.insert(node.name());
  const std::string output = inner_tensor_name(node.name() + "/made");
  return add_operator(node.at(), {node.name(), std::move(kind), std::move(inputs), 0}, output);
}

// Values of the model keep their names: this one must not be any of them.
std::string GraphBuilder::inner_tensor_name(std::string wanted) {
  while (readers_.count(wanted) > 0 || !tensor_names_.insert(wanted).second) wanted += '_';
  return wanted;
}

int GraphBuilder::add_input(const std::string& name, std::vector<std::int64_t> shape) {
  require_free(name, path());
  tensor_names_.insert(name);
  network_.tensors.push_back({name, std::move(shape)});
  network_.inputs.push_back(static_cast<int>(network_.tensors.size()) - 1);
  values_.emplace(name, Flowing{network_.inputs.back()});
  return network_.inputs.back();
}

void GraphBuilder::add_output(const std::string& name) {
  const Flowing* const flowing = this->flowing(name);
  if (flowing == nullptr) unsupported(path(), "its output {} does not depend on its inputs", in_quotes(name));
  int tensor = flowing->tensor;
  const auto is_in = [&](const std::vector<int>& list) { return std::ranges::find(list, tensor) != list.end(); };
  if (is_in(network_.outputs)) bad_input(path(), "has the output {} twice", in_quotes(name));
  // An output is written by an operator: an input that is one too is copied.
  if (is_in(network_.inputs)) {
    std::string copy = name + "_copy";
    while (!tensor_names_.insert(copy).second) copy += '_';
    tensor = add_operator(path(), {unique_name(copy), Identity{}, {tensor}, 0}, copy);
  }
  network_.outputs.push_back(tensor);
}

Operator* GraphBuilder::sole_producer(const Node& node, int input) {
  const std::string& name = node.input(input);
  const auto found = producer_of_.find(name);
  if (found == producer_of_.end() || readers_.at(name) != 1) return nullptr;
  return &network_.operators[static_cast<std::size_t>(found->second)];
}

void GraphBuilder::take_over(const Node& node, const Operator& producer) {
  require_free(node.output(), node.at());
  tensor_names_.insert(node.output());
  network_.tensors[static_cast<std::size_t>(producer.output)].name = node.output();
  producer_of_[node.output()] = static_cast<int>(&producer - network_.operators.data());
  values_.emplace(node.output(), Flowing{producer.output});
}

void GraphBuilder::count_weights(const Node& node, std::int64_t weights) {
  weights_ += weights;
  if (weights_ > kMaxNetworkWeights) {
    node.unsupported("with it the network has {} weights, allowed are {} (kMaxNetworkWeights)", weights_,
                     kMaxNetworkWeights);
  }
}

void GraphBuilder::apply_zero_threshold(std::vector<float>& weights) const {
  // Also turns -0 into 0, which no later stage needs to know apart.
  for (float& weight : weights) weight = std::abs(weight) <= options_.zero_threshold ? 0.0F : weight;
}

}  // namespace burin
