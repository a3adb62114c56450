#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "compiler/element_functions.h"
#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"

namespace burin {
namespace {

using Shape = std::vector<std::int64_t>;
using Order = std::vector<int>;

// The axes of what is ordered twice, as one order.
Order composed(const Order& second, const Order& first) {
  Order both;
  for (const int axis : second) both.push_back(first[static_cast<std::size_t>(axis)]);
  return both;
}

// The axes before the transpose that these are behind it.
std::vector<int> before(const std::vector<int>& axes, const Order& order) {
  std::vector<int> result;
  for (const int axis : axes) result.push_back(order[static_cast<std::size_t>(axis)]);
  std::ranges::sort(result);
  return result;
}

// Numbers that meet what was transposed, as they meet what was not.
ConstantOperand before(const ConstantOperand& numbers, const Order& order) {
  const std::size_t rank = order.size();
  ConstantOperand result{Shape(rank), std::vector<float>(numbers.values.size())};
  for (std::size_t axis = 0; axis < rank; ++axis)
    result.shape[static_cast<std::size_t>(order[axis])] = numbers.shape[axis];
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    std::size_t rest = i;
    Shape at(rank);
    for (std::size_t axis = rank; axis-- > 0;) {
      const auto extent = static_cast<std::size_t>(numbers.shape[axis]);
      at[static_cast<std::size_t>(order[axis])] = static_cast<std::int64_t>(rest % extent);
      rest /= extent;
    }
    std::int64_t to = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) to = to * result.shape[axis] + at[axis];
    result.values[static_cast<std::size_t>(to)] = numbers.values[i];
  }
  return result;
}

// A sum or a product with one number for each channel is an affine, which layers take into their weights.
std::optional<ChannelAffine> as_affine(const Combine& op, std::int64_t channels) {
  const bool by_channel = op.constant->shape[0] == channels && std::ssize(op.constant->values) == channels;
  const bool adds = op.combination == Combination::add, multiplies = op.combination == Combination::multiply;
  if (!by_channel || !(adds || multiplies)) return std::nullopt;
  const std::vector<float> same(static_cast<std::size_t>(channels), adds ? 1.0F : 0.0F);
  if (adds) return ChannelAffine{same, op.constant->values, op.then};
  return ChannelAffine{op.constant->values, same, op.then};
}

// What computes before the transpose, on an input of this shape, what the operator computes behind it; nothing where
// there is no such operator.
class BeforeTranspose {
 public:
  BeforeTranspose(const Order& order, const Shape& input) : order_(order), input_(input) {}

  std::optional<OperatorKind> operator()(const Elementwise& op) const { return op; }
  std::optional<OperatorKind> operator()(const ChannelAffine& op) const {
    if (order_.front() == 0) return op;
    if (!is_uniform(op.scale) || !is_uniform(op.shift)) return std::nullopt;
    const auto channels = static_cast<std::size_t>(input_[0]);
    return ChannelAffine{std::vector<float>(channels, op.scale.front()), std::vector<float>(channels, op.shift.front()),
                         op.then};
  }
  std::optional<OperatorKind> operator()(const Combine& op) const {
    if (!op.constant) return std::nullopt;
    Combine moved = op;
    moved.constant = before(*op.constant, order_);
    if (std::optional<ChannelAffine> affine = as_affine(moved, input_[0])) return *affine;
    return moved;
  }
  std::optional<OperatorKind> operator()(const Reduce& op) const {
    Reduce moved = op;
    moved.axes = before(op.axes, order_);
    return moved;
  }
  std::optional<OperatorKind> operator()(const Normalize& op) const {
    Normalize moved = op;
    moved.axes = before(op.axes, order_);
    for (std::optional<ConstantOperand>* numbers : {&moved.scale, &moved.shift}) {
      if (*numbers) *numbers = before(**numbers, order_);
    }
    return moved;
  }
  template <typename Kind>
  std::optional<OperatorKind> operator()(const Kind&) const {
    return std::nullopt;
  }

 private:
  const Order& order_;
  const Shape& input_;
};

class TransposeSinker {
 public:
  explicit TransposeSinker(Network network) : graph_(std::move(network)) {
    for (const Activations& tensor : graph_.network().tensors) names_.insert(tensor.name);
  }

  Rewritten run() {
    for (int op = 0; op < graph_.operators(); ++op) {
      const auto* transpose = graph_.as<Transpose>(op);
      if (transpose == nullptr) continue;
      changes_ += multiply_as_it_was(op);
      if (graph_.removed(op)) continue;
      const int reader = graph_.only_reader(graph_.op(op).output);
      if (reader >= 0 && (merge(op, reader) || pass(op, reader))) ++changes_;
    }
    return {graph_.finish(), changes_};
  }

 private:
  // Products read what was transposed: how the axes of their operands lie is theirs to say. Returns how many did.
  int multiply_as_it_was(int op) {
    const Order order = graph_.as<Transpose>(op)->order;
    const int transposed = graph_.op(op).output, input = graph_.op(op).inputs[0];
    int changed = 0;
    const std::multiset<int> readers = graph_.readers(transposed);
    for (const int reader : std::set<int>(readers.begin(), readers.end())) {
      const auto* matmul = graph_.as<MatMul>(reader);
      if (matmul == nullptr) continue;
      MatMul direct = *matmul;
      const std::vector<int> inputs = graph_.op(reader).inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] != transposed) continue;
        Order& own = (direct.constant ? direct.constant_first : i == 1) ? direct.right_order : direct.left_order;
        own = own.empty() ? order : composed(own, order);
        graph_.set_input(reader, i, input);
        ++changed;
      }
      graph_.set_kind(reader, std::move(direct));
    }
    if (changed > 0 && graph_.readers(transposed).empty() && !graph_.is_output(transposed)) graph_.remove(op);
    return changed;
  }

  // Of two transposes in a row one is made.
  bool merge(int op, int reader) {
    const auto* second = graph_.as<Transpose>(reader);
    if (second == nullptr) return false;
    const Transpose both{composed(second->order, graph_.as<Transpose>(op)->order)};
    const int input = graph_.op(op).inputs[0];
    graph_.set_kind(reader, both);
    graph_.remove(op);
    graph_.set_input(reader, 0, input);
    return true;
  }

  // The transpose comes behind its reader.
  bool pass(int op, int reader) {
    const Operator transpose = graph_.op(op), passed = graph_.op(reader);
    const Order order = std::get<Transpose>(transpose.kind).order;
    const Shape input = graph_.tensor(transpose.inputs[0]).shape;
    const auto kind = std::visit(BeforeTranspose(order, input), passed.kind);
    if (!kind) return false;
    Shape shape = input;
    if (const auto* reduce = std::get_if<Reduce>(&*kind)) {
      for (const int axis : reduce->axes) shape[static_cast<std::size_t>(axis)] = 1;
    }
    const int made = graph_.add_tensor({new_name(graph_.tensor(passed.output).name), std::move(shape)});
    graph_.replace(reader, {transpose.name, Transpose{order}, {made}, passed.output});
    graph_.replace(op, {passed.name, *kind, transpose.inputs, made});
    return true;
  }

  // What keeps its name keeps its values; these lie in another order.
  std::string new_name(const std::string& transposed) {
    std::string name = transposed + ".before";
    while (!names_.insert(name).second) name += '_';
    return name;
  }

  GraphEdit graph_;
  std::set<std::string> names_;  // of all tensors
  int changes_ = 0;
};

}  // namespace

Rewritten sink_transposes(Network network) { return TransposeSinker(std::move(network)).run(); }

}  // namespace burin
