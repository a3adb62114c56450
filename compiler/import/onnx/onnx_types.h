// The element types of ONNX, by their numbers.
#pragma once

#include <cstdint>
#include <string_view>

#include "compiler/import/onnx/node.h"
#include "compiler/import/weights_tensor.h"

namespace burin {

// A type that constants are cast to: what burin keeps their numbers as, and for integers what fits.
struct OnnxType {
  int code;
  std::string_view name;
  StoredType type;
  std::int64_t low = 0, high = 0;
  StoredType made_as = type;  // of integers: this one
};

// The attribute 'to' of a Cast. Throws Error(unsupported) for types that burin does not cast to.
const OnnxType& read_cast_type(const Node& node);
// The integer type with this number or that a constant was made as; null for others.
const OnnxType* integer_type_of(std::int64_t code);
const OnnxType* integer_type_of(StoredType made_as);
// The one of its kind that holds the most numbers.
const OnnxType& widest_type(StoredType type);

}  // namespace burin
