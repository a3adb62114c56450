// What each operator makes of its inputs' shapes, and the rules for its attributes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/network.h"
#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {
namespace {

using Shape = std::vector<std::int64_t>;

void check_shape(Faults& faults, std::string_view whose, const Shape& shape) {
  if (shape.empty() || shape.size() > static_cast<std::size_t>(kMaxActivationRank)) {
    return faults.add("{} has {} axes, allowed are 1 to {} (kMaxActivationRank)", whose, shape.size(),
                      kMaxActivationRank);
  }
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 1; })) {
    return faults.add("{} is {}, every axis must be 1 or more", whose, shape_text(shape));
  }
  constexpr std::int64_t kElementBytes = sizeof(float);
  const std::int64_t bytes = saturating_product({saturating_product(shape), kElementBytes});
  if (bytes > kMaxImageBytes) {
    faults.add("{} is {}, {} bytes for an image, allowed are {} (kMaxImageBytes: offsets have 32 bits)", whose,
               shape_text(shape), bytes, kMaxImageBytes);
  }
}

// One function for each kind of operator; all compute with legal input shapes.
class OutputShape {
 public:
  OutputShape(const Network& network, const std::vector<Shape>& inputs, Faults& faults)
      : network_(network), inputs_(inputs), faults_(faults) {}

  Shape operator()(const Convolution& op) {
    if (op.layer < 0 || op.layer >= static_cast<int>(network_.layers.size())) {
      return fault("the layer's index is {}, the network has {} layers", op.layer, network_.layers.size());
    }
    const ConvShape& shape = network_.layers[static_cast<std::size_t>(op.layer)].shape;
    const std::size_t count = shape.epilogue.residual ? 2 : 1;
    if (inputs_.size() != count) {
      return fault("it has {} inputs, its layer takes {}{}", inputs_.size(), count,
                   shape.epilogue.residual ? ": the second is added as its residual" : " (its residual is no)");
    }
    if (const Shape wanted = {shape.in_channels, shape.in_h, shape.in_w}; inputs_[0] != wanted) {
      return fault("its input is {}, its layer takes {}", shape_text(inputs_[0]), shape_text(wanted));
    }
    const Shape sums = {shape.out_channels, shape.conv_h(), shape.conv_w()};
    if (count == 2 && inputs_[1] != sums) {
      return fault("its residual is {}, it must be shaped like its output {}{}", shape_text(inputs_[1]),
                   shape_text(sums), shape.epilogue.pool ? " before the pool" : "");
    }
    return {shape.out_channels, shape.out_h(), shape.out_w()};
  }

  Shape operator()(const Linear& op) {
    if (!one_input() || !is_legal(op)) return {};
    if (inputs_[0] != Shape{op.in_features}) {
      faults_.add("its input is {}, it takes {} flat features; a reshape before it would flatten them",
                  shape_text(inputs_[0]), op.in_features);
    }
    return {op.out_features};
  }

  Shape operator()(const Squeeze& op) {
    if (!one_image()) return {};
    const std::int64_t channels = inputs_[0][0];
    const Linear layer{static_cast<int>(channels), op.features, op.weights, {}, {}};
    faults_.require_range("part_channels", op.part_channels, 1, kMaxLayerWeights, "kMaxLayerWeights");
    faults_.require_range("part_pixels", op.part_pixels, 1, kMaxLayerWeights, "kMaxLayerWeights");
    if (!is_legal(layer) || !faults_.empty()) return {};
    return {op.parts(inputs_[0]), op.features};
  }

  Shape operator()(const Excite& op) {
    if (inputs_.size() != 2) return fault("it has {} inputs, it takes 2", inputs_.size());
    if (inputs_[0].size() != 3) return fault("its input is {}, it takes an image", shape_text(inputs_[0]));
    if (!is_legal(op.expand)) return {};
    if (op.expand.out_features != inputs_[0][0]) {
      faults_.add("its input is {}, its layer gives {} channels", shape_text(inputs_[0]), op.expand.out_features);
    }
    if (inputs_[1].size() != 2 || inputs_[1][1] != op.expand.in_features) {
      faults_.add("its second input is {}, it takes parts of {} features", shape_text(inputs_[1]),
                  op.expand.in_features);
    }
    if (!op.bias.empty() && std::ssize(op.bias) != op.expand.in_features) {
      faults_.add("there are {} biases, allowed are none or {}", op.bias.size(), op.expand.in_features);
    }
    faults_.require_finite("biases", op.bias);
    for (const std::string& fault : verify_function(op.function)) faults_.add("{}", fault);
    return inputs_[0];
  }

