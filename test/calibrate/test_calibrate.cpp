// What half precision does to small networks, worked out by hand, and which of their layers stay in FP32 for it.
#include "compiler/calibrate/calibrate.h"

#include <cmath>
#include <limits>

#include "compiler/calibrate/graph_rounding.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/ir/small_network.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr int kExtent = 4;

// 1x1: weights[out][in].
ConvLayer pointwise(const std::string& name, int in, int out, std::vector<float> weights) {
  ConvLayer layer;
  layer.name = name;
  layer.shape.in_channels = in;
  layer.shape.out_channels = out;
  layer.weights = std::move(weights);
  return layer;
}

// Each layer reads what the one before makes; the first has one input channel.
Network chain_of(std::vector<ConvLayer> layers) {
  GraphBuilder graph;
  int tensor = graph.input({layers.front().shape.in_channels, kExtent, kExtent}, "x");
  for (ConvLayer& layer : layers) tensor = graph.convolution(std::move(layer), {tensor});
  Network network = graph.finish({tensor});
  REQUIRE(verify(network).empty());
  return network;
}

// Multiplies one channel by each of the factors in turn: layers a, b, c...
Network factors(const std::vector<float>& weights) {
  std::vector<ConvLayer> layers;
  for (const float weight : weights) {
    layers.push_back(pointwise(std::string(1, static_cast<char>('a' + layers.size())), 1, 1, {weight}));
  }
  return chain_of(std::move(layers));
}

// All pixels of all channels are `value`.
CalibrationInput constant(const Network& network, float value, int images = 1) {
  const Activations& tensor = network.tensors[static_cast<std::size_t>(network.inputs[0])];
  return {tensor.name, std::vector<float>(static_cast<std::size_t>(images * tensor.elements()), value)};
}

CompileOptions options_of(const AskedPrecisions& asked, int batch) {
  CompileOptions options;
  options.batches = {batch};
  options.precisions = unmeasured(asked);
  return options;
}

// Nothing is joined.
CompiledGraphs as_it_is(const Network& network) {
  return [network](const LayerPrecisions&) { return ProgramGraphs(network); };
}

Calibrated calibrate_with(const Network& network, const CalibrateOptions& asked, int batch = 8) {
  return calibrate(network, options_of(asked.precisions, batch), asked, as_it_is(network), {});
}

std::vector<std::string> kept_in(const Calibrated& made) {
  std::vector<std::string> names;
  for (const auto& [layer, reason] : made.kept) {
    CHECK(made.precisions.of(layer) == Precision::fp32);
    names.push_back(layer);
  }
  return names;
}

const AskedPrecisions kAuto = {};
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("calibrate: sound layers are all in FP16") {
  const Network network = factors({1, 2, 0.5F});
  const Calibrated made = calibrate_with(network, {kAuto, {constant(network, 1)}, 1e-6});
  CHECK(made.kept.empty());
  CHECK(made.precisions == LayerPrecisions{Precision::fp16});
  CHECK(made.error == 0);
  CHECK(made.note ==
        "--precision auto: 0 of 3 layers stay in FP32; the network is then off by 0.0e+00 of its "
        "outputs, measured in float64 on 1 image (--max-error 1e-06)");
}

TEST_CASE("calibrate: errors are those of rounding to FP16") {
  const float step = 0x1p-12F;  // a quarter of FP16's step at 1
  const Network network = factors({1, 1});
  const double expected = step / (1 + step);
  for (const int batch : {1, 8}) {
    CAPTURE(batch);
    const Calibrated made = calibrate_with(network, {kAuto, {constant(network, 1 + step)}, 1e-2}, batch);
    CHECK(made.error == Approx(expected).epsilon(1e-6));
    const CompileOptions options = options_of(kAuto, batch);
    const SampleImages images{{constant(network, 1 + step).values}, 1};
    const GraphRounding rounding(network, options, images, StoredHalves::as_compiled, {});
    CHECK(rounding.overflows().empty());
    REQUIRE(rounding.layer_errors().size() == 2);
    CHECK(rounding.layer_errors().at("a") == Approx(expected).epsilon(1e-6));
    CHECK(rounding.layer_errors().at("b") == Approx(expected).epsilon(1e-6));
    CHECK(rounding.error({Precision::fp32}) == 0);
    CHECK(rounding.error({Precision::bf16}) == Approx(expected).epsilon(1e-6));  // whose steps are larger
  }
}

