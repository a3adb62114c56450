// Every tensor of a network by its index, in float64.
#pragma once

#include "compiler/network/reference_network.h"

namespace burin_test {

inline std::vector<std::vector<double>> reference_tensors(const burin::Network& network, int batch,
                                                          const std::vector<std::span<const float>>& inputs) {
  std::vector<std::vector<double>> tensors(network.tensors.size());
  burin::run_reference(network, batch, inputs, [&](int tensor, std::span<const double> values) {
    tensors[static_cast<std::size_t>(tensor)].assign(values.begin(), values.end());
  });
  return tensors;
}

}  // namespace burin_test
