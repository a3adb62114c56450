#include "test/providers/tensor_cores.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>

using namespace burin;

namespace burin_test {

ConvLayer with_weights_of(FactorType factors, ConvLayer layer) {
  layer.weights = rounded(factors, layer.weights);
  return layer;
}

double sum_tolerance(const ConvLayer& layer) {
  double largest = 0;
  for (const float weight : layer.weights) largest = std::max(largest, std::abs(static_cast<double>(weight)));
  const double terms = static_cast<double>(layer.weights.size()) / layer.shape.out_channels;
  constexpr double kEpsilon = 1.2e-7;
  return 2e-6 + kEpsilon * largest * std::sqrt(terms + 1) * 8;
}

std::set<std::string> names_of_edges(const std::string& list) {
  std::istringstream stream(list);
  return {std::istream_iterator<std::string>(stream), {}};
}

ConvLayer with_more_channels(const ConvLayer& source, int factor) {
  ConvLayer layer = source;
  layer.shape.in_channels *= factor;
  layer.shape.out_channels *= factor;
  layer.bias.clear();
  const ConvShape& before = source.shape;
  layer.weights.clear();
  for (int k = 0; k < layer.shape.out_channels; ++k) {
    for (int c = 0; c < layer.shape.channels_per_group(); ++c) {
      for (int r = 0; r < before.kernel_h; ++r) {
        for (int s = 0; s < before.kernel_w; ++s) {
          const float weight = source.weight(k / factor, c / factor, r, s);
          layer.weights.push_back((k + c) % 3 == 0 ? weight : 0);
        }
      }
    }
    if (before.epilogue.bias) layer.bias.push_back(source.bias[static_cast<std::size_t>(k / factor)]);
  }
  return layer;
}

const std::set<std::string>& edges_of_small_groups() {
  static const std::set<std::string> names =
      names_of_edges("groups_2 groups_2_1x1 groups_of_one_output one_group_empty");
  return names;
}

const std::set<std::string>& edges_of_depthwise() {
  static const std::set<std::string> names =
      names_of_edges("groups_4_of_one_input depthwise depthwise_stride_2 depthwise_multiplier_2");
  return names;
}

}  // namespace burin_test
