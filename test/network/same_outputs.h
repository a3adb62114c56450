// Whether two graphs compute the same.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "compiler/network/reference_network.h"
#include "compiler/reference.h"

namespace burin_test {

inline std::vector<std::vector<double>> outputs_of(const burin::Network& network) {
  constexpr int kBatch = 2;
  std::vector<std::vector<float>> inputs;
  for (const int input : network.inputs) {
    const std::int64_t elements = network.tensors[static_cast<std::size_t>(input)].elements();
    inputs.push_back(burin::random_tensor(kBatch * elements, 17 + inputs.size()));
  }
  return burin::run_reference(network, kBatch, {inputs.begin(), inputs.end()});
}

// Legal, with the same inputs and outputs, and the same values of these but for the rounding of weights.
inline void check_same(const burin::Network& before, const burin::Network& after) {
  const std::vector<std::string> faults = verify(after);
  INFO("before\n" << print(before) << "after\n" << print(after));
  INFO((faults.empty() ? std::string() : faults.front()));
  REQUIRE(faults.empty());
  const auto ends = [](const burin::Network& network, const std::vector<int>& tensors) {
    std::string text;
    for (const int i : tensors) {
      const burin::Activations& tensor = network.tensors[static_cast<std::size_t>(i)];
      text += tensor.name + " " + burin::shape_text(tensor.shape) + "\n";
    }
    return text;
  };
  CHECK(ends(before, before.inputs) == ends(after, after.inputs));
  REQUIRE(ends(before, before.outputs) == ends(after, after.outputs));
  constexpr double kTolerance = 1e-4;  // of the largest value of an output: weights are float
  const auto expected = outputs_of(before), values = outputs_of(after);
  for (std::size_t i = 0; i < values.size(); ++i) {
    double largest = 1e-3, error = 0;
    for (std::size_t j = 0; j < values[i].size(); ++j) {
      largest = std::max(largest, std::abs(expected[i][j]));
      error = std::max(error, std::abs(expected[i][j] - values[i][j]));
    }
    INFO("output " << i << ": error " << error << ", largest value " << largest);
    CHECK(error <= kTolerance * largest);
  }
}

}  // namespace burin_test
