// conv_zero_skip beyond what all convolutions are tested for: inputs with zeros, its plans, what its model says of
// zeros.

#include <cmath>
#include <limits>

#include "compiler/choose/choose.h"
#include "compiler/choose/pays_from.h"
#include "compiler/program_tasks.h"
#include "compiler/providers/conv_zero_skip/zero_skip_tiles.h"
#include "compiler/synthetic_zeros.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/ir/random_layers.h"
#include "test/providers/provider_check.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr const char* kName = "conv_zero_skip";

// A layer with some of everything, whose columns are several lists.
ConvLayer sample(int outputs = 21, double density = 0.9) {
  ConvShape shape;
  shape.in_channels = 19;
  shape.out_channels = outputs;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  shape.in_h = 5;
  shape.in_w = 6;
  shape.epilogue.bias = shape.epilogue.residual = true;
  shape.epilogue.function = function_of(Activation::relu);
  return make_layer("sample", shape, density);
}

ProviderCheck with_zeros(double share) {
  ProviderCheck check;
  check.batches = {2};
  check.zeros.share = share;
  check.tolerance = 2e-5;
  return check;
}

// The plan of the layer with these choices, as the provider makes it.
std::string check_plan(const ConvLayer& layer, const std::string& choices, const ProviderCheck& check) {
  const Network network = network_of(layer);
  const Operator& op = network.operators.back();
  const std::vector<Candidate> made = find_provider(kName)->propose(task_of(network, op, check), {.plan = choices});
  if (made.empty()) return "there is no such plan";
  return check_candidate(network, op, made.front(), check);
}

double us(const ConvLayer& layer, double share, int batch) {
  const Network network = network_of(layer);
  Task task = task_of(network, network.operators.back(), {.batches = {batch}, .tuned_batch = batch});
  task.zeros = count_synthetic({.share = share}, layer.shape.in_channels, layer.shape.in_h, layer.shape.in_w);
  return find_provider(kName)->propose(task, {}).front().estimate.us;
}

ConvLayer large() {
  ConvShape shape;
  shape.in_channels = shape.out_channels = 256;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  shape.in_h = shape.in_w = 14;
  return make_layer("large", shape, 1);
}

}  // namespace

TEST_CASE("zero skip: any share of zeros, all of them too") {
  const ConvLayer layer = sample();
  for (const double share : {0.0, 0.3, 0.8, 0.97, 1.0}) {
    INFO(share);
    const Network network = network_of(layer);
    const ProviderCheck check = with_zeros(share);
    CHECK(check_candidate(network, network.operators.back(),
                          candidate_of(task_of(network, network.operators.back(), check), kName), check) == "");
  }
}

TEST_CASE("zero skip: NaN and infinity are no zeros, and zeros beside them are left out") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  ProviderCheck check = with_zeros(0.7);
  check.special = {0.0F, std::numeric_limits<float>::quiet_NaN(), -0.0F, kInfinity, 0.0F, 1.0F, -kInfinity};
  // Zeros of the weights are multiplied, of which an infinite input makes NaN.
  for (const int outputs : {3, 40}) CHECK(check_plan(sample(outputs, 1), "", check) == "");
}

TEST_CASE("zero skip: every way to divide the work") {
  const ConvLayer layer = sample();
  const ProviderCheck check = with_zeros(0.6);
  for (const char* plan :
       {"pixels=1,output_quads=1,column_lanes=4", "pixels=2,output_quads=1,column_lanes=4,exact=1",
        "pixels=4,output_quads=2,column_lanes=8,at_once=4", "pixels=8,output_quads=1,column_lanes=1,exact=1",
        "pixels=3,output_quads=1,column_lanes=2,runs=4", "pixels=9,output_quads=2,column_lanes=16,at_once=2",
        "pixels=4,output_quads=1,column_lanes=32,at_once=1", "pixels=2,split_warps=4,pixel_warps=2,cluster=1",
        "pixels=2,split_warps=1,pixel_warps=4,cluster=2", "pixels=1,split_warps=2,pixel_warps=1,cluster=2"}) {
    INFO(plan);
    CHECK(check_plan(layer, plan, check) == "");
  }
}

TEST_CASE("zero skip: four pixels at once, where they lie together") {
  ConvLayer layer = edge_case("1x1").make_layer();
  layer.shape.in_h = layer.shape.in_w = 4;
  const ProviderCheck check = with_zeros(0.5);
  const Network network = network_of(layer);
  const auto propose = [&](const ProviderCheck& where) {
    const Task task = task_of(network, network.operators.back(), where);
    return find_provider(kName)->propose(task, {.plan = "pixels=4,quad_loads=1"});
  };
  REQUIRE(propose(check).size() == 1);
  CHECK(parse_template_plan(propose(check).front().plan).integers.at("quad_loads") == 1);
  CHECK(check_plan(layer, "pixels=4,quad_loads=1", check) == "");
  ProviderCheck misplaced = check;
  misplaced.before = 1;
  CHECK_THAT(BURIN_THROWN(usage, propose(misplaced)).text,
             burin_test::Contains("quad_loads=1: ") && Contains("do not fit"));
}

