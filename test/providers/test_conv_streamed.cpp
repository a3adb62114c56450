// Convolutions whose nonzeros are data: every way to divide them, which the search takes only for layers that are
// too large here; on the host executor, against the float64 reference.

#include <cmath>
#include <limits>

#include "compiler/host/executor.h"
#include "compiler/providers/conv_streamed/conv_streamed.h"
#include "compiler/providers/template_provider.h"
#include "compiler/specialise/specialised_module.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/ir/random_layers.h"
#include "test/providers/plan_check.h"
#include "test/providers/provider_check.h"

using namespace burin;
using namespace burin_test;

namespace {

ConvShape square(int in, int out, int size, int filter, int stride, int pad) {
  ConvShape shape;
  shape.in_channels = in;
  shape.out_channels = out;
  shape.in_h = shape.in_w = size;
  shape.kernel_h = shape.kernel_w = filter;
  shape.stride_h = shape.stride_w = stride;
  shape.pad = {pad, pad, pad, pad};
  shape.epilogue.bias = true;
  return shape;
}

const ArchSpec& arch() { return arch_by_name("sm_90"); }

std::string check_choices(const ConvLayer& layer, const ConvStreamed& choices) {
  const auto way = price_streamed(layer, choices, 1, arch());
  if (!way) return "does not fit";
  ProviderCheck check;
  check.tolerance = 1e-5;
  const Network network = network_of(layer);
  const Task task = task_of(network, network.operators.back(), check);
  return check_candidate(network, network.operators.back(), streamed_candidate(task, *way), check);
}

}  // namespace

TEST_CASE("streamed convolution: splits, parts and outputs of a block") {
  ConvShape residual = square(16, 21, 7, 1, 1, 0);
  residual.epilogue.residual = true;
  residual.epilogue.function = function_of(Activation::relu);
  const ConvShape shapes[] = {square(16, 21, 7, 3, 1, 1), residual, square(16, 9, 14, 1, 2, 0),
                              square(8, 9, 14, 3, 2, 1), square(8, 5, 10, 5, 1, 2)};
  for (const ConvShape& shape : shapes) {
    const ConvLayer layer = make_layer("streamed", shape, 0.6, 3);
    for (const int splits : {1, 2, 8}) {
      for (const auto& [rows, parts] : {std::pair{1, 1}, {3, 2}, {5, 8}, {40, 1}}) {
        for (const bool bulk : {false, true}) {
          if (bulk && (streams_compact(shape) || shape.in_channels / splits * shape.in_h * shape.in_w % 4 != 0))
            continue;
          INFO(describe(shape) << ", " << splits << " splits, " << rows << " rows in " << parts << " parts, bulk "
                               << bulk);
          CHECK(check_choices(layer, {splits, rows, parts, bulk}) == "");
        }
      }
    }
  }
}

TEST_CASE("streamed convolution: means of whole planes") {
  for (const bool residual : {false, true}) {
    ConvShape shape = square(16, 21, 7, 3, 1, 1);
    shape.epilogue.residual = residual;
    shape.epilogue.function = function_of(Activation::relu);
    shape.epilogue.pool = Pool{.kind = PoolKind::average, .kernel_h = 7, .kernel_w = 7};
    const ConvLayer layer = make_layer("streamed", shape, 0.6, 3);
    for (const int splits : {1, 4}) CHECK(check_choices(layer, {splits, 5, 2, false}) == "");
    CHECK(check_choices(layer, {2, 40, 1, true}) == "");
  }
}

TEST_CASE("streamed convolution: pools") {
  ConvShape shape = square(16, 21, 9, 3, 1, 1);
  shape.epilogue.residual = true;
  shape.epilogue.function = function_of(Activation::relu);
  std::vector<Pool> pools = some_pools();
  pools.push_back(Pool{.kernel_h = 9, .kernel_w = 9});  // the largest of all
  for (const Pool& pool : pools) {
    shape.epilogue.pool = pool;
    const ConvLayer layer = make_layer("streamed", shape, 0.6, 3);
    INFO("windows of " << pool.kernel_h << "x" << pool.kernel_w);
    for (const int splits : {1, 4}) CHECK(check_choices(layer, {splits, 5, 2, false}) == "");
    CHECK(check_choices(layer, {2, 40, 1, true}) == "");
  }
}

// Padding makes more windows than there are pixels.
TEST_CASE("streamed convolution: a pool of more windows than a plane has pixels") {
  ConvShape shape;
  shape.in_channels = 3;
  shape.out_channels = 4;
  shape.in_h = 128;
  shape.in_w = 1;
  shape.epilogue.pool = Pool{.kernel_h = 2, .pad = {1, 1, 0, 0}};
  CHECK(shape.out_h() == 129);
  CHECK(check_choices(make_layer("streamed", shape, 1, 3), {1, 4, 1, false}) == "");
}

TEST_CASE("streamed convolution: what fills up a strip multiplies nothing of the input") {
  const ConvShape shape = square(4, 3, 7, 3, 1, 1);
  ConvLayer positive = make_layer("streamed", shape, 0.3, 5);
  for (float& weight : positive.weights) weight = std::abs(weight);
  // One channel is infinite: outputs are either infinite, or without it; 0 * infinity would be NaN.
  std::vector<float> input(static_cast<std::size_t>(shape.input_elements()), 1);
  for (int i = 0; i < shape.in_h * shape.in_w; ++i) {
    input[static_cast<std::size_t>(i)] = std::numeric_limits<float>::infinity();
  }
  std::vector<float> output(static_cast<std::size_t>(shape.output_elements()));
  const Network network = network_of(positive);
  const Task task = task_of(network, network.operators.back(), {});
  const Recipe recipe = find_provider("conv_streamed")->make(task, candidate_of(task, "conv_streamed").plan);
  HostKernel host(to_bitcode(recipe.specialise("tested")), "tested", recipe.form);
  host.run({.batch = 1, .input = input, .output = output, .weights = recipe.weights});
  for (const float value : output) CHECK_FALSE(std::isnan(value));
}

TEST_CASE("streamed convolution: what it does not compute") {
  const auto planned = [&](const ConvShape& shape, const char* name = "sm_90") {
    ProviderCheck check;
    check.arch = name;
    return providers_of(network_of(make_layer("streamed", shape, 0.5, 1)), check).contains("conv_streamed");
  };
  CHECK(planned(square(8, 8, 11, 3, 1, 1)));
  CHECK_FALSE(planned(square(8, 8, 12, 3, 1, 1)));          // 144 pixels
  CHECK_FALSE(planned(square(8, 8, 9, 9, 1, 4)));           // a filter of nine rows
  CHECK_FALSE(planned(square(8, 8, 7, 3, 1, 1), "sm_80"));  // no bulk copies
  ConvShape grouped = square(8, 8, 7, 3, 1, 1);
  grouped.groups = 2;
  CHECK_FALSE(planned(grouped));
}

TEST_CASE("streamed convolution: more channels than shared memory holds are split") {
  const ConvLayer layer = make_layer("streamed", square(2048, 8, 7, 1, 1, 0), 0.02, 1);
  CHECK_FALSE(price_streamed(layer, {1, 8, 1, true}, 1, arch()));
  const auto ways = streamed_ways(layer, 1, true, arch());
  REQUIRE_FALSE(ways.empty());
  CHECK(ways.front().choices.splits > 1);
  CHECK(std::ranges::is_sorted(ways, {}, &ConvStreamedWay::predicted_us));
  CHECK(check_choices(layer, ways.front().choices) == "");
  CHECK(check_choices(layer, ways.back().choices) == "");
}
