// Which tensors of a graph lie in nchw8: held to all choices that there are.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "compiler/choose/choose.h"
#include "compiler/choose/place_choice.h"
#include "test/catch.h"
#include "test/ir/small_network.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr double kNobody = std::numeric_limits<double>::infinity();

ConvLayer pointwise(const std::string& name, bool residual = false, int channels = 8) {
  ConvLayer layer;
  layer.name = name;
  layer.shape.in_channels = layer.shape.out_channels = channels;
  layer.shape.kernel_h = layer.shape.kernel_w = 1;
  layer.shape.epilogue.residual = residual;
  layer.weights.assign(static_cast<std::size_t>(channels * channels), 0.5F);
  return layer;
}

LayerPrecisions in_fp16() {
  LayerPrecisions precisions;
  precisions.all = Precision::fp16;
  return precisions;
}

bool is_places(const TensorFormat& format) { return format.layout == TensorLayout::nchw8; }

// Each plain side takes as much as two of places.
double rather_in_places(const Operator&, const ConvLayer&, const ConvolutionFormats& formats) {
  return (is_places(formats.input) ? 1 : 2) + (is_places(formats.output) ? 1 : 2);
}

// The convolutions, each with what it reads and writes in places: "a -x b xx".
std::string text_of(const Network& network, const std::map<std::string, ConvolutionFormats>& chosen) {
  std::string text;
  for (const Operator& op : network.operators) {
    if (!std::holds_alternative<Convolution>(op.kind)) continue;
    const auto found = chosen.find(op.name);
    const ConvolutionFormats formats = found == chosen.end() ? ConvolutionFormats{} : found->second;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : " ", op.name, is_places(formats.input) ? 'x' : '-',
                        is_places(formats.output) ? 'x' : '-');
  }
  return text;
}
std::string chosen_for(const Network& network, const ConvolutionTime& time = rather_in_places,
                       const LayerPrecisions& precisions = in_fp16()) {
  REQUIRE(verify(network).empty());
  const PlaceChoice choice = choose_places(network, precisions, 1, time);
  CHECK(choice.exact);
  const auto& chosen = choice.formats;
  if (!chosen.empty()) {
    const Network formatted = assign_formats(network, [&](const Operator& op, const ConvLayer&) {
                                const auto found = chosen.find(op.name);
                                return found == chosen.end() ? ConvolutionFormats{} : found->second;
                              }).network;
    CHECK(verify(formatted) == std::vector<std::string>{});
    for (const Operator& op : formatted.operators) CHECK_FALSE(std::holds_alternative<Convert>(op.kind));
  }
  return text_of(network, chosen);
}

}  // namespace

TEST_CASE("choose_places: between convolutions, not at the ends of the network") {
  GraphBuilder graph;
  const int x = graph.input({8, 4, 4});
  int y = graph.convolution(pointwise("a"), {x});
  y = graph.convolution(pointwise("b"), {y});
  y = graph.convolution(pointwise("c"), {y});
  const Network network = graph.finish({y});
  CHECK(chosen_for(network) == "a -x b xx c x-");
  const auto rather_plain = [](const Operator& op, const ConvLayer& layer, const ConvolutionFormats& formats) {
    return 5 - rather_in_places(op, layer, formats);
  };
  CHECK(chosen_for(network, rather_plain) == "a -- b -- c --");
  LayerPrecisions mixed = in_fp16();
  mixed.of_layers["b"] = Precision::fp32;
  CHECK(chosen_for(network, rather_in_places, mixed) == "a -- b -- c --");
  mixed.of_layers["b"] = Precision::bf16;
  CHECK(chosen_for(network, rather_in_places, mixed) == "a -- b -- c --");
  mixed.all = Precision::fp16x2;
  mixed.of_layers.clear();
  CHECK(chosen_for(network, rather_in_places, mixed) == "a -- b -- c --");
}

TEST_CASE("choose_places: what is added lies as the output does, and what others read is plain") {
  GraphBuilder graph;
  const int x = graph.input({8, 4, 4});
  const int a = graph.convolution(pointwise("a"), {x}), b = graph.convolution(pointwise("b"), {a});
  const int c = graph.convolution(pointwise("c", true), {b, a});
  const int d = graph.convolution(pointwise("d"), {graph.add("pool", Pool{.kernel_h = 2, .kernel_w = 2}, {c})});
  const int mean = graph.add("mean", GlobalAveragePool{}, {d});
  const Network network = graph.finish({mean});
  CHECK(chosen_for(network) == "a -x b xx c xx d x-");
}

TEST_CASE("choose_places: concatenations of whole places, and of others") {
  for (const int channels : {8, 12}) {
    GraphBuilder graph;
    const int x = graph.input({channels, 4, 4});
    const int a = graph.convolution(pointwise("a", false, channels), {x});
    const int b = graph.convolution(pointwise("b", false, channels), {x});
    const int both = graph.add("both", Concat{0}, {a, b});
    const Network network = graph.finish({graph.convolution(pointwise("c", false, 2 * channels), {both})});
    CHECK(chosen_for(network) == (channels == 8 ? "a -x b -x c x-" : "a -- b -- c --"));
  }
}