TEST_CASE("zero skip: the four pixels of a pool's window do not lie together") {
  ConvLayer layer = edge_case("1x1").make_layer();
  layer.shape.in_h = layer.shape.in_w = 8;
  layer.shape.epilogue.pool = Pool{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  CHECK(check_plan(layer, "", with_zeros(0.5)) == "");
  const Network network = network_of(layer);
  const ProviderCheck check = with_zeros(0.5);
  TemplatePlan plan = plan_of(network, kName, check);
  CHECK(plan.integers.at("pixels") == 4);
  plan.integers["quad_loads"] = 1;
  CHECK_THROWS_AS(find_provider(kName)->make(task_of(network, network.operators.back(), check), print(plan)), Error);
}

TEST_CASE("zero skip: plans that no kernel has") {
  const ConvLayer layer = sample();
  for (const char* plan : {"column_lanes=3", "pixels=9,output_quads=4", "at_once=8,column_lanes=8"}) {
    INFO(plan);
    CHECK_THROWS_AS(check_plan(layer, plan, with_zeros(0.5)), Error);
  }
}

TEST_CASE("zero skip: the model goes by the zeros of runs") {
  const ConvLayer layer = large();
  for (const int batch : {1, 32}) {
    CHECK(us(layer, 0.9, batch) < us(layer, 0.7, batch));
    CHECK(us(layer, 0.7, batch) < us(layer, 0.2, batch));
  }
  // Where zeros lie together, several pixels share what is left.
  ActivationZeros together, apart;
  together.dead = {0.8, 0.75, 0.7, 0.6};
  apart.dead = {0.8, 0.64, 0.41, 0.17};
  const ArchSpec& arch = arch_by_name("sm_90");
  ZeroSkipTiles tiles{.pixels = 4, .output_quads = 2, .at_once = 4};
  CHECK(predict(tiles, layer.shape, together, 1, arch) < predict(tiles, layer.shape, apart, 1, arch));
}

TEST_CASE("zero skip: it is a candidate where zeros are known, or where it is named") {
  const ConvLayer layer = large();
  const Operator op{.name = layer.name, .kind = Convolution{}, .inputs = {}, .output = 0};
  CompileOptions options;
  const auto chosen = [&] { return choose(burin::task_of(op, layer, 1, options), options); };
  const auto is_compared = [&] {
    return std::ranges::any_of(chosen().options, [](const KernelOption& option) { return option.provider == kName; });
  };
  CHECK_FALSE(is_compared());
  options.activation_zeros["large"] = count_synthetic({.share = 0.9}, 256, 14, 14);
  CHECK(is_compared());
  CHECK(chosen().candidate.provider == kName);
  options.activation_zeros["large"] = count_synthetic({.share = 0.1}, 256, 14, 14);
  CHECK(chosen().candidate.provider != kName);
  options.activation_zeros.clear();
  options.kernels.all = kName;
  CHECK(chosen().candidate.provider == kName);
}

TEST_CASE("zero skip: from which share on it pays") {
  const ConvLayer layer = large();
  const Network network = network_of(layer);
  Task task = task_of(network, network.operators.back(), {});
  task.zeros = count_synthetic({.share = 0.5}, 256, 14, 14);
  const double half_us = us(layer, 0.5, 1);
  const auto pays_from = [&](const std::vector<KernelOption>& compared) {
    const InputZeros zeros = skipping_pays_from(task, compared);
    CHECK(zeros.share == Approx(0.5).margin(0.01));
    CHECK(zeros.compared);
    return zeros.pays_from;
  };
  const std::optional<double> half = pays_from({{"conv_dense", half_us, false}});
  REQUIRE(half);
  CHECK(*half == Approx(0.5).margin(0.03));
  CHECK(pays_from({{"conv_dense", 1000, false}}) == 0.0);
  CHECK(pays_from({{"conv_dense", 0.1, false}}) == std::nullopt);
  // What skips zeros itself is no other, and of what was measured models say nothing.
  CHECK(pays_from({{"conv_zero_skip", 0.1, false}, {"conv_dense", 1000, false}}) == 0.0);
  CHECK_FALSE(skipping_pays_from(task, {{"conv_zero_skip", 0.1, false}}).compared);
  CHECK_FALSE(skipping_pays_from(task, {{"conv_dense", 1000, true}}).compared);
}