TEST_CASE("calibrate: weights are rounded, and of several images and batch sizes the worst counts") {
  const float step = 0x1p-12F;
  const Network network = factors({1 + step});
  CompileOptions options = options_of(kAuto, 1);
  options.batches = {1, 8};
  SampleImages images{{constant(network, 1, 2).values}, 2};
  const double of_weight = step / (1 + step);
  CHECK(GraphRounding(network, options, images, StoredHalves::as_compiled, {}).error(options.precisions) ==
        Approx(of_weight).epsilon(1e-6));
  const std::size_t image = images.inputs[0].size() / 2;
  std::fill(images.inputs[0].begin() + static_cast<std::ptrdiff_t>(image), images.inputs[0].end(), 1 + step);
  const double of_both = 1 - 1 / ((1.0 + step) * (1.0 + step));
  CHECK(GraphRounding(network, options, images, StoredHalves::as_compiled, {}).error(options.precisions) ==
        Approx(of_both).epsilon(1e-6));
}

TEST_CASE("calibrate: layers around a tensor beyond FP16 stay in FP32") {
  const Network network = factors({1, 300, 0x1p-8F, 1});
  const CalibrateOptions asked{kAuto, {constant(network, 300)}, 1e-2};
  const Calibrated many = calibrate_with(network, asked, 8);
  CHECK(kept_in(many) == Names{"b", "c"});
  CHECK(many.kept.at("b") == "'b_out' reaches 90000, beyond 65504, the largest number of FP16");
  CHECK(many.kept.at("c") == many.kept.at("b"));
  CHECK(many.error < 1e-3);
  // For few images tensors may be FP32, but that is for estimates to say, and all that could overflow counts.
  const Calibrated few = calibrate_with(network, asked, 1);
  CHECK(kept_in(few) == Names{"b", "c"});
  CHECK(few.error < 1e-3);
  // What was asked for is held to what is done: b makes no such tensor, which c alone would multiply.
  AskedPrecisions named;
  named.of_layers["b"] = Precision::fp16;
  CHECK(kept_in(calibrate_with(network, {named, asked.inputs, 1e-2}, 1)) == Names{"c"});
}

TEST_CASE("calibrate: what works on halves as they come overflows with the layer before it") {
  GraphBuilder graph;
  const int x = graph.input({1, kExtent, kExtent}, "x");
  const int a = graph.convolution(pointwise("a", 1, 1, {1}), {x}),
            b = graph.convolution(pointwise("b", 1, 1, {1}), {x});
  const int sum = graph.add("sum", Combine{Combination::add}, {a, b});
  const int c = graph.convolution(pointwise("c", 1, 1, {0x1p-8F}), {sum});
  const Network network = graph.finish({c});
  REQUIRE(verify(network).empty());
  const Calibrated made = calibrate_with(network, {kAuto, {constant(network, 60000)}, 1e-2});
  CHECK(kept_in(made) == Names{"a", "b", "c"});
  CHECK(made.kept.at("a") == "'sum_out' reaches 120000, beyond 65504, the largest number of FP16");
}

TEST_CASE("calibrate: sums of sums of what one layer made") {
  GraphBuilder graph;
  int tensor = graph.convolution(pointwise("a", 1, 1, {1}), {graph.input({1, kExtent, kExtent}, "x")});
  for (int i = 0; i < 60; ++i) tensor = graph.add(fmt::format("sum{}", i), Combine{Combination::add}, {tensor, tensor});
  const Network network = graph.finish({graph.convolution(pointwise("b", 1, 1, {0x1p-60F}), {tensor})});
  REQUIRE(verify(network).empty());
  const Calibrated made = calibrate_with(network, {kAuto, {constant(network, 1)}, 1e-2});
  CHECK(kept_in(made) == Names{"a", "b"});
  CHECK(made.kept.at("a") == "'sum15_out' reaches 65536, beyond 65504, the largest number of FP16");
}