  Shape operator()(const ChannelAffine& op) {
    if (!one_input()) return {};
    const auto channels = static_cast<std::size_t>(inputs_[0][0]);
    if (op.scale.size() != channels || op.shift.size() != channels) {
      return fault("there are {} scales and {} shifts, its input {} has {} channels", op.scale.size(), op.shift.size(),
                   shape_text(inputs_[0]), channels);
    }
    faults_.require_finite("scales", op.scale);
    faults_.require_finite("shifts", op.shift);
    if (op.then) check(*op.then);
    return inputs_[0];
  }

  Shape operator()(const Elementwise& op) {
    if (!one_input()) return {};
    check(op);
    return inputs_[0];
  }

  Shape operator()(const Combine& op) {
    if (!is_named(op.combination)) {
      return fault("combination is {}, which is none", static_cast<int>(op.combination));
    }
    if ((op.combination == Combination::user) != (op.user != nullptr)) {
      return fault("it is a user's function of two inputs, or names one, alone");
    }
    if (op.user != nullptr && op.user->inputs != 2) {
      return fault("operator {} has {} inputs, it takes two", in_quotes(op.user->name), op.user->inputs);
    }
    if (chooses(op.combination) ? std::isnan(op.otherwise) : op.otherwise != 0) {
      return fault("what it takes otherwise is {}; it must be a number, and 0 where it chooses nothing", op.otherwise);
    }
    if (op.then) check(*op.then);
    const std::size_t count = op.constant ? 1 : 2;
    if (inputs_.size() != count) {
      return fault("it has {} inputs, it takes {}{}", inputs_.size(), count, op.constant ? " beside its constant" : "");
    }
    if (op.constant && !is_legal("its constant", *op.constant)) return {};
    const Shape& second = op.constant ? op.constant->shape : inputs_[1];
    if (!repeats_to(second, inputs_[0])) {
      return fault(
          "its inputs are {} and {}; along each axis the second must have as many values as the first, or one for all",
          shape_text(inputs_[0]), shape_text(second));
    }
    return inputs_[0];
  }

  Shape operator()(const MatMul& op) {
    if (op.then) check(*op.then);
    if (!std::isfinite(op.scale)) return fault("its scale is {}, it must be finite", op.scale);
    const std::size_t count = op.constant ? 1 : 2;
    if (inputs_.size() != count) {
      return fault("it has {} inputs, it takes {}{}", inputs_.size(), count, op.constant ? " beside its constant" : "");
    }
    if (op.constant && !is_legal("its constant", *op.constant)) return {};
    const auto operand = [&](bool left) {
      const bool constant = op.constant && op.constant_first == left;
      const Shape& shape = constant ? op.constant->shape : inputs_[left || op.constant ? 0 : 1];
      const std::vector<int>& order = left ? op.left_order : op.right_order;
      const auto axes = std::views::iota(0, constant ? 0 : static_cast<int>(shape.size()));
      if (!order.empty() && !std::ranges::is_permutation(order, axes)) {
        fault("order is {}, it must name each axis of its tensor {} once", numbers_text(order), shape_text(shape));
        return Shape();
      }
      return ordered(shape, order);
    };
    const Shape left = operand(true), right = operand(false);
    if (!faults_.empty()) return {};
    constexpr std::size_t kMatrixRank = 2;
    if (left.size() < kMatrixRank || right.size() != left.size() || right[left.size() - 2] != left.back()) {
      return fault(
          "it multiplies {} by {}; both must have as many axes, two or more, and the last one of the first as "
          "many values as the last but one of the second",
          shape_text(left), shape_text(right));
    }
    Shape output = left;
    output.back() = right.back();
    for (std::size_t i = 0; i + kMatrixRank < left.size(); ++i) {
      if (left[i] != right[i] && left[i] != 1 && right[i] != 1) {
        return fault("it multiplies {} by {}, which have {} and {} matrices along axis {}", shape_text(left),
                     shape_text(right), left[i], right[i], i);
      }
      output[i] = std::max(left[i], right[i]);
    }
    return output;
  }

  Shape operator()(const Reduce& op) {
    if (!is_named(op.statistic)) return fault("statistic is {}, which is none", static_cast<int>(op.statistic));
    if (op.then) check(*op.then);
    if (!one_input() || !are_axes(op.axes)) return {};
    Shape output = inputs_[0];
    for (const int axis : op.axes) output[static_cast<std::size_t>(axis)] = 1;
    return output;
  }

