// Convolutions of floats on the tensor cores of warpgroups, in TF32: what comes out, on the edge list and on random
// shapes: on the host executor, against the float64 reference.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "compiler/providers/conv_warpgroup/tiles.h"
#include "compiler/providers/conv_warpgroup_tf32/tiles.h"
#include "compiler/providers/provider.h"
#include "compiler/providers/template_provider.h"
#include "ir/arch.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/ir/random_layers.h"
#include "test/providers/provider_check.h"
#include "test/providers/tensor_cores.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr const char* kTf32Provider = "conv_warpgroup_tf32";

// A layer in n4c8hw, whose inputs are rounded for the tolerance.
struct FloatCase {
  OperatorCase edge;
  ProviderCheck check;

  explicit FloatCase(const ConvLayer& source, int batch, int tuned_batch = 0)
      : edge{source.name, Convolution{}, {}, sum_tolerance(source), with_weights_of(FactorType::tf32, source)} {
    edge.from = edge.to = {ElementType::f32, TensorLayout::n4c8hw};
    check.tolerance = edge.tolerance;
    check.factors = FactorType::tf32;
    check.batches = {batch};
    check.tuned_batch = tuned_batch == 0 ? batch : tuned_batch;
  }

  std::vector<Candidate> propose(const Network& network, const ProposeOptions& options) const {
    return find_provider(kTf32Provider)->propose(task_of(network, network.operators.back(), check), options);
  }
  // Checks up to `count` candidates; how many there were.
  int run(int count = 1) const {
    const Network network = network_of(edge);
    int checked = 0;
    for (const Candidate& candidate : propose(network, {.count = count})) {
      INFO(candidate.plan);
      CHECK(check_candidate(network, network.operators.back(), candidate, check) == "");
      ++checked;
    }
    return checked;
  }
};

ConvLayer float_layer(int in, int out, int size, int filter, int groups, double density, bool residual = false,
                      int stride = 1) {
  return *convolution_case("floats", in, out, size, filter, stride, filter / 2, density, residual, groups).layer;
}

bool is_expected_in_tf32(const ConvShape& shape) {
  const Epilogue& epilogue = shape.epilogue;
  return !epilogue.filters() &&
         (shape.groups == 1 || (shape.channels_per_group() % 8 == 0 && shape.outputs_per_group() % 8 == 0));
}

void check_float_edge(const char* name) {
  const EdgeCase& edge = edge_case(name);
  const ConvLayer source = edge.make_layer();
  const int fewest = std::min(source.shape.channels_per_group(), source.shape.outputs_per_group());
  const ConvLayer layer = source.shape.groups == 1 ? source : with_more_channels(source, (7 + fewest) / fewest);
  REQUIRE(verify(layer).empty());
  const int checked = FloatCase(layer, edge.batch).run();
  CHECK((checked > 0) == is_expected_in_tf32(layer.shape));
}

}  // namespace

