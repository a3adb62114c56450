// A graph as text, and graphs of single operators.
#include "ir/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <tuple>

#include "ir/aligned_lines.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

std::string epilogue_text(const Epilogue& epilogue) {
  std::string text;
  if (epilogue.bias) text += ", bias";
  if (epilogue.residual && !epilogue.residual_last) text += ", residual";
  if (epilogue.function) text += ", " + describe(*epilogue.function);
  if (epilogue.residual_last) text += ", residual";
  return text;
}

std::string zeros_text(std::span<const float> weights) {
  if (weights.empty()) return "no weights";
  const auto zeros = std::count(weights.begin(), weights.end(), 0.0F);
  return fmt::format("{:.1f} % zero", 100.0 * static_cast<double>(zeros) / static_cast<double>(weights.size()));
}

class Describe {
 public:
  Describe(const Network& network, const Operator& op) : network_(network), op_(op) {}

  std::string operator()(const Convolution& op) const {
    if (op.layer < 0 || op.layer >= static_cast<int>(network_.layers.size())) return fmt::format("layer {}", op.layer);
    const ConvLayer& layer = network_.layers[static_cast<std::size_t>(op.layer)];
    const Epilogue& epilogue = layer.shape.epilogue;
    std::string text = window_text(layer.shape) + ", " + zeros_text(layer.weights) + epilogue_text(epilogue);
    if (epilogue.pool) text += fmt::format("; {}", burin::describe(*epilogue.pool));
    if (epilogue.then) text += ", " + burin::describe(*epilogue.then);
    return text;
  }
  std::string operator()(const Linear& op) const {
    return zeros_text(op.weights) + epilogue_text({.bias = !op.bias.empty(), .function = op.function});
  }
  std::string operator()(const Squeeze& op) const {
    return fmt::format("{} features of means: {}, parts of {} channels and {} pixels", op.features,
                       zeros_text(op.weights), op.part_channels, op.part_pixels);
  }
  std::string operator()(const Excite& op) const {
    return fmt::format("{} features{}; then {}", op.expand.in_features,
                       epilogue_text({.bias = !op.bias.empty(), .function = op.function}), (*this)(op.expand));
  }
  std::string operator()(const Elementwise& op) const { return burin::describe(op); }
  std::string operator()(const ChannelAffine& op) const { return op.then ? "then " + (*this)(*op.then) : ""; }
  std::string operator()(const Combine& op) const {
    return (op.user != nullptr ? op.user->name : std::string(to_string(op.combination))) +
           (op.swapped ? " to the second" : "") +
           (op.constant ? fmt::format(", a constant {}", shape_text(op.constant->shape)) : "") +
           (chooses(op.combination) ? fmt::format(", otherwise {}", op.otherwise) : "") + end_text(op.then);
  }
  std::string operator()(const Reduce& op) const {
    return fmt::format("{}, axes {}", to_string(op.statistic), numbers_text(op.axes)) + end_text(op.then);
  }
  std::string operator()(const Normalize& op) const {
    return fmt::format("{}, axes {}", to_string(op.normalization), numbers_text(op.axes)) +
           (op.epsilon != 0 ? fmt::format(", epsilon {}", op.epsilon) : "") + (op.scale ? ", scale" : "") +
           (op.shift ? ", shift" : "") + end_text(op.then);
  }
  std::string operator()(const MatMul& op) const {
    const auto order = [](std::string_view side, const std::vector<int>& order) {
      return order.empty() ? std::string() : fmt::format(", {} order {}", side, numbers_text(order));
    };
    return (op.constant
                ? fmt::format("{} a constant {}", op.constant_first ? "of" : "by", shape_text(op.constant->shape))
                : std::string("of two tensors")) +
           order("left", op.left_order) + order("right", op.right_order) +
           (op.scale != 1 ? fmt::format(", times {}", op.scale) : "") + end_text(op.then);
  }
  std::string operator()(const Pool& op) const { return burin::describe(op); }
  std::string operator()(const Lrn& op) const {
    return fmt::format("size {}, alpha {}, beta {}, bias {}", op.size, op.alpha, op.beta, op.bias);
  }
  std::string operator()(const Concat& op) const { return fmt::format("axis {}", op.axis); }
  std::string operator()(const ChannelView& op) const {
    return fmt::format("channels {} to {}", op.begin, std::int64_t{op.begin} + op.channels - 1);
  }
  std::string operator()(const Pad& op) const {
    return fmt::format("pad {}, value {}", padding_text(op.pad), op.value);
  }
  std::string operator()(const Pick& op) const {
    std::vector<std::string> axes;
    for (const PickedAxis& axis : op.axes) {
      axes.push_back(fmt::format("{} from {}", axis.extent, axis.begin));
      if (axis.step != 1) axes.back() += fmt::format(" by {}", axis.step);
    }
    return fmt::format("{}{}", fmt::join(axes, ", "),
                       op.order.empty() ? std::string() : fmt::format("; order {}", numbers_text(op.order)));
  }
  std::string operator()(const Resample& op) const {
    return op.rows.copies() && op.cols.copies() ? "pixels as they are"
                                                : fmt::format("sums of {}x{} pixels", op.rows.count, op.cols.count);
  }
  std::string operator()(const Transpose& op) const { return fmt::format("order {}", numbers_text(op.order)); }
  // The names and the shapes say all.
  template <OneOf<GlobalAveragePool, Softmax, Reshape, Identity> Kind>
  std::string operator()(const Kind&) const {
    return {};
  }
  std::string operator()(const Convert&) const {
    const bool known = op_.output >= 0 && op_.output < static_cast<int>(network_.tensors.size());
    return known ? "to " + to_string(network_.tensors[static_cast<std::size_t>(op_.output)].format) : "";
  }