  Shape operator()(const Normalize& op) {
    if (!is_named(op.normalization)) {
      return fault("normalization is {}, which is none", static_cast<int>(op.normalization));
    }
    if (op.then) check(*op.then);
    if (!one_input() || !are_axes(op.axes)) return {};
    if (!std::isfinite(op.epsilon) || op.epsilon < 0) {
      faults_.add("epsilon is {}, it must be finite and 0 or more", op.epsilon);
    }
    for (const auto* numbers : {&op.scale, &op.shift}) {
      if (!*numbers) continue;
      if (!is_legal(numbers == &op.scale ? "its scale" : "its shift", **numbers)) return {};
      if (!repeats_to((*numbers)->shape, inputs_[0])) {
        return fault("its scale or shift is {}, its input {}; along each axis it must have as many values, or one",
                     shape_text((*numbers)->shape), shape_text(inputs_[0]));
      }
    }
    if (op.scale && op.shift && op.scale->shape != op.shift->shape) {
      return fault("its scale is {} and its shift {}; they must have one shape", shape_text(op.scale->shape),
                   shape_text(op.shift->shape));
    }
    return inputs_[0];
  }

  Shape operator()(const Pool& op) {
    if (!one_image()) return {};
    if (faults_.add_all(verify(op, inputs_[0][1], inputs_[0][2]))) return {};
    if (op.kind == PoolKind::filter) return fault("a pool that filters is the end of a convolution alone");
    return {inputs_[0][0], pooled_rows(op, inputs_[0][1]), pooled_cols(op, inputs_[0][2])};
  }

  Shape operator()(const GlobalAveragePool&) {
    if (!one_image()) return {};
    return {inputs_[0][0], 1, 1};
  }

  Shape operator()(const Lrn& op) {
    if (!one_image()) return {};
    faults_.require_range("size", op.size, 1, kMaxChannels, "kMaxChannels");
    if (!std::isfinite(op.alpha) || op.alpha < 0) {
      faults_.add("alpha is {}, it must be finite and 0 or more", op.alpha);
    }
    if (!std::isfinite(op.beta)) faults_.add("beta is {}, it must be finite", op.beta);
    if (!std::isfinite(op.bias) || op.bias <= 0) {
      faults_.add("bias is {}, it must be finite and more than 0", op.bias);
    }
    return inputs_[0];
  }

  Shape operator()(const Softmax&) { return one_input() ? inputs_[0] : Shape{}; }

  Shape operator()(const Concat& op) {
    if (inputs_.empty() || inputs_.size() > static_cast<std::size_t>(kMaxOperatorInputs)) {
      return fault("it has {} inputs, allowed are 1 to {} (kMaxOperatorInputs)", inputs_.size(), kMaxOperatorInputs);
    }
    const auto rank = static_cast<std::int64_t>(inputs_[0].size());
    if (op.axis < 0 || op.axis >= rank) return fault("axis is {}, allowed is 0 to {}", op.axis, rank - 1);
    const auto axis = static_cast<std::size_t>(op.axis);
    Shape output = inputs_[0];
    for (std::size_t i = 1; i < inputs_.size(); ++i) {
      Shape like = inputs_[i];
      if (like.size() == output.size()) like[axis] = output[axis];
      if (like != output) {
        return fault("its inputs 0 and {} are {} and {}; they may differ in axis {} alone", i, shape_text(inputs_[0]),
                     shape_text(inputs_[i]), op.axis);
      }
      output[axis] += inputs_[i][axis];
    }
    return output;
  }

  Shape operator()(const ChannelView& op) {
    if (!one_input()) return {};
    const std::int64_t channels = inputs_[0][0];
    if (op.begin < 0 || op.channels < 1 || std::int64_t{op.begin} + op.channels > channels) {
      return fault("it takes {} channels from {} on, its input {} has {}", op.channels, op.begin,
                   shape_text(inputs_[0]), channels);
    }
    Shape output = inputs_[0];
    output[0] = op.channels;
    return output;
  }

  Shape operator()(const Pad& op) {
    if (!one_image()) return {};
    faults_.require_padding(op.pad);
    if (!std::isfinite(op.value)) faults_.add("value is {}, it must be finite", op.value);
    return {inputs_[0][0], inputs_[0][1] + op.pad.top + op.pad.bottom, inputs_[0][2] + op.pad.left + op.pad.right};
  }

