#include "compiler/element_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "ir/error.h"

namespace burin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double gelu_angle(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }
// Ends that are the least or the largest float are none.
bool is_within(const Elementwise& op, double x) {
  constexpr float kMost = std::numeric_limits<float>::max();
  return (x >= op.alpha || op.alpha == -kMost) && (x <= op.beta || op.beta == kMost);
}
double round_to_even(double x) {
  const double below = std::floor(x);
  if (x - below != 0.5) return std::round(x);
  return std::fmod(below, 2) == 0 ? below : below + 1;
}

// How much larger a function that rises and falls, or that is steep nowhere, makes what x is off; infinity where it is
// not bounded.
double steepest(const Elementwise& op) {
  switch (op.function) {
    using enum ElementFunction;
    case relu:
    case clip:
    case sigmoid:
    case softplus:
    case softsign:
    case tanh:
    case absolute:
    case sine:
    case cosine:
    case atan:
    case asinh:
      return 1;
    case leaky_relu:
      return std::max(1.0, std::abs(static_cast<double>(op.alpha)));
    case elu:
      return std::max(std::abs(static_cast<double>(op.beta)), std::abs(static_cast<double>(op.alpha)));
    case celu:
      return op.alpha > 0 ? 1 : kInfinity;
    case silu:
    case mish:
      return 1.1;
    case erf:
    case gelu:
    case gelu_tanh:
      return 1.13;
    case hard_sigmoid:
      return std::abs(op.alpha);
    case hard_swish:
      return 1.5;
    case thresholded_relu:
    case exp:
    case log:
    case sqrt:
    case reciprocal:
    case power:
    case sign:
    case floor:
    case ceil:
    case round:
    case quantize:
    case within:
    case tangent:
    case sinh:
    case cosh:
    case asin:
    case acos:
    case acosh:
    case atanh:
    case shrink:
    case user:
      return kInfinity;
  }
  fail_internal(__FILE__, __LINE__, "an element-wise function without a slope");
}

// Whether it nowhere falls where it rose before: then it is off the most at the ends of what x may be.
bool is_monotone(const Elementwise& op) {
  switch (op.function) {
    using enum ElementFunction;
    case leaky_relu:
      return op.alpha >= 0;
    case elu:
      return op.alpha >= 0 && op.beta >= 0;
    case shrink:
      return op.alpha >= 0 && op.alpha >= op.beta;
    case silu:
    case hard_swish:
    case gelu:
    case gelu_tanh:
    case mish:
    case thresholded_relu:
    case reciprocal:
    case power:
    case absolute:
    case sine:
    case cosine:
    case within:
    case tangent:
    case cosh:
    case user:
      return false;
    default:
      return true;
  }
}

// Where one that falls and then rises has its least value.
std::optional<double> turning_point(const Elementwise& op) {
  switch (op.function) {
    using enum ElementFunction;
    case leaky_relu:
    case absolute:
    case cosh:
      return 0;
    case silu:
      return -1.2784645427610738;
    case hard_swish:
      return -1.5;
    case gelu:
      return -0.75179164;
    case gelu_tanh:
      return -0.75246142;
    case mish:
      return -1.19240594;
    default:
      return std::nullopt;
  }
}

}  // namespace

double reference_element(const Elementwise& op, double x) {
  const double alpha = op.alpha, beta = op.beta;
  switch (op.function) {
    using enum ElementFunction;
    case relu:
      return std::max(x, 0.0);
    case leaky_relu:
      return x < 0 ? x * alpha : x;
    case sigmoid:
      return 1 / (1 + std::exp(-x));
    case hard_sigmoid:
      return std::clamp(alpha * x + beta, 0.0, 1.0);
    case hard_swish:
      return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
    case silu:
      return x / (1 + std::exp(-x));
    case clip:
      return std::clamp<double>(x, alpha, beta);
    case elu:
      return x < 0 ? alpha * std::expm1(x) : beta * x;
    case celu:
      return x < 0 ? alpha * std::expm1(x / alpha) : x;
    case softplus:
      return burin::softplus(x);
    case softsign:
      return x / (1 + std::abs(x));
    case tanh:
      return std::tanh(x);
    case erf:
      return std::erf(x);
    case gelu:
      return x * 0.5 * std::erfc(-x / std::numbers::sqrt2);
    case gelu_tanh:
      return x / (1 + std::exp(-2 * gelu_angle(x)));
    case mish:
      return x * std::tanh(burin::softplus(x));
    case thresholded_relu:
      return x > alpha ? x : 0;
    case exp:
      return std::exp(x);
    case log:
      return std::log(x);
    case sqrt:
      return std::sqrt(x);
    case reciprocal:
      return 1 / x;
    case power:
      return std::pow(x, alpha);
    case absolute:
      return std::abs(x);
    case sign:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case sine:
      return std::sin(x);
    case cosine:
      return std::cos(x);
    case floor:
      return std::floor(x);
    case ceil:
      return std::ceil(x);
    case round:
      return round_to_even(x);
    case quantize:
      return std::clamp(round_to_even(x / alpha), beta, beta + kQuantizedSteps) * alpha;
    case within:
      return is_within(op, x) ? 1 : 0;
    case tangent:
      return std::tan(x);
    case sinh:
      return std::sinh(x);
    case cosh:
      return std::cosh(x);
    case asin:
      return std::asin(x);
    case acos:
      return std::acos(x);
    case atan:
      return std::atan(x);
    case asinh:
      return std::asinh(x);
    case acosh:
      return std::acosh(x);
    case atanh:
      return std::atanh(x);
    case shrink:
      return x < -alpha ? x + beta : x > alpha ? x - beta : 0;
    case user:
      return reference_of(*op.user, x);
  }
  fail_internal(__FILE__, __LINE__, "an element-wise function without a reference");
}

