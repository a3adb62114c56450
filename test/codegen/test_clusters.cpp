// Splits as the blocks of a cluster: every edge case, plans set by hand, and what stands in the PTX.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/emit/ptx.h"
#include "compiler/host/executor.h"
#include "compiler/providers/conv_baked/slices/specialise_baked.h"
#include "compiler/reference.h"
#include "ir/derive_form.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/codegen/hand_plan.h"
#include "test/codegen/host_check.h"
#include "test/codegen/ptx_text.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;

namespace {

ConvLayer layer_of(const char* edge) { return edge_case(edge).make_layer(); }

void check(const ConvLayer& layer, HandPlan hand, const std::vector<int>& batches = {1}) {
  hand.cluster = true;
  const BakedPlan plan = plan_by_hand(layer, hand);
  REQUIRE(plan.reduction == Reduction::cluster);
  CHECK(check_on_host(layer, plan, batches) == "");
}

void check_edge(const char* name) {
  const EdgeCase& edge = edge_case(name);
  for (const int splits : {2, 5}) check(edge.make_layer(), {.splits = splits}, {edge.batch});
  check(edge.make_layer(), {.splits = 2, .cluster_tiles = 2}, {edge.batch});
}

std::vector<float> host_output(const ConvLayer& layer, const BakedPlan& plan) {
  const SpecialisedModule module = specialise_baked(layer, analyse(layer), plan, "kernel");
  HostKernel kernel(to_bitcode(module), "kernel", form_of(plan, layer.shape));
  const std::vector<float> input = random_tensor(layer.shape.input_elements(), 1);
  const std::vector<float> residual = random_tensor(layer.shape.output_elements(), 2);
  std::vector<float> output(residual.size());
  kernel.run({.batch = 1, .input = input, .output = output, .residual = residual});
  return output;
}

SpecialisedModule specialised(const ConvLayer& layer, const BakedPlan& plan) {
  return specialise_baked(layer, analyse(layer), plan, kernel_symbol(layer.name, plan));
}

}  // namespace

