// QuantizeLinear and DequantizeLinear: of constants, which become real numbers again, and as pairs around activations.
#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/folds.h"
#include "compiler/import/onnx/onnx_types.h"
#include "ir/printable.h"

namespace burin {
namespace {

constexpr int kScale = 1, kZeroPoint = 2;       // inputs
constexpr std::int64_t kMostQuantized = 65535;  // of uint16, the widest type that is made

// The two and the attributes of a node, before its input is looked at.
struct QuantizationInputs {
  SharedConstant scale, zero_point;  // of which the second may be null
  std::int64_t axis = 1, block = 0, output_type = 0;
};

QuantizationInputs read_inputs(const Node& node, SharedConstant scale, SharedConstant zero_point) {
  const Attributes& attributes = node.attributes();
  attributes.boolean("saturate", true);  // of 8-bit floats, which are refused
  attributes.integer("precision", 0);    // of the division
  QuantizationInputs in{std::move(scale), std::move(zero_point), attributes.integer("axis", 1),
                        attributes.integer("block_size", 0), attributes.integer("output_dtype", 0)};
  if (!in.scale->is_real()) node.bad_input("its scale {} must be real numbers", in_quotes(node.input(kScale)));
  if (in.scale->depends_on_batch() || (in.zero_point && in.zero_point->depends_on_batch())) {
    node.unsupported("its scale or its zero point depends on the number of images");
  }
  if (in.zero_point == nullptr) return in;
  if (in.zero_point->is_real()) {
    node.unsupported("its zero point {} is a real number; burin reads models that are quantized to integers",
                     in_quotes(node.input(kZeroPoint)));
  }
  if (in.zero_point->shape != in.scale->shape && in.zero_point->elements() != in.scale->elements()) {
    node.bad_input("its scale has the shape {}, its zero point {}", extents_text(in.scale->shape),
                   extents_text(in.zero_point->shape));
  }
  return in;
}

Quantization numbers_of(const Node& node, const QuantizationInputs& in) {
  Quantization numbers{in.scale->reals().values, {}};
  if (numbers.scales.empty()) node.bad_input("its scale {} has no numbers", in_quotes(node.input(kScale)));
  for (const double scale : numbers.scales) {
    if (!std::isfinite(scale)) node.bad_input("its scale {} holds {}", in_quotes(node.input(kScale)), scale);
  }
  if (in.zero_point != nullptr) {
    numbers.zero_points = in.zero_point->integers().values;
  } else {
    numbers.zero_points.resize(numbers.scales.size(), 0);
  }
  return numbers;
}

// The integers that QuantizeLinear makes: the type of its zero point, or of an attribute, or uint8.
const OnnxType& made_type(const Node& node, const QuantizationInputs& in) {
  constexpr std::int64_t kUint8 = ::onnx::TensorProto::UINT8;
  const OnnxType* const type = in.zero_point != nullptr
                                   ? integer_type_of(in.zero_point->made_as)
                                   : integer_type_of(in.output_type == 0 ? kUint8 : in.output_type);
  if (type == nullptr) {
    node.unsupported("it makes integers of a type that burin does not know: {}", in.output_type);
  }
  if (type->high > kMostQuantized) {
    node.unsupported("it makes integers of type {}; burin knows quantization to 8 and 16 bits", type->name);
  }
  return *type;
}

// Which of the scales element i of a tensor has.
using ScaleIndex = std::function<std::size_t(std::size_t i)>;

ScaleIndex scale_index(const Node& node, const QuantizationInputs& in, const Extents& shape) {
  const Extents& scales = in.scale->shape;
  if (in.scale->elements() == 1 && in.block == 0) return [](std::size_t) { return 0; };
  const auto rank = std::ssize(shape);
  const std::int64_t axis = in.axis < 0 ? in.axis + rank : in.axis;
  if (axis < 0 || axis >= rank) node.bad_input("axis {} is none of its input's {}", in.axis, rank);
  const auto at = static_cast<std::size_t>(axis);
  if (in.block < 0) node.bad_input("attribute 'block_size' is {}", in.block);
  const std::int64_t block = std::max<std::int64_t>(in.block, 1);
  Extents wanted = in.block == 0 ? Extents{shape[at]} : shape;
  if (in.block != 0) wanted[at] = shape[at] / block + (shape[at] % block != 0 ? 1 : 0);
  if (scales != wanted) {
    node.bad_input("its scale has the shape {}, it must be {} for an input of {}", extents_text(scales),
                   extents_text(wanted), extents_text(shape));
  }
  const Extents strides = strides_of(shape);
  const auto inner = static_cast<std::size_t>(std::max<std::int64_t>(strides[at], 1));
  const auto extent = static_cast<std::size_t>(shape[at]);
  if (in.block == 0) return [=](std::size_t i) { return i / inner % extent; };
  const auto blocks = static_cast<std::size_t>(wanted[at]), each = static_cast<std::size_t>(block);
  return [=](std::size_t i) { return (i / inner / extent * blocks + i / inner % extent / each) * inner + i % inner; };
}

QuantizationInputs read_folded(const FoldInputs& in) {
  if (in[0].depends_on_batch()) in.node().unsupported("its input depends on the number of images");
  return read_inputs(in.node(), in.shared(kScale), in.has(kZeroPoint) ? in.shared(kZeroPoint) : nullptr);
}

QuantizationInputs read_flowing(const Node& node, GraphBuilder& graph) {
  return read_inputs(node, graph.numbers(node, kScale),
                     node.has_input(kZeroPoint) ? graph.numbers(node, kZeroPoint) : nullptr);
}

// Rounded to the even one of two, as IEEE 754 has it and ONNX.
double nearest_even(double x) {
  const double below = std::floor(x);
  if (x - below != 0.5) return std::floor(x + 0.5);
  return std::fmod(below, 2) == 0 ? below : below + 1;
}

bool is_one_number(const Quantization& numbers) {
  return std::ranges::all_of(numbers.scales, [&](double scale) { return scale == numbers.scales[0]; }) &&
         std::ranges::all_of(numbers.zero_points, [&](std::int64_t zero) { return zero == numbers.zero_points[0]; });
}

// What the pair does to an activation, in one function.
void simulate_pair(const Node& node, GraphBuilder& graph, const Quantization& numbers, const OnnxType& type) {
  if (!is_one_number(numbers)) {
    node.unsupported(
        "it quantizes an activation by {} scales; burin simulates one for a whole tensor; --quantized drop leaves such "
        "pairs out",
        numbers.scales.size());
  }
  if (type.high - type.low != kQuantizedSteps) {
    node.unsupported("it makes integers of type {}; burin simulates 8 bits; --quantized drop leaves such pairs out",
                     type.name);
  }
  const Elementwise quantize{ElementFunction::quantize, static_cast<float>(numbers.scales[0]),
                             static_cast<float>(type.low - numbers.zero_points[0])};
  int x = graph.activation(node, 0);
  // What cuts off below zero itself needs no ReLU before it.
  const Operator* const producer = graph.sole_producer(node, 0);
  const auto* const before = producer == nullptr ? nullptr : std::get_if<Elementwise>(&producer->kind);
  if (quantize.beta == 0 && before != nullptr && before->function == ElementFunction::relu) x = producer->inputs[0];
  graph.emit(node, quantize, {x});
  graph.count_pair(false);
}

// Without the pair a network of real numbers is left, but where the pair was the network's ReLU.
void drop_pair(const Node& node, GraphBuilder& graph, const Quantization& numbers, const OnnxType& type) {
  const auto clips = std::ranges::count(numbers.zero_points, type.low);
  if (clips != 0 && clips != std::ssize(numbers.zero_points)) {
    node.unsupported("it cuts off below zero in {} of {} channels alone", clips, numbers.zero_points.size());
  }
  graph.count_pair(clips != 0);
  const int x = graph.activation(node, 0);
  if (clips != 0) return graph.emit(node, Elementwise{ElementFunction::relu}, {x});
  graph.emit(node, Identity{}, {x});
}

}  // namespace

std::vector<ConstantTensor> fold_dequantize_linear(const FoldInputs& in) {
  const Node& node = in.node();
  const QuantizationInputs inputs = read_folded(in);
  const Quantization numbers = numbers_of(node, inputs);
  const std::vector<std::int64_t>& integers = in.integers(0, "input");
  const ScaleIndex index = scale_index(node, inputs, in[0].shape);
  std::vector<double> values(integers.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t at = index(i);
    // In double: sizes of integers of any type add up there, and zeros stay zero.
    values[i] = (static_cast<double>(integers[i]) - static_cast<double>(numbers.zero_points[at])) * numbers.scales[at];
  }
  return {{StoredType::f32, in[0].shape, Numbers<double>(std::move(values))}};
}

std::vector<ConstantTensor> fold_quantize_linear(const FoldInputs& in) {
  const Node& node = in.node();
  const QuantizationInputs inputs = read_folded(in);
  const Quantization numbers = numbers_of(node, inputs);
  const OnnxType& type = made_type(node, inputs);
  const std::vector<double>& reals = in.reals(0, "input").values;
  const ScaleIndex index = scale_index(node, inputs, in[0].shape);
  std::vector<std::int64_t> values(reals.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t at = index(i);
    if (std::isnan(reals[i])) node.bad_input("element {} of its input is NaN", i);
    if (!(numbers.scales[at] > 0)) node.bad_input("its scale is {}, it must be above zero", numbers.scales[at]);
    const double steps = nearest_even(decided(StoredType::f32, reals[i] / numbers.scales[at]));
    values[i] = static_cast<std::int64_t>(std::clamp(steps + static_cast<double>(numbers.zero_points[at]),
                                                     static_cast<double>(type.low), static_cast<double>(type.high)));
  }
  ConstantTensor made = integer_constant(in[0].shape, Numbers<std::int64_t>(std::move(values)));
  made.made_as = type.made_as;
  return {std::move(made)};
}

void convert_quantize_linear(const Node& node, GraphBuilder& graph) {
  const QuantizationInputs inputs = read_flowing(node, graph);
  Quantization numbers = numbers_of(node, inputs);
  const OnnxType& type = made_type(node, inputs);
  for (std::size_t i = 0; i < numbers.scales.size(); ++i) {
    if (!std::isnormal(static_cast<float>(numbers.scales[i])) || numbers.scales[i] < 0) {
      node.bad_input("its scale is {}, it must be above zero", numbers.scales[i]);
    }
    if (numbers.zero_points[i] < type.low || numbers.zero_points[i] > type.high) {
      node.bad_input("its zero point is {}, which is no {}", numbers.zero_points[i], type.name);
    }
  }
  const bool simulates = graph.options().quantized == QuantizedPairs::simulate;
  simulates ? simulate_pair(node, graph, numbers, type) : drop_pair(node, graph, numbers, type);
  graph.mark_quantized(node, std::move(numbers));
}

void convert_dequantize_linear(const Node& node, GraphBuilder& graph) {
  graph.activation(node, 0);  // or an error that names a constant
  const Quantization numbers = numbers_of(node, read_flowing(node, graph));
  const Quantization* const made = graph.quantization_of(node, 0);
  if (made == nullptr) {
    node.unsupported("its input {} is not what a QuantizeLinear makes; burin reads pairs of the two",
                     in_quotes(node.input(0)));
  }
  if (*made != numbers) node.unsupported("its scale or zero point is another than that of its QuantizeLinear");
  graph.pass_on(node, node.input(0), node.output());
}

}  // namespace burin
