#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "compiler/element_functions.h"
#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"

namespace burin {
namespace {

// Each row, or column, as it is where it is.
bool takes_all(const Taps& taps) {
  if (!taps.copies()) return false;
  for (std::size_t i = 0; i < taps.indices.size(); ++i) {
    if (taps.indices[i] != static_cast<std::int32_t>(i)) return false;
  }
  return true;
}

// What its producer ends with says so.
bool is_made_never_negative(const GraphEdit& graph, int tensor) {
  const int producer = graph.producer(tensor);
  if (producer < 0 || graph.removed(producer)) return false;
  const auto* element = std::get_if<Elementwise>(&graph.op(producer).kind);
  const Elementwise* then = element != nullptr ? element : then_of(graph.op(producer).kind);
  return then != nullptr && never_negative(*then);
}

// Whether sink_transposes brings a transpose behind the operator that alone reads it: until then it says more than the
// reshape that it is.
bool will_be_passed(const GraphEdit& graph, int tensor) {
  const int reader = graph.only_reader(tensor);
  if (reader < 0) return false;
  const auto* combine = std::get_if<Combine>(&graph.op(reader).kind);
  return std::holds_alternative<Elementwise>(graph.op(reader).kind) || (combine != nullptr && combine->constant);
}

// What two functions in a row are that cut off on one side each, or on the same; nothing for others.
std::optional<Elementwise> cut_twice(const Elementwise& first, const Elementwise& second) {
  const auto range_of = [](const Elementwise& op) -> std::optional<std::pair<float, float>> {
    if (op.function == ElementFunction::relu) return std::pair(0.0F, std::numeric_limits<float>::infinity());
    if (op.function == ElementFunction::clip) return std::pair(op.alpha, op.beta);
    return std::nullopt;
  };
  const auto inner = range_of(first), outer = range_of(second);
  if (!inner || !outer) return std::nullopt;
  const float low = std::max(inner->first, outer->first), high = std::min(inner->second, outer->second);
  if (low > high) return std::nullopt;
  if (low == 0 && std::isinf(high)) return Elementwise{ElementFunction::relu};
  return Elementwise{ElementFunction::clip, low, high};
}

// The function before the operator's becomes part of it.
bool join_cuts(GraphEdit& graph, int op) {
  const auto* second = graph.as<Elementwise>(op);
  if (second == nullptr) return false;
  const int between = graph.op(op).inputs[0], producer = graph.producer(between);
  const auto* first = graph.as<Elementwise>(producer);
  if (first == nullptr || graph.only_reader(between) != op) return false;
  const std::optional<Elementwise> both = cut_twice(*first, *second);
  if (!both) return false;
  graph.set_kind(op, *both);
  graph.set_input(op, 0, graph.op(producer).inputs[0]);
  graph.remove(producer);
  return true;
}

bool changes_nothing(const GraphEdit& graph, int index) {
  const Operator& op = graph.op(index);
  // These move nothing in memory, so that equal shapes are enough.
  const bool same_shape = graph.tensor(op.inputs[0]).shape == graph.tensor(op.output).shape;
  if (std::holds_alternative<Identity>(op.kind)) return true;
  if (std::holds_alternative<Reshape>(op.kind) || std::holds_alternative<ChannelView>(op.kind)) return same_shape;
  if (const auto* concat = std::get_if<Concat>(&op.kind)) return concat && op.inputs.size() == 1;
  if (const auto* pad = std::get_if<Pad>(&op.kind)) return pad->pad == Padding{};
  if (const auto* pick = std::get_if<Pick>(&op.kind)) {
    const std::vector<std::int64_t>& input = graph.tensor(op.inputs[0]).shape;
    for (std::size_t i = 0; i < input.size(); ++i) {
      if (pick->from(i) != i || !pick->axes[i].is_whole(input[i])) return false;
    }
    return true;
  }
  if (const auto* resample = std::get_if<Resample>(&op.kind)) {
    return same_shape && takes_all(resample->rows) && takes_all(resample->cols);
  }
  if (const auto* element = std::get_if<Elementwise>(&op.kind)) {
    if (element->function == ElementFunction::relu && is_made_never_negative(graph, op.inputs[0])) return true;
    return element->function == ElementFunction::clip && std::isinf(element->alpha) && std::isinf(element->beta) &&
           element->alpha < element->beta;
  }
  return false;
}

// Reads the input of the operator where its output was read, or lets its producer make the output.
bool bypass(GraphEdit& graph, int index) {
  const int input = graph.op(index).inputs[0], output = graph.op(index).output;
  if (!graph.is_output(output)) {
    graph.remove(index);
    graph.redirect(output, input);
    return true;
  }
  // The network's output keeps its name, so it is the input that goes.
  if (graph.is_input(input) || graph.is_output(input)) return false;
  const int producer = graph.producer(input);
  graph.remove(index);
  graph.set_output(producer, output);
  graph.redirect(input, output);
  return true;
}

}  // namespace

Rewritten drop_identities(Network network) {
  GraphEdit graph(std::move(network));
  int changes = 0;
  for (int op = 0; op < graph.operators(); ++op) {
    const int input = graph.op(op).inputs[0];
    if (const auto* transpose = graph.as<Transpose>(op); transpose &&
                                                         keeps_order(*transpose, graph.tensor(input).shape) &&
                                                         !will_be_passed(graph, graph.op(op).output)) {
      graph.set_kind(op, Reshape{graph.tensor(graph.op(op).output).shape});
      ++changes;
    }
    if (graph.as<Reshape>(op) && graph.as<Reshape>(graph.producer(input))) {
      graph.set_input(op, 0, graph.op(graph.producer(input)).inputs[0]);
      ++changes;
    }
    if (join_cuts(graph, op)) ++changes;
    if (changes_nothing(graph, op) && bypass(graph, op)) ++changes;
  }
  Rewritten result = drop_unread(graph.finish());  // reshapes that were read by reshapes alone
  result.changes += changes;
  return result;
}

}  // namespace burin