#define EDGE_CASE(name, batch, layer) \
  TEST_CASE("convolution of warpgroups in TF32: " #name) { check_float_edge(#name); }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

TEST_CASE("convolution of warpgroups in TF32: every kind of tiles") {
  int checked = 0;
  std::set<int> octets, outputs, pixels, chunks;
  for (const ConvLayer& layer : {float_layer(40, 150, 9, 3, 1, 0.3), float_layer(70, 70, 9, 1, 1, 0.3, true),
                                 float_layer(40, 70, 13, 3, 1, 0.3, false, 2)}) {
    const FloatCase floats(layer, 3, 32);
    const Network network = network_of(floats.edge);
    std::set<std::pair<int, int>> of_octets, of_groups;
    for (const Candidate& candidate : floats.propose(network, {.count = 1000})) {
      const TemplatePlan plan = parse_template_plan(candidate.plan);
      const auto of = [&](const char* choice) { return plan.integers.at(choice); };
      const bool is_new = of_octets.insert({of("output_octets"), of("chunk_channels")}).second;
      if (!of_groups.insert({of("output_groups"), of("pixel_groups")}).second && !is_new) continue;
      INFO(candidate.plan);
      CHECK(check_candidate(network, network.operators.back(), candidate, floats.check) == "");
      octets.insert(of("output_octets"));
      outputs.insert(of("output_groups"));
      pixels.insert(of("pixel_groups"));
      chunks.insert(of("chunk_channels"));
      ++checked;
    }
  }
  CHECK(checked >= 20);
  CHECK(octets.size() >= 3);
  CHECK(outputs.size() >= 2);
  CHECK(pixels.size() >= 2);
  CHECK(chunks.size() >= 3);
}

TEST_CASE("convolution of warpgroups in TF32: few buffers and many, and blocks with several tiles") {
  for (const ConvLayer& layer : {float_layer(70, 70, 9, 3, 1, 0.3, true), float_layer(100, 40, 9, 1, 1, 0.3)}) {
    const FloatCase floats(layer, 9, 32);
    const Network network = network_of(floats.edge);
    for (const int buffers : {2, 3, 4}) {
      for (const int chunk : {8, 16}) {
        const auto plan = fmt::format("chunk_channels={},buffers={},set_blocks=1,output_octets=4", chunk, buffers);
        const std::vector<Candidate> candidates = floats.propose(network, {.plan = plan});
        REQUIRE(candidates.size() == 1);
        INFO(candidates[0].plan);
        CHECK(check_candidate(network, network.operators.back(), candidates[0], floats.check) == "");
      }
    }
  }
}

TEST_CASE("convolution of warpgroups in TF32: batches that fill no four images, channels that fill no octet, groups") {
  for (const int batch : {1, 3, 4, 5, 9}) {
    INFO("batch " << batch);
    CHECK(FloatCase(float_layer(24, 40, 7, 3, 1, 0.3, true), batch).run(2) == 2);
  }
  for (const int channels : {1, 3, 17, 31, 65}) {
    INFO(channels << " channels");
    CHECK(FloatCase(float_layer(channels, channels, 6, 3, 1, 0.5), 5).run(3) > 0);
  }
  CHECK(FloatCase(float_layer(48, 80, 6, 3, 2, 0.3, true), 5).run(4) > 0);
}

TEST_CASE("convolution of warpgroups in TF32: dense weights, and none") {
  CHECK(FloatCase(float_layer(32, 64, 6, 3, 1, 1), 5).run(2) > 0);
  CHECK(FloatCase(float_layer(32, 64, 6, 3, 1, 0), 5).run(2) > 0);
}

TEST_CASE("convolution of warpgroups in TF32: a residual before and behind the function") {
  for (const bool last : {false, true}) {
    ConvLayer layer = float_layer(24, 40, 9, 3, 1, 0.5, true);
    layer.shape.epilogue.function = function_of(Activation::relu);
    layer.shape.epilogue.residual_last = last;
    CHECK(FloatCase(layer, 5).run(2) == 2);
  }
}

TEST_CASE("convolution of warpgroups in TF32: every kind of pool, behind every kind of tiles") {
  int checked = 0;
  std::set<int> octets, outputs, pixels, buffers;
  for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
    for (const Pool& pool : {window_of(kind, 2, 2), window_of(kind, 3, 2), window_of(kind, 3, 2, 1),
                             window_of(kind, 3, 1, 1), window_of(kind, 2, 3)}) {
      const bool adds = pool.stride_h == 2;
      ConvLayer layer = float_layer(24, 70, 11, 3, 1, 0.4, adds);
      layer.shape.epilogue.pool = pool;
      layer.shape.epilogue.function = function_of(Activation::relu);
      INFO(describe(layer.shape));
      REQUIRE(verify(layer).empty());
      const FloatCase floats(layer, 5, 32);
      const Network network = network_of(floats.edge);
      std::set<int> seen;
      for (const Candidate& candidate : floats.propose(network, {.count = 1000})) {
        const TemplatePlan plan = parse_template_plan(candidate.plan);
        const auto of = [&](const char* choice) { return plan.integers.at(choice); };
        if (!seen.insert(of("pixel_groups")).second && outputs.contains(of("output_groups"))) continue;
        INFO(candidate.plan);
        CHECK(check_candidate(network, network.operators.back(), candidate, floats.check) == "");
        octets.insert(of("output_octets"));
        outputs.insert(of("output_groups"));
        pixels.insert(of("pixel_groups"));
        buffers.insert(of("buffers"));
        ++checked;
      }
    }
  }
  CHECK(checked >= 30);
  CHECK(octets.size() >= 2);
  CHECK(outputs.size() >= 2);
  CHECK(pixels.size() >= 3);
  CHECK(buffers.size() >= 2);
}

