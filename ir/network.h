// Network: what an importer returns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/conv_layer.h"

namespace burin {

// A tensor of the input that no layer consumed; it is carried into the package as it is.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

struct Network {
  std::string source;             // the file it came from
  std::vector<ConvLayer> layers;  // in the order of the file
  std::vector<NamedTensor> leftover;
  std::vector<std::string> notes;  // what the user should know, one sentence each (printed to stderr)
};

}  // namespace burin