 private:
  std::string end_text(const std::optional<Elementwise>& then) const { return then ? ", then " + (*this)(*then) : ""; }

  const Network& network_;
  const Operator& op_;
};

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return shape.empty() ? "no axes" : numbers_text(shape, "x");
}

std::string describe(const Network& network, const Operator& op) { return std::visit(Describe(network, op), op.kind); }

std::string print(const Network& network) {
  // A damaged graph must print as well: that is how its fault is found.
  const auto with_tensor = [&](int index, const auto& text) -> std::string {
    if (index < 0 || index >= static_cast<int>(network.tensors.size())) return fmt::format("?{}", index);
    return text(network.tensors[static_cast<std::size_t>(index)]);
  };
  const auto name = [](const Activations& tensor) { return printable(tensor.name); };
  const auto shape = [](const Activations& tensor) {
    const std::string text = shape_text(tensor.shape);
    return tensor.format.is_plain() ? text : fmt::format("{} {}", text, to_string(tensor.format));
  };
  const auto list = [&](const std::vector<int>& tensors, const auto& text) {
    std::vector<std::string> parts;
    for (const int index : tensors) parts.push_back(with_tensor(index, text));
    return fmt::format("{}", fmt::join(parts, " + "));
  };

  constexpr std::size_t kColumns = 5;
  std::vector<std::array<std::string, kColumns>> rows;
  for (const Operator& op : network.operators) {
    rows.push_back({printable(op.name), std::string(kind_name(op.kind)),
                    fmt::format("{} -> {}", list(op.inputs, name), with_tensor(op.output, name)),
                    fmt::format("{} -> {}", list(op.inputs, shape), with_tensor(op.output, shape)),
                    describe(network, op)});
  }

  constexpr std::size_t kWidest = 60;  // a concat may have many inputs
  return fmt::format("# inputs: {}; outputs: {}\n", list(network.inputs, name), list(network.outputs, name)) +
         aligned_lines(rows, kWidest);
}

void separate_layers(Network& network) {
  network.separate = true;
  network.tensors.clear();
  network.operators.clear();
  network.inputs.clear();
  network.outputs.clear();
  const auto add = [&](const std::string& name, int channels, int rows, int cols) {
    network.tensors.push_back({name, {channels, rows, cols}});
    return static_cast<int>(network.tensors.size()) - 1;
  };
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const auto& [name, shape] = std::tie(network.layers[i].name, network.layers[i].shape);
    Operator& op = network.operators.emplace_back(Operator{name, Convolution{static_cast<int>(i)}, {}, 0});
    constexpr std::string_view kLongestEnding = ".residual";
    const bool fits = name.size() + kLongestEnding.size() <= static_cast<std::size_t>(kMaxLayerNameBytes);
    const std::string stem = fits ? name : fmt::format("layer {}", i);
    op.inputs = {add(stem + ".input", shape.in_channels, shape.in_h, shape.in_w)};
    if (shape.epilogue.residual) {
      op.inputs.push_back(add(stem + ".residual", shape.out_channels, shape.conv_h(), shape.conv_w()));
    }
    network.inputs.insert(network.inputs.end(), op.inputs.begin(), op.inputs.end());
    op.output = add(stem + ".output", shape.out_channels, shape.out_h(), shape.out_w());
    network.outputs.push_back(op.output);
  }
}

Network network_of(const Network& network, const Operator& op) {
  Network alone;
  alone.source = network.source;
  alone.separate = network.separate;
  alone.input_std = network.input_std;
  const auto add = [&](int tensor) {
    alone.tensors.push_back(network.tensors[static_cast<std::size_t>(tensor)]);
    return static_cast<int>(alone.tensors.size()) - 1;
  };
  Operator& added = alone.operators.emplace_back(op);
  for (int& input : added.inputs) {
    input = add(input);
    alone.inputs.push_back(input);
  }
  added.output = add(op.output);
  alone.outputs = {added.output};
  if (auto* const convolution = std::get_if<Convolution>(&added.kind)) {
    alone.layers.push_back(network.layers[static_cast<std::size_t>(convolution->layer)]);
    convolution->layer = 0;
  }
  return alone;
}

}  // namespace burin
