
#include "ir/baked_plan.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"

using namespace burin;
using burin_test::small_plan;
using burin_test::small_shape;

TEST_CASE("baked_plan: derived sizes") {
  const BakedPlan plan = small_plan();
  CHECK(plan.group_capacity() == 16);
  CHECK(plan.stage_bytes() == 2 * 1061 * 4);
  CHECK(plan.shared_start() == 128);
  CHECK(plan.staging_bytes() == 128 + 2 * 2 * 1061 * 4);
  CHECK(plan.shared_bytes() == plan.staging_bytes());
  CHECK(plan.slice_stages(plan.slices[0]) == 2);
  CHECK(plan.tiles_per_image(small_shape()) == 1);
  BakedPlan tiled = plan;
  tiled.tile = {1, 4, 5};
  CHECK(tiled.tiles_per_image(small_shape()) == 4 * 3);
  CHECK(verify(plan, small_shape()).empty());
}

TEST_CASE("baked_plan: the blocks of a cluster share a group's channels") {
  BakedPlan plan = small_plan();
  const int staging = plan.staging_bytes();
  CHECK(plan.shared_bytes() == staging);
  plan.reduction = Reduction::cluster;
  plan.cluster.splits = 2;
  CHECK(verify(plan, small_shape()).empty());
  CHECK(plan.added_channels(0) == 8);
  plan.splits = 3;
  CHECK(plan.added_channels(0) == 6);
  plan.stage_channels = 1;  // small buffers: 16 partial sums of each thread need more
  CHECK(plan.shared_bytes() == kSharedReserveBytes + 16 * plan.threads * 4);
  CHECK(plan.staging_bytes() < plan.shared_bytes());
}

TEST_CASE("baked_plan: what a precision changes") {
  BakedPlan plan = burin_test::small_half_plan(Precision::fp16);
  CHECK(verify(plan, small_shape()).empty());
  CHECK(plan.tile_images() == 4);
  CHECK(plan.sums_per_channel() == 2);
  CHECK(plan.accumulator_registers() == 2 * 16);
  CHECK(plan.stage_bytes() == small_plan().stage_bytes());
  plan.reduction = Reduction::cluster;
  plan.cluster.splits = 2;
  plan.stage_channels = 1;
  CHECK(plan.shared_bytes() == kSharedReserveBytes + 2 * 16 * plan.threads * 4);
  CHECK(verify(plan, small_shape()).empty());

  BakedPlan wide = burin_test::small_half_plan(Precision::fp16x2);
  wide.promote_every = 16;
  CHECK(verify(wide, small_shape()).empty());
  CHECK(wide.accumulator_registers() == 3 * 16);
  CHECK(kernel_symbol("c", wide) == "burin_c_conv_baked_fp16x2_b2_t2x14x14_g2s2");
  wide.promote_every = 0;
  CHECK(wide.accumulator_registers() == 16);
  CHECK(print(wide).find("promote_every: 0") != std::string::npos);
  CHECK(print(plan).find("promote_every") == std::string::npos);
  CHECK(small_plan().tile_images() == 2);
  CHECK(small_plan().accumulator_registers() == 16);
}

TEST_CASE("baked_plan: short forms") {
  BakedPlan plan = small_plan();
  CHECK(describe(plan) == "tile 2x14x14, 2 groups of 16, 2 splits, 4 ch x 2");
  CHECK(kernel_symbol("features.3/conv", plan) == "burin_features_3_conv_conv_baked_fp32_b2_t2x14x14_g2s2");
  plan.cluster.splits = 2;
  CHECK(kernel_symbol("c", plan) == "burin_c_conv_baked_fp32_b2_t2x14x14_g2s2");
  plan.cluster.tiles = 3;
  CHECK(describe(plan) == "tile 2x14x14, 2 groups of 16, 2 splits, clusters of 3x2, 4 ch x 2");
  CHECK(kernel_symbol("c", plan) == "burin_c_conv_baked_fp32_b2_t2x14x14_g2s2_c3x2");
  plan.cluster = {};
  plan.splits = 1;
  plan.groups.resize(1);
  CHECK(describe(plan) == "tile 2x14x14, 1 group of 16, 4 ch x 2");
}