#define EDGE_CASE(name, batch, layer) \
  TEST_CASE("edge, in clusters: " #name) { check_edge(#name); }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

TEST_CASE("clusters: two to eight splits") {
  for (int splits = 2; splits <= 8; ++splits) check(layer_of("bias_residual_silu"), {.splits = splits}, {1, 3});
}

TEST_CASE("clusters: fewer channels in a group than splits") {
  check(layer_of("3x3"), {.group_channels = 1, .splits = 4});
  check(layer_of("3x3"), {.group_channels = 3, .splits = 8});
  check(layer_of("3x3"), {.group_channels = 9, .splits = 4});  // three each, the last block has none
}

TEST_CASE("clusters: more splits than input channels") {
  check(layer_of("one_input_channel"), {.splits = 3}, {1, 2});
  check(layer_of("one_nonzero"), {.splits = 2});
  check(layer_of("all_zero_bias_relu"), {.splits = 8});
}

TEST_CASE("clusters: threads without a pixel take part in the barriers") {
  check(layer_of("3x3"), {.tile = {1, 3, 3}, .idle_warps = 7, .splits = 2});
  check(layer_of("3x3"), {.tile = {3, 2, 9}, .splits = 3}, {1, 4});
}

TEST_CASE("clusters: partial sums need more room than the buffers") {
  const HandPlan hand = {.group_channels = 24, .splits = 3, .cluster = true, .stage_channels = 1};
  const BakedPlan plan = plan_by_hand(layer_of("3x3"), hand);
  CHECK(plan.shared_bytes() > plan.staging_bytes());
  CHECK(plan.shared_bytes() == kSharedReserveBytes + 24 * 32 * 4);
  check(layer_of("3x3"), hand, {2});
}

TEST_CASE("clusters: activations straight from global memory") {
  check(layer_of("1x1"), {.splits = 3, .staging = Staging::direct}, {1, 3});
  check(layer_of("one_pixel_1x1"), {.tile = {5, 1, 1}, .splits = 2, .staging = Staging::direct}, {1, 7});
}

// The grid is rounded up to whole clusters: the last ones hold tiles that are beyond the batch.
TEST_CASE("clusters: several tiles") {
  const ConvLayer layer = layer_of("bias_residual_silu");
  for (const auto& [tiles, splits] : {std::pair{2, 2}, {3, 2}, {2, 4}, {4, 2}, {8, 1}, {5, 1}}) {
    for (const bool cluster : {false, true}) {
      const HandPlan hand = {.tile = {2, 9, 10}, .splits = splits, .cluster = cluster, .cluster_tiles = tiles};
      CHECK(check_on_host(layer, plan_by_hand(layer, hand), {1, 2, 5, 9}) == "");
    }
  }
}

TEST_CASE("clusters: several tiles, with each staging") {
  for (const Staging staging : {Staging::shared, Staging::bulk, Staging::direct}) {
    if (staging != Staging::bulk) {  // which needs rows of whole 16 bytes
      check(layer_of("1x1"), {.tile = {1, 3, 3}, .splits = 2, .cluster_tiles = 2, .staging = staging}, {1, 3});
    }
    check(layer_of("1x1"), {.tile = {2, 99, 99}, .splits = 3, .cluster_tiles = 2, .staging = staging}, {1, 3, 5});
  }
  const ConvLayer layer = layer_of("3x3");
  check(layer, {.tile = {3, 99, 99}, .splits = 2, .cluster_tiles = 4, .staging = Staging::bulk}, {1, 4, 13});
}

TEST_CASE("clusters: the ranks of several tiles are found by one register and constants") {
  const ConvLayer layer = layer_of("3x3");
  const BakedPlan plan = plan_by_hand(layer, {.splits = 4, .cluster = true, .cluster_tiles = 2});
  const std::string ptx = emit_ptx(specialised(layer, plan), "sm_90");
  CHECK_THAT(ptx, Contains("\n.explicitcluster\n.reqnctapercluster 2, 4, 1\n{\n"));
  const PtxText text = read_ptx(ptx);
  for (const Slice& slice : plan.slices) {
    const PtxFunction& function = text.slice(slice.group, slice.split);
    CHECK(function.count("mapa.shared::cluster") > 0);
    CHECK(function.count("mapa.shared::cluster") <= plan.splits - 1);
    for (const PtxInstruction& read : function.find("mov.u32")) {
      if (read.operands.find("%cluster_ctarank") != std::string::npos) continue;
      CHECK(read.operands.find("%cluster") == std::string::npos);
    }
  }
}

TEST_CASE("clusters: the result is the same as the last block's") {
  const ConvLayer layer = layer_of("bias_residual_silu");
  BakedPlan plan = plan_by_hand(layer, {.splits = 4, .cluster = true});
  const std::vector<float> clustered = host_output(layer, plan);
  plan.reduction = Reduction::last_block;
  plan.cluster = {};
  CHECK((clustered == host_output(layer, plan)));
}

TEST_CASE("clusters: the PTX has the directive and uses no scratch memory") {
  const ConvLayer layer = layer_of("bias_residual_silu");
  BakedPlan plan = plan_by_hand(layer, {.splits = 4, .cluster = true});
  const std::string ptx = emit_ptx(specialised(layer, plan), "sm_90");
  CHECK_THAT(ptx, Contains(fmt::format("\n.maxntid {}, 1, 1\n", plan.threads)));
  CHECK_THAT(ptx, Contains("\n.explicitcluster\n.reqnctapercluster 1, 4, 1\n{\n"));
  for (const char* scratch : {"ld.global.cg", "st.global.cg", "atom.", "membar"}) CHECK_THAT(ptx, !Contains(scratch));

  const PtxText text = read_ptx(ptx);
  for (const Slice& slice : plan.slices) {
    const PtxFunction& function = text.slice(slice.group, slice.split);
    const auto channels = static_cast<int>(plan.groups[static_cast<std::size_t>(slice.group)].size());
    const int share = plan.added_channels(slice.group);
    const int own = std::clamp(channels - slice.split * share, 0, share);
    CHECK(function.count("st.shared.f32") == channels - own);
    CHECK(function.count("ld.shared::cluster.f32") == own * (plan.splits - 1));
    CHECK(function.count("mapa.shared::cluster") == (own > 0 ? plan.splits - 1 : 0));
    CHECK(function.count("st.global.f32") == own);
    CHECK(function.count("barrier.cluster.wait") == 2);
  }

  plan.reduction = Reduction::last_block;
  plan.cluster = {};
  CHECK_THAT(emit_ptx(specialised(layer, plan), "sm_90"), !Contains("cluster"));
}

TEST_CASE("clusters: an edited module keeps its directive") {
  const ConvLayer layer = layer_of("3x3");
  const BakedPlan plan = plan_by_hand(layer, {.splits = 2, .cluster = true});
  const SpecialisedModule module = specialised(layer, plan);
  const SpecialisedModule parsed = parse_specialised(print(module), module.symbol, "x.ll");
  CHECK((emit_ptx(parsed, "sm_90") == emit_ptx(module, "sm_90")));
}

TEST_CASE("clusters: older GPUs have none") {
  const ConvLayer layer = layer_of("3x3");
  const SpecialisedModule module = specialised(layer, plan_by_hand(layer, {.splits = 2, .cluster = true}));
  CHECK(BURIN_THROWN(bad_input, emit_ptx(module, "sm_80")).has("which is no device primitive of sm_80"));
}
