#include "compiler/providers/conv_baked/plan/cost_model.h"

#include "compiler/providers/conv_baked/plan/planner.h"
#include "compiler/providers/conv_baked/plan/shared_layout.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/providers/conv_baked/plan_work.h"

using namespace burin;

namespace {

// Batch 32 of 3x3 256@14: 8 tiles of 4 images, 16 slices.
LaunchFigures figures() {
  LaunchFigures f;
  f.tiles = 8;
  f.slices = 16;
  f.threads = 800;
  f.group_capacity = 16;
  f.registers = 80;
  f.stage_bytes = 16 * 1024 * 4;
  f.shared_bytes = 16 + 3 * f.stage_bytes;
  f.stage_channels = 16;
  f.buffers = 3;
  f.barrier_every = 512;
  f.patch_positions = 1024;
  f.mean = f.fullest = {3326, 1749, 256};
  return f;
}

const ArchSpec& h200() { return arch_by_name("sm_90"); }

double total(const LaunchFigures& f) { return launch_cost(f, h200()).total_us; }

double predicted_us(const BakedPlan& plan, const ConvShape& shape, const SparsePattern& pattern) {
  return total(figures_of(plan, shape, burin_test::work_of_slices(plan, pattern)));
}

}  // namespace

TEST_CASE("cost_model: a pool takes time, of two floats more than of a word of halves") {
  LaunchFigures f = figures();
  f.sums_per_channel = 2;
  const double alone = total(f);
  f.pool_positions = 9;
  f.tile_outputs = f.threads;  // as much is stored
  CHECK(total(f) > alone);
  const auto set_precision = [&](Precision precision, bool keeps_halves) {
    BakedPlan plan;
    plan.precision = precision;
    plan.keeps_halves = keeps_halves;
    set_precision_figures(f, plan, ConvShape());
    f.sums_per_channel = 2;
  };
  set_precision(Precision::fp32, false);
  CHECK(f.position_instructions == 2);  // a load and a maximum
  set_precision(Precision::fp16x2, true);
  CHECK(f.position_instructions == 2);
  const double of_halves = total(f);
  set_precision(Precision::fp16x2, false);
  CHECK(f.position_instructions == 4);  // two loads, two sums
  CHECK(total(f) > of_halves);
}

TEST_CASE("cost_model: the terms add up and none is negative") {
  burin_test::Random random(61);
  for (int i = 0; i < 300; ++i) {
    LaunchFigures f = figures();
    f.tiles = random.integer(1, 2000);
    f.slices = random.integer(1, 300);
    f.splits = random.integer(1, 8);
    if (f.splits > 1) f.reduction = Reduction::last_block;
    f.threads = 32 * random.integer(1, 32);
    f.stage_channels = random.integer(1, 32);
    f.patch_positions = random.integer(1, 5000);
    f.mean = {random.real() * 8000, random.real() * 3000, random.real() * 200};
    f.fullest = {f.mean.multiply_adds * 1.2, f.mean.loads * 1.2, f.mean.channels * 1.2};
    for (const ArchSpec& arch : known_archs()) {
      const CostBreakdown cost = launch_cost(f, arch);
      INFO("seed 61, case " << i << ", " << arch.name);
      CHECK(cost.issue_us >= 0);
      CHECK(cost.fetch_us >= 0);
      CHECK(cost.staging_us >= 0);
      CHECK(cost.reduction_us >= 0);
      CHECK((cost.reduction_us > 0) == (f.splits > 1));
      CHECK(cost.fixed_us >= arch.launch_us);
      CHECK(cost.waves > 0);
      CHECK(cost.total_us ==
            Approx(cost.issue_us + cost.fetch_us + cost.staging_us + cost.reduction_us + cost.fixed_us));
    }
  }
}