TEST_CASE("calibrate: long names are cut, in reasons that packages keep more than in errors") {
  const std::string name(200, 'n');
  GraphBuilder graph;
  const int x = graph.input({1, kExtent, kExtent}, "x");
  const Network network = graph.finish({graph.convolution(pointwise(name, 1, 1, {70000}), {x})});
  const Calibrated made = calibrate_with(network, {kAuto, {constant(network, 1)}, 1e-2});
  REQUIRE(made.kept.contains(name));
  CHECK(made.kept.at(name) ==
        "a weight of '" + name.substr(0, 64) + "...' reaches 70000, beyond 65504, the largest number of FP16");
  CHECK_THAT(error_of([&] { (void)calibrate_with(network, {{Precision::fp16}, {constant(network, 0.5F)}, 1e-2}); },
                      ErrorKind::unsupported),
             Contains("a weight of '" + name.substr(0, 160) + "...' reaches 70000"));
}

TEST_CASE("calibrate: a weight beyond FP16 keeps its layer in FP32") {
  const Network network = factors({70000, 1});
  const Calibrated made = calibrate_with(network, {kAuto, {constant(network, 0.5F)}, 1e-2});
  CHECK(kept_in(made) == Names{"a"});
  CHECK(made.kept.at("a") == "a weight of 'a' reaches 70000, beyond 65504, the largest number of FP16");
}

TEST_CASE("calibrate: what overflows in a precision that was asked for is an error that names all such tensors") {
  const Network network = factors({1, 300, 1, 0x1p-8F});
  const std::string fault =
      error_of([&] { (void)calibrate_with(network, {{Precision::fp16}, {constant(network, 300)}, 1e-2}); },
               ErrorKind::unsupported);
  CHECK(fault ==
        "--precision fp16: beyond 65504, the largest number of FP16: 'b_out' reaches 90000, 'c_out' reaches 90000; "
        "--precision auto keeps such layers in FP32, and bf16 has the range of FP32");
  // bf16 has no such end; and a layer that was named is not changed.
  CHECK(calibrate_with(network, {{Precision::bf16}, {constant(network, 300)}, 1e-2}).kept.empty());
  AskedPrecisions named;
  named.of_layers["c"] = Precision::fp16;
  CHECK_THAT(
      error_of([&] { (void)calibrate_with(network, {named, {constant(network, 300)}, 1e-2}); }, ErrorKind::unsupported),
      Contains("'b_out' reaches 90000, 'c_out' reaches 90000"));
}

TEST_CASE("calibrate: the bound of an ill-conditioned layer is kept by FP32 alone") {
  // b makes 2^-12 x 1024 = 0.25 out of weights that are the same in FP16.
  const Network network =
      chain_of({pointwise("a", 1, 2, {1, 1}), pointwise("b", 2, 1, {1 + 0x1p-12F, -1}), pointwise("c", 1, 1, {1})});
  const Calibrated made = calibrate_with(network, {kAuto, {constant(network, 1024)}, 1e-2});
  CHECK(kept_in(made) == Names{"b"});
  CHECK(made.kept.at("b") == "in fp16 its outputs are off by 1.0e+00 of their root mean square");
  CHECK(made.error == 0);
  CHECK(calibrate_with(network, {kAuto, {constant(network, 1024)}, 1.5}).kept.empty());  // a bound that allows it
  AskedPrecisions named;
  named.of_layers["b"] = Precision::fp16;
  CHECK_THAT(error_of([&] { (void)calibrate_with(network, {named, {constant(network, 1024)}, 1e-2}); },
                      ErrorKind::unsupported),
             Contains("--precision auto: the network is off by 1.0e+00 of its outputs with every layer in FP32 "
                      "that may be, and --max-error allows 0.01"));
}

