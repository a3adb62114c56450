// Half precision on the host executor: every edge case with the planner's plans, and plans set by hand.

#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/codegen/hand_plan.h"
#include "test/codegen/host_check.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr Precision kHalves[] = {Precision::fp16, Precision::bf16, Precision::fp16x2};

// With an even and an odd number of images. FP16 and BF16 differ in how they are converted alone, which every case
// does, so that a case has one of them.
void check_edge(std::string_view name) {
  const EdgeCase& edge = edge_case(name);
  const ConvLayer layer = edge.make_layer();
  for (const Precision precision : {name.size() % 2 == 0 ? Precision::fp16 : Precision::bf16, Precision::fp16x2}) {
    if (precision == Precision::fp16x2 && name == "tiny_and_huge_weights") continue;  // FP16 cannot hold them
    INFO(to_string(precision));
    CHECK(check_planned_on_host(layer, edge.batch, {edge.batch, edge.batch + 1}, "sm_90", 1, precision) == "");
  }
}

void check(const ConvLayer& layer, HandPlan hand, const std::vector<int>& batches = {1, 2}) {
  for (const Precision precision : kHalves) {
    hand.precision = precision;
    for (const int promote_every : {0, 1, 5}) {
      if (precision != Precision::fp16x2 && promote_every > 0) continue;
      hand.promote_every = promote_every;
      INFO(to_string(precision) << ", promoted every " << promote_every);
      CHECK(check_on_host(layer, plan_by_hand(layer, hand), batches) == "");
    }
  }
}

ConvLayer layer_of(const char* edge) { return edge_case(edge).make_layer(); }

}  // namespace

#define EDGE_CASE(name, batch, layer) \
  TEST_CASE("half edge: " #name) { check_edge(#name); }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

TEST_CASE("half edge: a plan for one image runs other batches, and the other way round") {
  for (const char* name : {"stride_2", "depthwise", "bias_residual_silu", "one_pixel"}) {
    for (const Precision precision : kHalves) {
      INFO(to_string(precision));
      CHECK(check_planned_on_host(layer_of(name), 1, {3, 1, 2}, "sm_90", 1, precision) == "");
      CHECK(check_planned_on_host(layer_of(name), 32, {5, 1, 33}, "sm_90", 1, precision) == "");
    }
  }
}

TEST_CASE("half edge: plans for older GPUs") {
  for (const char* name :
       {"11x11_stride_4", "depthwise", "bias_residual_silu", "max_3x3_stride_2_padded", "averaged_residual_relu"}) {
    for (const char* arch : {"sm_75", "sm_80"}) {
      for (const Precision precision : kHalves) {
        INFO(to_string(precision) << " on " << arch);
        CHECK(check_planned_on_host(layer_of(name), 3, {3}, arch, 1, precision) == "");
      }
    }
  }
}

TEST_CASE("half by hand: one split, of several stages") {
  check(layer_of("bias_residual_silu"), {.tile = {2, 4, 5}, .stage_channels = 3, .buffers = 3}, {1, 2, 7});
}

TEST_CASE("half by hand: splits are added by the last block") {
  for (const int splits : {2, 5}) check(layer_of("bias_residual_silu"), {.splits = splits}, {1, 4});
}

TEST_CASE("half by hand: splits are the blocks of a cluster") {
  for (const int splits : {2, 5}) check(layer_of("bias_residual_silu"), {.splits = splits, .cluster = true}, {1, 4});
}

TEST_CASE("half by hand: bulk copies") {
  check(layer_of("bias_residual_silu"), {.tile = {2, 9, 10}, .staging = Staging::bulk}, {1, 5});
  check(layer_of("stride_2"), {.tile = {3, 5, 5}, .splits = 2, .cluster = true, .staging = Staging::bulk}, {1, 5});
  check(layer_of("rows_of_48_bytes"), {.tile = {1, 2, 12}, .staging = Staging::bulk}, {1, 5});
}

TEST_CASE("half by hand: direct loads") {
  check(layer_of("1x1"), {.tile = {2, 9, 10}, .staging = Staging::direct}, {1, 5});
  check(layer_of("stride_2_1x1"), {.splits = 2, .staging = Staging::direct}, {1, 5});
}

TEST_CASE("half by hand: splits and accumulators without a nonzero") {
  check(layer_of("one_input_channel"), {.splits = 3});
  check(layer_of("one_nonzero"), {.splits = 2, .cluster = true});
  check(layer_of("all_zero_bias_relu"), {.splits = 2});
}

TEST_CASE("half: a weight that is left out, doubled or moved is found") {
  const ConvLayer layer = layer_of("3x3");
  for (const Precision precision : kHalves) {
    INFO(to_string(precision));
    const BakedPlan plan = plan_by_hand(layer, {.precision = precision});
    std::size_t nonzero = layer.weights.size() / 2;
    while (layer.weights[nonzero] == 0 || layer.weights[nonzero + 1] != 0) ++nonzero;
    ConvLayer other = layer;
    other.weights[nonzero] = 0;
    CHECK(check_against(layer, other, plan, {2}) != "");
    other.weights[nonzero] = 2 * layer.weights[nonzero];
    CHECK(check_against(layer, other, plan, {2}) != "");
    other = layer;
    std::swap(other.weights[nonzero], other.weights[nonzero + 1]);
    CHECK(check_against(layer, other, plan, {2}) != "");
  }
}
