// What is computed with numbers that may depend on the number of images. What does not hold for every number of images
// is Error(unsupported), an integer that leaves 64 bits Error(bad_input); both name the node.
#pragma once

#include <cmath>
#include <limits>

#include "compiler/import/onnx/batch_number.h"
#include "compiler/import/onnx/node.h"

namespace burin {

template <typename T>
[[noreturn]] void refuse_batch(const Node& node, const BatchNumber<T>& a, const BatchNumber<T>& b) {
  node.unsupported(
      "it computes with {} and {}, where N is the number of images; burin follows sums, and multiples and "
      "divisors of N that hold for every N. Export the model with a fixed batch, so that the exporter computes this",
      number_text(a), number_text(b));
}

template <typename T>
[[noreturn]] void refuse_batch(const Node& node, const BatchNumber<T>& a) {
  node.unsupported(
      "it computes with {}, where N is the number of images; burin follows sums and multiples of N. Export "
      "the model with a fixed batch of 1",
      number_text(a));
}

// Sums, differences and products, which are checked for integers.
inline double plus(const Node&, double a, double b) { return a + b; }
inline double minus(const Node&, double a, double b) { return a - b; }
inline double times(const Node&, double a, double b) { return a * b; }
inline std::int64_t in_range(const Node& node, bool overflow, std::int64_t result) {
  if (overflow) node.bad_input("its result leaves the range of 64-bit integers");
  return result;
}
inline std::int64_t plus(const Node& node, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  const bool overflow = __builtin_add_overflow(a, b, &result);
  return in_range(node, overflow, result);
}
inline std::int64_t minus(const Node& node, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  const bool overflow = __builtin_sub_overflow(a, b, &result);
  return in_range(node, overflow, result);
}
inline std::int64_t times(const Node& node, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  const bool overflow = __builtin_mul_overflow(a, b, &result);
  return in_range(node, overflow, result);
}

template <typename T>
BatchNumber<T> add(const Node& node, const BatchNumber<T>& a, const BatchNumber<T>& b) {
  return {plus(node, a.value, b.value), plus(node, a.per_image, b.per_image)};
}
template <typename T>
BatchNumber<T> subtract(const Node& node, const BatchNumber<T>& a, const BatchNumber<T>& b) {
  return {minus(node, a.value, b.value), minus(node, a.per_image, b.per_image)};
}
template <typename T>
BatchNumber<T> multiply(const Node& node, const BatchNumber<T>& a, const BatchNumber<T>& b) {
  if (a.depends() && b.depends()) refuse_batch(node, a, b);
  BatchNumber<T> result{times(node, a.value, b.value), 0};
  if (a.depends()) result.per_image = times(node, a.per_image, b.value);
  if (b.depends()) result.per_image = times(node, a.value, b.per_image);
  return result;
}

// Towards zero, as ONNX's integers divide.
inline std::int64_t quotient(const Node& node, std::int64_t a, std::int64_t b) {
  if (b == 0) node.bad_input("it divides the integer {} by 0", a);
  return b == -1 ? minus(node, std::int64_t{0}, a) : a / b;
}
inline BatchNumber<std::int64_t> divide(const Node& node, const BatchNumber<std::int64_t>& a,
                                        const BatchNumber<std::int64_t>& b) {
  if (!a.depends() && !b.depends()) return {quotient(node, a.value, b.value), 0};
  if (b.depends()) {
    // k * N / (m * N) is k / m for every N.
    if (a.value == 0 && b.value == 0) return {quotient(node, a.per_image, b.per_image), 0};
    refuse_batch(node, a, b);
  }
  const BatchNumber<std::int64_t> result{quotient(node, a.value, b.value), quotient(node, a.per_image, b.value)};
  if (multiply(node, result, b) != a) refuse_batch(node, a, b);
  return result;
}
inline BatchNumber<double> divide(const Node& node, const BatchNumber<double>& a, const BatchNumber<double>& b) {
  if (!b.depends()) return {a.value / b.value, a.depends() ? a.per_image / b.value : 0};
  if (a.value == 0 && b.value == 0) return {a.per_image / b.per_image, 0};
  refuse_batch(node, a, b);
}

// The rest has the sign of the divisor, or with `fmod` that of what is divided.
inline std::int64_t rest(const Node& node, std::int64_t a, std::int64_t b, bool fmod) {
  if (b == 0) node.bad_input("it divides the integer {} by 0", a);
  if (b == -1) return 0;
  const std::int64_t result = a % b;
  return !fmod && result != 0 && (result < 0) != (b < 0) ? result + b : result;
}
inline double rest(const Node&, double a, double b, bool) { return std::fmod(a, b); }

inline BatchNumber<std::int64_t> modulo(const Node& node, const BatchNumber<std::int64_t>& a,
                                        const BatchNumber<std::int64_t>& b, bool fmod) {
  if (!a.depends() && !b.depends()) return {rest(node, a.value, b.value, fmod), 0};
  if (!b.depends() && b.value == -1) return {0, 0};
  // A multiple of the divisor leaves no rest, whatever N is.
  if (!b.depends() && b.value != 0 && a.per_image % b.value == 0 && (a.value == 0 || !fmod)) {
    return {rest(node, a.value, b.value, fmod), 0};
  }
  refuse_batch(node, a, b);
}
inline BatchNumber<double> modulo(const Node& node, const BatchNumber<double>& a, const BatchNumber<double>& b,
                                  bool fmod) {
  if (a.depends() || b.depends()) refuse_batch(node, a, b);
  if (!fmod) node.bad_input("it takes the rest of real numbers without the attribute 'fmod'");
  return {rest(node, a.value, b.value, fmod), 0};
}

// The signs that a - b can have; none for a NaN.
template <typename T>
Signs order_of(const Node& node, const BatchNumber<T>& a, const BatchNumber<T>& b) {
  if (!a.depends() && !b.depends()) return {a.value < b.value, a.value == b.value, a.value > b.value};
  return signs_of(subtract(node, a, b));
}

template <typename T>
BatchNumber<T> smaller(const Node& node, const BatchNumber<T>& a, const BatchNumber<T>& b) {
  const Signs signs = order_of(node, a, b);
  if (signs.none_but(true, true, false)) return a;
  if (signs.none_but(false, true, true)) return b;
  refuse_batch(node, a, b);
}
template <typename T>
BatchNumber<T> larger(const Node& node, const BatchNumber<T>& a, const BatchNumber<T>& b) {
  const Signs signs = order_of(node, a, b);
  if (signs.none_but(false, true, true)) return a;
  if (signs.none_but(true, true, false)) return b;
  refuse_batch(node, a, b);
}

}  // namespace burin
