// Functions of single numbers: what an operator computes element by element, or another one ends with.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/named_enum.h"
#include "ir/user_function.h"

namespace burin {

// A function of one number. `alpha` and `beta` are parameters of some:
//   leaky_relu        x below zero becomes alpha x
//   hard_sigmoid      clamp(alpha x + beta, 0, 1)
//   hard_swish        x clamp(x / 6 + 1 / 2, 0, 1)
//   clip              from alpha to beta, which may be infinite
//   elu               beta x, below zero alpha (e^x - 1): with other numbers it is ONNX's Selu
//   celu              x, below zero alpha (e^(x / alpha) - 1)
//   softplus          log(1 + e^x)
//   softsign          x / (1 + |x|)
//   gelu              x times the normal distribution's integral up to x; gelu_tanh is its usual approximation
//   mish              x tanh(softplus(x))
//   thresholded_relu  x where it is above alpha, else zero
//   power             x^alpha: of a negative x a number where alpha is a whole one
//   round             to the nearest whole number, of two to the even one
//   quantize          alpha clamp(round(x / alpha), beta, beta + 255): through 8 bits and back, alpha being the scale
//                     and beta the least integer less the zero point
//   within            1 where x is from alpha to beta, else 0; the least and the largest float stand for no end
//   tangent, sinh, cosh and what they are the inverse of: of what has no value, NaN
//   shrink            x + beta below -alpha, x - beta above alpha, zero between
//   user              what Elementwise::user says
enum class ElementFunction {
  relu,
  leaky_relu,
  sigmoid,
  hard_sigmoid,
  hard_swish,
  silu,
  clip,
  elu,
  celu,
  softplus,
  softsign,
  tanh,
  erf,
  gelu,
  gelu_tanh,
  mish,
  thresholded_relu,
  exp,
  log,
  sqrt,
  reciprocal,
  power,
  absolute,
  sign,
  sine,
  cosine,
  floor,
  ceil,
  round,
  quantize,
  within,
  tangent,
  sinh,
  cosh,
  asin,
  acos,
  atan,
  asinh,
  acosh,
  atanh,
  shrink,
  user
};
inline constexpr int kQuantizedSteps = 255;  // between the least and the largest of 8 bits

constexpr EnumNames<42> names_of(ElementFunction) {
  return {"a function",
          {"relu",
           "leaky_relu",
           "sigmoid",
           "hard_sigmoid",
           "hard_swish",
           "silu",
           "clip",
           "elu",
           "celu",
           "softplus",
           "softsign",
           "tanh",
           "erf",
           "gelu",
           "gelu_tanh",
           "mish",
           "thresholded_relu",
           "exp",
           "log",
           "sqrt",
           "reciprocal",
           "power",
           "absolute",
           "sign",
           "sine",
           "cosine",
           "floor",
           "ceil",
           "round",
           "quantize",
           "within",
           "tangent",
           "sinh",
           "cosh",
           "asin",
           "acos",
           "atan",
           "asinh",
           "acosh",
           "atanh",
           "shrink",
           "user"}};
}

struct Elementwise {
  ElementFunction function = ElementFunction::relu;
  float alpha = 0, beta = 0;
  SharedFunction user = {};  // of one input
  bool is_user() const { return function == ElementFunction::user; }
  bool operator==(const Elementwise& other) const {
    return function == other.function && alpha == other.alpha && beta == other.beta && is_same(user, other.user);
  }
};

// "clip 0 to 6": the function and those of its parameters that it has.
std::string describe(const Elementwise& op);
// Why it is none, each a sentence; empty: it is one. As the end of another operator its parameters are finite.
std::vector<std::string> verify_function(const std::optional<Elementwise>& function);

// What a user calls an activation; relu6 is clip from 0 to 6.
enum class Activation { none, relu, relu6, leaky_relu, sigmoid, silu };
constexpr EnumNames<6> names_of(Activation) {
  return {"an activation", {"none", "relu", "relu6", "leaky_relu", "sigmoid", "silu"}};
}
std::optional<Elementwise> function_of(Activation activation, float leaky_slope = 0.01F);

}  // namespace burin
