// Functions of a user's that no compiler was asked for.
#pragma once

#include <cmath>
#include <memory>
#include <string>

#include "ir/element_function.h"

namespace burin_test {

// A sigmoid of one input; "my::Sigmoid".
inline burin::SharedFunction own_sigmoid() {
  burin::UserFunction function{.name = "my::Sigmoid", .source_hash = std::string(64, '1')};
  float (*value)(float) = [](float x) { return 1 / (1 + std::exp(-x)); };
  function.value = reinterpret_cast<const void*>(value);
  function.reference = [](const double* x) { return 1 / (1 + std::exp(-x[0])); };
  function.in_double = true;
  return std::make_shared<burin::UserFunction>(std::move(function));
}

// a + b a of two; "my::Scale".
inline burin::SharedFunction own_scale() {
  burin::UserFunction function{.name = "my::Scale", .inputs = 2, .source_hash = std::string(64, '2')};
  float (*value)(float, float) = [](float a, float b) { return a + b * a; };
  function.value = reinterpret_cast<const void*>(value);
  function.reference = [](const double* x) { return x[0] + x[1] * x[0]; };
  function.in_double = true;
  return std::make_shared<burin::UserFunction>(std::move(function));
}

inline burin::Elementwise own_element() { return {.function = burin::ElementFunction::user, .user = own_sigmoid()}; }

}  // namespace burin_test
