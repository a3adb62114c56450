// What stands in the PTX of the half precisions.
#include <fmt/format.h>

#include "compiler/providers/conv_baked/plan/planner.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/codegen/hand_plan.h"
#include "test/codegen/ptx_checks.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr Precision kHalves[] = {Precision::fp16, Precision::bf16, Precision::fp16x2};

ConvLayer half_layer_of(const char* edge) { return edge_case(edge).make_layer(); }

void check_planned(const ConvLayer& layer, int batch = 1, const std::string& arch = "sm_90") {
  for (const Precision precision : kHalves) {
    PlanRequest request;
    request.batch = batch;
    request.archs = {arch};
    request.precision = precision;
    check_text(emit(layer, make_plan(layer, analyse(layer), request), arch));
  }
}

void check_by_hand(const ConvLayer& layer, HandPlan hand, const std::string& arch = "sm_90") {
  for (const Precision precision : kHalves) {
    hand.precision = precision;
    check_text(emit(layer, plan_by_hand(layer, hand), arch));
  }
}

// Loads that a slice unpacks.
int loads_of(const PtxFunction& slice) { return static_cast<int>(activation_loads(slice).size()); }

}  // namespace

TEST_CASE("ptx half: 3x3") { check_planned(half_layer_of("3x3"), 2); }
TEST_CASE("ptx half: 1x1") { check_planned(half_layer_of("1x1"), 2); }
TEST_CASE("ptx half: depthwise") { check_planned(half_layer_of("depthwise"), 3); }
TEST_CASE("ptx half: all_zero") { check_planned(half_layer_of("all_zero")); }
TEST_CASE("ptx half: bias_residual_silu") { check_planned(half_layer_of("bias_residual_silu"), 5); }
TEST_CASE("ptx half: older GPUs") {
  check_planned(half_layer_of("3x3"), 3, "sm_75");
  check_planned(half_layer_of("3x3"), 3, "sm_80");
}
TEST_CASE("ptx half: patches, splits, a residual") {
  const ConvLayer layer = half_layer_of("bias_residual_leaky_relu");
  for (const bool cluster : {false, true}) check_by_hand(layer, {.splits = 3, .cluster = cluster});
}
TEST_CASE("ptx half: bulk copies") {
  check_by_hand(half_layer_of("3x3"), {.tile = {2, 9, 10}, .staging = Staging::bulk});
  check_by_hand(half_layer_of("3x3"), {.tile = {2, 9, 10}, .splits = 3, .cluster = true, .staging = Staging::bulk});
}
TEST_CASE("ptx half: activations straight from global memory") {
  check_by_hand(half_layer_of("1x1"), {.splits = 2, .staging = Staging::direct});
}

TEST_CASE("ptx half: each word is unpacked once") {
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    const Emitted made = emit(half_layer_of("3x3"), plan_by_hand(half_layer_of("3x3"), {.precision = precision}));
    for (const Slice& slice : made.plan.slices) {
      const PtxFunction& function = made.text.slice(slice.group, slice.split);
      const int loads = loads_of(function);
      CHECK(loads > 0);
      if (precision == Precision::fp16) CHECK(function.count("cvt.f32.f16") == 2 * loads);
      if (precision == Precision::bf16) {
        CHECK(function.count("cvt.f32.") == 0);
        int masks = 0;
        for (const PtxInstruction& mask : function.find("and.b32")) masks += mask.operands.ends_with("-65536") ? 1 : 0;
        CHECK(masks == loads);
      }
    }
  }
}

TEST_CASE("ptx half: sums of pairs go over to FP32 every so many terms") {
  const ConvLayer layer = half_layer_of("full_dense");
  constexpr int kEvery = 20;
  for (const bool promotes : {false, true}) {
    const Emitted made =
        emit(layer, plan_by_hand(layer, {.precision = Precision::fp16x2, .promote_every = promotes ? kEvery : 0}));
    for (const Slice& slice : made.plan.slices) {
      const PtxFunction& function = made.text.slice(slice.group, slice.split);
      const int outputs = static_cast<int>(made.plan.groups[static_cast<std::size_t>(slice.group)].size());
      const int terms = layer.shape.in_channels * layer.shape.kernel_h * layer.shape.kernel_w;
      const int promotions = promotes ? outputs * ((terms - 1) / kEvery) : 0;
      CHECK(function.count("mul.rn.f16x2") == promotions);
      CHECK(function.count("cvt.f32.f16") == 2 * (promotions + outputs));
      // The first promotion of a sum has nothing to be added to.
      CHECK(function.count("add.rn.f32") == 2 * (promotes ? promotions : 0));
    }
  }
}

TEST_CASE("ptx half: pairs jump over what lies beyond the image, once for each filter position of a stage") {
  const ConvLayer layer = half_layer_of("full_dense");
  const Emitted made = emit(
      layer,
      plan_by_hand(
          layer, {.tile = {2, 9, 10}, .stage_channels = 4, .staging = Staging::bulk, .precision = Precision::fp16x2}));
  for (const Slice& slice : made.plan.slices) {
    const PtxFunction& function = made.text.slice(slice.group, slice.split);
    const int stages = made.plan.slice_stages(slice);
    constexpr int kMayBeOutside = 8;  // all but the middle of 3x3
    const int fills = function.count("cp.async.bulk.");
    int jumps = function.count("bra");
    INFO(stages << " stages, " << fills << " fills, " << jumps << " jumps");
    CHECK(jumps >= kMayBeOutside * stages);
    CHECK(jumps <= kMayBeOutside * stages + 8 * (fills + 1));  // and those of copies, gates and the end
  }
}
