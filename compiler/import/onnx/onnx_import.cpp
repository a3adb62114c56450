#include "compiler/import/onnx/onnx_import.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>

#include "compiler/import/faults.h"
#include "compiler/import/names.h"
#include "compiler/import/network_builder.h"
#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/graph_builder.h"
#include "compiler/import/onnx/graph_inputs.h"
#include "compiler/import/onnx/model_file.h"
#include "compiler/import/onnx/node_order.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/text.h"

namespace burin {
namespace {

void check_options(const ImportOptions& options, const std::string& path) {
  const GeometryFlags& flags = options.flags;
  if (options.geometry_file || flags.stride || flags.pad || flags.dilation || flags.groups) {
    usage(path,
          "an ONNX model says itself how its layers move over the image; --geometry, --stride, --pad, --dilation "
          "and --groups are for files of weights");
  }
  if (options.activation && !options.layer_glob) {
    usage(path,
          "--activation would change what the network computes; with --layer GLOB it says what the layers that "
          "are compiled by themselves end with");
  }
}

bool is_quantization(const std::string& op) {
  return op.find("Quantize") != op.npos || op.starts_with("QLinear") || op.ends_with("Integer");
}

constexpr Converter kConverters[] = {
#define BURIN_CONVERTER(op, fewest, most, convert) {#op, fewest, most, convert},
#include "compiler/import/onnx/converters.def"
#undef BURIN_CONVERTER
};

// Null for an operator that burin does not know.
const Converter* converter_of(const ::onnx::NodeProto& node) {
  const auto* const found = std::ranges::find(kConverters, node.op_type(), &Converter::op);
  return is_standard_domain(node.domain()) && found != std::end(kConverters) ? found : nullptr;
}

// All operators that burin does not know, in one error.
void check_operators(const NodeOrder& order, const std::string& path) {
  std::map<std::string, std::vector<std::string>> unknown;  // names of nodes, by operator
  bool quantized = false;
  for (const auto* const node : order.nodes) {
    if (converter_of(*node) != nullptr) continue;
    quantized = quantized || is_quantization(node->op_type());
    const std::string domain = is_standard_domain(node->domain()) ? "" : node->domain() + "::";
    unknown[domain + node->op_type()].push_back(node->name().empty() ? node->output(0) : node->name());
  }
  if (unknown.empty()) return;
  std::vector<std::string> texts;
  for (const auto& [op, nodes] : unknown) {
    texts.push_back(fmt::format("{} (node{} {})", printable(op), nodes.size() > 1 ? "s" : "", listed(nodes)));
  }
  unsupported(path, "burin does not know {} of its operators: {}{}", unknown.size(), fmt::join(texts, ", "),
              quantized ? "; burin compiles networks of real numbers: export the model before it is quantized" : "");
}

void check_inputs(const Node& node, const Converter& converter) {
  const bool list = converter.most_inputs == kAnyInputs;
  for (int i = 0; i < (list ? std::max(node.inputs(), converter.fewest_inputs) : converter.fewest_inputs); ++i) {
    if (!node.has_input(i)) node.bad_input("lacks input {}", i + 1);
  }
  if (node.inputs() > converter.most_inputs) {
    node.bad_input("has {} inputs, at most {} mean something", node.inputs(), converter.most_inputs);
  }
}

// Converters define the first output alone.
void check_other_outputs(const ::onnx::NodeProto& proto, const Node& node, const GraphBuilder& graph) {
  for (int i = 1; i < proto.output_size(); ++i) {
    if (proto.output(i).empty() || !graph.is_read(proto.output(i))) continue;
    node.unsupported("its output {}, {}, is used; burin computes the first alone", i + 1, in_quotes(proto.output(i)));
  }
}

void convert(const ::onnx::NodeProto& proto, std::string name, int opset, GraphBuilder& graph) {
  const Converter& converter = *converter_of(proto);
  const Node node(proto, std::move(name), opset, graph.path());
  check_inputs(node, converter);
  check_other_outputs(proto, node, graph);
  converter.convert(node, graph);
  if (const auto unread = node.attributes().unread(); !unread.empty()) {
    node.unsupported("has attributes that burin does not know for opset {}: {}", opset, listed(unread));
  }
}

// What a user who names layers wants: those, by themselves.
void keep_layers(Network& network, const ImportOptions& options) {
  std::vector<std::string> names;
  for (const ConvLayer& layer : network.layers) names.push_back(layer.name);
  std::erase_if(network.layers, [&](const ConvLayer& layer) { return !glob_match(*options.layer_glob, layer.name); });
  if (network.layers.empty()) {
    if (names.empty()) usage(network.source, "has no convolution that --layer could name");
    usage(network.source, "no layer matches {}; there are {}{}", in_quotes(*options.layer_glob), listed(names),
          did_you_mean(*options.layer_glob, names));
  }
  for (ConvLayer& layer : network.layers) {
    layer.shape.epilogue.activation = options.activation.value_or(layer.shape.epilogue.activation);
  }
  separate_layers(network);
  network.notes.push_back(
      fmt::format("--layer chose {} of {} convolutions: they are taken by themselves, without the network around them",
                  network.layers.size(), names.size()));
}

std::unordered_set<std::string> given_names(const ::onnx::GraphProto& graph) {
  std::unordered_set<std::string> names;
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) names.insert(tensor.values().name());
  return names;
}

std::unordered_set<std::string> read_names(const NodeOrder& order, const ::onnx::GraphProto& graph) {
  std::unordered_set<std::string> names;
  for (const auto* const node : order.nodes) names.insert(node->input().begin(), node->input().end());
  for (const auto& output : graph.output()) names.insert(output.name());
  return names;
}

// The model's property `input_std`: burin's own, so that what is not a size is someone else's and means nothing here.
double input_std_of(const ::onnx::ModelProto& model) {
  for (const auto& property : model.metadata_props()) {
    if (property.key() != "input_std") continue;
    const std::optional<double> value = parse_number<double>(property.value());
    if (value && *value > 0 && *value <= std::numeric_limits<float>::max()) return *value;
  }
  return 1;
}

}  // namespace

