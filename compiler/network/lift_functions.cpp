#include <algorithm>

#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"
#include "ir/limits.h"
#include "ir/numbered_names.h"

namespace burin {
namespace {

class FunctionLifter {
 public:
  explicit FunctionLifter(Network network) : graph_(std::move(network)) {
    for (const Operator& op : graph_.network().operators) operator_names_.give(op.name);
    for (const Activations& tensor : graph_.network().tensors) tensor_names_.give(tensor.name);
  }

  Rewritten run() {
    const int count = graph_.operators();
    for (int op = 0; op < count; ++op) {
      if (graph_.removed(op)) continue;
      while (lift_function(op)) ++changes_;
      if (lift_combine(op)) ++changes_;
    }
    return {graph_.finish(), changes_};
  }

 private:
  const std::vector<std::int64_t>& shape(int tensor) const { return graph_.tensor(tensor).shape; }

  // Whether it moves values, and not so few of them that a function would be computed in vain.
  bool moves(int op) {
    if (op < 0 || graph_.removed(op)) return false;
    if (graph_.as<Reshape>(op) || graph_.as<Transpose>(op)) return true;
    return graph_.as<Pick>(op) &&
           2 * graph_.tensor(graph_.op(op).output).elements() >= graph_.tensor(graph_.op(op).inputs[0]).elements();
  }

  // Whether what values come from takes a function: it stands before operators that move them, which nobody else reads.
  bool comes_from_layer(int tensor) {
    int op = graph_.producer(tensor);
    while (moves(op) && graph_.only_reader(graph_.op(op).inputs[0]) == op)
      op = graph_.producer(graph_.op(op).inputs[0]);
    return op >= 0 && (graph_.as<Convolution>(op) || graph_.as<Linear>(op) || graph_.as<ChannelAffine>(op) ||
                       graph_.as<Combine>(op) || graph_.as<MatMul>(op));
  }

  // The same for channels before the operator that moves them; nothing where a channel becomes parts of several.
  std::optional<ChannelAffine> before_move(const ChannelAffine& affine, int op) {
    const std::vector<std::int64_t>& from = shape(graph_.op(op).inputs[0]);
    const std::vector<std::int64_t>& to = shape(graph_.op(op).output);
    std::int64_t channels_of_one = 1;  // those before that are one channel behind
    if (graph_.as<Reshape>(op)) {
      if (from[0] % to[0] != 0) return std::nullopt;
      channels_of_one = from[0] / to[0];
    } else if (const auto* transpose = graph_.as<Transpose>(op)) {
      if (transpose->order[0] != 0) return std::nullopt;
    } else if (const Pick& pick = *graph_.as<Pick>(op); pick.from(0) != 0 || !pick.axes[0].is_whole(from[0])) {
      return std::nullopt;
    }
    ChannelAffine before = affine;
    before.scale.clear();
    before.shift.clear();
    for (std::int64_t c = 0; c < from[0]; ++c) {
      before.scale.push_back(affine.scale[static_cast<std::size_t>(c / channels_of_one)]);
      before.shift.push_back(affine.shift[static_cast<std::size_t>(c / channels_of_one)]);
    }
    return before;
  }

  bool lift_function(int op) {
    const bool function = graph_.as<Elementwise>(op) != nullptr;
    const auto* affine = graph_.as<ChannelAffine>(op);
    if (!function && affine == nullptr) return false;
    const int moved = graph_.op(op).inputs[0], mover = graph_.producer(moved);
    if (graph_.only_reader(moved) != op || !moves(mover) || !comes_from_layer(moved)) return false;
    OperatorKind kind = graph_.op(op).kind;
    if (affine != nullptr) {
      std::optional<ChannelAffine> before = before_move(*affine, mover);
      if (!before) return false;
      kind = std::move(*before);
    }
    const Operator move = graph_.op(mover);
    const int output = graph_.op(op).output;
    Operator lifted = {graph_.op(op).name, std::move(kind), move.inputs, add_tensor(output, shape(move.inputs[0]))};
    graph_.remove(mover);
    const int made = lifted.output;
    graph_.replace(op, std::move(lifted));
    graph_.add_operator({move.name, move.kind, {made}, output}, op);
    return true;
  }

  // Of two tensors that got the same other shape, the sum or product gets it.
  bool lift_combine(int op) {
    if (!graph_.as<Combine>(op) || graph_.op(op).inputs.size() != 2) return false;  // one: the other is a constant
    std::vector<int> whole;
    for (const int input : graph_.op(op).inputs) {
      const int producer = graph_.producer(input);
      if (!graph_.as<Reshape>(producer)) return false;
      whole.push_back(graph_.op(producer).inputs[0]);
    }
    if (shape(graph_.op(op).inputs[0]) != shape(graph_.op(op).inputs[1]) || shape(whole[0]) != shape(whole[1])) {
      return false;
    }
    const int output = graph_.op(op).output;
    Operator lifted = {graph_.op(op).name, graph_.op(op).kind, whole, add_tensor(output, shape(whole[0]))};
    const int made = lifted.output;
    const std::vector<int> read = graph_.op(op).inputs;
    graph_.replace(op, std::move(lifted));
    for (const int input : read) {
      if (graph_.readers(input).empty() && !graph_.is_output(input) && graph_.producer(input) >= 0) {
        graph_.remove(graph_.producer(input));  // else a layer would have two readers
      }
    }
    const std::string name = operator_names_.give(shortened(graph_.op(op).name + ".reshape"));
    graph_.add_operator({name, Reshape{shape(output)}, {made}, output}, op);
    return true;
  }

  // What is computed before it is moved to be `output`.
  int add_tensor(int output, std::vector<std::int64_t> shape) {
    Activations made = graph_.tensor(output);
    made.name = tensor_names_.give(shortened(made.name + ".unmoved"));
    made.shape = std::move(shape);
    return graph_.add_tensor(std::move(made));
  }

  // A name that leaves room for a number behind it.
  static std::string shortened(const std::string& name) {
    constexpr std::size_t kNumberBytes = 16;
    return name.size() + kNumberBytes <= kMaxLayerNameBytes ? name : "lifted";
  }

  GraphEdit graph_;
  NumberedNames operator_names_, tensor_names_;
  int changes_ = 0;
};

}  // namespace

Rewritten lift_functions(Network network) { return FunctionLifter(std::move(network)).run(); }

}  // namespace burin
