#include "test/providers/tensor_cores.h"

#include <fmt/format.h>

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

Pool window_of(PoolKind kind, int kernel, int stride, int pad) {
  return {.kind = kind,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad = {pad, pad, pad, pad}};
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

std::vector<ConvLayer> far_reaching_layers() {
  std::vector<ConvLayer> layers;
  const auto add = [&](const ConvLayer& base, int rows, int cols, int down, int across, const Padding& pad) {
    ConvLayer layer = base;
    layer.shape.kernel_h = rows;
    layer.shape.kernel_w = cols;
    layer.shape.dilation_h = down;
    layer.shape.dilation_w = across;
    layer.shape.pad = pad;
    layer.weights.resize(static_cast<std::size_t>(layer.shape.out_channels) * layer.shape.channels_per_group() * rows *
                         cols);
    layers.push_back(std::move(layer));
  };
  const auto layer = [](int size, int filter, int stride, int groups, bool residual) {
    return *convolution_case("far", 24 * groups, 40 * groups, size, filter, stride, 0, 0.3, residual, groups).layer;
  };
  add(layer(13, 3, 1, 1, true), 3, 3, 5, 5, {5, 5, 5, 5});
  add(layer(9, 3, 1, 1, false), 3, 3, 20, 20, {20, 20, 20, 20});  // but one position reads padding alone
  add(layer(19, 3, 2, 1, false), 3, 3, 3, 2, {3, 2, 1, 4});
  add(layer(14, 5, 1, 2, false), 3, 5, 1, 6, {1, 1, 12, 12});
  add(layer(8, 3, 1, 1, false), 3, 3, 4, 4, {16, 16, 16, 16});  // some outputs have no input at all
  return layers;
}

std::vector<std::string> choices_of_parts(const ConvLayer& layer) {
  std::vector<std::string> choices;
  for (const int rows : {1, layer.shape.kernel_h}) {
    for (const int cols : {1, layer.shape.kernel_w}) {
      choices.push_back(fmt::format("part_rows={},part_cols={}", rows, cols));
    }
  }
  return choices;
}

OperatorCase in_octets(const ConvLayer& source, ElementType element) {
  const ConvLayer layer = with_weights_of(factors_of(element), source);
  const TensorFormat format = {element, TensorLayout::n8c8hw};
  return {layer.name, Convolution{}, {}, sum_tolerance(layer), layer, format, format};
}

const std::set<std::string>& edges_of_small_groups() {
  static const std::set<std::string> names =
      names_of_edges("groups_2 groups_2_1x1 groups_of_one_output one_group_empty");
  return names;
}

const std::set<std::string>& edges_of_depthwise() {
  static const std::set<std::string> names =
      names_of_edges("groups_4_of_one_input depthwise depthwise_stride_2 depthwise_multiplier_2 pooled_depthwise");
  return names;
}

}  // namespace burin_test
