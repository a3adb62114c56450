// Convolutions that pool their outputs: shapes, tiles of pixels and of outputs, and the rules of both.

#include <limits>

#include "ir/baked_plan_pool.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"

using namespace burin;
using burin_test::any_contains;
using burin_test::small_plan;
using burin_test::small_shape;

namespace {

Pool max_3x3() { return {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2}; }

ConvShape pooled(const Pool& pool) {
  ConvShape shape = small_shape();  // 14x14
  shape.epilogue.pool = pool;
  return shape;
}

// 7x7 outputs of 14x14 pixels.
ConvShape padded_3x3() {
  Pool pool = max_3x3();
  pool.pad = {1, 0, 1, 0};
  return pooled(pool);
}

BakedPlan whole_plan() {
  BakedPlan plan = small_plan();  // whole images of 14x14
  plan.outputs = OutputTile{7, 7};
  return plan;
}

}  // namespace

TEST_CASE("pool: a layer stores what its pool makes of its pixels") {
  const ConvShape shape = pooled(max_3x3());
  CHECK(verify(shape).empty());
  CHECK((shape.conv_h() == 14 && shape.conv_w() == 14));
  CHECK((shape.out_h() == 6 && shape.out_w() == 6));
  CHECK(shape.conv_elements() == 32 * 14 * 14);
  CHECK(shape.output_elements() == 32 * 6 * 6);
  CHECK(describe(shape) == "16x14x14 -> 32x14x14, 3x3, stride 1, pad 1; max 3x3, stride 2, pad 0 -> 32x6x6");
}

TEST_CASE("pool: one that filters, and the function behind it") {
  ConvLayer layer = burin_test::make_layer("filtered", small_shape(), 0.2);
  burin_test::add_filters(layer, padded_3x3().epilogue.pool.value(), 1, Elementwise{ElementFunction::hard_swish});
  CHECK(verify(layer).empty());
  CHECK(describe(layer.shape) ==
        "16x14x14 -> 32x14x14, 3x3, stride 1, pad 1; filter 3x3, stride 2, pad 1,0,1,0 -> 32x7x7");
  CHECK_THAT(print(layer.shape), burin_test::Contains("pool: filter\n") && burin_test::Contains("then: hard_swish"));
  CHECK(summed_values(*layer.shape.epilogue.pool) == 9);

  const auto faults = [&](auto change) {
    ConvLayer changed = layer;
    change(changed);
    return verify(changed);
  };
  const auto is_fault = [&](auto change, const std::string& text) { return any_contains(faults(change), text); };
  CHECK(is_fault([](ConvLayer& l) { l.filters.pop_back(); }, "287 weights and 32 biases"));
  CHECK(is_fault([](ConvLayer& l) { l.filter_bias.clear(); }, "288 weights and 0 biases"));
  CHECK(is_fault([](ConvLayer& l) { l.filters[3] = std::numeric_limits<float>::infinity(); }, "not finite"));
  CHECK(is_fault([](ConvLayer& l) { l.filter_bias[3] = std::numeric_limits<float>::quiet_NaN(); }, "not finite"));
  CHECK(is_fault([](ConvLayer& l) { l.shape.epilogue.pool->round_up = true; }, "neither rounds up"));
  CHECK(is_fault([](ConvLayer& l) { l.shape.epilogue.pool->count_padding = true; }, "neither rounds up"));
  CHECK(is_fault([](ConvLayer& l) { l.shape.epilogue.pool->kind = PoolKind::max; }, "does not filter"));
  CHECK(is_fault([](ConvLayer& l) { l.shape.epilogue.pool->dilation_h = 2; }, "must be 1"));
}

