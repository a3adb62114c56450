// Convolutions whose weights are data, on the edge list and on random shapes: on the host executor, against the float64
// reference.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "compiler/operators/plan_conv_dense.h"
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

// Whose activations are copied four at a time.
ConvLayer by_fours() {
  ConvShape shape;
  shape.in_channels = 19;
  shape.out_channels = 21;
  shape.in_h = 6;
  shape.in_w = 10;
  shape.epilogue.bias = shape.epilogue.residual = true;
  shape.epilogue.activation = Activation::silu;
  return make_layer("by_fours", shape, 0.9);
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

TEST_CASE("convolution with weights as data: four pixels at a time, where they lie together") {
  const ConvLayer layer = by_fours();
  CHECK(plan_convolution(layer, {}).front().plan.integers.at("vector") == 4);
  CHECK(check_everywhere({layer.name, {}, {}, tolerance_of(layer), layer}) == "");
  ConvLayer padded = layer;
  padded.shape.pad.left = 1;
  CHECK(plan_convolution(padded, {}).front().plan.integers.at("vector") == 1);
  const BufferPlace odd{1200, 2};
  const OperatorRequest request{.inputs = {odd, {}}};
  CHECK(plan_convolution(layer, request).front().plan.integers.at("vector") == 1);
}

TEST_CASE("convolution with weights as data: layers that pool are baked") {
  CHECK(plan_convolution(edge_case("max_2x2").make_layer(), {}).empty());
  CHECK_FALSE(plan_convolution(edge_case("groups_2").make_layer(), {}).empty());
}

TEST_CASE("convolution with weights as data: random shapes") {
  constexpr int kShapes = 60;
  Random random(11);
  for (int i = 0; i < kShapes; ++i) {
    ConvShape shape = random_shape(random);
    shape.in_h = std::min(shape.in_h, 20);
    shape.in_w = std::min(shape.in_w, 20);
    shape.epilogue.bias = random.chance(0.5);
    shape.epilogue.residual = random.chance(0.3);
    if (!verify(shape).empty()) continue;  // the filter is larger than what was left of the image
    INFO("shape " << i << ": " << describe(shape));
    CHECK(check_layer(make_layer("random", shape, 0.5, static_cast<std::uint64_t>(i) + 1), random.integer(1, 5)) == "");
  }
}

TEST_CASE("convolution with weights as data: every kind of tile") {
  for (const ConvLayer& layer : {edge_case("stride_2").make_layer(), by_fours()}) {
    const Network network = network_of(layer);
    const std::vector<ConvDenseTiles> all =
        choose_tiles(layer.shape, 8, conv_dense_vector(layer.shape, {}), arch_by_name("sm_90"), 1000);
    CHECK(all.size() > 20);
    for (const ConvDenseTiles& tiles : all) {
      INFO(layer.name << ": " << describe(tiles));
      OperatorCheck check;
      check.tolerance = tolerance_of(layer);
      check.batches = {3};
      CHECK(check_kernels(network, network.operators.back(), {plan_conv_dense(layer, {.batch = 8}, tiles)}, check) ==
            "");
    }
  }
}

TEST_CASE("convolution with weights as data: nothing that takes longer than it may") {
  const ConvLayer layer = edge_case("groups_2").make_layer();
  const std::vector<PlannedOperator> ways = plan_convolution(layer, {});
  REQUIRE(ways.size() == 1);
  CHECK(ways[0].predicted_us > least_conv_dense_us(layer.shape, 1, arch_by_name("sm_90")));
  CHECK(plan_convolution(layer, {}, ways[0].predicted_us).empty());
  CHECK(plan_convolution(layer, {}, ways[0].predicted_us + 1).size() == 1);
}
