
#include "compiler/providers/conv_baked/plan/planner.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/thrown.h"

using namespace burin;

namespace {

ConvLayer sparse_layer() {
  ConvShape shape;
  shape.in_channels = shape.out_channels = 64;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  shape.in_h = shape.in_w = 14;
  return burin_test::make_layer("layer", shape, 0.1);
}

}  // namespace

TEST_CASE("constraints: the text form round trips") {
  const std::string text = "staging=shared,tile=4x14x14,groups=16,splits=2,stage=8,buffers=3,barrier=512,ahead=4";
  CHECK(print(parse_plan_constraints(text)) == text);
  CHECK_FALSE(parse_plan_constraints("").any());
  CHECK(parse_plan_constraints("reduction=cluster").reduction == Reduction::cluster);
  CHECK(print(parse_plan_constraints("reduction=last_block")) == "reduction=last_block");
  CHECK(print(parse_plan_constraints("splits=3")) == "splits=3");
}

TEST_CASE("constraints: what is malformed is named") {
  for (const char* text :
       {"tile=4x14", "tile=4x14x14x2", "groups=0", "splits=two", "colour=red", "stage", "ahead=-1",
        "buffers=99999999999999999999", "tile=0x1x1", "reduction=none", "reduction=atomic", "reduction"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_plan_constraints(text), Error);
  }
}

TEST_CASE("constraints: a plan keeps them") {
  const ConvLayer layer = sparse_layer();
  const SparsePattern pattern = analyse(layer);
  const auto plan = [&](const char* text) {
    return make_plan(layer, pattern, {8, {"sm_90"}, parse_plan_constraints(text)});
  };
  CHECK(plan("tile=2x14x14").tile == PixelTile{2, 14, 14});
  CHECK(plan("groups=4").groups.size() == 4);
  CHECK(plan("splits=3").splits == 3);
  CHECK(plan("splits=2,stage=4,buffers=4").buffers == 4);
  CHECK(plan("stage=8").stage_channels == 8);
  CHECK(plan("barrier=100,ahead=2").barrier_every == 100);
  CHECK(plan("barrier=100,ahead=2").load_ahead == 2);
  CHECK_THROWS_AS(plan("staging=shared,together=2"), Error);  // which direct loads alone can be
  CHECK_THROWS_AS(plan("tile=64x14x14"), Error);              // more pixels than a block has threads
  CHECK_THROWS_AS(plan("groups=63"), Error);
  // A few accumulators fit the registers of more threads than a block may have.
  BURIN_THROWN(usage, plan("tile=7x14x14,groups=64"));
}

TEST_CASE("constraints: clusters") {
  const ConvLayer layer = sparse_layer();
  const SparsePattern pattern = analyse(layer);
  const auto plan = [&](const char* text, std::vector<std::string> archs = {"sm_90"}) {
    return make_plan(layer, pattern, {8, std::move(archs), parse_plan_constraints(text)});
  };
  CHECK(print(parse_plan_constraints("cluster=2x4")) == "cluster=2x4");
  CHECK(plan("cluster=2x1").cluster == ClusterShape{2, 1});
  CHECK(plan("cluster=2x3").splits == 3);
  CHECK(plan("cluster=2x3").reduction == Reduction::cluster);
  CHECK(plan("cluster=2x1,splits=3").reduction == Reduction::last_block);
  CHECK(plan("cluster=1x1,splits=1").cluster.blocks() == 1);
  for (const char* none :
       {"cluster=4x3", "cluster=65536x65536", "cluster=1x2,splits=3", "cluster=1x2,reduction=last_block"}) {
    INFO(none);
    CHECK(BURIN_THROWN(usage, plan(none)).has("no plan keeps --plan"));
  }
  CHECK(BURIN_THROWN(usage, plan("cluster=2x1", {"sm_80"})).has("no plan keeps --plan"));
  CHECK(BURIN_THROWN(usage, parse_plan_constraints("cluster=2x1x2")).has("TILESxSPLITS is needed"));
}

TEST_CASE("constraints: the reduction of several splits") {
  const ConvLayer layer = sparse_layer();
  const SparsePattern pattern = analyse(layer);
  const auto plan = [&](const char* text, std::vector<std::string> archs) {
    return make_plan(layer, pattern, {1, std::move(archs), parse_plan_constraints(text)});
  };
  CHECK(plan("splits=3", {"sm_90"}).reduction == Reduction::cluster);
  CHECK(plan("splits=3,reduction=cluster", {"sm_90"}).reduction == Reduction::cluster);
  CHECK(plan("splits=3,reduction=last_block", {"sm_90"}).reduction == Reduction::last_block);
  CHECK(plan("splits=9", {"sm_90"}).reduction == Reduction::last_block);
  CHECK(plan("splits=1,reduction=cluster", {"sm_90"}).reduction == Reduction::none);
  // Legal on all that are asked for.
  CHECK(plan("splits=3", {"sm_80"}).reduction == Reduction::last_block);
  CHECK(plan("splits=3", {"sm_90", "sm_80"}).reduction == Reduction::last_block);
  CHECK_THROWS_AS(plan("splits=9,reduction=cluster", {"sm_90"}), Error);
  CHECK_THROWS_AS(plan("splits=3,reduction=cluster", {"sm_90", "sm_80"}), Error);
}