TEST_CASE("pool: text form of a layer") {
  ConvShape shape = padded_3x3();
  shape.epilogue.pool = Pool{.kind = PoolKind::average,
                             .kernel_h = 1,
                             .kernel_w = 4,
                             .stride_h = 3,
                             .pad = {0, 1, 2, 3},
                             .round_up = true,
                             .count_padding = true};
  CHECK(print(shape) ==
        "# 16x14x14 -> 32x14x14, 3x3, stride 1, pad 1; average 1x4, stride 3x1, pad 0,1,2,3, rounded up, padding "
        "counts -> 32x5x16\nchannels: 16 -> 32\nkernel: 3x3\nstride: 1x1\ndilation: 1x1\ngroups: 1\n"
        "pad: 1,1,1,1  # top, bottom, left, right\ninput: 14x14\nbias: no\nresidual: no\nfunction: none\n"
        "pool: average\npool_kernel: 1x4\npool_stride: 3x1\n"
        "pool_pad: 0,1,2,3  # top, bottom, left, right\npool_round_up: yes\npool_count_padding: yes\n");
}

TEST_CASE("pool: faults name the attribute") {
  const auto expect = [](auto change, const std::string& part) {
    Pool pool = max_3x3();
    change(pool);
    const std::vector<std::string> faults = verify(pooled(pool));
    INFO(part << " in " << (faults.empty() ? "nothing" : faults.front()));
    CHECK(any_contains(faults, part));
  };
  expect([](Pool& p) { p.kernel_h = 0; }, "pool: kernel_h is 0");
  expect([](Pool& p) { p.stride_w = 1025; }, "pool: stride_w is 1025");
  expect([](Pool& p) { p.pad.top = -1; }, "pool: pad top is -1");
  expect([](Pool& p) { p.kernel_h = 15; }, "pool: the output has no rows: 14 with pad 0 + 0 are less than the 15");
  expect([](Pool& p) { p.pad.left = 3; }, "pool: the window of output column 0 lies in the padding alone");
  expect([](Pool& p) { p.dilation_h = 2; }, "pool: dilation is 2x1, it must be 1 where a convolution pools");
  expect([](Pool& p) { p.kind = static_cast<PoolKind>(7); }, "pool: kind is 7, which is none");
}

TEST_CASE("pool: pixels of a tile and outputs of a tile") {
  const ConvShape shape = padded_3x3();
  CHECK(output_tile({1, 14, 14}, shape) == OutputTile{7, 7});
  CHECK(output_tile({1, 3, 5}, shape) == OutputTile{1, 2});
  CHECK(output_tile({1, 4, 2}, shape) == OutputTile{0, 0});  // half a window more, and not even one
  CHECK(pixel_tile({1, 2}, 3, shape) == PixelTile{3, 3, 5});
  CHECK(pixel_tile({7, 99}, 1, shape) == PixelTile{1, 14, 14});
  CHECK(tiles_per_image({1, 3, 5}, shape) == 7 * 4);
  CHECK(tiles_per_image({1, 4, 5}, shape) == 0);
  const TileSteps steps = row_steps({1, 5, 14}, shape), whole = col_steps({1, 5, 14}, shape);
  CHECK((steps.first == -1 && steps.step == 4));
  CHECK((whole.first == 0 && whole.step == 14));
  CHECK(windows_leave_rows(shape));
  CHECK(!windows_leave_rows(pooled(max_3x3())));
}

TEST_CASE("pool: without one an output is a pixel") {
  const ConvShape shape = small_shape();
  CHECK(output_tile({2, 3, 5}, shape) == OutputTile{3, 5});
  CHECK(pixel_tile({3, 5}, 2, shape) == PixelTile{2, 3, 5});
  CHECK(row_steps({1, 3, 5}, shape).step == 3);
  CHECK(!windows_leave_cols(shape));
}

TEST_CASE("pool: a plan says what its tiles store, and has room for their values") {
  const BakedPlan plan = whole_plan();
  CHECK(verify(plan, padded_3x3()).empty());
  CHECK(parse_baked_plan(print(plan)) == plan);
  CHECK(describe(plan).starts_with("tile 2x14x14 to 7x7, 2 groups of 16"));
  CHECK(plan.shared_bytes() == kSharedReserveBytes + 16 * (plan.threads + 1) * 4);
}

