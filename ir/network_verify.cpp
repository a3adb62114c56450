// The rules of a graph as a whole; those of each operator are in network_shapes.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <unordered_set>

#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/network.h"
#include "ir/printable.h"

namespace burin {
namespace {

class GraphVerifier {
 public:
  explicit GraphVerifier(const Network& network) : network_(network) {}

  std::vector<std::string> run() {
    faults_.require_range("the number of operators", static_cast<std::int64_t>(network_.operators.size()), 1,
                          kMaxOperators, "kMaxOperators");
    if (!faults_.empty()) return faults_.take();
    check_names();
    check_ends();
    check_layers();
    for (const Operator& op : network_.operators) check_operator(op);
    check_producers();
    return faults_.take();
  }

 private:
  bool is_tensor(int index) const { return index >= 0 && index < static_cast<int>(network_.tensors.size()); }
  const Activations& tensor(int index) const { return network_.tensors[static_cast<std::size_t>(index)]; }

  void check_name(std::string_view what, const std::string& name, std::unordered_set<std::string_view>& seen) {
    if (name.empty()) return faults_.add("{} without a name", what);
    if (name.size() > kMaxLayerNameBytes) {
      faults_.add("the name {} of {} has {} bytes, allowed are {} (kMaxLayerNameBytes)", in_quotes(name), what,
                  name.size(), kMaxLayerNameBytes);
    }
    if (!seen.insert(name).second)
      faults_.add("two of the network's {}s are named {}", what.substr(what.find(' ') + 1), in_quotes(name));
  }

  void check_names() {
    std::unordered_set<std::string_view> operators, tensors;
    for (const Operator& op : network_.operators) check_name("an operator", op.name, operators);
    for (const Activations& tensor : network_.tensors) check_name("a tensor", tensor.name, tensors);
  }

  // Network inputs and outputs. Both are buffers that a caller binds, so that one may not be two of them.
  void check_ends() {
    defined_.resize(network_.tensors.size());
    const auto check_list = [&](std::string_view what, const std::vector<int>& list) {
      if (list.empty()) faults_.add("the network has no {}s", what);
      std::unordered_set<int> seen;
      for (const int index : list) {
        if (!is_tensor(index)) {
          faults_.add("a network {} is tensor {}, the network has {} tensors", what, index, network_.tensors.size());
        } else if (!seen.insert(index).second) {
          faults_.add("tensor {} is a network {} twice", in_quotes(tensor(index).name), what);
        }
      }
      return seen;
    };
    const std::unordered_set<int> inputs = check_list("input", network_.inputs);
    const std::unordered_set<int> outputs = check_list("output", network_.outputs);
    for (const int index : outputs) {
      if (inputs.contains(index)) {
        faults_.add("tensor {} is both an input and an output of the network; an identity between them would copy it",
                    in_quotes(tensor(index).name));
      }
    }
    for (const int index : inputs) {
      defined_[static_cast<std::size_t>(index)] = true;
      // Any operator checks the shapes of its inputs; an input of the network may have no reader.
      std::vector<std::string> faults;
      output_shape(network_, {tensor(index).name, Identity{}, {}, 0}, {tensor(index).shape}, faults);
      if (!faults.empty()) {
        faults_.add("network input {} is {}; allowed are 1 to {} axes of 1 or more, and {} bytes (kMaxImageBytes)",
                    in_quotes(tensor(index).name), shape_text(tensor(index).shape), kMaxActivationRank, kMaxImageBytes);
      }
    }
  }

  void check_layers() {
    std::vector<int> uses(network_.layers.size());
    for (const Operator& op : network_.operators) {
      const auto* convolution = std::get_if<Convolution>(&op.kind);
      if (!convolution || convolution->layer < 0 || convolution->layer >= static_cast<int>(uses.size())) continue;
      ++uses[static_cast<std::size_t>(convolution->layer)];
    }
    layer_legal_.resize(network_.layers.size());
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const ConvLayer& layer = network_.layers[i];
      layer_legal_[i] = !faults_.add_all(verify(layer), fmt::format("layer {}: ", in_quotes(layer.name)));
      if (uses[i] != 1) {
        faults_.add("layer {}: {} convolutions use it, it must be exactly one", in_quotes(layer.name), uses[i]);
      }
    }
  }

