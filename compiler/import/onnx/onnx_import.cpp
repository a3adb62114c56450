#include "compiler/import/onnx/onnx_import.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <unordered_set>

#include "compiler/import/faults.h"
#include "compiler/import/names.h"
#include "compiler/import/network_builder.h"
#include "compiler/import/onnx/convert_node.h"
#include "compiler/import/onnx/model_reader.h"
#include "compiler/import/onnx/operator_help.h"
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
  if (options.ending() && !options.layer_glob) {
    usage(path,
          "--activation would change what the network computes; with --layer GLOB it says what the layers that "
          "are compiled by themselves end with");
  }
}

constexpr std::size_t kShownOperators = 8;

// Operators that burin does not know are one error.
void check_operators(const ModelReader& reader, const std::function<std::string()>& cut) {
  std::map<std::string, std::vector<std::string>> unknown;  // names of nodes, by operator
  bool quantized = false;
  for (const auto* const node : reader.unknown_nodes()) {
    quantized = quantized || is_quantization(node->op_type());
    const bool of_constants = knowledge_of(*node, reader.options()) == Knowledge::constants;
    unknown[operator_text(*node) + (of_constants ? " of activations" : "")].push_back(wanted_name(*node));
  }
  if (unknown.empty()) return;
  std::vector<std::string> texts;
  for (const auto& [op, nodes] : unknown) {
    if (texts.size() == kShownOperators) {
      texts.push_back(fmt::format("{} more", unknown.size() - kShownOperators));
      break;
    }
    texts.push_back(fmt::format("{} (node{} {})", op, nodes.size() > 1 ? "s" : "", listed(nodes)));
  }
  const bool foreign =
      std::ranges::any_of(unknown, [](const auto& entry) { return entry.first.find("::") != entry.first.npos; });
  unsupported(reader.path(), "burin does not know {} of its operators: {}{}{}", unknown.size(), fmt::join(texts, ", "),
              foreign ? fmt::format("; {}", kOwnOperatorHelp) : "",
              quantized ? fmt::format("; {}", kQuantizationHelp) : cut());
}

// Coverage::cut, where nodes are not read.
std::vector<std::string> cut_of(ModelReader& reader, const Coverage& coverage) {
  std::vector<std::string> names;
  std::set<int> tensors;
  const auto add = [&](const std::string& name) {
    const std::optional<int> tensor = reader.graph().possible_output(name);
    if (tensor && tensors.insert(*tensor).second) names.push_back(name);
  };
  for (const auto& output : reader.model().graph().output()) add(output.name());
  for (std::size_t i = 0; i < coverage.nodes.size(); ++i) {
    if (coverage.nodes[i].state == NodeState::read) continue;
    for (const std::string& name : names_read(*reader.nodes()[i])) add(name);
  }
  return names;
}

// What an error says of it; empty where there is nothing to say that could be typed.
std::string cut_text(const Coverage& coverage) {
  constexpr std::size_t kMost = 16;
  const auto is_plain = [](const std::string& name) {
    return std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || std::strchr("_./:-", c); });
  };
  if (coverage.cut.empty() || coverage.cut.size() > kMost || !std::ranges::all_of(coverage.cut, is_plain)) return "";
  return fmt::format("; {} of the {} nodes are before that, and are read with --outputs {}", coverage.nodes_read(),
                     coverage.nodes.size(), fmt::join(coverage.cut, ","));
}

// The same of a model with operators that burin does not know.
std::string cut_text(std::string_view bytes, const std::string& path, const ImportOptions& options) {
  try {
    return cut_text(cover_onnx(bytes, path, options));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return "";  // there is something else that is wrong with it
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
    if (const auto ending = options.ending()) layer.shape.epilogue.function = *ending;
  }
  separate_layers(network);
  network.notes.push_back(
      fmt::format("--layer chose {} of {} convolutions: they are taken by themselves, without the network around them",
                  network.layers.size(), names.size()));
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

// What an error of a node says after the node's name, which is where a list of them has it.
std::string reason_of(const Error& error, const std::string& path, const ::onnx::NodeProto& node) {
  const std::string text = error.what(), where = fmt::format("{}: node {}: ", path, node_text(node));
  return text.starts_with(where) ? text.substr(where.size()) : text;
}

}  // namespace

Network import_onnx(std::string_view bytes, const std::string& path, const ImportOptions& options) {
  check_options(options, path);
  check_zero_threshold(options);
  ModelReader reader(bytes, path, options);
  check_operators(reader, [&] { return cut_text(bytes, path, options); });
  reader.begin();
  for (std::size_t i = 0; i < reader.nodes().size(); ++i) reader.convert(i);
  reader.finish();

  Network network = std::move(reader.graph().network());
  network.input_std = input_std_of(reader.model());
  network.quantized = options.quantized;
  if (options.zero_threshold == 0) note_tiny_weights(network);
  if (options.layer_glob) keep_layers(network, options);
  return network;
}

Coverage cover_onnx(std::string_view bytes, const std::string& path, const ImportOptions& options) {
  check_options(options, path);
  check_zero_threshold(options);
  ModelReader reader(bytes, path, options);
  reader.begin();
  Coverage coverage;
  std::unordered_set<std::string> missing;  // what a node that is not read would make
  for (std::size_t i = 0; i < reader.nodes().size(); ++i) {
    const ::onnx::NodeProto& node = *reader.nodes()[i];
    NodeCoverage& entry = coverage.nodes.emplace_back(operator_text(node), wanted_name(node));
    if (knowledge_of(node, options) == Knowledge::unknown) {
      entry.state = NodeState::refused;
      entry.reason = "burin does not know this operator";
      entry.help = help_for(node);
    } else if (std::ranges::any_of(names_read(node), [&](const auto& name) { return missing.contains(name); })) {
      entry.state = NodeState::not_reached;
    } else {
      try {
        reader.convert(i);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::internal) throw;
        entry.state = NodeState::refused;
        entry.reason = reason_of(error, path, node);
      }
    }
    if (entry.state != NodeState::read) missing.insert(node.output().begin(), node.output().end());
  }
  if (missing.empty()) {
    try {
      reader.finish();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      coverage.fault = error.what();
    }
  } else {
    coverage.cut = cut_of(reader, coverage);
  }
  coverage.notes = reader.graph().network().notes;
  return coverage;
}

}  // namespace burin
