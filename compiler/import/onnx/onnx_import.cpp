#include "compiler/import/onnx/onnx_import.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>

#include "compiler/import/faults.h"
#include "compiler/import/geometry.h"
#include "compiler/import/names.h"
#include "compiler/import/network_builder.h"
#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/graph_builder.h"
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

constexpr std::size_t kShownOperators = 8;

// Operators that burin does not know are one error.
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
    if (texts.size() == kShownOperators) {
      texts.push_back(fmt::format("{} more", unknown.size() - kShownOperators));
      break;
    }
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

// Most converters define the first output alone.
void check_other_outputs(const ::onnx::NodeProto& proto, const Node& node, const GraphBuilder& graph) {
  for (int i = 1; i < proto.output_size(); ++i) {
    if (proto.output(i).empty() || !graph.is_read(proto.output(i)) || graph.is_defined(proto.output(i))) continue;
    node.unsupported("its output {}, {}, is used; burin computes the first alone", i + 1, in_quotes(proto.output(i)));
  }
}

void convert(const ::onnx::NodeProto& proto, std::string name, int opset, GraphBuilder& graph) {
  const Converter& converter = *converter_of(proto);
  const Node node(proto, std::move(name), opset, graph.path());
  check_inputs(node, converter);
  converter.convert(node, graph);
  check_other_outputs(proto, node, graph);
  if (const auto unread = node.attributes().unread(); !unread.empty()) {
    node.unsupported("has attributes that burin does not know for opset {}: {}", opset, listed(unread));
  }
}

constexpr std::size_t kImageRank = 4;  // NCHW

struct Input {
  const ::onnx::ValueInfoProto* info;
  std::string at;  // "net.onnx: input 'data'"
};

// Spells the shape as the file does: "[N,3,224,224]".
std::string dims_text(const ::onnx::TensorShapeProto& shape) {
  std::vector<std::string> dims;
  for (const auto& dim : shape.dim()) {
    dims.push_back(dim.has_dim_value()       ? fmt::format("{}", dim.dim_value())
                   : dim.dim_param().empty() ? "?"
                                             : printable(dim.dim_param()));
  }
  return fmt::format("[{}]", numbers_text(dims));
}

void check_type(const Input& input, GraphBuilder& graph) {
  const auto& type = input.info->type();
  if (type.value_case() != ::onnx::TypeProto::VALUE_NOT_SET && !type.has_tensor_type()) {
    unsupported(input.at, "is no tensor");
  }
  using ::onnx::TensorProto;
  switch (type.tensor_type().elem_type()) {
    case TensorProto::FLOAT:
      return;
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
    case TensorProto::DOUBLE:
      graph.network().notes.push_back(fmt::format(
          "{}: is of another floating-point type than float32; burin takes the same numbers as float32", input.at));
      return;
    default:
      unsupported(input.at, "has elements of ONNX's type {}; burin compiles networks of real numbers",
                  type.tensor_type().elem_type());
  }
}

void take_batch(const Input& input, const ::onnx::TensorShapeProto::Dimension& dim, GraphBuilder& graph) {
  if (!dim.has_dim_value()) return;
  const std::int64_t batch = dim.dim_value();
  if (batch < 1) bad_input(input.at, "has a batch of {} images, it must be at least 1", batch);
  if (graph.fixed_batch && *graph.fixed_batch != batch) {
    unsupported(input.at, "has a batch of {} images, another input has {}", batch, *graph.fixed_batch);
  }
  graph.fixed_batch = batch;
}

// Sizes of one image; 0 where the file does not fix them.
std::vector<std::int64_t> image_extents(const Input& input, GraphBuilder& graph) {
  if (!input.info->type().tensor_type().has_shape()) return std::vector<std::int64_t>(kImageRank - 1, 0);
  const auto& shape = input.info->type().tensor_type().shape();
  if (shape.dim_size() < 2 || shape.dim_size() > kMaxActivationRank + 1) {
    unsupported(input.at, "has the shape {}; burin needs a batch and 1 to {} more axes", dims_text(shape),
                kMaxActivationRank);
  }
  take_batch(input, shape.dim(0), graph);
  std::vector<std::int64_t> extents;
  for (int i = 1; i < shape.dim_size(); ++i) {
    extents.push_back(shape.dim(i).has_dim_value() ? shape.dim(i).dim_value() : 0);
    if (shape.dim(i).has_dim_value() && extents.back() < 1) {
      bad_input(input.at, "has the shape {}; each extent must be at least 1", dims_text(shape));
    }
  }
  return extents;
}

void apply_shape_flag(const Input& input, const GeometryFlags& flags, std::vector<std::int64_t>& extents) {
  LayerGeometry flag;
  apply_flags(flags, flag);
  if (extents.size() != kImageRank - 1) usage(input.at, "is no image, --input-shape gives the size of one");
  if (flag.in_channels && extents[0] != 0 && extents[0] != *flag.in_channels) {
    usage(input.at, "has {} channels, --input-shape {}", extents[0], *flag.in_channels);
  }
  if (flag.in_channels) extents[0] = *flag.in_channels;
  extents[1] = *flag.in_h, extents[2] = *flag.in_w;
}

// Adds those inputs that a node of `read` names to the network, with the sizes of the file or of --input-shape.
// Throws Error(bad_input) for sizes that cannot be, Error(usage) for sizes that nobody gives, and Error(unsupported)
// for inputs that are no numbers.
void add_inputs(const ::onnx::GraphProto& model, const std::unordered_set<std::string>& read, GraphBuilder& graph) {
  std::vector<Input> inputs;
  std::vector<std::string> unread;
  for (const auto& info : model.input()) {
    // Old files list their initializers as inputs too.
    if (graph.is_defined(info.name())) continue;
    if (info.name().empty() || !is_plain_text(info.name()) ||
        info.name().size() > static_cast<std::size_t>(kMaxLayerNameBytes)) {
      bad_input(graph.path(),
                "an input is named {}; a name must have 1 to {} bytes of UTF-8 without control "
                "characters",
                in_quotes(info.name()), kMaxLayerNameBytes);
    }
    if (read.count(info.name()) == 0) {
      unread.push_back(info.name());
    } else {
      inputs.push_back({&info, fmt::format("{}: input {}", graph.path(), in_quotes(info.name()))});
    }
  }
  if (inputs.empty()) bad_input(graph.path(), "has no input that its outputs depend on");
  if (!unread.empty()) {
    graph.network().notes.push_back(
        fmt::format("{}: inputs that no output depends on are left out: {}", graph.path(), listed(unread)));
  }
  const GeometryFlags& flags = graph.options().flags;
  if (flags.input_shape && inputs.size() > 1) {
    usage(graph.path(), "has {} inputs, --input-shape gives the size of one", inputs.size());
  }
  for (const Input& input : inputs) {
    check_type(input, graph);
    std::vector<std::int64_t> extents = image_extents(input, graph);
    if (flags.input_shape) apply_shape_flag(input, flags, extents);
    if (std::find(extents.begin(), extents.end(), 0) != extents.end()) {
      usage(input.at, "the file leaves its size open ({}); give --input-shape CxHxW",
            dims_text(input.info->type().tensor_type().shape()));
    }
    graph.add_input(input.info->name(), std::move(extents));
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
