// Element types as the public headers and as ir/ name them, and their conversions in host memory.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "ir/element_type.h"
#include "runtime/burin/runtime.hpp"

namespace burin {

// The public headers, C++ and C, number the types as ir/ does.
static_assert(static_cast<int>(Element::f16) == static_cast<int>(ElementType::f16) &&
              static_cast<int>(Element::bf16) == static_cast<int>(ElementType::bf16));
constexpr Element public_element(ElementType type) { return static_cast<Element>(type); }
// Throws Error(usage) for a number that is none of them: "7 is not an element type". `noun`: what such a number is.
ElementType internal_element(int number, std::string_view noun);

// `target` and `source` need no alignment.
void write_elements(ElementType type, std::span<const float> values, std::byte* target);
void read_elements(ElementType type, const std::byte* source, std::span<float> values);

}  // namespace burin