double reference_combination(const Combine& op, double a, double b) {
  switch (op.combination) {
    case Combination::add:
      return a + b;
    case Combination::multiply:
      return a * b;
    case Combination::subtract:
      return a - b;
    case Combination::divide:
      return a / b;
    case Combination::power:
      return std::pow(a, b);
    case Combination::smaller:
      return std::min(a, b);
    case Combination::larger:
      return std::max(a, b);
    case Combination::prelu:
      return a < 0 ? a * b : a;
    case Combination::equal:
      return a == b ? 1 : 0;
    case Combination::less:
      return a < b ? 1 : 0;
    case Combination::less_or_equal:
      return a <= b ? 1 : 0;
    case Combination::keep:
      return b != 0 ? a : op.otherwise;
    case Combination::drop:
      return b == 0 ? a : op.otherwise;
    case Combination::remainder:
      return std::fmod(a, b);
    case Combination::user:
      return reference_of(*op.user, a, b);
  }
  fail_internal(__FILE__, __LINE__, "a combination without a reference");
}

namespace {

constexpr double kUnit = 0x1p-21;  // what a tolerance multiplies a rounding with

// What floats make of a user's function beside float64, around a point: nobody knows what it is made of. A device
// computes with other functions of the library than the host, which may be off by more. `inputs` are what it is of.
template <typename... Inputs>
double user_rounding(const UserFunction& function, double y, Inputs... inputs) {
  constexpr double kResult = 2, kDevice = 4;
  double most = 0;
  for (const float step : {1.0F, 1 + 0x1p-22F, 1 - 0x1p-22F}) {
    const double there = reference_of(function, static_cast<double>(static_cast<float>(inputs) * step)...);
    const double rounded = value_of(function, (static_cast<float>(inputs) * step)...);
    // A reference that rounds as well says by how much its result moves with the inputs.
    const double off = function.in_double ? std::abs(rounded - there) : std::abs(there - y);
    if (std::isfinite(off)) most = std::max(most, off);
  }
  return kResult * std::abs(y) + kDevice * most / kUnit;
}

// A quotient that lies at the edge of a step may be rounded to either side: then it is a step that rounding brings.
double quantizing_error(const Elementwise& op, double x) {
  constexpr double kQuotientError = 0x1p-21;
  return moved_by(op, x, kQuotientError * std::abs(x)) / kUnit;
}

}  // namespace

double rounding_of(const Elementwise& op, double x, double y) {
  const double size = std::abs(y), from = std::abs(x);
  switch (op.function) {
    using enum ElementFunction;
    case relu:
    case clip:
    case thresholded_relu:
    case absolute:
    case sign:
    case floor:
    case ceil:
    case round:
    case within:
      return 0;
    case leaky_relu:
    case sqrt:
    case reciprocal:
      return size;
    case quantize:
      return size + quantizing_error(op, x);
    case hard_sigmoid:
      return std::abs(op.alpha * x) + std::abs(op.beta);
    case hard_swish:
      return from;
    case elu:
    case celu:
    case softsign:
    case tanh:
    case erf:
      return 2 * size;
    case sigmoid:
      return size * (1 + from * (1 - y));  // rounding x is what exp(-x) multiplies, which is little where 1 is more
    case silu:
      return size * (1 + from * (1 - reference_element({sigmoid}, x)));
    case exp:
      return size * (1 + from);
    case softplus:
    case mish:
      return size * (2 + std::max(-x, 0.0));
    case gelu:
      return size * (2 + (x < 0 ? x * x : 0));
    case gelu_tanh:
      return size * (2 + 2 * std::max(-gelu_angle(x), 0.0));
    case log:
      return 1 + size;
    case power:
      return size == 0 ? 0 : size * (2 + std::abs(op.alpha * std::log(from)));
    case sine:
    case cosine:
      return 1 + from / 1024;  // the parts of a right angle reach so far
    case tangent:
      return 2 * size + (1 + from / 1024) * (1 + size) * (1 + size);  // a quotient of those
    case sinh:
    case cosh:
      return size * (2 + from);
    case asin:
    case acos:
    case atan:
      return 3 * size;
    case asinh:
    case acosh:
    case atanh:
      return 3 * size + (size > 0.25 ? 1 : 0);  // there a logarithm
    case shrink:
      return size;
    case user:
      return user_rounding(*op.user, y, x);
  }
  fail_internal(__FILE__, __LINE__, "an element-wise function without a magnitude");
}