Network import_onnx(std::string_view bytes, const std::string& path, const ImportOptions& options) {
  check_options(options, path);
  check_zero_threshold(options);
  const auto model = parse_model(bytes, path);
  const ::onnx::GraphProto& proto = model->graph();
  const int opset = opset_of(*model, path);
  if (proto.output_size() == 0) bad_input(path, "has no outputs");
  if (proto.node_size() > kMaxOperators) {
    unsupported(path, "has {} nodes, allowed are {} (kMaxOperators)", proto.node_size(), kMaxOperators);
  }
  const NodeOrder order = order_nodes(proto, given_names(proto), path);
  check_operators(order, path);

  GraphBuilder graph(proto, path, options);
  if (!order.unused.empty()) {
    graph.network().notes.push_back(
        fmt::format("{}: nodes that no output depends on are left out: {}", path, listed(order.unused)));
  }
  add_inputs(proto, read_names(order, proto), graph);
  // Before any is converted: a node's own name comes before those that are made of others.
  std::vector<std::string> names;
  for (const auto* const node : order.nodes) {
    names.push_back(graph.unique_name(node->name().empty() ? node->output(0) : node->name()));
  }
  for (std::size_t i = 0; i < names.size(); ++i) convert(*order.nodes[i], names[i], opset, graph);
  for (const auto& output : proto.output()) graph.add_output(output.name());

  Network network = std::move(graph.network());
  network.input_std = input_std_of(*model);
  if (const auto faults = verify(network); !faults.empty()) unsupported(path, "{}", fmt::join(faults, "; "));
  if (options.zero_threshold == 0) note_tiny_weights(network);
  if (options.layer_glob) keep_layers(network, options);
  return network;
}

}  // namespace burin