  Shape operator()(const Pick& op) {
    if (!one_input()) return {};
    const Shape& in = inputs_[0];
    if (op.axes.size() != in.size()) {
      return fault("it says what it takes of {} axes, its input is {}", op.axes.size(), shape_text(in));
    }
    if (!op.order.empty() && !orders_axes(op.order)) return {};
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto& [begin, step, extent] = op.axes[i];
      const auto within = [&](std::int64_t at) { return at >= 0 && at < in[i]; };
      // Not to overflow: steps that are longer than the axis leave it as surely as those that are as long.
      const std::int64_t pace = std::clamp(step, -in[i], in[i]);
      const std::int64_t last = extent < 1 || extent > kMaxImageBytes ? -1 : begin + (extent - 1) * pace;
      if (!within(begin) || !within(last)) {
        return fault("of axis {} it takes {} elements from {} on by steps of {}, its input is {}", i, extent, begin,
                     step, shape_text(in));
      }
    }
    Shape output;
    for (std::size_t i = 0; i < in.size(); ++i) output.push_back(op.axes[op.from(i)].extent);
    return output;
  }

  Shape operator()(const Resample& op) {
    if (!one_image()) return {};
    if (!std::isfinite(op.outside)) faults_.add("the value outside is {}, it must be finite", op.outside);
    check("rows", op.rows, inputs_[0][1]);
    check("columns", op.cols, inputs_[0][2]);
    if (!faults_.empty()) return {};
    return {inputs_[0][0], op.rows.extent(), op.cols.extent()};
  }

  Shape operator()(const Reshape& op) {
    if (!one_input()) return {};
    check_shape(faults_, "the new shape", op.shape);
    if (!faults_.empty()) return {};
    if (saturating_product(op.shape) != saturating_product(inputs_[0])) {
      return fault("the new shape {} has {} elements, its input {} has {}", shape_text(op.shape),
                   saturating_product(op.shape), shape_text(inputs_[0]), saturating_product(inputs_[0]));
    }
    return op.shape;
  }

  Shape operator()(const Transpose& op) {
    if (!one_input()) return {};
    if (!orders_axes(op.order)) return {};
    Shape output;
    for (const int axis : op.order) output.push_back(inputs_[0][static_cast<std::size_t>(axis)]);
    return output;
  }

  Shape operator()(const Identity&) { return one_input() ? inputs_[0] : Shape{}; }
  Shape operator()(const Convert&) { return one_input() ? inputs_[0] : Shape{}; }

 private:
  // Whether it has as many values as its shape says, all of them finite.
  // But for its input.
  bool is_legal(const Linear& op) {
    faults_.require_range("in_features", op.in_features, 1, kMaxLayerWeights, "kMaxLayerWeights");
    faults_.require_range("out_features", op.out_features, 1, kMaxLayerWeights, "kMaxLayerWeights");
    for (const std::string& fault : verify_function(op.function)) faults_.add("{}", fault);
    if (!faults_.empty()) return false;
    const std::int64_t weights = saturating_product({op.in_features, op.out_features});
    if (weights > kMaxLayerWeights) {
      fault("it has {} weights, allowed are {} (kMaxLayerWeights)", weights, kMaxLayerWeights);
      return false;
    }
    if (static_cast<std::int64_t>(op.weights.size()) != weights) {
      faults_.add("there are {} weights, {} x {} features need {}", op.weights.size(), op.out_features, op.in_features,
                  weights);
    }
    if (!op.bias.empty() && op.bias.size() != static_cast<std::size_t>(op.out_features)) {
      faults_.add("there are {} biases, allowed are none or {} (out_features)", op.bias.size(), op.out_features);
    }
    faults_.require_finite("weights", op.weights);
    faults_.require_finite("biases", op.bias);
    return true;
  }

  bool is_legal(std::string_view whose, const ConstantOperand& numbers) {
    const std::int64_t wanted = saturating_product(numbers.shape);
    if (wanted != std::ssize(numbers.values)) {
      fault("{} is {} and has {} values", whose, shape_text(numbers.shape), numbers.values.size());
      return false;
    }
    faults_.require_finite(whose, numbers.values);
    return true;
  }

  // Whether it names each axis of the input once.
  bool orders_axes(const std::vector<int>& order) {
    const bool does = std::ranges::is_permutation(order, std::views::iota(0, static_cast<int>(inputs_[0].size())));
    if (!does) {
      fault("order is {}, it must name each axis of its input {} once, from 0 to {}", numbers_text(order),
            shape_text(inputs_[0]), inputs_[0].size() - 1);
    }
    return does;
  }

  // Whether they are axes of the input, ascending, at least one.
  bool are_axes(const std::vector<int>& axes) {
    const int rank = static_cast<int>(inputs_[0].size());
    bool are = !axes.empty() && axes.front() >= 0 && axes.back() < rank;
    for (std::size_t i = 1; are && i < axes.size(); ++i) are = axes[i - 1] < axes[i];
    if (!are) {
      fault("its axes are {}; they must be ascending, at least one, from 0 to {}", numbers_text(axes), rank - 1);
    }
    return are;
  }

  void check(const Elementwise& op) {
    if (!is_named(op.function)) {
      faults_.add("function is {}, which is none", static_cast<int>(op.function));
    } else if (op.is_user() || op.user != nullptr) {
      for (const std::string& text : verify_function(op)) faults_.add("{}", text);
    } else if (op.function == ElementFunction::clip) {
      if (!(op.alpha <= op.beta)) faults_.add("it clips from {} to {}: nothing lies between", op.alpha, op.beta);
    } else if (op.function == ElementFunction::celu && op.alpha == 0) {
      faults_.add("the alpha of celu is 0, by which it divides");
    } else if (op.function == ElementFunction::quantize && !(std::isnormal(op.alpha) && op.alpha > 0)) {
      faults_.add("it quantizes by a scale of {}, which must be above zero and a normal number", op.alpha);
    } else if (!std::isfinite(op.alpha) || !std::isfinite(op.beta)) {
      faults_.add("alpha is {} and beta is {}, both must be finite", op.alpha, op.beta);
    }
  }

  void check(std::string_view what, const Taps& taps, std::int64_t extent) {
    faults_.require_range(fmt::format("taps of its {}", what), taps.count, 1, kMaxTaps, "kMaxTaps");
    if (!faults_.empty()) return;
    const auto tables = static_cast<std::int64_t>(taps.indices.size());
    faults_.require_range(fmt::format("indices of its {}", what), tables, 1, kMaxTapTable, "kMaxTapTable");
    if (tables % taps.count != 0 || taps.weights.size() != taps.indices.size()) {
      faults_.add("its {} have {} indices and {} weights, there must be as many of both, {} for each", what, tables,
                  taps.weights.size(), taps.count);
    }
    for (std::size_t i = 0; i < taps.indices.size() && faults_.empty(); ++i) {
      if (taps.indices[i] >= extent) {
        faults_.add("its {} take index {}, its input has {}", what, taps.indices[i], extent);
      }
    }
    faults_.require_finite(fmt::format("weights of its {}", what), taps.weights);
  }

  template <typename... Args>
  Shape fault(fmt::format_string<Args...> format, Args&&... args) {
    faults_.add(format, std::forward<Args>(args)...);
    return {};
  }

  bool one_input() {
    if (inputs_.size() != 1) fault("it has {} inputs, it takes 1", inputs_.size());
    return inputs_.size() == 1;
  }

  bool one_image() {
    if (!one_input()) return false;
    if (inputs_[0].size() != 3) fault("its input is {}, it takes channels x rows x columns", shape_text(inputs_[0]));
    return inputs_[0].size() == 3;
  }

  const Network& network_;
  const std::vector<Shape>& inputs_;
  Faults& faults_;
};

}  // namespace

