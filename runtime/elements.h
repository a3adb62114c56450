// Element types as the public headers and as ir/ name them, and their conversions in host memory.
#pragma once

#include <cstddef>
#include <span>

#include "ir/element_type.h"
#include "runtime/burin/runtime.hpp"

namespace burin {

Element public_element(ElementType type);
ElementType internal_element(Element element);  // throws Error(usage) for a number that is none of them

// `target` and `source` need no alignment.
void write_elements(ElementType type, std::span<const float> values, std::byte* target);
void read_elements(ElementType type, const std::byte* source, std::span<float> values);

}  // namespace burin
