// What stands in the PTX: a multiply-add with an immediate for each nonzero and nothing that looks anything up.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/emit/kernel_report.h"
#include "compiler/emit/ptx.h"
#include "compiler/providers/conv_baked/plan/planner.h"
#include "compiler/providers/conv_baked/slices/specialise_baked.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/codegen/hand_plan.h"
#include "test/codegen/ptx_checks.h"

using namespace burin;
using namespace burin_test;

namespace {

Emitted emit_planned(const ConvLayer& layer, int batch = 1, const std::string& arch = "sm_90") {
  PlanRequest request;
  request.batch = batch;
  request.archs = {arch};
  return emit(layer, make_plan(layer, analyse(layer), request), arch);
}

ConvLayer layer_of(const char* edge) { return edge_case(edge).make_layer(); }

}  // namespace

TEST_CASE("ptx: 3x3") { check_text(emit_planned(layer_of("3x3"))); }
TEST_CASE("ptx: 1x1") { check_text(emit_planned(layer_of("1x1"))); }
TEST_CASE("ptx: 1x7") { check_text(emit_planned(layer_of("1x7"))); }
TEST_CASE("ptx: 11x11_stride_4") { check_text(emit_planned(layer_of("11x11_stride_4"))); }
TEST_CASE("ptx: dilation_2") { check_text(emit_planned(layer_of("dilation_2"))); }
TEST_CASE("ptx: groups_2") { check_text(emit_planned(layer_of("groups_2"))); }
TEST_CASE("ptx: depthwise") { check_text(emit_planned(layer_of("depthwise"))); }
TEST_CASE("ptx: full_dense") { check_text(emit_planned(layer_of("full_dense"))); }
TEST_CASE("ptx: all_zero") { check_text(emit_planned(layer_of("all_zero"))); }
TEST_CASE("ptx: one_nonzero") { check_text(emit_planned(layer_of("one_nonzero"))); }
TEST_CASE("ptx: row_empty") { check_text(emit_planned(layer_of("row_empty"))); }
TEST_CASE("ptx: one_weight_everywhere") { check_text(emit_planned(layer_of("one_weight_everywhere"))); }
TEST_CASE("ptx: bias_residual_silu") { check_text(emit_planned(layer_of("bias_residual_silu"))); }
TEST_CASE("ptx: batch_33") { check_text(emit_planned(layer_of("batch_33"), 33)); }
TEST_CASE("ptx: sm_75") { check_text(emit_planned(layer_of("3x3"), 3, "sm_75")); }
TEST_CASE("ptx: sm_75 with splits and a residual") {
  const ConvLayer layer = layer_of("bias_residual_leaky_relu");
  check_text(emit(layer, plan_by_hand(layer, {.splits = 3}), "sm_75"));
}
TEST_CASE("ptx: splits and a residual") {
  const ConvLayer layer = layer_of("bias_residual_leaky_relu");
  check_text(emit(layer, plan_by_hand(layer, {.splits = 3})));
}
TEST_CASE("ptx: splits in clusters") {
  const ConvLayer layer = layer_of("bias_residual_leaky_relu");
  check_text(emit(layer, plan_by_hand(layer, {.splits = 3, .cluster = true})));
  check_text(
      emit(layer, plan_by_hand(layer, {.tile = {1, 9, 10}, .splits = 4, .cluster = true, .staging = Staging::bulk})));
}
TEST_CASE("ptx: tiles in clusters") {
  const ConvLayer layer = layer_of("bias_residual_leaky_relu");
  for (const bool cluster : {false, true}) {
    check_text(emit(layer, plan_by_hand(layer, {.splits = 2, .cluster = cluster, .cluster_tiles = 2})));
  }
}
TEST_CASE("ptx: batches of direct loads are kept apart") {
  const ConvLayer layer = layer_of("many_inputs");
  for (const int together : {1, 3, 8}) {
    const Emitted made =
        emit(layer, plan_by_hand(layer, {.load_ahead = 8, .load_together = together, .staging = Staging::direct}));
    int expected = 0;
    for (const Slice& slice : made.plan.slices) {
      const int later = made.text.slice(slice.group, slice.split).count("ld.global") - made.plan.load_ahead;
      REQUIRE(later > together);
      expected += together == 1 ? 0 : (later + together - 1) / together;
    }
    int found = 0;
    for (std::size_t at = 0; (at = made.ptx.find("@never exit;", at)) != std::string::npos; ++at) ++found;
    CHECK(found == expected);
  }
}

TEST_CASE("ptx: activations straight from global memory") {
  check_text(emit(layer_of("1x1"), plan_by_hand(layer_of("1x1"), {.splits = 2, .staging = Staging::direct})));
  check_text(emit(layer_of("1x1"), plan_by_hand(layer_of("1x1"), {.load_together = 4, .staging = Staging::direct})));
}
TEST_CASE("ptx: many barriers, loads far ahead") {
  check_text(emit(layer_of("3x3"), plan_by_hand(layer_of("3x3"), {.barrier_every = 5, .load_ahead = 64})));
}
TEST_CASE("ptx: more positions per thread than addresses held") {
  const ConvLayer layer = layer_of("11x11_stride_4");
  check_text(emit(layer, plan_by_hand(layer, {.tile = {1, 4, 4}, .stage_channels = 1, .buffers = 3})));
}

