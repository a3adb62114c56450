// Convolutions whose weights are data, on the edge list and on random shapes: on the host executor, against the float64
// reference.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/operators/plan_convolution.h"
#include "test/codegen/edge_cases.h"
#include "test/ir/random_layers.h"
#include "test/operators/operator_check.h"

using namespace burin;
using namespace burin_test;

namespace {

// Of an output, as a share of 1 + its magnitude: roundings of all its terms.
double tolerance_of(const ConvLayer& layer) {
  double largest = 0;
  for (const float weight : layer.weights) largest = std::max(largest, std::abs(static_cast<double>(weight)));
  const double terms = static_cast<double>(layer.weights.size()) / layer.shape.out_channels;
  constexpr double kEpsilon = 1.2e-7;
  return 2e-6 + kEpsilon * largest * std::sqrt(terms + 1) * 4;
}

std::string check_layer(const ConvLayer& layer, int batch) {
  OperatorCheck check;
  check.tolerance = tolerance_of(layer);
  check.tuned_batch = batch;
  check.batches = {batch};
  return check_operator(network_of(layer), check);
}

void check_edge(const char* name) {
  const EdgeCase& edge = edge_case(name);
  CHECK(check_layer(edge.make_layer(), edge.batch) == "");
}

}  // namespace

#define EDGE_CASE(name, batch, layer) \
  TEST_CASE("convolution with weights as data: " #name) { check_edge(#name); }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

TEST_CASE("convolution with weights as data: other batches, and slices of other tensors") {
  for (const char* name : {"3x3", "1x1", "groups_2", "bias_residual_silu", "one_pixel", "rows_of_48_bytes"}) {
    const ConvLayer layer = edge_case(name).make_layer();
    CHECK(check_everywhere({name, {}, {}, tolerance_of(layer), layer}) == "");
  }
}

TEST_CASE("convolution with weights as data: depthwise layers are baked") {
  CHECK(plan_convolution(edge_case("depthwise").make_layer(), {}).empty());
  CHECK_FALSE(plan_convolution(edge_case("groups_2").make_layer(), {}).empty());
}
