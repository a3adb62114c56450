// Tensors that a person gives a command: .npy files of floating-point numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace burin {

struct NpyTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// Throws Error(bad_input) for a file that is not that.
NpyTensor read_npy(const std::string& path);

// The images of a tensor that should be `image` ("[C,H,W]"), for one, or the same behind a number of images. `what`
// names what it is for in the Error(bad_input): "the layer's input".
int images_of(const NpyTensor& tensor, const std::string& path, const std::string& what,
              const std::vector<std::int64_t>& image);

}  // namespace burin
