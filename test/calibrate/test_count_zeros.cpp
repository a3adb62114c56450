// Zeros of what convolutions read, worked out by hand.
#include "compiler/calibrate/count_zeros.h"

#include "ir/error.h"
#include "test/catch.h"
#include "test/ir/small_network.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

// x (1x2x2) -> first (1x1, two channels, ReLU: x and -x) -> second (1x1).
Network network() {
  ConvLayer first, second;
  first.name = "first";
  first.shape.out_channels = 2;
  first.shape.epilogue.function = function_of(Activation::relu);
  first.weights = {1, -1};
  second.name = "second";
  second.shape.in_channels = 2;
  second.weights = {1, 1};
  for (ConvLayer* layer : {&first, &second}) layer->shape.in_h = layer->shape.in_w = 2;
  GraphBuilder graph;
  const int made = graph.convolution(first, {graph.input({1, 2, 2}, "x")});
  Network result = graph.finish({graph.convolution(second, {made})});
  REQUIRE(verify(result).empty());
  return result;
}

}  // namespace

TEST_CASE("count zeros: of each convolution's input, over all images") {
  std::vector<std::pair<int, int>> progress;
  const LayerZeros zeros = count_zeros(network(), {{"x", {1, 2, 0, -3, 0, 0, 0, 4}}},
                                       [&](int done, int all) { progress.emplace_back(done, all); });
  REQUIRE(zeros.size() == 2);
  CHECK(zeros.at("first").share() == Approx(4.0 / 8));
  CHECK(zeros.at("first").dead[1] == Approx(1.0 / 4));
  // The channels of the images: 1 2 0 0, 0 0 0 3; 0 0 0 4, 0 0 0 0.
  CHECK(zeros.at("second").share() == Approx(12.0 / 16));
  CHECK(zeros.at("second").dead[1] == Approx(5.0 / 8));
  CHECK(zeros.at("second").dead[2] == Approx(1.0 / 4));
  CHECK(progress == std::vector<std::pair<int, int>>{{1, 2}, {2, 2}});
}

TEST_CASE("count zeros: images that are none of the network's") {
  CHECK_THAT(BURIN_THROWN(bad_input, count_zeros(network(), {{"x", {1, 2, 3}}}, {})).text,
             Contains("--activations: 3 values are no images of the input 'x', which has 4"));
  CHECK_THAT(BURIN_THROWN(usage, count_zeros(network(), {{"y", {1, 2, 3, 4}}}, {})).text,
             Contains("--activations: nothing is given for the input 'x'"));
}

TEST_CASE("count zeros: made up for every convolution") {
  const LayerZeros zeros = made_up_zeros(network(), {.share = 0.75});
  REQUIRE(zeros.size() == 2);
  CHECK(zeros.at("first").share() == 0.75);
  CHECK(zeros.at("second").share() == 0.75);
}
