#include "compiler/providers/conv_baked/plan/unlike_plans.h"

#include <algorithm>

#include "compiler/providers/conv_baked/plan/planner.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/thrown.h"

using namespace burin;

namespace {

ConvLayer varied_layer(int channels, int kernel, int extent, double density) {
  ConvShape shape;
  shape.in_channels = shape.out_channels = channels;
  shape.kernel_h = shape.kernel_w = kernel;
  shape.in_h = shape.in_w = extent;
  const int pad = kernel / 2;
  shape.pad = {pad, pad, pad, pad};
  return burin_test::make_layer("layer", shape, density);
}

PlanTraits shared(int threads, int groups, int splits) {
  return {Staging::shared, Reduction::none, threads, groups, splits};
}
PlanTraits direct(int threads, int groups, int splits) {
  return {Staging::direct, Reduction::none, threads, groups, splits};
}

using Indices = std::vector<std::size_t>;

}  // namespace

TEST_CASE("unlike plans: what is nearly the same is alike") {
  CHECK(alike(shared(896, 16, 1), shared(896, 16, 1)));
  CHECK(alike(shared(896, 16, 1), shared(1024, 15, 1)));
  CHECK_FALSE(alike(shared(896, 16, 1), shared(896, 16, 2)));
  CHECK_FALSE(alike(shared(896, 16, 1), shared(448, 16, 1)));
  CHECK_FALSE(alike(shared(896, 16, 1), shared(896, 32, 1)));
  CHECK_FALSE(alike(shared(896, 16, 1), direct(896, 16, 1)));
}

TEST_CASE("unlike plans: the best comes first, then what is unlike it") {
  const std::vector<PlanTraits> plans = {shared(896, 16, 1), shared(928, 16, 1), shared(960, 17, 1),
                                         shared(448, 16, 1), shared(448, 17, 1), shared(896, 16, 2)};
  CHECK(pick_unlike(plans, 1) == Indices{0});
  CHECK(pick_unlike(plans, 3) == Indices{0, 3, 5});
  CHECK(pick_unlike(plans, 4) == Indices{0, 1, 3, 5});
  CHECK(pick_unlike(plans, 100) == Indices{0, 1, 2, 3, 4, 5});
  CHECK(pick_unlike({}, 3).empty());
}

TEST_CASE("unlike plans: every kind has its best looked at") {
  const std::vector<PlanTraits> plans = {shared(896, 16, 1), shared(448, 16, 1), shared(224, 16, 1), shared(896, 64, 1),
                                         direct(896, 16, 1)};
  CHECK(pick_unlike(plans, 3) == Indices{0, 1, 4});
  CHECK(pick_unlike(plans, 1) == Indices{0});
}

TEST_CASE("unlike plans: at most two differ in details alone") {
  const std::vector<PlanTraits> plans(5, shared(896, 16, 1));
  CHECK(pick_unlike(plans, 4) == Indices{0, 1});
}

TEST_CASE("make_plans: the planner's choice first, all legal, none twice, at most two with the same traits") {
  const ConvLayer layers[] = {varied_layer(64, 3, 14, 0.1), varied_layer(128, 1, 14, 0.1), varied_layer(32, 5, 27, 0.3),
                              varied_layer(3, 3, 5, 1.0)};
  for (const ConvLayer& layer : layers) {
    const SparsePattern pattern = analyse(layer);
    for (const int batch : {1, 32}) {
      INFO(describe(layer.shape) << ", batch " << batch);
      const PlanRequest request{.batch = batch};
      const std::vector<BakedPlan> plans = make_plans(layer, pattern, request, 12);
      REQUIRE(!plans.empty());
      CHECK(plans.size() <= 12);
      CHECK(plans.front() == make_plan(layer, pattern, request));
      CHECK(make_plans(layer, pattern, request, 1) == std::vector<BakedPlan>{plans.front()});
      for (std::size_t i = 0; i < plans.size(); ++i) {
        CHECK(verify(plans[i], layer.shape, pattern).empty());
        CHECK(std::count(plans.begin(), plans.end(), plans[i]) == 1);
        CHECK(std::count_if(plans.begin(), plans.end(),
                            [&](const BakedPlan& other) { return traits_of(other) == traits_of(plans[i]); }) <= 2);
      }
    }
  }
}

TEST_CASE("make_plans: a 1x1 layer has direct and staged plans among them") {
  const ConvLayer layer = varied_layer(128, 1, 14, 0.1);
  const std::vector<BakedPlan> plans = make_plans(layer, analyse(layer), {}, 12);
  CHECK(plans.size() == 12);
  for (const Staging staging : {Staging::shared, Staging::direct, Staging::bulk}) {
    CHECK(std::any_of(plans.begin(), plans.end(), [&](const BakedPlan& plan) { return plan.staging == staging; }));
  }
}

TEST_CASE("make_plans: constraints hold for every plan") {
  const ConvLayer layer = varied_layer(64, 3, 14, 0.1);
  PlanRequest request;
  request.constraints.splits = 2;
  request.constraints.load_ahead = 4;
  for (const BakedPlan& plan : make_plans(layer, analyse(layer), request, 6)) {
    CHECK(plan.splits == 2);
    CHECK(plan.load_ahead == 4);
  }
  request.constraints.splits = 65;  // of 64 channels
  BURIN_THROWN(usage, make_plans(layer, analyse(layer), request, 6));
}
