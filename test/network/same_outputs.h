// Whether two graphs compute the same.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/reference.h"
#include "test/catch.h"
#include "test/network/reference_tensors.h"

namespace burin_test {

// All tensors by their names.
inline std::map<std::string, std::vector<double>> tensors_of(const burin::Network& network) {
  constexpr int kBatch = 2;
  std::vector<std::vector<float>> inputs;
  for (const int input : network.inputs) {
    const std::int64_t elements = network.tensors[static_cast<std::size_t>(input)].elements();
    inputs.push_back(burin::random_tensor(kBatch * elements, 17 + inputs.size()));
  }
  std::vector<std::vector<double>> values = reference_tensors(network, kBatch, {inputs.begin(), inputs.end()});
  std::map<std::string, std::vector<double>> named;
  for (std::size_t i = 0; i < values.size(); ++i) named[network.tensors[i].name] = std::move(values[i]);
  return named;
}

// Legal, with the same inputs and outputs; these and every tensor that is left have the values they had, but for the
// rounding of weights.
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
  constexpr double kTolerance = 1e-4;  // of the largest value of a tensor: weights are float
  const auto expected = tensors_of(before);
  for (const auto& [name, values] : tensors_of(after)) {
    INFO("tensor " << name);
    // What fuse_pools moved before a concat and sink_transposes before a transpose, what lift_functions computes before
    // it is moved, what order_channels has in another order, and what merge_siblings joined: the values of others.
    if (name.find(".pooled") != name.npos || name.find(".unmoved") != name.npos || name.find(".before") != name.npos ||
        name.find(".ordered") != name.npos || name.find(".parts") != name.npos || name.find(".picked") != name.npos ||
        name.find('+') != name.npos || name.ends_with(".whole"))
      continue;
    REQUIRE(expected.contains(name));
    const std::vector<double>& wanted = expected.at(name);
    if (values.size() != wanted.size()) continue;  // without some channels; no output, whose shapes are the same
    double largest = 1e-3, error = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(wanted[i]));
      error = std::max(error, std::abs(wanted[i] - values[i]));
    }
    INFO("error " << error << ", largest value " << largest);
    CHECK(error <= kTolerance * largest);
  }
}

}  // namespace burin_test
