// What a name of the model can stand for.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "compiler/import/onnx/stored_tensor.h"

namespace burin {

// An activation: a tensor of the network.
struct Flowing {
  int tensor = 0;
};

// One number that was computed from shapes. The number of images is none that burin knows: it is a symbol.
struct Size {
  bool batch = false;
  std::int64_t value = 0;
};

struct Sizes {
  bool scalar = false;  // one value without an axis
  std::vector<Size> values;
};

using Value = std::variant<Flowing, StoredTensor, Sizes>;

inline constexpr std::size_t kMaxSizes = 64;  // of a list; a shape has as many as axes

}  // namespace burin