TEST_CASE("calibrate: as few layers as suffice") {
  // Each weight is off by another share in FP16.
  std::vector<float> weights;
  for (int i = 1; i <= 9; ++i) weights.push_back(1 + 0x1p-15F * static_cast<float>(i));
  const Network network = factors(weights);
  const CompileOptions options = options_of(kAuto, 1);
  const SampleImages images{{constant(network, 1).values}, 1};
  const GraphRounding rounding(network, options, images, StoredHalves::as_compiled, {});
  const double all = rounding.error(options.precisions);
  for (const double bound : {all * 0.9, all / 2, all / 5, 2e-6}) {
    CAPTURE(bound);
    const Calibrated made = calibrate_with(network, {kAuto, {constant(network, 1)}, bound}, 1);
    REQUIRE(!made.kept.empty());
    CHECK(made.error <= bound);
    CHECK(rounding.error(made.precisions) == made.error);
    // Those that were kept are off by the most, and the last of them was needed.
    std::string least;
    for (const auto& [layer, reason] : made.kept) {
      if (least.empty() || rounding.layer_errors().at(layer) < rounding.layer_errors().at(least)) least = layer;
    }
    for (const auto& [layer, error] : rounding.layer_errors()) {
      if (!made.kept.contains(layer)) CHECK(error <= rounding.layer_errors().at(least));
    }
    LayerPrecisions fewer = made.precisions;
    fewer.of_layers.erase(least);
    CHECK(rounding.error(fewer) > bound);
  }
}

TEST_CASE("calibrate: the bound is held by the graph that is compiled") {
  // As it is compiled, the weights of b and c are off by four and eight times as much in FP16.
  const Network network = factors({1, 1 + 0x1p-14F, 1 + 0x1p-15F}), joined = factors({1, 1 + 0x1p-12F, 1 + 0x1p-12F});
  std::vector<LayerPrecisions> asked_for;
  const auto compiled = [&](const LayerPrecisions& precisions) {
    asked_for.push_back(precisions);
    return joined;
  };
  const CalibrateOptions asked{kAuto, {constant(network, 1)}, 1.5e-4};
  CHECK(kept_in(calibrate_with(network, asked, 1)).empty());
  const Calibrated made = calibrate(network, options_of(kAuto, 1), asked, compiled, {});
  CHECK(kept_in(made) == Names{"a", "b", "c"});  // c, then twice as many
  CHECK(made.kept.at("c") == "with fewer layers in FP32 the network, as it is compiled, is beyond --max-error");
  CHECK(made.error < 1e-6);
  REQUIRE(asked_for.size() == 3);
  CHECK(asked_for.front().of("c") == Precision::fp16);
  CHECK(asked_for.back().of("c") == Precision::fp32);
  // An error of what was asked for is that of the graph that is compiled, and nothing is kept for it.
  const Calibrated fixed = calibrate(network, options_of({Precision::fp16}, 1),
                                     {{Precision::fp16}, asked.inputs, asked.max_error}, compiled, {});
  CHECK(fixed.kept.empty());
  CHECK(fixed.error == Approx(0x1p-11).epsilon(1e-3));
}

TEST_CASE("calibrate: fully connected layers stay in FP32 like others, but for weights that are stored as FP16") {
  GraphBuilder graph;
  const int x = graph.input({1, 1, 1}, "x");
  const int a = graph.convolution(pointwise("a", 1, 1, {1}), {x});
  Linear linear;
  linear.in_features = linear.out_features = 1;
  linear.weights = {1 + 0x1p-11F};
  const int flat = graph.add("flat", Reshape{{1}}, {a});
  const Network network = graph.finish({graph.add("fc", linear, {flat})});
  REQUIRE(verify(network).empty());
  CompileOptions options = options_of(kAuto, 1);
  const CalibrateOptions asked{kAuto, {constant(network, 1)}, 1e-6};
  CHECK(kept_in(calibrate(network, options, asked, as_it_is(network), {})) == Names{"fc"});
  options.linear_storage = ElementType::f16;
  CHECK_THAT(error_of([&] { (void)calibrate(network, options, asked, as_it_is(network), {}); }, ErrorKind::unsupported),
             Contains("with every layer in FP32 that may be"));
}

