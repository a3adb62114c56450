#include "compiler/import/onnx/graph_builder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/import/faults.h"
#include "compiler/import/onnx/node_order.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {

GraphBuilder::GraphBuilder(const ::onnx::GraphProto& graph, const std::string& path, const ImportOptions& options)
    : source_{path}, options_(options) {
  network_.source = path;
  add_constants_and_readers(graph, path);
}

void GraphBuilder::add_constants_and_readers(const ::onnx::GraphProto& graph, const std::string& at) {
  const auto add = [&](const std::string& name, Meaning tensor) {
    if (name.empty()) bad_input(at, "an initializer has no name");
    require_free(name, at);
    values_.emplace(name, tensor);
  };
  for (const auto& tensor : graph.initializer()) add(tensor.name(), &tensor);
  for (const auto& tensor : graph.sparse_initializer()) add(tensor.values().name(), &tensor);
  const auto add_reader = [&](const std::string& name) { ++readers_[name], ++unread_[name]; };
  for (const auto& node : graph.node()) {
    for (const std::string& name : names_read(node)) add_reader(name);
  }
  for (const auto& output : graph.output()) add_reader(output.name());
}

const ::onnx::GraphProto& GraphBuilder::add_graph(const std::string& at, std::unique_ptr<::onnx::GraphProto> graph) {
  inner_.push_back(std::move(graph));
  add_constants_and_readers(*inner_.back(), at);
  return *inner_.back();
}

