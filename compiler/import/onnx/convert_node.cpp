#include "compiler/import/onnx/convert_node.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/import/names.h"
#include "compiler/import/onnx/fold_network.h"
#include "compiler/import/onnx/inline_branch.h"
#include "compiler/import/onnx/model_file.h"
#include "compiler/import/onnx/operator_help.h"
#include "ir/printable.h"

namespace burin {
namespace {

constexpr Converter kConverters[] = {
#define BURIN_CONVERTER(op, fewest, most, convert) {#op, fewest, most, convert},
#include "compiler/import/onnx/converters.def"
#undef BURIN_CONVERTER
};

// Converters of these take constants as they take activations.
constexpr std::string_view kOfAnything[] = {"Constant", "Dropout", "Identity", "Shape", "Size"};
constexpr std::string_view kOfShapes[] = {"Shape", "Size"};
constexpr std::string_view kBranch = "If";
// These give booleans for activations, and take them; those that move values keep their type.
constexpr std::string_view kGiveBooleans[] = {
    "And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not", "Or", "Xor"};
constexpr std::string_view kTakeBooleans[] = {"And", "Cast", "CastLike", "Equal", "Not", "Or", "Where", "Xor"};
constexpr std::string_view kMoves[] = {"Concat", "DepthToSpace", "Dropout", "Expand",    "Flatten",
                                       "Gather", "Identity",     "Reshape", "Slice",     "SpaceToDepth",
                                       "Split",  "Squeeze",      "Tile",    "Transpose", "Unsqueeze"};

template <typename List>
bool holds(const List& list, std::string_view op) {
  return std::ranges::find(list, op) != std::end(list);
}

// Null for an operator that burin does not know of activations.
const Converter* converter_of(const ::onnx::NodeProto& node) {
  const auto* const found = std::ranges::find(kConverters, node.op_type(), &Converter::op);
  return is_standard_domain(node.domain()) && found != std::end(kConverters) ? found : nullptr;
}

void check_inputs(const Node& node, int fewest, int most) {
  const bool list = most == kAnyInputs;
  for (int i = 0; i < (list ? std::max(node.inputs(), fewest) : fewest); ++i) {
    if (!node.has_input(i)) node.bad_input("lacks input {}", i + 1);
  }
  if (node.inputs() > most) node.bad_input("has {} inputs, at most {} mean something", node.inputs(), most);
}

// Most converters define the first output alone.
void check_other_outputs(const Node& node, const GraphBuilder& graph) {
  for (int i = 1; i < node.outputs(); ++i) {
    if (node.output(i).empty() || !graph.is_read(node.output(i)) || graph.is_defined(node.output(i))) continue;
    node.unsupported("its output {}, {}, is used; burin computes the first alone", i + 1, in_quotes(node.output(i)));
  }
}

bool is_users_own(const ::onnx::NodeProto& node, const ImportOptions& options) {
  return options.operators != nullptr && options.operators->has(operator_text(node));
}

// Booleans are numbers in the network: which activations are some is kept here alone.
void check_booleans(const Node& node, const GraphBuilder& graph) {
  if (holds(kTakeBooleans, node.op()) || holds(kMoves, node.op()) || holds(kOfShapes, node.op())) return;
  for (int i = 0; i < node.inputs(); ++i) {
    if (!graph.is_boolean(node, i)) continue;
    node.unsupported("its input {} is of booleans; burin computes this operator of numbers", in_quotes(node.input(i)));
  }
}
void mark_booleans(const Node& node, GraphBuilder& graph) {
  const bool where = node.op() == "Where";
  bool boolean = holds(kGiveBooleans, node.op());
  for (int i = where ? 1 : 0; i < node.inputs() && (where || holds(kMoves, node.op())); ++i) {
    boolean = boolean || graph.is_boolean(node, i);
  }
  for (int i = 0; boolean && i < node.outputs(); ++i) graph.mark_boolean(node.output(i), true);
}

FoldInputs fold_inputs(const Node& node, GraphBuilder& graph) {
  std::vector<SharedConstant> inputs;
  for (int i = 0; i < node.inputs(); ++i) inputs.push_back(node.has_input(i) ? graph.numbers(node, i) : nullptr);
  return {node, std::move(inputs), graph.numbers_read()};
}

void define_folded(const Node& node, const Fold& fold, GraphBuilder& graph) {
  check_inputs(node, fold.fewest_inputs, fold.most_inputs);
  std::vector<ConstantTensor> made = fold.fold(fold_inputs(node, graph));
  for (int i = 0; i < node.outputs(); ++i) {
    if (node.output(i).empty()) continue;
    if (i >= static_cast<int>(made.size()))
      node.bad_input("has {} outputs, its operator {}", node.outputs(), made.size());
    graph.define_constant(node, node.output(i), std::move(made[static_cast<std::size_t>(i)]));
  }
}

void convert_as(const Converter& converter, const Node& node, GraphBuilder& graph) {
  check_inputs(node, converter.fewest_inputs, converter.most_inputs);
  if (node.output(0).empty()) node.unsupported("its first output is left out; burin computes that one");
  if (graph.all_constant(node) && !holds(kOfAnything, node.op())) {
    const bool boolean = holds(kGiveBooleans, node.op());
    graph.define_constant(node, node.output(),
                          fold_as_network(fold_inputs(node, graph), converter, boolean, graph.options()));
  } else {
    check_booleans(node, graph);
    converter.convert(node, graph);
    mark_booleans(node, graph);
  }
  check_other_outputs(node, graph);
}

}  // namespace

Knowledge knowledge_of(const ::onnx::NodeProto& node, const ImportOptions& options) {
  if (is_users_own(node, options)) return Knowledge::all;
  if (!is_standard_domain(node.domain())) return Knowledge::unknown;
  if (converter_of(node) != nullptr || node.op_type() == kBranch) return Knowledge::all;
  return fold_of(node.op_type()) != nullptr ? Knowledge::constants : Knowledge::unknown;
}

bool gives_constants(const ::onnx::NodeProto& node, bool constant_inputs) {
  return constant_inputs || holds(kOfShapes, node.op_type());
}

std::string wanted_name(const ::onnx::NodeProto& node) {
  return node.name().empty() ? first_output(node) : node.name();
}

void convert_node(const ::onnx::NodeProto& proto, std::string name, int opset, GraphBuilder& graph) {
  const Node node(proto, std::move(name), opset, graph.path());
  const Converter* const converter = converter_of(proto);
  const Fold* const fold = is_standard_domain(proto.domain()) ? fold_of(node.op()) : nullptr;
  if (is_users_own(proto, graph.options())) {
    if (node.output(0).empty()) node.unsupported("its first output is left out; burin computes that one");
    convert_users_own(node, operator_text(proto), graph);
    check_other_outputs(node, graph);
  } else if (is_standard_domain(proto.domain()) && node.op() == kBranch) {
    check_inputs(node, 1, 1);
    inline_branch(node, graph);
  } else if (is_standard_domain(proto.domain()) && repeats_constant_for_images(node, graph)) {
    convert_constant_of_images(node, graph);
  } else if (fold != nullptr && graph.all_constant(node)) {
    define_folded(node, *fold, graph);
  } else if (converter != nullptr) {
    convert_as(*converter, node, graph);
  } else if (fold != nullptr) {
    node.unsupported(
        "its input is computed from the network's input; burin knows this operator of constants and sizes "
        "alone");
  } else {
    node.unsupported("burin does not know this operator");
  }
  if (const auto unread = node.attributes().unread(); !unread.empty()) {
    node.unsupported("has attributes that burin does not know for opset {}: {}", opset, listed(unread));
  }
  graph.drop_unread(node);
}

}  // namespace burin