  void check_operator(const Operator& op) {
    Faults faults(fmt::format("operator {} ({}): ", in_quotes(op.name), kind_name(op.kind)));
    std::vector<std::vector<std::int64_t>> shapes;
    for (const int input : op.inputs) {
      if (!is_tensor(input)) {
        faults.add("an input is tensor {}, the network has {} tensors", input, network_.tensors.size());
        continue;
      }
      if (!defined_[static_cast<std::size_t>(input)]) {
        faults.add("it reads tensor {}, which no operator before it makes and which is no network input",
                   in_quotes(tensor(input).name));
      }
      shapes.push_back(tensor(input).shape);
    }
    if (!is_tensor(op.output)) {
      faults.add("its output is tensor {}, the network has {} tensors", op.output, network_.tensors.size());
    } else if (defined_[static_cast<std::size_t>(op.output)]) {
      faults.add("it makes tensor {}, which another operator makes or which is a network input",
                 in_quotes(tensor(op.output).name));
    } else {
      defined_[static_cast<std::size_t>(op.output)] = true;
    }
    const auto* convolution = std::get_if<Convolution>(&op.kind);
    const bool layer_known = !convolution || convolution->layer < 0 ||
                             convolution->layer >= static_cast<int>(layer_legal_.size()) ||
                             layer_legal_[static_cast<std::size_t>(convolution->layer)];
    if (shapes.size() == op.inputs.size() && layer_known && is_tensor(op.output)) {
      std::vector<std::string> shape_faults;
      const auto shape = output_shape(network_, op, shapes, shape_faults);
      if (shape_faults.empty() && shape != tensor(op.output).shape) {
        faults.add("its output {} is {}, it follows from its inputs that it is {}", in_quotes(tensor(op.output).name),
                   shape_text(tensor(op.output).shape), shape_text(shape));
      }
      faults_.add_all(shape_faults);
    }
    if (shapes.size() == op.inputs.size() && is_tensor(op.output)) check_formats(op, faults);
    faults_.add_all(faults.take());
  }

  // Which formats an operator can read and write.
  void check_formats(const Operator& op, Faults& faults) {
    const TensorFormat& made = tensor(op.output).format;
    const auto input = [&](std::size_t i) -> const TensorFormat& { return tensor(op.inputs[i]).format; };
    const auto require = [&](bool holds, std::string_view what) {
      if (!holds) faults.add(std::string(what));
    };
    if (std::holds_alternative<Convert>(op.kind)) {
      require(op.inputs.size() == 1 && !(input(0) == made), "its output has the format of its input");
      require(op.inputs.size() != 1 || input(0) == made || can_convert(input(0), made),
              fmt::format("it cannot read {} and write {}", to_string(input(0)), to_string(made)));
    } else if (std::holds_alternative<Convolution>(op.kind)) {
      require(op.inputs.empty() || can_convolve(input(0), made), "its input is of another element type");
      require(op.inputs.size() < 2 || input(1) == made, "what it adds has another format than its output");
    } else {
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        require(can_take(op.kind, tensor(op.inputs[i]).shape, input(i), made),
                fmt::format("it cannot read {} and write {}", to_string(input(i)), to_string(made)));
      }
      if (std::holds_alternative<Concat>(op.kind) && !made.is_plain()) {
        std::vector<std::int64_t> channels;
        for (const int part : op.inputs) channels.push_back(tensor(part).shape.front());
        require(can_be_parts(made.layout, channels),
                fmt::format("its parts but the last must have multiples of {} channels to lie in {}",
                            channels_together(made.layout), to_string(made.layout)));
      }
    }
    require(can_lie_in(made.element, made.layout), fmt::format("{} is no format: {}", to_string(made), kWhatLiesWhere));
    const auto is_end = [&](const std::vector<int>& ends, int index) {
      return std::ranges::find(ends, index) != ends.end();
    };
    if (made.is_loose()) {
      return require(std::holds_alternative<Convert>(op.kind) && is_end(network_.outputs, op.output),
                     fmt::format("its output is {}, which only a network's inputs and outputs are", to_string(made)));
    }
    require(made.is_plain() || tensor(op.output).shape.size() == 3,
            fmt::format("its output is no image, and is {}", to_string(made)));
  }

  void check_producers() {
    for (std::size_t i = 0; i < network_.tensors.size(); ++i) {
      if (!defined_[i])
        faults_.add("tensor {} is made by no operator and is no network input", in_quotes(network_.tensors[i].name));
    }
  }

