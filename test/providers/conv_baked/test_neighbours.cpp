#include "compiler/providers/conv_baked/plan/neighbours.h"

#include <algorithm>

#include "compiler/providers/conv_baked/plan/planner.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"

using namespace burin;

namespace {

ConvLayer neighbour_layer(int kernel) {
  ConvShape shape;
  shape.in_channels = shape.out_channels = 64;
  shape.kernel_h = shape.kernel_w = kernel;
  shape.in_h = shape.in_w = 14;
  shape.pad = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  return burin_test::make_layer("layer", shape, 0.2);
}

struct Fixture {
  explicit Fixture(int kernel, const std::string& constraints = "")
      : layer(neighbour_layer(kernel)),
        pattern(analyse(layer)),
        fixed(parse_plan_constraints(constraints)),
        plan(make_plan(layer, pattern, {.batch = 32, .archs = {"sm_90"}, .constraints = fixed})),
        found(neighbours_of(plan, fixed, group_options(layer.shape, pattern))) {}

  template <typename Wanted>
  bool has(Wanted wanted) const {
    return std::any_of(found.begin(), found.end(), wanted);
  }

  ConvLayer layer;
  SparsePattern pattern;
  PlanConstraints fixed;
  BakedPlan plan;
  std::vector<PlanConstraints> found;
};

}  // namespace

TEST_CASE("constraints_of: planning with them gives the plan's traits again") {
  for (const int kernel : {1, 3}) {
    const ConvLayer layer = neighbour_layer(kernel);
    const SparsePattern pattern = analyse(layer);
    for (const BakedPlan& plan : make_plans(layer, pattern, {.batch = 32}, 12)) {
      const PlanConstraints constraints = constraints_of(plan);
      INFO(print(constraints));
      CHECK(print(parse_plan_constraints(print(constraints))) == print(constraints));
      const BakedPlan again = make_plan(layer, pattern, {.batch = 32, .archs = {"sm_90"}, .constraints = constraints});
      CHECK(again.staging == plan.staging);
      CHECK(again.reduction == plan.reduction);
      CHECK(again.tile == plan.tile);
      CHECK(again.groups.size() == plan.groups.size());
      CHECK(again.splits == plan.splits);
      CHECK(again.load_ahead == plan.load_ahead);
      CHECK(again.barrier_every == plan.barrier_every);
    }
  }
}

TEST_CASE("neighbours: each keeps tile and staging and changes something") {
  const Fixture f(3, "staging=shared");
  const std::string here = print(constraints_of(f.plan));
  std::vector<std::string> texts;
  for (const PlanConstraints& constraints : f.found) {
    CHECK(constraints.tile == f.plan.tile);
    CHECK(constraints.staging == f.plan.staging);
    CHECK(print(constraints) != here);
    texts.push_back(print(constraints));
  }
  std::sort(texts.begin(), texts.end());
  CHECK(std::adjacent_find(texts.begin(), texts.end()) == texts.end());
  CHECK(f.has([&](const PlanConstraints& c) { return c.splits == f.plan.splits + 1; }));
  CHECK(f.has([&](const PlanConstraints& c) { return c.stage_channels == f.plan.stage_channels * 2; }));
  CHECK(f.has([&](const PlanConstraints& c) { return c.buffers == f.plan.buffers + 1; }));
  CHECK(f.has([&](const PlanConstraints& c) { return c.load_ahead == f.plan.load_ahead * 2; }));
  CHECK(f.has([&](const PlanConstraints& c) { return c.barrier_every == f.plan.barrier_every / 2; }));
  CHECK(f.has([&](const PlanConstraints& c) { return c.groups > static_cast<int>(f.plan.groups.size()); }));
}

TEST_CASE("neighbours: splits may be added up in another way, a single one in none") {
  const auto last_block = [](const PlanConstraints& c) { return c.reduction == Reduction::last_block; };
  const Fixture split(3, "splits=2");
  REQUIRE(split.plan.reduction == Reduction::cluster);
  CHECK(split.has(last_block));
  CHECK_FALSE(Fixture(3, "splits=2,reduction=cluster").has(last_block));
  CHECK_FALSE(Fixture(3, "splits=1").has(last_block));
  const Fixture back(3, "reduction=last_block,splits=2");
  CHECK(back.plan.reduction == Reduction::last_block);
  CHECK_FALSE(back.found.empty());
  for (const PlanConstraints& constraints : back.found) CHECK(constraints.reduction == Reduction::last_block);
}

TEST_CASE("neighbours: what is fixed stays") {
  const Fixture f(3, "groups=8,splits=2,reduction=last_block,cluster=1x1,ahead=4,stage=4,buffers=2");
  CHECK_FALSE(f.found.empty());
  for (const PlanConstraints& constraints : f.found) {
    CHECK(constraints.groups == 8);
    CHECK(constraints.splits == 2);
    CHECK(constraints.load_ahead == 4);
    CHECK(constraints.stage_channels == f.plan.stage_channels);
    CHECK(constraints.buffers == f.plan.buffers);
    CHECK(constraints.barrier_every != f.plan.barrier_every);
  }
}

TEST_CASE("neighbours: clusters of twice and half as many tiles") {
  const auto has = [](const Fixture& f, int tiles) {
    const auto found = neighbours_of(f.plan, {}, group_options(f.layer.shape, f.pattern));
    return std::any_of(found.begin(), found.end(), [&](const PlanConstraints& c) {
      return c.cluster == ClusterShape{tiles, f.plan.cluster.splits} && c.splits == f.plan.splits;
    });
  };
  const Fixture f(3, "staging=bulk,groups=8,splits=2,cluster=2x2");
  CHECK(has(f, 4));
  CHECK(has(f, 1));
  CHECK_FALSE(has(Fixture(3, "splits=2,cluster=4x2"), 8));  // more blocks than surely find a place together
  CHECK_FALSE(has(Fixture(3, "splits=2,cluster=1x2"), 0));
}

TEST_CASE("neighbours: direct loads together and apart") {
  const Fixture f(1, "staging=direct,ahead=16");
  REQUIRE(f.plan.load_together == 1);
  CHECK(f.has([](const PlanConstraints& c) { return c.load_together == 8; }));
  const Fixture fixed(1, "staging=direct,ahead=16,together=4");
  CHECK_FALSE(fixed.found.empty());
  for (const PlanConstraints& constraints : fixed.found) {
    CHECK(constraints.load_together == 4);
  }
}

TEST_CASE("neighbours: direct loads have no stages") {
  const Fixture f(1, "staging=direct");
  REQUIRE(f.plan.staging == Staging::direct);
  CHECK_FALSE(f.found.empty());
  for (const PlanConstraints& constraints : f.found) {
    CHECK_FALSE(constraints.stage_channels);
    CHECK_FALSE(constraints.buffers);
  }
}

TEST_CASE("neighbours: the planner finds most of them") {
  const Fixture f(3);
  int plans = 0;
  for (const PlanConstraints& constraints : f.found) {
    try {
      const BakedPlan plan =
          make_plan(f.layer, f.pattern, {.batch = 32, .archs = {"sm_90"}, .constraints = constraints});
      CHECK(verify(plan, f.layer.shape, f.pattern).empty());
      plans += plan != f.plan ? 1 : 0;
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
    }
  }
  CHECK(plans >= 4);
}