std::vector<std::int64_t> ordered(const std::vector<std::int64_t>& shape, const std::vector<int>& order) {
  if (order.empty()) return shape;
  std::vector<std::int64_t> result;
  for (const int axis : order) result.push_back(shape[static_cast<std::size_t>(axis)]);
  return result;
}

bool repeats_to(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& whole) {
  return std::ranges::equal(shape, whole, [](std::int64_t part, std::int64_t of) { return part == of || part == 1; });
}

bool Taps::copies() const {
  return count == 1 && std::ranges::all_of(weights, [](float weight) { return weight == 1; });
}

std::int64_t Activations::elements() const { return saturating_product(shape); }

std::vector<std::int64_t> output_shape(const Network& network, const Operator& op,
                                       const std::vector<std::vector<std::int64_t>>& inputs,
                                       std::vector<std::string>& faults) {
  Faults found(fmt::format("operator {} ({}): ", in_quotes(op.name), kind_name(op.kind)));
  for (std::size_t i = 0; i < inputs.size(); ++i) check_shape(found, fmt::format("its input {}", i), inputs[i]);
  Shape shape;
  if (found.empty()) shape = std::visit(OutputShape(network, inputs, found), op.kind);
  if (found.empty()) check_shape(found, "its output", shape);
  if (found.empty()) return shape;
  for (std::string& fault : found.take()) faults.push_back(std::move(fault));
  return {};
}

}  // namespace burin
