#include <algorithm>

#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"
#include "ir/limits.h"
#include "ir/numbered_names.h"

namespace burin {
namespace {

using Shape = std::vector<std::int64_t>;

// The numbers, which meet what is transposed, as they meet it before it is.
ConstantOperand before(const ConstantOperand& behind, const Transpose& transpose) {
  const std::size_t rank = behind.shape.size();
  ConstantOperand result{Shape(rank), {}};
  for (std::size_t i = 0; i < rank; ++i) {
    result.shape[static_cast<std::size_t>(transpose.order[i])] = behind.shape[i];
  }
  Shape pitch(rank, 1);  // of `behind`, by the axes of the result
  std::int64_t step = 1;
  for (std::size_t i = rank; i-- > 0;) {
    pitch[static_cast<std::size_t>(transpose.order[i])] = step;
    step *= behind.shape[i];
  }
  Shape index(rank, 0);
  std::int64_t place = 0;
  for (std::size_t n = 0; n < behind.values.size(); ++n) {
    result.values.push_back(behind.values[static_cast<std::size_t>(place)]);
    for (std::size_t axis = rank; axis-- > 0;) {
      place += pitch[axis];
      if (++index[axis] < result.shape[axis]) break;
      place -= pitch[axis] * result.shape[axis];
      index[axis] = 0;
    }
  }
  return result;
}

// The operator as it works before the transpose; nothing for one that cannot.
std::optional<OperatorKind> before(const OperatorKind& kind, const Transpose& transpose) {
  if (std::holds_alternative<Elementwise>(kind)) return kind;
  if (const auto* combine = std::get_if<Combine>(&kind); combine && combine->constant) {
    Combine result = *combine;
    result.constant = before(*combine->constant, transpose);
    return result;
  }
  if (const auto* normalize = std::get_if<Normalize>(&kind)) {
    Normalize result = *normalize;
    for (int& axis : result.axes) axis = transpose.order[static_cast<std::size_t>(axis)];
    std::ranges::sort(result.axes);
    if (normalize->scale) result.scale = before(*normalize->scale, transpose);
    if (normalize->shift) result.shift = before(*normalize->shift, transpose);
    return result;
  }
  return std::nullopt;
}

class TransposeSinker {
 public:
  explicit TransposeSinker(Network network) : graph_(std::move(network)) {
    for (const Activations& tensor : graph_.network().tensors) tensor_names_.give(tensor.name);
  }

  Rewritten run() {
    int changes = 0;
    const int count = graph_.operators();
    for (int op = 0; op < count; ++op) {
      if (!graph_.removed(op) && (join(op) || sink(op))) ++changes;
    }
    Rewritten result = drop_unread(graph_.finish());  // transposes that were read by transposes alone
    result.changes += changes;
    return result;
  }

 private:
  // Of two in a row one is made.
  bool join(int op) {
    auto* const second = graph_.as<Transpose>(op);
    if (second == nullptr) return false;
    const int producer = graph_.producer(graph_.op(op).inputs[0]);
    const auto* const first = graph_.as<Transpose>(producer);
    if (first == nullptr) return false;
    Transpose both = *second;
    for (int& axis : both.order) axis = first->order[static_cast<std::size_t>(axis)];
    graph_.set_kind(op, std::move(both));
    graph_.set_input(op, 0, graph_.op(producer).inputs[0]);
    return true;
  }

  bool sink(int op) {
    const std::vector<int>& inputs = graph_.op(op).inputs;
    if (inputs.size() != 1 || graph_.only_reader(inputs[0]) != op) return false;
    const int mover = graph_.producer(inputs[0]);
    const auto* const transpose = graph_.as<Transpose>(mover);
    if (transpose == nullptr) return false;
    std::optional<OperatorKind> kind = before(graph_.op(op).kind, *transpose);
    if (!kind) return false;
    const Operator move = graph_.op(mover);
    const int output = graph_.op(op).output;
    Activations unmoved = graph_.tensor(output);
    unmoved.name = tensor_names_.give(shortened(unmoved.name + ".unmoved"));
    unmoved.shape = graph_.tensor(move.inputs[0]).shape;
    const int made = graph_.add_tensor(std::move(unmoved));
    Operator first = {graph_.op(op).name, std::move(*kind), move.inputs, made};
    graph_.remove(mover);
    graph_.replace(op, std::move(first));
    graph_.add_operator({move.name, move.kind, {made}, output}, op);
    return true;
  }

  // A name that leaves room for a number behind it.
  static std::string shortened(const std::string& name) {
    constexpr std::size_t kNumberBytes = 16;
    return name.size() + kNumberBytes <= kMaxLayerNameBytes ? name : "unmoved";
  }

  GraphEdit graph_;
  NumberedNames tensor_names_;
};

}  // namespace

Rewritten sink_transposes(Network network) { return TransposeSinker(std::move(network)).run(); }

}  // namespace burin