TEST_CASE("convolution of warpgroups in TF32: pools of blocks with several tiles, of few chunks and of many") {
  for (const int channels : {8, 40}) {
    ConvLayer layer = float_layer(channels, 40, 12, 3, 1, 0.4);
    layer.shape.epilogue.pool = window_of(PoolKind::max, 2, 2);
    const FloatCase floats(layer, 9, 32);
    const Network network = network_of(floats.edge);
    for (const int buffers : {2, 3, 4}) {
      for (const char* outputs : {"output_octets=2", "output_octets=4", "output_octets=2,output_groups=2"}) {
        const auto plan = fmt::format("chunk_channels=8,buffers={},set_blocks=1,{}", buffers, outputs);
        const std::vector<Candidate> candidates = floats.propose(network, {.plan = plan});
        REQUIRE(candidates.size() == 1);
        INFO(candidates[0].plan);
        CHECK(check_candidate(network, network.operators.back(), candidates[0], floats.check) == "");
      }
    }
  }
}

TEST_CASE("convolution of warpgroups in TF32: slices of other tensors, behind which nothing is multiplied") {
  // In words of an image: four octets of channels; three and a half, in chunks of two and more.
  for (const int channels : {32, 28}) {
    FloatCase floats(float_layer(channels, 40, 5, 3, 1, 0.3, true), 5);
    for (const int before : {0, 8 * 25 * 4}) {
      floats.check.before = before;
      floats.check.behind = 8 * 25 * 4;
      CHECK(floats.run(3) == 3);
    }
  }
}

TEST_CASE("convolution of warpgroups in TF32: who cannot") {
  const auto can = [](const FloatCase& floats) {
    const Network network = network_of(floats.edge);
    return find_provider(kTf32Provider)->can_do(task_of(network, network.operators.back(), floats.check));
  };
  const ConvLayer layer = float_layer(32, 32, 9, 1, 1, 0.3);
  CHECK(can(FloatCase(layer, 8)));
  FloatCase exact(layer, 8);
  exact.check.factors = FactorType::f32;
  CHECK(!can(exact));
  FloatCase plain(layer, 8);
  plain.edge.from = plain.edge.to = {};
  CHECK(!can(plain));
  CHECK(!can(FloatCase(float_layer(24, 24, 9, 3, 6, 0.3), 8)));
}

TEST_CASE("convolution of warpgroups in TF32: who says that it can has tiles") {
  int can = 0, cannot = 0;
  for (const int size : {1, 3, 9, 30, 900}) {
    for (const int filter : {1, 3, 8, 11}) {
      for (const auto& [dilation, stride] : {std::pair{1, 1}, {24, 1}, {1, 90}, {5, 90}}) {
        ConvLayer layer = float_layer(8, 16, size, 1, 1, 1);
        ConvShape& shape = layer.shape;
        shape.kernel_h = shape.kernel_w = filter;
        shape.dilation_h = shape.dilation_w = dilation;
        shape.stride_h = shape.stride_w = stride;
        const int pad = (filter - 1) * dilation;
        shape.pad = {pad, pad, pad, pad};
        const bool has_tiles = has_float_tiles(warpgroup_shape(shape), arch_by_name("sm_90"));
        INFO(describe(shape));
        CHECK(choose_warpgroup_floats(warpgroup_shape(shape), 8, arch_by_name("sm_90")).empty() == !has_tiles);
        ++(has_tiles ? can : cannot);
      }
    }
  }
  int pooled = 0;
  for (const auto& [kernel, stride, size] : {std::tuple{2, 2, 20},
                                             {3, 2, 14},
                                             {5, 5, 35},
                                             {6, 6, 24},
                                             {7, 7, 21},
                                             {7, 7, 49},
                                             {8, 8, 24},
                                             {3, 1, 3},
                                             {12, 12, 24},
                                             {11, 1, 40}}) {
    ConvLayer layer = float_layer(8, 16, size, 3, 1, 1);
    layer.shape.epilogue.pool = window_of(PoolKind::max, kernel, stride);
    const bool has_tiles = has_float_tiles(warpgroup_shape(layer.shape), arch_by_name("sm_90"));
    INFO(describe(layer.shape));
    CHECK(choose_warpgroup_floats(warpgroup_shape(layer.shape), 8, arch_by_name("sm_90")).empty() == !has_tiles);
    pooled += has_tiles ? 1 : 0;
  }
  CHECK(pooled >= 6);
  CHECK(pooled < 10);
  CHECK(can > 20);
  CHECK(cannot >= 8);  // more pixels between two that are read than a box has
}

