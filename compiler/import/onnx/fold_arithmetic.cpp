// Arithmetic, comparisons and logic of constants, with the number of images as a symbol.
#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/import/onnx/batch_arithmetic.h"
#include "compiler/import/onnx/folds.h"
#include "compiler/import/onnx/legacy_broadcast.h"
#include "ir/printable.h"

namespace burin {
namespace {

using Integer = BatchNumber<std::int64_t>;
using Integers = Numbers<std::int64_t>;
using Real = BatchNumber<double>;
using Reals = Numbers<double>;

Extents common_shape(const Node& node, const Extents& a, const Extents& b) {
  Extents wide = a.size() >= b.size() ? a : b;
  const Extents& narrow = a.size() >= b.size() ? b : a;
  const std::size_t missing = wide.size() - narrow.size();
  for (std::size_t axis = 0; axis < narrow.size(); ++axis) {
    std::int64_t& extent = wide[missing + axis];
    if (extent != narrow[axis] && extent != 1 && narrow[axis] != 1) {
      node.bad_input("its operands have the shapes {} and {}, which do not fit each other", extents_text(a),
                     extents_text(b));
    }
    if (extent == 1) extent = narrow[axis];
  }
  return wide;
}

// apply(number of a, number of b) for each number of the result, whose shape both are repeated to.
template <typename T, typename Apply>
auto zipped(const FoldInputs& in, const Extents& shape, const ConstantTensor& a, const ConstantTensor& b, Apply apply) {
  const auto& first = std::get<Numbers<T>>(a.numbers);
  const auto& second = std::get<Numbers<T>>(b.numbers);
  const auto count = static_cast<std::size_t>(*checked_elements(in.checked(shape)));
  StridedWalk at_a(shape, repeated_strides(a.shape, shape)), at_b(shape, repeated_strides(b.shape, shape));
  Numbers<decltype(apply(first[0], second[0]).value)> result;
  result.reserve(count);
  for (std::size_t i = 0; i < count; ++i, at_a.step(), at_b.step()) {
    result.push_back(
        apply(first[static_cast<std::size_t>(at_a.position())], second[static_cast<std::size_t>(at_b.position())]));
  }
  return result;
}

// Also aligns the axes of the second operand as opset 6 did.
ConstantTensor second_operand(const Node& node, const ConstantTensor& a, ConstantTensor b) {
  b.shape = aligned_shape(node, a.shape, std::move(b.shape));
  if (a.is_real() != b.is_real()) node.bad_input("one of its operands holds integers, another one real numbers");
  return b;
}

StoredType common_type(const ConstantTensor& a, const ConstantTensor& b) {
  return a.type == StoredType::f64 || b.type == StoredType::f64 ? StoredType::f64 : a.type;
}

// The same function of both types of numbers.
template <typename Apply>
ConstantTensor applied(const FoldInputs& in, const ConstantTensor& a, const ConstantTensor& b, Apply apply) {
  const Extents shape = common_shape(in.node(), a.shape, b.shape);
  if (a.is_real()) return {common_type(a, b), shape, zipped<double>(in, shape, a, b, apply)};
  return {a.type, shape, zipped<std::int64_t>(in, shape, a, b, apply)};
}

ConstantTensor binary(const FoldInputs& in, const ConstantTensor& a, const ConstantTensor& b, bool fmod) {
  const Node& node = in.node();
  const std::string& op = node.op();
  if (op == "Add" || op == "Sum")
    return applied(in, a, b, [&](const auto& x, const auto& y) { return add(node, x, y); });
  if (op == "Sub") return applied(in, a, b, [&](const auto& x, const auto& y) { return subtract(node, x, y); });
  if (op == "Mul") return applied(in, a, b, [&](const auto& x, const auto& y) { return multiply(node, x, y); });
  if (op == "Div") return applied(in, a, b, [&](const auto& x, const auto& y) { return divide(node, x, y); });
  if (op == "Min") return applied(in, a, b, [&](const auto& x, const auto& y) { return smaller(node, x, y); });
  if (op == "Max") return applied(in, a, b, [&](const auto& x, const auto& y) { return larger(node, x, y); });
  return applied(in, a, b, [&](const auto& x, const auto& y) { return modulo(node, x, y, fmod); });
}

Integer truth(bool value) { return {value ? 1 : 0, 0}; }

// What a comparison says of a difference that may have these signs; nothing when it depends on N.
std::optional<bool> compared(const std::string& op, const Signs& signs) {
  const auto both = [&](bool surely, bool surely_not) {
    return surely || surely_not ? std::optional(surely) : std::nullopt;
  };
  const auto none_but = [&](bool negative, bool zero, bool positive) {
    return signs.none_but(negative, zero, positive);
  };
  if (op == "Equal") return both(none_but(false, true, false), none_but(true, false, true));
  if (op == "Less") return both(none_but(true, false, false), none_but(false, true, true));
  if (op == "LessOrEqual") return both(none_but(true, true, false), none_but(false, false, true));
  if (op == "Greater") return both(none_but(false, false, true), none_but(true, true, false));
  return both(none_but(false, true, true), none_but(true, false, false));
}

// A function of one real number, which has none of the batch.
using Function = double (*)(double);
Function function_of(const std::string& op) {
  if (op == "Exp") return [](double x) { return std::exp(x); };
  if (op == "Log") return [](double x) { return std::log(x); };
  if (op == "Reciprocal") return [](double x) { return 1 / x; };
  if (op == "Sqrt") return [](double x) { return std::sqrt(x); };
  if (op == "Floor") return [](double x) { return std::floor(x); };
  if (op == "Ceil") return [](double x) { return std::ceil(x); };
  if (op == "Round") return [](double x) { return std::nearbyint(x); };  // to even, as ONNX does
  return nullptr;
}

bool rounds(const std::string& op) { return op == "Floor" || op == "Ceil" || op == "Round"; }

// -x, |x| or the sign of x.
template <typename T>
BatchNumber<T> of_sign(const Node& node, const BatchNumber<T>& x) {
  const Signs signs = signs_of(x);
  const bool negative = signs.none_but(true, true, false);
  if (node.op() != "Neg" && !negative && !signs.none_but(false, true, true)) refuse_batch(node, x);
  if (node.op() == "Sign") {
    if (signs.negative + signs.zero + signs.positive > 1) refuse_batch(node, x);
    return {static_cast<T>(signs.positive) - static_cast<T>(signs.negative), 0};
  }
  return node.op() == "Neg" || negative ? subtract(node, BatchNumber<T>{}, x) : x;
}

Real of_function(const Node& node, StoredType type, Function function, const Real& x) {
  if (!rounds(node.op())) {
    if (x.depends()) refuse_batch(node, x);
    return {function(x.value), 0};
  }
  if (std::trunc(x.per_image) != x.per_image) refuse_batch(node, x);
  return {function(decided(type, x.value)), x.per_image};
}

// apply(x) for each number.
template <typename T, typename Apply>
ConstantTensor mapped(const ConstantTensor& tensor, StoredType type, Apply apply) {
  const auto& numbers = std::get<Numbers<T>>(tensor.numbers);
  Numbers<decltype(apply(numbers[0]).value)> result;
  result.reserve(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) result.push_back(apply(numbers[i]));
  return {type, tensor.shape, std::move(result)};
}

const ConstantTensor& truths(const FoldInputs& in, int i) {
  if (in[i].type != StoredType::boolean) {
    in.node().bad_input("its operand {} must hold truth values", in_quotes(in.node().input(i)));
  }
  in.integers(i, "operand");
  return in[i];
}

double power(const Node&, double base, double exponent) { return std::pow(base, exponent); }

std::int64_t power(const Node& node, std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) node.unsupported("it raises the integer {} to the power of {}", base, exponent);
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) result = times(node, result, base);  // soon leaves the range
  return result;
}

}  // namespace

