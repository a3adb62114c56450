// Tensors that a person gives a command and gets from one: .npy files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/element_type.h"

namespace burin {

struct NpyTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// The values of a tensor whose elements are `element`, unrounded. Throws Error(bad_input) for a file that is not one of
// floating-point numbers. NumPy has no bfloat16: of a bf16 tensor uint16 are the bits.
NpyTensor read_npy(const std::string& path, ElementType element = ElementType::f32);

// The images of a tensor that should be `image` ("[C,H,W]"), for one, or the same behind a number of images. `what`
// names what it is for in the Error(bad_input): "the layer's input".
int images_of(const NpyTensor& tensor, const std::string& path, const std::string& what,
              const std::vector<std::int64_t>& image);

// `count` of the values, from the first on, again and again; none of none.
std::vector<float> repeated(const std::vector<float>& values, std::int64_t count);

// What an array of such elements is in a .npy file, for people: "float32", "float16", "uint16, the bits of bfloat16".
std::string_view npy_type_text(ElementType element);

// As float32, float16 or the bits of bfloat16 (version 1.0, little-endian, C order), whole or not at all. Throws
// Error(usage) that names the file where it cannot be written.
void write_npy(const std::string& path, const std::vector<std::int64_t>& shape, std::span<const float> values,
               ElementType element = ElementType::f32);

}  // namespace burin