std::string GraphBuilder::unused_value_name(std::string wanted) {
  // Values of the model keep their names: this one must not be any of them.
  while (is_defined(wanted) || readers_.count(wanted) > 0 || !tensor_names_.insert(wanted).second) wanted += '_';
  return wanted;
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

std::optional<int> GraphBuilder::possible_output(const std::string& name) const {
  const Flowing* const flowing = this->flowing(name);
  if (flowing == nullptr || flowing->boolean || flowing->batch_axis > 0 || quantized_.contains(name)) {
    return std::nullopt;
  }
  const bool is_input = std::ranges::find(network_.inputs, flowing->tensor) != network_.inputs.end();
  return is_input ? std::nullopt : std::optional(flowing->tensor);
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

void GraphBuilder::mark_quantized(const Node& node, Quantization quantization) {
  quantized_[node.output()] = std::move(quantization);
}

const Quantization* GraphBuilder::quantization_of(const Node& node, int input) const {
  const auto found = quantized_.find(node.input(input));
  return found == quantized_.end() ? nullptr : &found->second;
}

bool GraphBuilder::is_boolean(const Node& node, int input) const {
  const Flowing* const flowing = node.has_input(input) ? this->flowing(node.input(input)) : nullptr;
  return flowing != nullptr && flowing->boolean;
}

void GraphBuilder::mark_boolean(const std::string& name, bool boolean) {
  const auto found = values_.find(name);
  Value* const value = found == values_.end() ? nullptr : std::get_if<Value>(&found->second);
  if (Flowing* const flowing = value == nullptr ? nullptr : std::get_if<Flowing>(value)) flowing->boolean = boolean;
}

std::int64_t GraphBuilder::batch_axis(const Node& node, int input) const {
  const Flowing* const flowing = this->flowing(node.input(input));
  return flowing == nullptr ? 0 : flowing->batch_axis;
}

void GraphBuilder::mark_batch_axis(const std::string& name, std::int64_t axis) {
  const auto found = values_.find(name);
  Value* const value = found == values_.end() ? nullptr : std::get_if<Value>(&found->second);
  if (Flowing* const flowing = value == nullptr ? nullptr : std::get_if<Flowing>(value)) flowing->batch_axis = axis;
}

int GraphBuilder::activation(const Node& node, int input) {
  const int tensor = activation_by_any_batch(node, input);
  if (const std::int64_t axis = batch_axis(node, input); axis > 0) {
    node.unsupported(
        "the batch is axis {} of its input {}, where the nodes before it moved it; burin computes this operator where "
        "it is "
        "the first one",
        axis, in_quotes(node.input(input)));
  }
  return tensor;
}

int GraphBuilder::activation_by_any_batch(const Node& node, int input) {
  if (quantization_of(node, input) != nullptr && node.op() != "DequantizeLinear") {
    node.unsupported(
        "it computes with the integers of {}; burin reads quantized models whose operators compute with real numbers, "
        "between DequantizeLinear and QuantizeLinear (QDQ)",
        in_quotes(node.input(input)));
  }
  const Flowing* const flowing = this->flowing(node.input(input));
  if (flowing != nullptr) return flowing->tensor;
  node.unsupported("its input {} is a constant; burin computes this operator only of activations",
                   in_quotes(node.input(input)));
}

StoredTensor GraphBuilder::constant(const Node& node, int input, std::string_view what) {
  Value value = this->value(node, input);
  if (auto* const stored = std::get_if<StoredTensor>(&value)) return std::move(*stored);
  const auto* const computed = std::get_if<SharedConstant>(&value);
  if (computed != nullptr && !(*computed)->depends_on_batch()) return stored_of(*computed, node.input(input), path());
  node.unsupported("its {} {} {}; burin needs a constant there", what, in_quotes(node.input(input)),
                   computed != nullptr ? "is computed from the number of images" : "is computed from the input");
}

SharedConstant GraphBuilder::numbers(const Node& node, int input) {
  Value value = this->value(node, input);
  if (auto* const computed = std::get_if<SharedConstant>(&value)) return std::move(*computed);
  const auto* const stored = std::get_if<StoredTensor>(&value);
  if (stored == nullptr) node.unsupported("its input {} is computed from the input", in_quotes(node.input(input)));
  read_ += stored->elements();
  return std::make_shared<const ConstantTensor>(constant_of(*stored, path()));
}

bool GraphBuilder::all_constant(const Node& node) const {
  bool any = false;
  for (int i = 0; i < node.inputs(); ++i) {
    if (!node.has_input(i)) continue;
    if (is_activation(node, i)) return false;
    any = true;
  }
  return any;
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
  if (is_activation(node, input)) return std::nullopt;
  Value value = this->value(node, input);
  // A long one is not read for nothing.
  if (const auto* const stored = std::get_if<StoredTensor>(&value);
      stored != nullptr && stored->elements() > static_cast<std::int64_t>(kMaxSizes)) {
    return std::nullopt;
  }
  const SharedConstant constant = numbers(node, input);
  if (constant->type != StoredType::i64 || constant->shape.size() > 1) return std::nullopt;
  if (constant->elements() > static_cast<std::int64_t>(kMaxSizes)) return std::nullopt;
  Sizes sizes{constant->shape.empty(), {}};
  const auto& numbers = constant->integers();
  for (std::size_t i = 0; i < numbers.size(); ++i) sizes.values.push_back({numbers[i].per_image, numbers[i].value});
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
    if (size.batch != 0)
      node.unsupported("its {} {} depend on the number of images", what, in_quotes(node.input(input)));
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

void GraphBuilder::define(const Node& node, Meaning meaning) { define(node, node.output(), std::move(meaning)); }

void GraphBuilder::define(const Node& node, const std::string& name, Meaning meaning) {
  require_free(name, node.at());
  values_.emplace(name, std::move(meaning));
}

void GraphBuilder::define_constant(const Node& node, const std::string& name, ConstantTensor constant) {
  folded_ += constant.elements();
  if (folded_ > kMaxFoldedNumbers) {
    node.unsupported(
        "with it {} numbers are kept of constants that the model computes, allowed are {} "
        "(kMaxFoldedNumbers); fold them before, with onnxsim or onnxruntime's offline optimization",
        folded_, kMaxFoldedNumbers);
  }
  define(node, name, Value(std::make_shared<const ConstantTensor>(std::move(constant))));
}

void GraphBuilder::pass_on(const Node& node, const std::string& from, const std::string& to) {
  const Flowing* const source = flowing(from);
  if (source == nullptr) return define(node, to, values_.at(from));
  if (const auto found = quantized_.find(from); found != quantized_.end() && node.op() != "DequantizeLinear") {
    quantized_[to] = Quantization(found->second);
  }
  require_free(to, node.at());
  producer_of_[to] = static_cast<int>(network_.operators.size());
  tensor_names_.insert(to);
  const std::string name = to == node.output() ? node.name() : unique_name(to);
  Flowing copy = *source;
  copy.tensor = add_operator(node.at(), {name, Identity{}, {source->tensor}, 0}, to);
  values_.emplace(to, copy);
}

void GraphBuilder::drop_unread(const Node& node) {
  for (int i = 0; i < node.inputs(); ++i) {
    const auto found = unread_.find(node.input(i));
    if (found == unread_.end() || --found->second > 0) continue;
    const auto at = values_.find(node.input(i));
    auto* const value = at == values_.end() ? nullptr : std::get_if<Value>(&at->second);
    auto* const constant = value == nullptr ? nullptr : std::get_if<SharedConstant>(value);
    if (constant == nullptr || *constant == nullptr) continue;
    if (constant->use_count() == 1) folded_ -= (*constant)->elements();
    constant->reset();  // its name stays taken
  }
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

int GraphBuilder::one_of_each_image(const Node& node) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (!ones_) {
    BURIN_CHECK(!network_.inputs.empty(), "{} is behind no input", node.name());
    int x = network_.inputs.front();
    if (shape(x)[0] > 1) x = emit_inner(node, "channel", ChannelView{0, 1}, {x});
    Reduce any{Statistic::largest, {}, Elementwise{ElementFunction::within, -kMost, kMost}};  // of whatever it is
    for (std::size_t axis = 0; axis < shape(x).size(); ++axis) any.axes.push_back(static_cast<int>(axis));
    x = emit_inner(node, "any", std::move(any), {x});
    ones_ = emit_inner(node, "one", Reshape{{1, 1}}, {x});
  }
  return *ones_;
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
  const std::string output = unused_value_name(name);
  return add_operator(node.at(), {name, std::move(kind), std::move(inputs), 0}, output);
}

int GraphBuilder::emit_named(const Node& node, OperatorKind kind, std::vector<int> inputs) {
  named_.insert(node.name());
  const std::string output = unused_value_name(node.name() + "/made");
  return add_operator(node.at(), {node.name(), std::move(kind), std::move(inputs), 0}, output);
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
  if (flowing->boolean) {
    unsupported(path(), "its output {} is of booleans; a Cast to FLOAT behind it would make numbers of them",
                in_quotes(name));
  }
  if (flowing->batch_axis > 0) {
    unsupported(path(), "the batch is axis {} of its output {}; burin gives tensors whose first axis is the batch",
                flowing->batch_axis, in_quotes(name));
  }
  if (quantized_.contains(name)) unsupported(path(), "its output {} is of integers", in_quotes(name));
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