double rounding_of(const Combine& op, double a, double b, double y) {
  switch (op.combination) {
    case Combination::add:
    case Combination::subtract:
      return std::abs(a) + std::abs(b);
    case Combination::multiply:
    case Combination::prelu:
      return std::abs(y);
    case Combination::divide:
      return 2 * std::abs(y);
    case Combination::power:
      return y == 0 ? 0 : std::abs(y) * (2 + std::abs(b * std::log(std::abs(a))));
    case Combination::smaller:
    case Combination::larger:
    case Combination::equal:
    case Combination::less:
    case Combination::less_or_equal:
    case Combination::keep:
    case Combination::drop:
    case Combination::remainder:
      return 0;
    case Combination::user:
      return user_rounding(*op.user, y, a, b);
  }
  fail_internal(__FILE__, __LINE__, "a combination without a magnitude");
}

double moved_by(const Elementwise& op, double x, double off) {
  if (op.function == ElementFunction::within) {
    const auto is_near = [&](double end) { return std::abs(x - end) <= off; };
    const double value = reference_element(op, x);
    const bool moves = reference_element(op, x - off) != value || reference_element(op, x + off) != value;
    return moves || is_near(op.alpha) || is_near(op.beta) ? 1 : 0;
  }
  const double most = steepest(op) * off;
  const std::optional<double> turning = is_monotone(op) ? std::nullopt : turning_point(op);
  if (!is_monotone(op) && !turning && std::isfinite(most)) return most;
  // Others rise or fall all the way, but where they turn; of those that are not known so, what is between is no further
  // than the ends. A root or a logarithm ends at zero.
  const double value = reference_element(op, x);
  const double below = value - reference_element(op, x - off), above = reference_element(op, x + off) - value;
  const auto known = [&](double moved) { return std::isnan(moved) ? std::abs(value) : std::abs(moved); };
  double moved = std::max(known(below), known(above));
  // Of a user's function nobody knows where it turns.
  constexpr int kBetween = 8;
  for (int i = 1; op.is_user() && i < kBetween; ++i) {
    moved = std::max(moved, known(reference_element(op, x + off * (2.0 * i / kBetween - 1)) - value));
  }
  if (turning && std::abs(*turning - x) < off) moved = std::max(moved, known(reference_element(op, *turning) - value));
  return std::min(std::isnan(most) ? kInfinity : most, moved);
}

bool never_negative(const Elementwise& op) {
  switch (op.function) {
    using enum ElementFunction;
    case relu:
    case sigmoid:
    case hard_sigmoid:
    case softplus:
    case exp:
    case sqrt:
    case absolute:
    case within:
      return true;
    case clip:
    case thresholded_relu:
      return op.alpha >= 0;
    case quantize:
      return op.beta >= 0;
    case power:
      return std::fmod(op.alpha, 2.0F) == 0;
    case cosh:
    case acos:
    case acosh:
      return true;
    default:
      return false;
  }
}

bool keeps_nonnegative(const Elementwise& op) {
  switch (op.function) {
    using enum ElementFunction;
    case clip:
      return op.beta >= 0;
    case elu:
      return op.beta >= 0;
    case quantize:
      return op.beta + kQuantizedSteps >= 0;
    case shrink:
      return op.alpha >= 0 && op.alpha >= op.beta;
    case log:
    case sine:
    case cosine:
    case tangent:
    case user:
      return false;
    default:
      return true;
  }
}

bool is_uniform(const std::vector<float>& values) {
  return std::ranges::all_of(values, [&](float value) { return value == values.front(); });
}

bool keeps_nonnegative(const Combine& op) {
  return op.combination != Combination::subtract && op.combination != Combination::user && op.otherwise >= 0;
}

}  // namespace burin