TEST_CASE("convolution of warpgroups in TF32: all parts that a filter may be multiplied in") {
  int checked = 0;
  for (const ConvLayer& layer : far_reaching_layers()) {
    const FloatCase floats(layer, 3, 32);
    const Network network = network_of(floats.edge);
    for (const std::string& parts : choices_of_parts(layer)) {
      INFO(describe(layer.shape) << ": " << parts);
      std::vector<Candidate> candidates;
      try {
        candidates = floats.propose(network, {.plan = parts});
      } catch (const Error& error) {
        REQUIRE_THAT(error.what(), Contains("do not fit"));
        continue;
      }
      REQUIRE(candidates.size() == 1);
      INFO(candidates[0].plan);
      CHECK(check_candidate(network, network.operators.back(), candidates[0], floats.check) == "");
      ++checked;
    }
  }
  CHECK(checked >= 15);
}

TEST_CASE(
    "convolution of warpgroups in TF32: the packed weights are rounded, each once, in the order that lanes read") {
  const ConvLayer layer = float_layer(20, 30, 6, 3, 1, 0.6);
  const ConvShape shape = warpgroup_shape(layer.shape);
  WarpgroupFloatTiles tiles;
  tiles.output_octets = 2;
  tiles.output_groups = 2;
  tiles.chunk_channels = 16;
  tiles.part_rows = tiles.part_cols = 3;
  const std::vector<std::uint32_t> words = pack_warpgroup_floats(layer, shape, tiles);
  REQUIRE(static_cast<std::int64_t>(words.size()) == packed_words(shape, tiles));
  // Output 21 is number 5 of the first octet of the second group: column 2 * 1 + 1. Channel 18 is in the second chunk,
  // number 2 of the first octet: row 1.
  const int step = 4, steps = 2 * 9;
  const std::size_t panel = std::size_t{1} * 2 + 1;
  const std::size_t word = ((panel * steps + step) * 2 + 0) * 64 + 0 * 32 + 3 * 4 + 1;
  CHECK(std::bit_cast<float>(words[word]) == rounded(FactorType::tf32, layer.weight(21, 18, 1, 1)));
  std::multiset<float> packed, expected;
  for (const float weight : layer.weights) {
    if (weight != 0) expected.insert(rounded(FactorType::tf32, weight));
  }
  const std::size_t biases = words.size() - static_cast<std::size_t>(tiles.sets(shape) * tiles.block_outputs());
  for (std::size_t i = 0; i < biases; ++i) {
    if (words[i] != 0) packed.insert(std::bit_cast<float>(words[i]));
  }
  CHECK(packed == expected);
}

TEST_CASE("convolution of warpgroups in TF32: random shapes") {
  std::mt19937 generator(20261126);
  int checked = 0;
  for (int i = 0; i < 40; ++i) {
    const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(generator); };
    const int filter = 1 + 2 * draw(0, 2), groups = draw(0, 4) == 0 ? 2 : 1, unit = groups == 1 ? 1 : 8;
    const int in = groups * unit * draw(1, 40 / unit), out = groups * unit * draw(1, 80 / unit);
    ConvLayer layer =
        float_layer(in, out, draw(1, 14), filter, groups, 0.05 + 0.1 * draw(0, 9), draw(0, 1) != 0, draw(1, 2));
    const int side = draw(1, 4);
    if (std::min(layer.shape.conv_h(), layer.shape.conv_w()) >= side) {
      Pool pool =
          window_of(draw(0, 1) != 0 ? PoolKind::max : PoolKind::average, side, draw(1, 3), side > 1 ? draw(0, 1) : 0);
      pool.round_up = draw(0, 1) != 0;
      pool.count_padding = draw(0, 1) != 0;
      layer.shape.epilogue.pool = pool;
    }
    INFO(describe(layer.shape));
    checked += FloatCase(layer, draw(1, 9)).run();
  }
  CHECK(checked >= 35);
}