  const Network& network_;
  Faults faults_;
  std::vector<bool> defined_;      // tensors: a network input, or made by an operator that was already seen
  std::vector<bool> layer_legal_;  // shapes follow from these alone
};

// Images that lie side by side are to it as one. Where channels lie side by side, they stay where they are.
struct WorksPlaceByPlace {
  TensorLayout layout;
  std::int64_t channels;  // of its first input
  template <OneOf<ChannelAffine, Elementwise, Pool, Lrn, Pad> Kind>
  bool operator()(const Kind&) const {
    return true;
  }
  bool operator()(const Combine& combine) const { return !combine.constant; }
  bool operator()(const Resample&) const { return true; }
  bool operator()(const Excite&) const { return true; }
  bool operator()(const Pick& pick) const {
    return channels_together(layout) == 1 || (pick.from(0) == 0 && pick.axes.front().is_whole(channels));
  }
  bool operator()(const Transpose& transpose) const {
    return channels_together(layout) == 1 || transpose.order.front() == 0;
  }
  bool operator()(const Concat& concat) const { return concat.axis == 0; }
  // It normalizes the channels of each pixel, with numbers for channels.
  bool operator()(const Normalize& normalize) const {
    const auto of_channels = [](const std::optional<ConstantOperand>& numbers) {
      return !numbers || std::ranges::all_of(numbers->shape | std::views::drop(1), [](auto n) { return n == 1; });
    };
    return normalize.axes == std::vector<int>{0} &&
           channels <= kMaxNormalizedHalves * (channels_together(layout) > 1 ? 2 : 1) && of_channels(normalize.scale) &&
           of_channels(normalize.shift);
  }
  bool operator()(const ChannelView& view) const {
    const int together = channels_together(layout);
    return view.begin % together == 0 &&
           (view.channels % together == 0 || std::int64_t{view.begin} + view.channels == channels);
  }
  template <
      OneOf<Convolution, Linear, GlobalAveragePool, Squeeze, Softmax, Reshape, Identity, Convert, Reduce, MatMul> Kind>
  bool operator()(const Kind&) const {
    return false;
  }
};

// What takes places of several channels: it makes zeros of those that fill up a place, or only says where they lie.
struct TakesPlaces {
  TensorLayout layout;
  std::int64_t channels;  // of its first input
  bool operator()(const Pool&) const { return true; }
  bool operator()(const Resample& resample) const { return resample.outside == 0; }
  bool operator()(const Concat& concat) const { return concat.axis == 0 && can_be_slices(layout); }
  bool operator()(const ChannelView& view) const {
    return can_be_slices(layout) && WorksPlaceByPlace{layout, channels}(view);
  }
  template <typename Kind>
  bool operator()(const Kind&) const {
    return false;
  }
};

}  // namespace

bool can_convert(const TensorFormat& from, const TensorFormat& to) {
  if (from.is_loose() == to.is_loose()) return from.is_plain() != to.is_plain();
  const TensorFormat& other = from.is_loose() ? to : from;
  return other.is_plain() || (other.element != ElementType::f32 && !has_places(other.layout));
}

bool can_convolve(const TensorFormat& input, const TensorFormat& output) {
  if (input.element == output.element) return true;
  return (has_places(input.layout) && output.is_plain()) || (input.is_plain() && has_places(output.layout));
}

bool can_take(const OperatorKind& kind, const std::vector<std::int64_t>& shape, const TensorFormat& input,
              const TensorFormat& output) {
  if (input.is_plain() && output.is_plain()) return true;
  if (std::holds_alternative<Excite>(kind) && shape.size() != 3) return input.is_plain();
  if (input.is_plain() || input.is_loose() || input.layout == TensorLayout::nchw4 || shape.size() != 3) return false;
  const auto* pool = std::get_if<Pool>(&kind);
  const bool averages = pool != nullptr && averages_whole(*pool, shape[1], shape[2]);
  if (has_places(input.layout)) {
    return input == output && !averages && std::visit(TakesPlaces{input.layout, shape[0]}, kind);
  }
  if (std::holds_alternative<Squeeze>(kind)) return output.is_plain();
  if (averages || std::holds_alternative<GlobalAveragePool>(kind)) return output.is_plain() || output == input;
  return input == output && std::visit(WorksPlaceByPlace{input.layout, shape[0]}, kind);
}

std::vector<std::string> verify(const Network& network) { return GraphVerifier(network).run(); }

}  // namespace burin