TEST_CASE("choose_places: a tensor stays plain where a convolution has no kernel for it") {
  GraphBuilder graph;
  int y = graph.input({8, 4, 4});
  for (const char* name : {"a", "b", "c", "d"}) y = graph.convolution(pointwise(name), {y});
  const Network network = graph.finish({y});
  const auto nobody_reads_c = [](const Operator& op, const ConvLayer& layer, const ConvolutionFormats& formats) {
    return op.name == "c" && is_places(formats.input) ? kNobody : rather_in_places(op, layer, formats);
  };
  CHECK(chosen_for(network, nobody_reads_c) == "a -x b x- c -x d x-");
  const auto nobody = [](const Operator& op, const ConvLayer& layer, const ConvolutionFormats& formats) {
    const bool plain = !is_places(formats.input) && !is_places(formats.output);
    return plain ? rather_in_places(op, layer, formats) : kNobody;
  };
  CHECK(chosen_for(network, nobody) == "a -- b -- c -- d --");
}

namespace {

struct RandomChoice {
  Network network;
  std::map<std::string, std::vector<double>> us;  // of each convolution, of its four ways
};

RandomChoice random_choice(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int low, int high) { return low + static_cast<int>(random() % (high - low + 1)); };
  RandomChoice made;
  GraphBuilder graph;
  std::vector<int> tensors = {graph.input({8, 4, 4})};
  const int count = draw(2, 8);
  for (int i = 0; i < count; ++i) {
    const std::string name = "c" + std::to_string(i);
    const int read = tensors[static_cast<std::size_t>(draw(std::max(0, i - 2), i))];
    const int added = tensors[static_cast<std::size_t>(draw(0, i))];
    const bool residual = draw(0, 3) == 0;
    std::vector<int> inputs = {read};
    if (residual) inputs.push_back(added);
    tensors.push_back(graph.convolution(pointwise(name, residual), inputs));
    for (int way = 0; way < 4; ++way) made.us[name].push_back(draw(10, 40) / (way == 3 ? 12.0 : 10.0));
  }
  made.network = graph.finish({tensors.back()});
  return made;
}

std::size_t way_of(const ConvolutionFormats& formats) {
  return (is_places(formats.input) ? 1U : 0U) + (is_places(formats.output) ? 2U : 0U);
}

// The least of all choices, a bit for each tensor.
double least_us(const RandomChoice& of) {
  const Network& network = of.network;
  double least = kNobody;
  for (std::size_t bits = 0; bits < std::size_t{1} << network.tensors.size(); ++bits) {
    const auto places = [&](int tensor) { return (bits >> tensor & 1U) != 0; };
    bool legal = !places(network.inputs.front()) && !places(network.outputs.front());
    double us = 0;
    for (const Operator& op : network.operators) {
      if (op.inputs.size() > 1 && places(op.inputs[1]) != places(op.output)) legal = false;
      us += of.us.at(op.name)[(places(op.inputs[0]) ? 1U : 0U) + (places(op.output) ? 2U : 0U)];
    }
    if (legal) least = std::min(least, us);
  }
  return least;
}

}  // namespace

TEST_CASE("choose_places: on small random graphs the best of all choices") {
  constexpr int kGraphs = 200;
  int mixed = 0;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    INFO("graph " << seed);
    const RandomChoice of = random_choice(seed);
    const PlaceChoice chosen = choose_places(
        of.network, in_fp16(), 1, [&](const Operator& op, const ConvLayer&, const ConvolutionFormats& formats) {
          return of.us.at(op.name)[way_of(formats)];
        });
    double us = 0;
    for (const Operator& op : of.network.operators) {
      const auto found = chosen.formats.find(op.name);
      us += of.us.at(op.name)[found == chosen.formats.end() ? 0 : way_of(found->second)];
    }
    CHECK(chosen.exact);
    CHECK(us == Approx(least_us(of)));
    mixed += !chosen.formats.empty() && chosen.formats.size() < of.network.operators.size() ? 1 : 0;
  }
  CHECK(mixed >= kGraphs / 4);
}

// Concatenations of what convolutions make of all concatenations before: any two hang together.
TEST_CASE("choose_places: where tensors hang together in too many ways it has searched, and a note says so") {
  constexpr int kTensors = 22;
  GraphBuilder graph;
  std::vector<int> tensors = {graph.convolution(pointwise("stem"), {graph.input({8, 4, 4})})};
  for (int i = 1; i < kTensors; ++i) {
    std::vector<int> parts;
    for (int j = 0; j < i; ++j) {
      const int channels = 8 * std::max(j, 1);
      ConvLayer layer = pointwise(fmt::format("c{}_{}", i, j), false, channels);
      layer.shape.out_channels = 8;
      layer.weights.resize(static_cast<std::size_t>(8 * channels));
      parts.push_back(graph.convolution(layer, {tensors[static_cast<std::size_t>(j)]}));
    }
    tensors.push_back(i == 1 ? parts.front() : graph.add(fmt::format("all{}", i), Concat{0}, parts));
  }
  const int channels = 8 * (kTensors - 1);
  const Network network = graph.finish({graph.convolution(pointwise("end", false, channels), {tensors.back()})});
  REQUIRE(verify(network).empty());
  const PlaceChoice chosen = choose_places(network, in_fp16(), 1, rather_in_places);
  CHECK_FALSE(chosen.exact);
  CHECK(chosen.formats.size() == network.layers.size());

  CompileOptions options;
  options.archs = {"sm_90"};
  options.precisions = in_fp16();
  const Network formatted = in_formats(network, options, 1);
  REQUIRE(formatted.notes.size() == 1);
  CHECK(formatted.notes.front().find("at batch 1 too many tensors hang together") != std::string::npos);
}
