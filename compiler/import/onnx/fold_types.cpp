// Constants that are made of a few numbers, and those that become of another type.
#include <cmath>
#include <limits>

#include "compiler/import/onnx/batch_arithmetic.h"
#include "compiler/import/onnx/folds.h"
#include "compiler/import/onnx/onnx_types.h"
#include "ir/printable.h"

namespace burin {
namespace {

using Integers = Numbers<std::int64_t>;
using Reals = Numbers<double>;

// trunc(x), which a number of the batch must be already.
BatchNumber<std::int64_t> truncated(const Node& node, StoredType type, const BatchNumber<double>& x) {
  const double value = std::trunc(decided(type, x.value));
  constexpr double kBeyond = 9223372036854775808.0;  // 2^63
  if (!(std::abs(value) < kBeyond && std::abs(x.per_image) < kBeyond)) {
    node.bad_input("it makes an integer of {}", number_text(x));
  }
  if (x.depends() && (value != decided(type, x.value) || std::trunc(x.per_image) != x.per_image)) refuse_batch(node, x);
  return {static_cast<std::int64_t>(value), static_cast<std::int64_t>(x.per_image)};
}

BatchNumber<std::int64_t> truth_of(const Node& node, const Signs& signs) {
  if (!signs.zero) return {1, 0};
  if (!signs.negative && !signs.positive) return {0, 0};
  node.unsupported("it makes a truth value of a number that is 0 for some numbers of images alone");
}

BatchNumber<std::int64_t> narrowed(const Node& node, const BatchNumber<std::int64_t>& x, const OnnxType& to) {
  if (x.value < to.low || x.value > to.high) {
    node.unsupported("it makes a number of type {} of {}; burin does not wrap integers around", to.name, x.value);
  }
  return x;
}

ConstantTensor cast(const Node& node, const ConstantTensor& from, const OnnxType& to) {
  const auto convert = [&](auto result, auto number_of) {
    std::visit(
        [&](const auto& numbers) {
          result.reserve(numbers.size());
          for (std::size_t i = 0; i < numbers.size(); ++i) result.push_back(number_of(numbers[i]));
        },
        from.numbers);
    return result;
  };
  using Integer = BatchNumber<std::int64_t>;
  if (to.type == StoredType::boolean) {
    return {to.type, from.shape, convert(Integers(), [&](const auto& x) { return truth_of(node, signs_of(x)); })};
  }
  if (is_float(to.type)) {
    return {to.type, from.shape, convert(Reals(), [&](const auto& x) {
              const double value = static_cast<double>(x.value);
              // What was a float32 does not become more exact.
              return BatchNumber<double>{to.type == StoredType::f64 ? decided(from.type, value) : value,
                                         static_cast<double>(x.per_image)};
            })};
  }
  return {to.type, from.shape,
          convert(Integers(),
                  [&](const auto& x) {
                    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(x)>, Integer>) {
                      return narrowed(node, x, to);
                    } else {
                      return narrowed(node, truncated(node, from.type, x), to);
                    }
                  }),
          to.made_as};
}

}  // namespace

std::vector<ConstantTensor> fold_cast(const FoldInputs& in) {
  const Node& node = in.node();
  return {cast(node, in[0], read_cast_type(node))};
}

std::vector<ConstantTensor> fold_cast_like(const FoldInputs& in) {
  in.node().attributes().boolean("saturate", true);  // of 8-bit floats, which are refused
  return {cast(in.node(), in[0], widest_type(in[1].type))};
}

std::vector<ConstantTensor> fold_constant_of_shape(const FoldInputs& in) {
  const Node& node = in.node();
  const Extents shape = in.checked(in.integers(0, "shape"));
  ConstantTensor value{StoredType::f32, {1}, Reals(std::vector<double>{0})};
  if (const auto* const tensor = node.attributes().tensor("value")) {
    TensorSource source{node.at()};
    value = constant_of(read_tensor(*tensor, node.output(), source), node.at());
  }
  if (value.elements() != 1) {
    node.bad_input("attribute 'value' has the shape {}, it must be one number", extents_text(value.shape));
  }
  return {strided(value, shape, Extents(shape.size(), 0))};
}

std::vector<ConstantTensor> fold_range(const FoldInputs& in) {
  const Node& node = in.node();
  for (int i = 0; i < in.count(); ++i) {
    if (in[i].elements() != 1) node.bad_input("its input {} must be one number", in_quotes(node.input(i)));
    if (in[i].is_real() != in[0].is_real()) node.bad_input("its inputs are of several types");
  }
  const auto range = [&](auto start, auto limit, auto delta) {
    using T = decltype(start);
    if (delta == 0) node.bad_input("its step is 0");
    const double count = std::max(
        0.0, std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta)));
    if (!(count < static_cast<double>(std::numeric_limits<int>::max()))) node.unsupported("it has {} numbers", count);
    const Extents shape = in.checked({static_cast<std::int64_t>(count)});
    std::vector<T> values;
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      values.push_back(plus(node, start, times(node, static_cast<T>(i), delta)));
    }
    return ConstantTensor{in[0].type, shape, Numbers<T>(std::move(values))};
  };
  if (in[0].is_real()) {
    const auto number = [&](int i) { return in.reals(i, "bound").values[0]; };
    if (in[0].depends_on_batch() || in[1].depends_on_batch() || in[2].depends_on_batch()) {
      node.unsupported("its bounds depend on the number of images");
    }
    return {range(number(0), number(1), number(2))};
  }
  const auto number = [&](int i) { return in.integers(i, "bound")[0]; };
  return {range(number(0), number(1), number(2))};
}

// The indices of what is not zero: a row for each axis.
std::vector<ConstantTensor> fold_non_zero(const FoldInputs& in) {
  const ConstantTensor& x = in[0];
  std::vector<std::int64_t> positions;
  std::visit(
      [&](const auto& numbers) {
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          if (truth_of(in.node(), signs_of(numbers[i])).value != 0) positions.push_back(static_cast<std::int64_t>(i));
        }
      },
      x.numbers);
  const auto rank = static_cast<std::int64_t>(x.shape.size()), count = static_cast<std::int64_t>(positions.size());
  const Extents strides = strides_of(x.shape), shape = in.checked({rank, count});
  std::vector<std::int64_t> indices;
  for (std::size_t axis = 0; axis < x.shape.size(); ++axis) {
    for (const std::int64_t position : positions) indices.push_back(position / strides[axis] % x.shape[axis]);
  }
  return {integer_constant(shape, Integers(std::move(indices)))};
}

}  // namespace burin