TEST_CASE("baked_plan: text form round trip") {
  CHECK(parse_baked_plan(print(small_plan())) == small_plan());
  burin_test::Random random(31);
  for (int i = 0; i < 100; ++i) {
    BakedPlan plan;
    plan.template_name = random.chance(0.5) ? "conv_baked" : "other_2";
    plan.arch = random.chance(0.5) ? "sm_75" : "sm_90";
    plan.precision = kPrecisions[static_cast<std::size_t>(random.integer(0, static_cast<int>(kPrecisions.size()) - 1))];
    plan.promote_every = plan.precision == Precision::fp16x2 ? random.integer(0, 99) : 0;
    plan.batch = random.integer(1, 1000);
    plan.input_layout = kTensorLayouts[static_cast<std::size_t>(random.integer(0, 2))];
    plan.output_layout = kTensorLayouts[static_cast<std::size_t>(random.integer(0, 2))];
    if (random.chance(0.3)) plan.output_image_words = random.integer(1, 1 << 20);
    if (random.chance(0.3)) plan.residual_image_words = random.integer(1, 1 << 20);
    plan.staging = static_cast<Staging>(random.integer(0, 2));
    plan.tile = {random.integer(1, 9), random.integer(1, 99), random.integer(1, 99)};
    plan.cluster = {random.integer(1, 8), random.integer(1, 8)};
    plan.threads = 32 * random.integer(1, 32);
    plan.shared = {random.integer(1, 99),  random.integer(1, 99),   random.integer(0, 999),  random.integer(1, 9),
                   random.integer(1, 999), random.integer(1, 9999), random.integer(1, 99999)};
    plan.splits = random.integer(1, 4);
    plan.reduction = static_cast<Reduction>(random.integer(0, 2));
    for (int g = random.integer(1, 6); g > 0; --g) {
      plan.groups.emplace_back();
      for (int n = random.integer(0, 9); n > 0; --n) plan.groups.back().push_back(random.integer(0, 20));
    }
    for (int g = 0; g < static_cast<int>(plan.groups.size()); ++g) {
      for (int s = 0; s < plan.splits; ++s) {
        plan.slices.push_back({g, s, {}});
        for (int n = random.integer(0, 9); n > 0; --n) plan.slices.back().channels.push_back(random.integer(0, 20));
      }
    }
    plan.stage_channels = random.integer(1, 64);
    plan.buffers = random.integer(1, 4);
    plan.barrier_every = random.integer(0, 1024);
    plan.load_ahead = random.integer(1, 16);
    if (plan.staging == Staging::direct) plan.load_together = random.integer(1, plan.load_ahead);
    plan.max_registers = random.integer(32, 255);
    plan.predicted_us = random.real() * 100;
    INFO("seed 31, case " << i << "\n" << print(plan));
    CHECK(parse_baked_plan(print(plan)) == plan);
  }
}

TEST_CASE("baked_plan: faults of the text name the line") {
  const std::string text = print(small_plan());
  const auto expect = [&](const std::string& from, const std::string& to, const std::string& part) {
    std::string edited = text;
    REQUIRE(edited.find(from) != std::string::npos);
    edited.replace(edited.find(from), from.size(), to);
    CHECK_THROWS_WITH(parse_baked_plan(edited), burin_test::Contains(part));
  };
  expect("batch: 2", "batch: two", "kernel plan, line 5: 'two' of 'batch' is not an integer");
  expect("batch: 2", "", "kernel plan: there is no line 'batch: ...'");
  expect("precision: fp32", "precision: fp8",
         "line 4: 'fp8' is not a precision; known are fp32, fp16, bf16, fp16x2, tf32");
  expect("precision: fp32", "precision: fp16x2\npromote_every: often",
         "line 5: 'often' of 'promote_every' is not an integer");
  expect("input_layout: nchw", "input_layout: nhwc",
         "line 6: 'nhwc' is not a tensor layout; known are nchw, nchw4, n2chw");
  expect("tile: 2x14x14", "tile: 2x14", "'2x14' of 'tile' must be 3 integers");
  expect("reduction: last_block", "reduction: atomic",
         "'atomic' is not a reduction; known are none, last_block, cluster");
  expect("group 1:", "group 2:", "'group 2' stands where 'group 1' is expected");
  expect("slice 0 0:", "slice 0:", "'slice 0' is not of the form 'slice GROUP SPLIT'");
  expect("splits: 2", "splits: 2\nwarps: 3", "unknown key 'warps'");
}

TEST_CASE("baked_plan: the predicted time may be left out of the text") {
  std::string text = print(small_plan());
  const std::size_t start = text.find("predicted_us");
  text.erase(start, text.find('\n', start) - start);
  CHECK(parse_baked_plan(text).predicted_us == 0);
}