TEST_CASE("ptx: patches of many channels are copied in loops") {
  for (const HandPlan& hand : {HandPlan{.stage_channels = 16, .buffers = 1}, HandPlan{.stage_channels = 9},
                               HandPlan{.stage_channels = 16, .buffers = 1, .channels_per_row = 3},
                               HandPlan{.tile = {1, 1, 1}, .stage_channels = 6, .backwards = true}}) {
    for (const char* arch : {"sm_75", "sm_90"})
      check_text(emit(layer_of("3x3"), plan_by_hand(layer_of("3x3"), hand), arch));
  }
  const Emitted made = emit(layer_of("3x3"), plan_by_hand(layer_of("3x3"), {.stage_channels = 16, .buffers = 1}));
  CHECK(made.text.slice(0, 0).count_loops("cp.async.ca.") > 0);
}
TEST_CASE("ptx: bulk copies of whole planes") {
  for (const HandPlan& hand :
       {HandPlan{.tile = {1, 9, 10}, .staging = Staging::bulk},
        HandPlan{.tile = {3, 9, 10}, .buffers = 3, .staging = Staging::bulk},
        HandPlan{.tile = {2, 9, 10}, .stage_channels = 16, .buffers = 1, .staging = Staging::bulk},
        HandPlan{.tile = {2, 9, 10}, .splits = 3, .stage_channels = 2, .staging = Staging::bulk},
        HandPlan{.tile = {1, 9, 10}, .barrier_every = 5, .load_ahead = 64, .staging = Staging::bulk}}) {
    const Emitted made = emit(layer_of("3x3"), plan_by_hand(layer_of("3x3"), hand));
    CHECK(made.plan.staging == Staging::bulk);
    check_text(made);
  }
}
TEST_CASE("ptx: bulk copies of rows") {
  const ConvLayer layer = layer_of("rows_of_48_bytes");
  for (const HandPlan& hand : {HandPlan{.tile = {1, 2, 1}, .stage_channels = 2, .staging = Staging::bulk},
                               HandPlan{.tile = {1, 3, 1}, .splits = 2, .buffers = 3, .staging = Staging::bulk}}) {
    check_text(emit(layer, plan_by_hand(layer, hand)));
  }
}
TEST_CASE("ptx: a buffer that is filled again waits until all have left it") {
  const ConvLayer layer = layer_of("3x3");  // 16 channels
  const auto slice_events = [&](int stage_channels, int buffers) {
    const HandPlan hand = {
        .tile = {1, 9, 10}, .stage_channels = stage_channels, .buffers = buffers, .staging = Staging::bulk};
    return events(emit(layer, plan_by_hand(layer, hand)).text.slice(0, 0));
  };
  CHECK(slice_events(16, 1) == "w");
  CHECK(slice_events(4, 4) == "wwww");
  CHECK(slice_events(4, 2) == "wbecwbecwbecw");
  CHECK(slice_events(4, 3) == "wbecwbecww");
}

TEST_CASE("ptx: for GPUs without asynchronous copies") {
  const Emitted made = emit_planned(layer_of("3x3"), 1, "sm_75");
  CHECK(made.ptx.find("cp.async") == std::string::npos);
  CHECK(made.ptx.find(".target sm_75") != std::string::npos);
  REQUIRE(made.plan.staging == Staging::shared);
  const Emitted newer = emit(made.layer, made.plan, "sm_80");
  CHECK(newer.ptx.find("cp.async") != std::string::npos);
  CHECK(newer.ptx.find(".target sm_80") != std::string::npos);
}

TEST_CASE("ptx: every line of the map belongs to one range of its slice") {
  const Emitted made = emit(layer_of("3x3"), plan_by_hand(layer_of("3x3"), {.splits = 2}));
  const std::vector<PtxRange> ranges = map_kernel(made.ptx);
  REQUIRE(ranges.size() > made.plan.slices.size());
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].channel >= 0) CHECK(ranges[i].first_line == ranges[i - 1].last_line + 1);
  }
  for (const PtxFunction& function : made.text.functions) {
    for (const PtxInstruction& load : activation_loads(function)) {
      const auto range = std::find_if(ranges.begin(), ranges.end(), [&](const PtxRange& r) {
        return r.first_line <= load.line && load.line <= r.last_line;
      });
      REQUIRE(range != ranges.end());
      CHECK_THAT(load.comment, burin_test::StartsWith(fmt::format("channel {} ", range->channel)));
    }
  }
}

TEST_CASE("ptx: the same input gives the same bytes") {
  for (const char* name : {"3x3", "bias_residual_silu", "depthwise"}) {
    const Emitted first = emit_planned(layer_of(name), 3);
    const Emitted second = emit_planned(layer_of(name), 3);
    CHECK((first.ptx == second.ptx));
    const SpecialisedModule module = specialise_baked(first.layer, first.pattern, first.plan, first.symbol);
    CHECK((to_bitcode(module) == to_bitcode(specialise_baked(first.layer, first.pattern, first.plan, first.symbol))));
    const std::string before = print(module);
    CHECK((emit_ptx(module, "sm_90") == emit_ptx(module, "sm_90")));
    CHECK((print(module) == before));
  }
}

TEST_CASE("ptx: names of layers that look like ours") {
  for (const char* name :
       {"dev.x", "dev_barrier", "dev.note.slice", "piece_tap", "hole_taps", "const_splits", "shared", "kernel",
        "slice group", "llvm.fma", "", "a/b:0", "\xc3\xa4 \"quoted\"\n", "group0_split0", "ptx // comment"}) {
    INFO(name);
    ConvLayer layer = layer_of("one_nonzero");
    layer.name = name;
    const Emitted made = emit_planned(layer);
    CHECK(made.text.entry().name == made.symbol);
    CHECK(made.symbol.starts_with("burin_"));
    CHECK(made.text.functions.size() == made.plan.slices.size() + 1);
    CHECK(read_ptx(emit_ptx(parse_specialised(print(specialise_baked(layer, made.pattern, made.plan, made.symbol)),
                                              made.symbol, "x.ll"),
                            "sm_90"))
              .entry()
              .name == made.symbol);
  }
}
