// Tensors that a person gives a command and gets from one: .npy files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace burin {

struct NpyTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// Throws Error(bad_input) for a file that is not one of floating-point numbers.
NpyTensor read_npy(const std::string& path);

// The images of a tensor that should be `image` ("[C,H,W]"), for one, or the same behind a number of images. `what`
// names what it is for in the Error(bad_input): "the layer's input".
int images_of(const NpyTensor& tensor, const std::string& path, const std::string& what,
              const std::vector<std::int64_t>& image);

// As float32 (version 1.0, little-endian, C order), whole or not at all. Throws Error(usage) that names the file where
// it cannot be written.
void write_npy(const std::string& path, const std::vector<std::int64_t>& shape, std::span<const float> values);

}  // namespace burin
