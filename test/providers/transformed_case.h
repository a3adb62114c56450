// Layers of the providers that transform patches and filters: what their tests have in common.
#pragma once

#include <algorithm>
#include <string>

#include "test/codegen/edge_cases.h"
#include "test/ir/random_layers.h"
#include "test/providers/plan_check.h"
#include "test/providers/provider_check.h"

namespace burin_test {

// A layer with all its weights, and a bias.
inline burin::ConvLayer transformed_sample(int inputs, int outputs, int rows, int cols, int filter_rows,
                                           int filter_cols, const burin::Padding& pad) {
  burin::ConvShape shape;
  shape.in_channels = inputs;
  shape.out_channels = outputs;
  shape.kernel_h = filter_rows;
  shape.kernel_w = filter_cols;
  shape.in_h = rows;
  shape.in_w = cols;
  shape.pad = pad;
  shape.epilogue.bias = true;
  return make_layer("sample", shape, 1);
}

inline burin::ConvLayer with_residual_and_silu(burin::ConvLayer layer) {
  layer.shape.epilogue.residual = true;
  layer.shape.epilogue.function = function_of(burin::Activation::silu);
  return layer;
}

// The edge with all its weights, and of more channels: else the error of most would be too large.
inline burin::ConvLayer edge_with_all_weights(const char* name) {
  const burin::ConvLayer edge = edge_case(name).make_layer();
  burin::ConvShape shape = edge.shape;
  if (shape.groups == 1) shape.in_channels += 32;
  return make_layer(edge.name, shape, 1);
}

// Whether the provider has a plan of the layer in which the choice has the value.
inline bool offers(const char* provider, const burin::ConvLayer& layer, const char* choice, int value) {
  const burin::Network network = network_of(layer);
  const burin::Task task = task_of(network, network.operators.back(), {});
  return std::ranges::any_of(burin::find_provider(provider)->propose(task, {.count = 1000}),
                             [&](const burin::Candidate& candidate) {
                               return burin::parse_template_plan(candidate.plan).integers.at(choice) == value;
                             });
}

}  // namespace burin_test
