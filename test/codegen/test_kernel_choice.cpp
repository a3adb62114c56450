// Which convolutions of a network are baked, and which have their weights as data.
#include <catch2/catch.hpp>

#include <algorithm>

#include "compiler/choose_convolution.h"
#include "compiler/jobs.h"
#include "ir/error.h"
#include "test/ir/random_layers.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

ConvLayer layer_of(int in, int out, int size, double density) {
  ConvShape shape;
  shape.in_channels = in;
  shape.out_channels = out;
  shape.in_h = shape.in_w = size;
  return make_layer("conv", shape, density);
}

std::int64_t nonzeros(const ConvLayer& layer) {
  return std::ranges::count_if(layer.weights, [](float weight) { return weight != 0; });
}

ConvolutionChoice choose(const ConvLayer& layer, const CompileOptions& options = {}, int batch = 1) {
  return choose_convolution(layer, nonzeros(layer), {.batch = batch}, options);
}

Network network_of(const ConvLayer& layer) {
  Network network;
  network.source = "m.onnx";
  network.layers = {layer};
  const ConvShape& shape = layer.shape;
  network.tensors = {{"x", {shape.in_channels, shape.in_h, shape.in_w}},
                     {"y", {shape.out_channels, shape.out_h(), shape.out_w()}}};
  network.operators.push_back({"conv", Convolution{}, {0}, 1});
  network.inputs = {0};
  network.outputs = {1};
  return network;
}

// Large, and without a zero: half a million instructions.
ConvLayer dense_layer() { return layer_of(512, 1000, 13, 1); }

}  // namespace

TEST_CASE("kernel choice: a large dense layer has its weights as data") {
  const ConvolutionChoice choice = choose(dense_layer());
  REQUIRE(choice.planned);
  CHECK(choice.planned->plan.template_name == "conv_dense");
  CHECK(static_cast<std::int64_t>(choice.planned->weights.size()) == choice.planned->plan.weight_words);
  REQUIRE(choice.options.size() == 2);
  CHECK(choice.options[0].template_name == "conv_dense");
  CHECK(choice.options[0].predicted_us == choice.planned->predicted_us);
  CHECK(choice.options[1].template_name == "conv_baked");
  CHECK(choice.options[0].predicted_us < choice.options[1].predicted_us);
}

TEST_CASE("kernel choice: where nothing else can win, nothing is planned") {
  const ConvolutionChoice choice = choose(layer_of(256, 256, 14, 0.03), {}, 32);
  CHECK_FALSE(choice.planned);
  CHECK_FALSE(choice.baked);
  CHECK(choice.options.empty());
}

TEST_CASE("kernel choice: the plan that was compared is the one that is compiled") {
  const ConvLayer layer = layer_of(512, 512, 13, 0.25);
  const ConvolutionChoice choice = choose(layer);
  CHECK_FALSE(choice.planned);
  REQUIRE(choice.baked);
  REQUIRE(choice.options.size() == 2);
  CHECK(choice.options[0].predicted_us == choice.baked->predicted_us);
  const Network network = network_of(layer);
  const Jobs jobs = list_jobs(network, {});
  REQUIRE(jobs.layers.size() == 1);
  CHECK(jobs.layers[0].plan == choice.baked);
  CHECK(jobs.operators.empty());
  CHECK(jobs.programs.at(0).options.at(0) == choice.options);
}

TEST_CASE("kernel choice: a tuned plan counts with the time that was measured") {
  const ConvLayer layer = layer_of(16, 24, 9, 0.3);
  CompileOptions options;
  TunedPlan tuned;
  tuned.layer = layer.name;
  tuned.evidence.candidates.resize(2);
  tuned.evidence.candidates[0].cold_us = 1;
  tuned.evidence.candidates[1].cold_us = 100;
  tuned.evidence.chosen = 1;
  options.tuned = {tuned};
  const ConvolutionChoice slow = choose(layer, options);
  REQUIRE(slow.planned);
  CHECK(slow.options.back().predicted_us == 100);
  CHECK_FALSE(slow.baked);
  options.tuned[0].evidence.chosen = 0;
  CHECK_FALSE(choose(layer, options).planned);
  CHECK(choose(layer, options).options.empty());
}

TEST_CASE("kernel choice: by name, of all and of one") {
  const ConvLayer layer = layer_of(16, 24, 9, 0.3);
  CompileOptions options;
  options.kernels = parse_kernel_kinds("dense");
  CHECK(choose(layer, options).planned);
  options.kernels = parse_kernel_kinds("dense,conv=baked");
  CHECK_FALSE(choose(layer, options).planned);
  CHECK(choose(layer, options).options.empty());
  options.kernels = parse_kernel_kinds("baked,conv=dense");
  CHECK(choose(layer, options).planned);
  CHECK(parse_kernel_kinds("a=b=dense").of("a=b") == "conv_dense");
  CHECK(parse_kernel_kinds("auto").of("x") == "auto");
}

TEST_CASE("kernel choice: what a template cannot compute") {
  ConvLayer layer = layer_of(8, 8, 6, 1);
  layer.shape.groups = 8;
  layer.weights.resize(8);
  CompileOptions options;
  options.kernels = parse_kernel_kinds("dense");
  CHECK_FALSE(choose(layer, options).planned);
  options.kernels = parse_kernel_kinds("conv=dense");
  CHECK(error_of([&] { choose(layer, options); }, ErrorKind::unsupported)
            .starts_with("--kernels conv=dense: conv_dense cannot compute 8x6x6"));
}

TEST_CASE("kernel choice: a kernel for each batch size, of one kind or of two") {
  const ConvLayer layer = dense_layer();
  const Network network = network_of(layer);
  CompileOptions options;
  options.batches = {4, 1};
  options.kernels = parse_kernel_kinds("dense");
  const Jobs jobs = list_jobs(network, options);
  CHECK(jobs.layers.empty());
  REQUIRE(jobs.operators.size() == 2);
  CHECK(jobs.operators[0].symbol == "burin_conv_conv_dense");
  CHECK(jobs.operators[1].symbol == "burin_conv_conv_dense_2");
  REQUIRE(jobs.programs.size() == 2);
  CHECK(jobs.programs[0].plan.batch == 1);
  CHECK(jobs.programs[0].operators == std::vector<int>{0});
  CHECK(jobs.programs[1].operators == std::vector<int>{1});
  CHECK(jobs.programs[0].layers == std::vector<int>{-1});
}