TEST_CASE("pool: a plan of halves keeps words of two, or two floats") {
  BakedPlan plan = whole_plan();
  plan.precision = Precision::fp16;
  plan.input_layout = plan.output_layout = TensorLayout::n2chw;
  CHECK(verify(plan, padded_3x3()) == std::vector<std::string>{});
  CHECK(plan.shared_bytes() == kSharedReserveBytes + 16 * (2 * plan.threads + 1) * 4);
  CHECK(print(plan).find("keeps_halves") == std::string::npos);
  CHECK(may_keep_halves(plan.precision, padded_3x3()));
  plan.keeps_halves = true;
  CHECK(verify(plan, padded_3x3()) == std::vector<std::string>{});
  CHECK(parse_baked_plan(print(plan)) == plan);
  CHECK(plan.shared_bytes() == kSharedReserveBytes + 16 * (plan.threads + 1) * 4);
  // What a block of a cluster has summed up lies where its partial sums were.
  plan.reduction = Reduction::cluster;
  CHECK(plan.shared_bytes() == kSharedReserveBytes + 16 * (2 * plan.threads + 1) * 4);
  CHECK(!may_keep_halves(Precision::fp32, padded_3x3()));
  CHECK(!may_keep_halves(Precision::fp16, pooled({.kind = PoolKind::average, .kernel_h = 2, .kernel_w = 2})));
}

TEST_CASE("pool: lanes share a window where windows are large and few") {
  BakedPlan plan = whole_plan();
  plan.outputs = OutputTile{1, 1};
  const ConvShape mean = pooled({.kind = PoolKind::average, .kernel_h = 14, .kernel_w = 14});
  CHECK(window_lanes(plan, mean) == 8);  // 416 threads for 16 channels of 2 images
  plan.reduction = Reduction::cluster;   // each block has half of the channels
  CHECK(window_lanes(plan, mean) == 16);
  CHECK(window_lanes(whole_plan(), padded_3x3()) == 1);
}

TEST_CASE("pool: rules of a plan") {
  const auto expect = [](auto change, const std::string& part) {
    BakedPlan plan = whole_plan();
    ConvShape shape = padded_3x3();
    change(plan, shape);
    const std::vector<std::string> faults = verify(plan, shape);
    INFO(part << " in " << (faults.empty() ? "nothing" : faults.front()));
    CHECK(any_contains(faults, part));
  };
  expect([](BakedPlan& p, ConvShape&) { p.outputs.reset(); }, "outputs is missing, it must be 7x7");
  expect([](BakedPlan& p, ConvShape&) { p.outputs->rows = 6; }, "outputs is 6x7, it must be 7x7");
  expect([](BakedPlan&, ConvShape& s) { s.epilogue.pool.reset(); }, "outputs is 7x7, but the layer has no pool");
  expect([](BakedPlan& p, ConvShape&) { p.tile.rows = 4; },
         "tile rows are 4, they must be all 14 of the convolution, or 3 and a multiple of 2 more");
  expect([](BakedPlan& p, ConvShape&) { p.tile.cols = 2; }, "tile columns are 2");
  expect([](BakedPlan& p, ConvShape&) { p.marks = true; }, "skips and marks are for layers without a pool");
  expect([](BakedPlan& p, ConvShape&) { p.keeps_halves = true; }, "keeps_halves is set with fp32");
  expect(
      [](BakedPlan& p, ConvShape& s) {
        p.keeps_halves = true;
        s.epilogue.pool->kind = PoolKind::average;
      },
      "keeps_halves is set, but the pool adds up");
  expect(
      [](BakedPlan& p, ConvShape& s) {
        p.keeps_halves = true;
        s.epilogue.pool.reset();
      },
      "keeps_halves is set, but the layer has no pool");
  expect([](BakedPlan& p, ConvShape&) { p.threads = 1024, p.groups[0].resize(60, 0); },
         "the values of 1024 threads x 60 channels (the fullest group) that are to be pooled take 246000 bytes");
}