std::vector<ConstantTensor> fold_binary(const FoldInputs& in) {
  const Node& node = in.node();
  const bool fmod = node.op() == "Mod" && node.attributes().boolean("fmod", false);
  ConstantTensor result = in[0];
  for (int i = 1; i < in.count(); ++i) result = binary(in, result, second_operand(node, result, in[i]), fmod);
  return {std::move(result)};
}

std::vector<ConstantTensor> fold_clip(const FoldInputs& in) {
  const Node& node = in.node();
  constexpr int kBoundsAreInputs = 11, kLow = 1, kHigh = 2;
  ConstantTensor result = in[0];
  const auto bound = [&](int input, const std::string& name) -> std::optional<ConstantTensor> {
    if (node.opset() < kBoundsAreInputs) {
      if (!node.attributes().has(name)) return std::nullopt;
      return ConstantTensor{StoredType::f32, {}, Reals({node.attributes().number(name, 0)})};
    }
    if (!in.has(input)) return std::nullopt;
    if (!in[input].shape.empty() && in[input].elements() != 1) node.bad_input("its {} must be one number", name);
    return in[input];
  };
  const auto limit = [&](const std::optional<ConstantTensor>& by, auto choose) {
    if (!by) return;
    if (by->is_real() != result.is_real()) node.bad_input("it limits integers by real numbers, or the other way round");
    result = applied(in, result, *by, choose);
    result.shape = in[0].shape;
  };
  limit(bound(kLow, "min"), [&](const auto& x, const auto& y) { return larger(node, x, y); });
  limit(bound(kHigh, "max"), [&](const auto& x, const auto& y) { return smaller(node, x, y); });
  return {std::move(result)};
}

