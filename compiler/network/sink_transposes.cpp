#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "compiler/element_functions.h"
#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"
#include "compiler/network/reshaped_axes.h"
#include "ir/limits.h"
#include "ir/numbered_names.h"

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

Order inverse(const Order& order) {
  Order result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) result[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  return result;
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
    const bool of_image = order_.size() == 3 && moved.axes == std::vector<int>{1, 2};
    if (of_image && op.statistic == Statistic::mean && !op.then) return GlobalAveragePool{};
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
    for (const Operator& op : graph_.network().operators) operator_names_.give(op.name);
    at_beginning_ = graph_.operators();
  }

  Rewritten run() {
    for (int op = 0; op < graph_.operators(); ++op) {
      if (op < at_beginning_ && view_by_pick(op)) ++changes_;
      if (graph_.as<Transpose>(op) == nullptr) continue;
      changes_ += multiply_as_it_was(op);
      changes_ += merge(op);
      const std::multiset<int> readers =
          graph_.removed(op) ? std::multiset<int>() : graph_.readers(graph_.op(op).output);
      for (const int reader : std::set<int>(readers.begin(), readers.end())) {
        // Each of these may take the transpose away.
        if (graph_.as<Transpose>(op) == nullptr) break;
        if (reader >= at_beginning_) continue;  // what was added in this run waits for the next one
        if (pass(op, reader) || join(op, reader) || reorder_features(op, reader) || pass_view(op, reader) ||
            pass_reshape(op, reader) || merge_around_reshape(op, reader)) {
          ++changes_;
        }
      }
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

  // Of two transposes in a row one is made. Returns how many were.
  int merge(int op) {
    if (graph_.removed(op)) return 0;
    const Order first = graph_.as<Transpose>(op)->order;
    const int transposed = graph_.op(op).output, input = graph_.op(op).inputs[0];
    int merged = 0;
    const std::multiset<int> readers = graph_.readers(transposed);
    for (const int reader : readers) {
      const auto* second = graph_.as<Transpose>(reader);
      if (second == nullptr) continue;
      graph_.set_kind(reader, Transpose{composed(second->order, first)});
      graph_.set_input(reader, 0, input);
      ++merged;
    }
    remove_unread(op);
    return merged;
  }

  bool is_unread(int op) const {
    return graph_.readers(graph_.op(op).output).empty() && !graph_.is_output(graph_.op(op).output);
  }
  void remove_unread(int op) {
    if (is_unread(op)) graph_.remove(op);
  }

  // The transpose comes behind its reader. Where it has others, it stays for them: then only if the one behind moves
  // nothing, or meets one back.
  bool pass(int op, int reader) {
    const Operator transpose = graph_.op(op), passed = graph_.op(reader);
    const Order order = std::get<Transpose>(transpose.kind).order;
    const Shape input = graph_.tensor(transpose.inputs[0]).shape;
    if (passed.inputs.size() != 1) return false;
    const auto kind = std::visit(BeforeTranspose(order, input), passed.kind);
    if (!kind) return false;
    Shape shape = input;
    if (const auto* reduce = std::get_if<Reduce>(&passed.kind)) {
      for (const int axis : before(reduce->axes, order)) shape[static_cast<std::size_t>(axis)] = 1;
    }
    const bool alone = graph_.only_reader(transpose.output) == reader;
    if (!alone && !keeps_order({order}, shape) && !leads_back(passed.output, order)) return false;
    put_behind(reader, {passed.name, *kind, transpose.inputs, passed.output}, order, std::move(shape));
    remove_unread(op);
    return true;
  }

  // Whether operators that a transpose passes are all there is between the tensor and a transpose back.
  bool leads_back(int tensor, const Order& order) {
    const int reader = graph_.only_reader(tensor);
    return reader >= 0 && leads_back(tensor, reader, order);
  }
  bool leads_back(int tensor, int reader, const Order& order) {
    if (const auto* back = graph_.as<Transpose>(reader)) {
      return std::ranges::is_sorted(composed(back->order, order));
    }
    const Operator& op = graph_.op(reader);
    if (op.inputs.size() != 1 || std::holds_alternative<Reduce>(op.kind)) return false;
    Shape before(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      before[static_cast<std::size_t>(order[i])] = graph_.tensor(tensor).shape[i];
    }
    return std::visit(BeforeTranspose(order, before), op.kind) && leads_back(op.output, order);
  }

  // Computes what `by` says where `reader` stood, behind `first` if there is one, and transposes it to what that gave.
  void put_behind(int reader, Operator by, const Order& order, Shape shape, std::optional<Operator> first = {}) {
    const int output = by.output;
    by.output = graph_.add_tensor({new_name(graph_.tensor(output).name), std::move(shape)});
    const int made = by.output;
    const std::string name = new_operator_name(by.name);
    if (first) {
      graph_.replace(reader, std::move(*first));
      graph_.add_operator(std::move(by), reader);
    } else {
      graph_.replace(reader, std::move(by));
    }
    graph_.add_operator({name, Transpose{order}, {made}, output}, reader);
  }

  // Whether something else than a transpose reads the tensor, and a transpose back is behind that.
  bool is_read_and_led_back(int tensor, const Order& order) {
    return std::ranges::any_of(graph_.readers(tensor), [&](int reader) {
      return graph_.as<Transpose>(reader) == nullptr && leads_back(tensor, reader, order);
    });
  }

  // What comes of tensors that are all transposed alike is transposed itself. One of the transposes goes for it. A sum
  // of one that is and one that is not is, too, where what reads it is transposed back: there the other is transposed
  // instead, and a stream of sums, as transformers have it, once.
  bool join(int op, int reader) {
    const Order order = graph_.as<Transpose>(op)->order;
    const Operator joined = graph_.op(reader);
    OperatorKind kind = joined.kind;
    if (auto* concat = std::get_if<Concat>(&kind)) {
      concat->axis = order[static_cast<std::size_t>(concat->axis)];
    } else if (!std::holds_alternative<Combine>(kind)) {
      return false;
    }
    if (joined.inputs.size() < 2) return false;
    bool goes = false;
    std::optional<int> turned;  // by a transpose of its own
    for (const int input : joined.inputs) {
      const auto* transpose = graph_.as<Transpose>(graph_.producer(input));
      const bool alike = transpose != nullptr && transpose->order == order;
      goes = goes || (alike && graph_.only_reader(input) == reader);
      if (alike || (std::holds_alternative<Combine>(kind) && moves_freely(input, order))) continue;
      const bool whole = graph_.tensor(input).shape == graph_.tensor(joined.output).shape;
      if (!std::holds_alternative<Combine>(kind) || !whole) return false;
      turned = input;
    }
    if (!goes || (turned && !is_read_and_led_back(joined.output, order))) return false;
    Operator by{joined.name, std::move(kind), {}, joined.output};
    std::optional<Operator> first;
    for (const int input : joined.inputs) {
      const int producer = graph_.producer(input);
      const auto* transpose = graph_.as<Transpose>(producer);
      if (transpose != nullptr && transpose->order == order) {
        by.inputs.push_back(graph_.op(producer).inputs[0]);
        continue;
      }
      const Shape shape = before_order(graph_.tensor(input).shape, order);
      by.inputs.push_back(graph_.add_tensor({new_name(graph_.tensor(input).name), shape}));
      OperatorKind moved = Reshape{shape};
      if (turned == input) moved = Transpose{inverse(order)};
      first = Operator{new_operator_name(joined.name), std::move(moved), {input}, by.inputs.back()};
    }
    put_behind(reader, std::move(by), order, before_order(graph_.tensor(joined.output).shape, order), std::move(first));
    for (const int input : joined.inputs) {
      const int producer = graph_.producer(input);
      if (graph_.as<Transpose>(producer) != nullptr) remove_unread(producer);
    }
    return true;
  }

  static Shape before_order(const Shape& shape, const Order& order) {
    Shape before(shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i) before[static_cast<std::size_t>(order[i])] = shape[i];
    return before;
  }
  // Whether the tensor, untransposed, is the same in memory.
  bool moves_freely(int tensor, const Order& order) const {
    return keeps_order({order}, before_order(graph_.tensor(tensor).shape, order));
  }
  std::string new_operator_name(const std::string& of) {
    constexpr std::size_t kNumberBytes = 32;
    return operator_names_.give(of.size() + kNumberBytes <= kMaxLayerNameBytes ? of + ".turned" : "turned");
  }

  bool all_multiply(int tensor) {
    const std::multiset<int>& readers = graph_.readers(tensor);
    return !graph_.is_output(tensor) && !readers.empty() &&
           std::ranges::all_of(readers, [&](int reader) { return graph_.as<MatMul>(reader) != nullptr; });
  }
  // Whether a transpose of such a tensor, which gives this one, would be none any more: products alone read it, or what
  // a reshape makes of it that can stand before the transpose.
  bool feeds_products(int tensor, const Shape& input, const Order& order) {
    if (all_multiply(tensor)) return true;
    const int reader = graph_.only_reader(tensor);
    const auto* reshape = graph_.as<Reshape>(reader);
    return reshape != nullptr && all_multiply(graph_.op(reader).output) &&
           reshaped_before(input, order, reshape->shape);
  }

  // Channels that follow each other and are then transposed are a view of them, and a transpose, where products read
  // that.
  bool view_by_pick(int op) {
    const auto* pick = graph_.as<Pick>(op);
    if (pick == nullptr || pick->order.empty()) return false;
    const Operator picked = graph_.op(op);
    const Order order = pick->order;
    const PickedAxis channels = pick->axes[0];
    Shape shape = graph_.tensor(picked.inputs[0]).shape;
    for (std::size_t axis = 1; axis < shape.size(); ++axis) {
      if (!pick->axes[axis].is_whole(shape[axis])) return false;
    }
    shape[0] = channels.extent;
    if ((channels.step != 1 && channels.extent > 1) || !feeds_products(picked.output, shape, order)) return false;
    const ChannelView view{static_cast<int>(channels.begin), static_cast<int>(channels.extent)};
    put_behind(op, {picked.name, view, picked.inputs, picked.output}, order, std::move(shape));
    return true;
  }

  // A view of what the transpose left along its axis, where products read it.
  bool pass_view(int op, int reader) {
    const auto* view = graph_.as<ChannelView>(reader);
    const Operator transpose = graph_.op(op), viewed = graph_.op(reader);
    const Order order = std::get<Transpose>(transpose.kind).order;
    if (view == nullptr || order[0] != 0) return false;
    Shape shape = graph_.tensor(transpose.inputs[0]).shape;
    shape[0] = view->channels;
    if (!feeds_products(viewed.output, shape, order)) return false;
    put_behind(reader, {viewed.name, *view, transpose.inputs, viewed.output}, order, std::move(shape));
    remove_unread(op);
    return true;
  }

  // A change of shape that products read.
  bool pass_reshape(int op, int reader) {
    const auto* reshape = graph_.as<Reshape>(reader);
    const Operator transpose = graph_.op(op), reshaped = graph_.op(reader);
    if (reshape == nullptr || !all_multiply(reshaped.output)) return false;
    const auto before = reshaped_before(graph_.tensor(transpose.inputs[0]).shape,
                                        std::get<Transpose>(transpose.kind).order, reshape->shape);
    if (!before) return false;
    put_behind(reader, {reshaped.name, Reshape{before->shape}, transpose.inputs, reshaped.output}, before->order,
               before->shape);
    remove_unread(op);
    return true;
  }

  // Of two transposes with a reshape between them one is made, before the reshape or behind it.
  bool merge_around_reshape(int op, int reader) {
    const auto* reshape = graph_.as<Reshape>(reader);
    const Operator first = graph_.op(op), reshaped = graph_.op(reader);
    if (reshape == nullptr || graph_.only_reader(first.output) != reader) return false;
    const int back = graph_.only_reader(reshaped.output);
    if (graph_.as<Transpose>(back) == nullptr || back >= at_beginning_) return false;
    const Operator second = graph_.op(back);
    const Order order = std::get<Transpose>(first.kind).order, then = std::get<Transpose>(second.kind).order;
    const Shape input = graph_.tensor(first.inputs[0]).shape, to = reshape->shape;
    if (const auto early = ordered_before(graph_.tensor(first.output).shape, to, then)) {
      const Order both = composed(*early, order);
      const int made = graph_.add_tensor({new_name(graph_.tensor(first.output).name), ordered(input, both)});
      graph_.remove(reader);
      graph_.replace(op, {first.name, Transpose{both}, first.inputs, made});
      graph_.replace(back, {second.name, Reshape{ordered(to, then)}, {made}, second.output});
      return true;
    }
    const auto before = reshaped_before(input, order, to);
    if (!before) return false;
    const int made = graph_.add_tensor({new_name(graph_.tensor(reshaped.output).name), before->shape});
    graph_.replace(reader, {reshaped.name, Reshape{before->shape}, first.inputs, made});
    graph_.replace(back, {second.name, Transpose{composed(then, before->order)}, {made}, second.output});
    graph_.remove(op);
    return true;
  }

  // What is flattened behind the transpose is flattened as it was, and the layers behind have their weights in that
  // order.
  bool reorder_features(int op, int reader) {
    const auto* flat = graph_.as<Reshape>(reader);
    if (flat == nullptr || flat->shape.size() != 1 || graph_.is_output(graph_.op(reader).output)) return false;
    const std::multiset<int> layers = graph_.readers(graph_.op(reader).output);
    const auto is_layer = [&](int layer) { return graph_.as<Linear>(layer) != nullptr; };
    if (layers.empty() || !std::ranges::all_of(layers, is_layer)) return false;
    const Order order = graph_.as<Transpose>(op)->order;
    const Shape& shape = graph_.tensor(graph_.op(op).output).shape;
    for (const int layer : layers) {
      Linear linear = *graph_.as<Linear>(layer);
      const auto features = static_cast<std::size_t>(linear.in_features);
      for (std::size_t row = 0; row < linear.weights.size(); row += features) {
        const auto begin = linear.weights.begin() + static_cast<std::ptrdiff_t>(row);
        const ConstantOperand of_row = before(ConstantOperand{shape, {begin, begin + linear.in_features}}, order);
        std::ranges::copy(of_row.values, begin);
      }
      graph_.set_kind(layer, std::move(linear));
    }
    graph_.set_input(reader, 0, graph_.op(op).inputs[0]);
    graph_.rename(graph_.op(reader).output, new_name(graph_.tensor(graph_.op(reader).output).name));
    remove_unread(op);
    return true;
  }

  // What keeps its name keeps its values; these lie in another order.
  std::string new_name(const std::string& transposed) {
    constexpr std::size_t kNumberBytes = 32;
    std::string name = transposed.size() + kNumberBytes <= kMaxLayerNameBytes ? transposed + ".before" : "before";
    while (!names_.insert(name).second) name += '_';
    return name;
  }

  GraphEdit graph_;
  int at_beginning_ = 0;         // operators
  std::set<std::string> names_;  // of all tensors
  NumberedNames operator_names_;
  int changes_ = 0;
};

}  // namespace

Rewritten sink_transposes(Network network) { return TransposeSinker(std::move(network)).run(); }

}  // namespace burin
