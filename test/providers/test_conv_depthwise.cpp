// conv_depthwise beyond what all convolutions are tested for: pools behind it, in every layout that it knows.
#include <algorithm>

#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/ir/random_layers.h"
#include "test/providers/plan_check.h"
#include "test/providers/provider_check.h"
#include "test/providers/tensor_cores.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr const char* kDepthwiseName = "conv_depthwise";

ConvLayer depthwise_layer(int channels, int multiplier, int kernel, int size) {
  ConvShape shape;
  shape.in_channels = shape.groups = channels;
  shape.out_channels = channels * multiplier;
  shape.kernel_h = shape.kernel_w = kernel;
  shape.pad = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  shape.in_h = size;
  shape.in_w = size + 1;
  shape.epilogue.bias = true;
  shape.epilogue.function = function_of(Activation::relu);
  return make_layer("depthwise", shape, 0.9);
}

// Its kernel for the case's tensors, for one and three images.
std::string check_depthwise(const OperatorCase& edge) {
  const Network network = network_of(edge);
  ProviderCheck asked;
  asked.tolerance = edge.tolerance;
  const Candidate candidate = candidate_of(task_of(network, network.operators.back(), asked), kDepthwiseName);
  return check_candidate(network, network.operators.back(), candidate, asked);
}

std::string check_depthwise(const ConvLayer& layer) {
  return check_depthwise(OperatorCase{layer.name, Convolution{}, {}, sum_tolerance(layer), layer});
}

}  // namespace

TEST_CASE("depthwise: every kind of pool, with filters that are computed in one piece and in a loop") {
  for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
    for (Pool pool : {window_of(kind, 2, 2), window_of(kind, 3, 2, 1), window_of(kind, 3, 1, 1), window_of(kind, 2, 3),
                      window_of(kind, 5, 4, 2), window_of(kind, 7, 7)}) {
      pool.round_up = pool.kernel_h == 3;
      pool.count_padding = pool.stride_h == 1;
      for (const int kernel : {1, 3, 7}) {
        ConvLayer layer = depthwise_layer(5, kernel == 3 ? 2 : 1, kernel, 9);
        layer.shape.stride_h = kernel == 7 ? 1 : 2;
        layer.shape.epilogue.pool = pool;
        if (!verify(layer.shape).empty()) continue;
        INFO(describe(layer.shape));
        CHECK(check_depthwise(layer) == "");
      }
    }
  }
}

TEST_CASE("depthwise: pools of halves side by side, with what fills up channels and images") {
  for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
    for (const bool residual : {false, true}) {
      ConvLayer layer = depthwise_layer(11, 1, 3, 8);
      layer.shape.epilogue.pool = window_of(kind, 3, 2, 1);
      layer.shape.epilogue.residual = residual;
      for (const ElementType element : {ElementType::f16, ElementType::bf16}) {
        INFO(to_string(kind) << ", " << to_string(element) << (residual ? ", residual" : ""));
        CHECK(check_depthwise(in_octets(layer, element)) == "");
      }
    }
  }
}

TEST_CASE("depthwise: pools of random shapes, with padding on one side alone") {
  Random random(41);
  int checked = 0, right_only = 0;
  for (int i = 0; i < 120; ++i) {
    const int kernel = random.integer(1, 4);
    ConvLayer layer = depthwise_layer(random.integer(2, 6), random.integer(1, 2), kernel, random.integer(6, 11));
    ConvShape& shape = layer.shape;
    const auto pad = [&] { return random.chance(0.5) ? 0 : random.integer(0, kernel); };
    shape.pad = {pad(), pad(), pad(), pad()};
    shape.stride_h = random.integer(1, 3);
    shape.stride_w = random.integer(1, 3);
    shape.dilation_w = random.integer(1, 2);
    shape.epilogue.pool = random_pool(random);
    add_residual(shape, random);
    shape.epilogue.residual_last = false;
    if (!verify(shape).empty()) continue;
    INFO("shape " << i << ": " << describe(shape));
    CHECK(check_depthwise(layer) == "");
    ++checked;
    right_only += shape.pad.left == 0 && shape.pad.right > 0;
  }
  CHECK(checked > 40);
  CHECK(right_only > 5);
}

TEST_CASE("depthwise: a stride of two as TensorFlow pads it, before a pool") {
  ConvLayer layer = depthwise_layer(4, 1, 3, 8);
  layer.shape.in_w = 8;
  layer.shape.pad = {0, 1, 0, 1};
  for (const int stride : {1, 2}) {
    layer.shape.stride_h = layer.shape.stride_w = stride;
    for (const Pool& pool : {window_of(PoolKind::max, 2, 2), window_of(PoolKind::max, 3, 2)}) {
      layer.shape.epilogue.pool = pool;
      INFO(describe(layer.shape));
      CHECK(check_depthwise(layer) == "");
    }
  }
}

TEST_CASE("depthwise: windows that are too large for one thread are left to others, and large ones take longer") {
  ConvLayer layer = depthwise_layer(32, 1, 3, 40);
  const auto us = [&](int size) {
    layer.shape.epilogue.pool = window_of(PoolKind::average, size, size);
    return plans_with(kDepthwiseName, layer, "", {}).front().estimate.us;
  };
  CHECK(us(8) > us(2));
  layer.shape.epilogue.pool = window_of(PoolKind::average, 9, 9);
  CHECK(plans_with(kDepthwiseName, layer, "", {}).empty());
}

TEST_CASE("depthwise: no thread has several outputs behind a pool") {
  ConvLayer layer = depthwise_layer(8, 1, 3, 40);
  layer.shape.epilogue.pool = window_of(PoolKind::max, 2, 2);
  CHECK(plans_with(kDepthwiseName, layer, "thread_rows=1", {}).size() == 1);
  CHECK_THROWS_AS(plans_with(kDepthwiseName, layer, "thread_rows=2", {}), Error);
}