std::vector<ConstantTensor> fold_comparison(const FoldInputs& in) {
  const Node& node = in.node();
  const ConstantTensor& a = in[0];
  const ConstantTensor b = second_operand(node, a, in[1]);
  const Extents shape = common_shape(node, a.shape, b.shape);
  const StoredType type = common_type(a, b);
  const auto compare = [&](const auto& x, const auto& y) {
    Signs signs;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(x)>, Real>) {
      signs = order_of(node, Real{decided(type, x.value), x.per_image}, Real{decided(type, y.value), y.per_image});
    } else {
      signs = order_of(node, x, y);
    }
    if (!signs.negative && !signs.zero && !signs.positive) return truth(false);  // no number compares with NaN
    const std::optional<bool> result = compared(node.op(), signs);
    if (!result) refuse_batch(node, x, y);
    return truth(*result);
  };
  Integers numbers =
      a.is_real() ? zipped<double>(in, shape, a, b, compare) : zipped<std::int64_t>(in, shape, a, b, compare);
  return {{StoredType::boolean, shape, std::move(numbers)}};
}

std::vector<ConstantTensor> fold_logic(const FoldInputs& in) {
  const Node& node = in.node();
  const ConstantTensor &a = truths(in, 0), b = second_operand(node, a, truths(in, 1));
  const Extents shape = common_shape(node, a.shape, b.shape);
  Integers numbers = zipped<std::int64_t>(in, shape, a, b, [&](const Integer& x, const Integer& y) {
    if (node.op() == "And") return truth(x.value != 0 && y.value != 0);
    if (node.op() == "Or") return truth(x.value != 0 || y.value != 0);
    return truth(x.value != y.value);
  });
  return {{StoredType::boolean, shape, std::move(numbers)}};
}

std::vector<ConstantTensor> fold_not(const FoldInputs& in) {
  return {
      mapped<std::int64_t>(truths(in, 0), StoredType::boolean, [](const Integer& x) { return truth(x.value == 0); })};
}

std::vector<ConstantTensor> fold_pow(const FoldInputs& in) {
  const Node& node = in.node();
  const ConstantTensor& base = in[0];
  ConstantTensor exponent = in[1];
  exponent.shape = aligned_shape(node, base.shape, std::move(exponent.shape));
  // ONNX takes an exponent of another type than the base, and the result is of the type of the base.
  if (base.is_real() && !exponent.is_real()) {
    exponent = mapped<std::int64_t>(exponent, base.type, [](const Integer& x) {
      return Real{static_cast<double>(x.value), static_cast<double>(x.per_image)};
    });
  } else if (base.is_real() != exponent.is_real()) {
    node.unsupported("it raises integers to a real power");
  }
  return {applied(in, base, exponent, [&](const auto& x, const auto& y) {
    if (x.depends() || y.depends()) refuse_batch(node, x, y);
    return std::remove_cvref_t<decltype(x)>{power(node, x.value, y.value), 0};
  })};
}

std::vector<ConstantTensor> fold_unary(const FoldInputs& in) {
  const Node& node = in.node();
  const ConstantTensor& x = in[0];
  const Function function = function_of(node.op());
  if (function == nullptr) {
    const auto apply = [&](const auto& number) { return of_sign(node, number); };
    return {x.is_real() ? mapped<double>(x, x.type, apply) : mapped<std::int64_t>(x, x.type, apply)};
  }
  if (!x.is_real()) node.bad_input("its input {} must be real numbers", in_quotes(node.input(0)));
  return {mapped<double>(x, x.type, [&](const Real& number) { return of_function(node, x.type, function, number); })};
}

std::vector<ConstantTensor> fold_where(const FoldInputs& in) {
  const Node& node = in.node();
  const ConstantTensor& condition = truths(in, 0);
  if (in[1].is_real() != in[2].is_real()) node.bad_input("it chooses between integers and real numbers");
  const Extents shape = in.checked(common_shape(node, common_shape(node, condition.shape, in[1].shape), in[2].shape));
  StridedWalk at(shape, repeated_strides(condition.shape, shape));
  StridedWalk yes(shape, repeated_strides(in[1].shape, shape)), no(shape, repeated_strides(in[2].shape, shape));
  const auto choose = [&](const auto& a, const auto& b) {
    std::remove_cvref_t<decltype(a)> result;
    const auto count = static_cast<std::size_t>(*checked_elements(shape));
    result.reserve(count);
    for (std::size_t i = 0; i < count; ++i, at.step(), yes.step(), no.step()) {
      result.push_back(condition.integers().values[static_cast<std::size_t>(at.position())] != 0
                           ? a[static_cast<std::size_t>(yes.position())]
                           : b[static_cast<std::size_t>(no.position())]);
    }
    return result;
  };
  if (in[1].is_real()) return {{common_type(in[1], in[2]), shape, choose(in[1].reals(), in[2].reals())}};
  return {{in[1].type, shape, choose(in[1].integers(), in[2].integers())}};
}

}  // namespace burin