TEST_CASE("calibrate: separate layers are bounded each by itself") {
  Network network;
  network.source = "layers";
  network.layers = {pointwise("a", 1, 1, {1}), pointwise("b", 2, 1, {1 + 0x1p-12F, -1})};
  for (ConvLayer& layer : network.layers) layer.shape.in_h = layer.shape.in_w = kExtent;
  separate_layers(network);
  REQUIRE(verify(network).empty());
  const std::vector<CalibrationInput> inputs = {{"a.input", std::vector<float>(16, 1)},
                                                {"b.input", std::vector<float>(32, 1)}};
  const Calibrated made = calibrate_with(network, {kAuto, inputs, 1e-2}, 2);
  CHECK(kept_in(made) == Names{"b"});
  CHECK_THAT(made.note, Contains("1 of 2 layers stay in FP32; the worst layer is then off by"));
}

TEST_CASE("calibrate: without inputs random ones are taken, and the note says so") {
  const Network network = factors({1, 1});
  const Calibrated made = calibrate_with(network, {kAuto, {}, 1e-2});
  CHECK(made.error > 1e-5);
  CHECK(made.error < 1e-3);
  CHECK_THAT(made.note, Contains("on 4 random images") && Contains("--calibrate takes real ones"));
}

TEST_CASE("calibrate: inputs that do not fit") {
  GraphBuilder graph;
  const int x = graph.input({1, 2, 2}, "x"), y = graph.input({1, 2, 2}, "y");
  const int a = graph.convolution(pointwise("a", 1, 1, {1}), {x});
  const Network network = graph.finish({graph.add("sum", Combine{Combination::add}, {a, y})});
  const auto fault = [&](ErrorKind kind, const std::vector<CalibrationInput>& inputs) {
    return error_of([&] { (void)calibrate_with(network, {kAuto, inputs, 1e-2}); }, kind);
  };
  const std::vector<float> one(4, 1), two(8, 1);
  CHECK(fault(ErrorKind::usage, {{"x", one}}) == "--calibrate: nothing is given for the input 'y'");
  CHECK(fault(ErrorKind::bad_input, {{"x", one}, {"y", two}}) ==
        "--calibrate: 2 images of the input 'y', but 1 of 'x'");
  CHECK(fault(ErrorKind::bad_input, {{"x", {1, 2, 3}}, {"y", one}}) ==
        "--calibrate: 3 values are no images of the input 'x', which has 4");
  CHECK(fault(ErrorKind::bad_input, {{"x", {}}, {"y", one}}) ==
        "--calibrate: 0 values are no images of the input 'x', which has 4");
  CHECK(fault(ErrorKind::bad_input, {{"x", one}, {"y", {1, 2, 3, std::numeric_limits<float>::quiet_NaN()}}}) ==
        "--calibrate: the images of the input 'y' hold NaN or infinity");
}

TEST_CASE("calibrate: progress counts images, up to its total") {
  const Network network = factors({1 + 0x1p-12F, 1 + 0x1p-13F});
  int calls = 0, last = 0;
  bool within = true;
  (void)calibrate(network, options_of(kAuto, 1), {kAuto, {constant(network, 1, 3)}, 1e-5}, as_it_is(network),
                  [&](const CalibrateProgress& state) {
                    ++calls;
                    within = within && state.done == last + 1 && state.done <= state.total;
                    last = state.done;
                  });
  CHECK(within);
  CHECK(calls >= 9);  // exact, all in halves, none
}
