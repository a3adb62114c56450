// Rounds of tiles: the blocks of a launch in another order, the same results.
#include <catch2/catch.hpp>

#include "compiler/plan/planner.h"
#include "test/codegen/edge_cases.h"
#include "test/codegen/host_check.h"
#include "test/ir/random_layers.h"

using namespace burin;
using namespace burin_test;

namespace {

// Nine tiles of an image, in four groups.
ConvLayer layer_of(int kernel) {
  ConvShape shape;
  shape.in_channels = 12;
  shape.out_channels = 16;
  shape.kernel_h = shape.kernel_w = kernel;
  shape.pad = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  shape.in_h = shape.in_w = 12;
  shape.epilogue = {.bias = true, .residual = true, .activation = Activation::relu};
  return make_layer("rounds", shape, 0.3, 5);
}

KernelPlan plan_of(const ConvLayer& layer, const std::string& choices, int rounds) {
  PlanRequest request;
  request.constraints = parse_plan_constraints(choices + ",round=" + std::to_string(rounds));
  return make_plan(layer, analyse(layer), request);
}

}  // namespace

TEST_CASE("rounds: every order computes what the layer says") {
  constexpr const char* kChoices[] = {
      "staging=shared,tile=1x4x4,groups=4,splits=1",
      "staging=bulk,tile=1x4x12,groups=4,splits=1",
      "staging=shared,tile=1x4x4,groups=2,splits=2,reduction=last_block",
      "staging=bulk,tile=1x4x12,groups=4,splits=2,reduction=cluster",
      "staging=shared,tile=1x4x4,groups=4,splits=1,cluster=2x1x1",
      "staging=shared,tile=1x4x4,groups=2,splits=2,reduction=cluster,cluster=2x1x2",
  };
  const ConvLayer layer = layer_of(3);
  for (const char* choices : kChoices) {
    for (const int rounds : {1, 2, 4, 9, 100}) {
      INFO(choices << ", rounds of " << rounds);
      const KernelPlan plan = plan_of(layer, choices, rounds);
      CHECK(plan.round_tiles >= rounds);
      CHECK(check_on_host(layer, plan, {1, 3}) == "");
    }
  }
}

TEST_CASE("rounds: direct loads") {
  const ConvLayer layer = layer_of(1);
  for (const int rounds : {1, 3, 5}) {
    INFO("rounds of " << rounds);
    CHECK(check_on_host(layer, plan_of(layer, "staging=direct,tile=1x4x12,groups=4,splits=1", rounds), {1, 4}) == "");
  }
}

TEST_CASE("rounds: dead channels are skipped and marked where they are") {
  const ConvLayer layer = layer_of(3);
  PlanRequest request;
  request.skip_dead_tiles = true;
  request.constraints = parse_plan_constraints("tile=1x4x4,groups=4,splits=1,round=2");
  CHECK(check_on_host(layer, make_plan(layer, analyse(layer), request), {2}) == "");
}
