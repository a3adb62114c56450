// Small weights files for tests.
#pragma once

#include <string>
#include <vector>

namespace burin_test {

struct TestLayer {
  std::string name = "conv";
  std::vector<int> shape = {8, 4, 3, 3};  // OIHW
  int extent = 8;                         // H and W
  int stride = 1, pad = 1, groups = 1;
  std::string more_geometry = {};   // further attributes, a JSON object
  std::vector<float> weights = {};  // empty: seeded, about a third of them not zero
};

// A safetensors file with its geometry.
void write_safetensors(const std::string& path, const std::vector<TestLayer>& layers, unsigned seed = 1);

// Seeded weights, about a third of them not zero.
std::vector<float> sparse_weights(std::size_t count, unsigned seed);

}  // namespace burin_test