TEST_CASE("cost_model: more of anything costs more") {
  const double base = total(figures());
  const auto more = [&](auto change) {
    LaunchFigures f = figures();
    change(f);
    return total(f);
  };
  CHECK(more([](LaunchFigures& f) { f.mean.multiply_adds *= 2, f.fullest.multiply_adds *= 2; }) > base);
  CHECK(more([](LaunchFigures& f) { f.mean.loads *= 2, f.fullest.loads *= 2; }) > base);
  CHECK(more([](LaunchFigures& f) { f.mean.channels *= 2, f.fullest.channels *= 2; }) > base);
  CHECK(more([](LaunchFigures& f) { f.fullest.multiply_adds *= 1.5; }) > base);
  CHECK(more([](LaunchFigures& f) { f.load_conflict = 2; }) > base);
  CHECK(more([](LaunchFigures& f) { f.tiles *= 4; }) > base);
  CHECK(more([](LaunchFigures& f) { f.patch_positions *= 2; }) > base);
  CHECK(more([](LaunchFigures& f) { f.splits = 4, f.reduction = Reduction::last_block; }) > base);
  CHECK(more([](LaunchFigures& f) { f.barrier_every = 32; }) > base);
}

TEST_CASE("cost_model: neighbours that run the same code fetch faster") {
  LaunchFigures f = figures();
  f.splits = 2;
  f.reduction = Reduction::cluster;
  f.mean.multiply_adds = f.fullest.multiply_adds = 9000;  // more than the cache holds
  f.threads = 128;                                        // too few to hide it
  f.slices = 15;                                          // 120 blocks, all at once
  f.cluster = {1, 2};
  const double apart = launch_cost(f, h200()).fetch_us;
  f.cluster = {2, 2};
  CHECK(launch_cost(f, h200()).fetch_us < apart);
}

TEST_CASE("cost_model: clusters") {
  LaunchFigures f = figures();
  f.splits = 4;
  f.reduction = Reduction::last_block;
  const CostBreakdown last_block = launch_cost(f, h200());
  f.reduction = Reduction::cluster;
  const CostBreakdown cluster = launch_cost(f, h200());
  CHECK(cluster.reduction_us > h200().cluster_reduction_us);
  CHECK(cluster.reduction_us < last_block.reduction_us);
  f.group_capacity *= 2;
  CHECK(launch_cost(f, h200()).reduction_us > cluster.reduction_us);

  // 128 blocks: pairs find a place for all at once, of clusters of four no more than 30 do.
  f = figures();
  f.reduction = Reduction::cluster;
  f.splits = 2;
  const CostBreakdown pairs = launch_cost(f, h200());
  CHECK(pairs.waves < 1);
  f.splits = 4;
  CHECK(launch_cost(f, h200()).waves > 1);
  CHECK(launch_cost(f, h200()).total_us > 1.5 * pairs.total_us);
}

TEST_CASE("cost_model: few warps on cold code wait for its fetch, many do not") {
  LaunchFigures few = figures();
  few.threads = 128;
  CHECK(launch_cost(few, h200()).fetch_us > 0);
  CHECK(launch_cost(figures(), h200()).fetch_us == 0);
}

TEST_CASE("cost_model: the order of magnitude of what was measured on the H200") {
  // us of the prototype: 43.2 with everything, 29.4 without copies
  CHECK(total(figures()) == Approx(43.2).epsilon(0.2));
}

TEST_CASE("cost_model: residency is bounded by threads, registers and shared memory") {
  CHECK(resident_blocks(1024, 64, 1000, h200()) == 1);
  CHECK(resident_blocks(1024, 32, 1000, h200()) == 2);
  CHECK(resident_blocks(256, 64, 1000, h200()) == 4);
  CHECK(resident_blocks(256, 32, 100'000, h200()) == 2);
  CHECK(resident_blocks(32, 32, 0, h200()) == 32);
  CHECK(resident_blocks(1024, 128, 1000, h200()) == 0);
}

TEST_CASE("cost of a plan: monotone in the nonzeros of one plan") {
  const ConvShape shape = burin_test::small_shape();
  const ConvLayer dense = burin_test::make_layer("layer", shape, 1);
  const BakedPlan plan = make_plan(dense, analyse(dense), {3, {"sm_90"}});
  ConvLayer pruned = dense;
  burin_test::Random random(62);
  double before = predicted_us(plan, shape, analyse(dense));
  CHECK(before == Approx(plan.predicted_us));
  for (int step = 0; step < 20; ++step) {
    for (float& weight : pruned.weights) {
      if (random.chance(0.15)) weight = 0;
    }
    const double now = predicted_us(plan, shape, analyse(pruned));
    CHECK(now <= before);
    before = now;
  }
}
