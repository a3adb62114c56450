// Plans set by hand with bulk staging, on the host executor: what is copied, where it lies, what is left out.

#include <algorithm>

#include "ir/limits.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/codegen/hand_plan.h"
#include "test/codegen/host_check.h"

using namespace burin;
using namespace burin_test;

namespace {

ConvLayer layer_of(const char* edge) { return edge_case(edge).make_layer(); }

// 16 -> 24 channels, 3x3 with padding 1 unless the test says otherwise.
ConvShape shape_of(int in_h, int in_w) {
  ConvShape shape;
  shape.in_channels = 16;
  shape.out_channels = 24;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  shape.in_h = in_h;
  shape.in_w = in_w;
  return shape;
}

ConvLayer layer_of(const ConvShape& shape, double density = 0.3) { return make_layer("layer", shape, density, 7); }

// Several images need whole planes.
HandPlan planes(const ConvShape& shape, HandPlan hand = {}) {
  hand.staging = Staging::bulk;
  hand.tile.rows = shape.out_h();
  return hand;
}

HandPlan rows(int count, HandPlan hand = {}) {
  hand.staging = Staging::bulk;
  hand.tile = {1, count, 1};
  return hand;
}

BakedPlan check_bulk(const ConvLayer& layer, const HandPlan& hand, const std::vector<int>& batches = {1}) {
  const BakedPlan plan = plan_by_hand(layer, hand);
  REQUIRE(plan.staging == Staging::bulk);
  CHECK(check_on_host(layer, plan, batches) == "");
  return plan;
}

// The longest slice's stages.
int most_stages(const BakedPlan& plan) {
  int most = 0;
  for (const Slice& slice : plan.slices) most = std::max(most, plan.slice_stages(slice));
  return most;
}

}  // namespace

TEST_CASE("bulk plan: whole planes") {
  for (const char* edge : {"3x3", "1x7", "7x1", "5x5", "bias_residual_silu", "full_dense", "one_pixel", "no_pad"}) {
    const ConvLayer layer = layer_of(edge);
    check_bulk(layer, planes(layer.shape));
  }
}

TEST_CASE("bulk plan: planes of several images, the last tile not full") {
  const ConvLayer layer = layer_of("3x3");
  for (const int images : {2, 3, 7}) {
    const BakedPlan plan = check_bulk(layer, planes(layer.shape, {.tile = {images, 1, 1}}), {1, images, images + 1, 9});
    CHECK(plan.tile.images == images);
  }
}

TEST_CASE("bulk plan: more images than a warp has threads") {
  const ConvShape shape = shape_of(3, 4);
  check_bulk(layer_of(shape), planes(shape, {.tile = {40, 1, 1}}), {1, 32, 33, 41});
}

TEST_CASE("bulk plan: rows of one image") {
  const ConvLayer layer = layer_of(shape_of(11, 12));
  for (int count = 1; count <= 10; ++count) {
    const BakedPlan plan = check_bulk(layer, rows(count), {1, 2});
    CHECK(plan.shared.patch_rows == count + 2);
    CHECK(plan.shared.patch_cols == 12);
  }
}

TEST_CASE("bulk plan: planes of an odd number of pixels are copied four channels at a time") {
  for (const auto& [extent, multiple] : {std::pair{7, 4}, {9, 4}, {6, 1}}) {
    ConvShape shape = shape_of(extent, extent);
    shape.in_channels = 20;
    const ConvLayer layer = layer_of(shape);
    for (const int channels : {1, 4, 5, 20}) {
      const BakedPlan plan = check_bulk(layer, planes(shape, {.tile = {3, 1, 1}, .stage_channels = channels}), {1, 4});
      CHECK(plan.stage_channels % multiple == 0);
    }
    check_bulk(layer, planes(shape, {.splits = 3, .stage_channels = 4}), {2});
  }
  ConvShape even = shape_of(7, 6);  // 42 pixels: two channels at a time
  CHECK(check_bulk(layer_of(even), planes(even, {.stage_channels = 5})).stage_channels == 6);
}

TEST_CASE("bulk plan: an image that is no multiple of 16 bytes cannot be copied") {
  ConvShape shape = shape_of(7, 7);
  shape.in_channels = 6;
  const ConvLayer layer = layer_of(shape);
  CHECK(any_contains(verify(plan_by_hand(layer, planes(shape)), shape), "one image is 294 words"));
  shape = shape_of(8, 6);
  CHECK(any_contains(verify(plan_by_hand(layer_of(shape), rows(2)), shape), "a row is 6 words"));
}

TEST_CASE("bulk plan: room between images and around the buffers") {
  const ConvLayer layer = layer_of("asymmetric_pad");
  for (const int words : {0, 1, 4, 29, 64}) {
    const BakedPlan plan = check_bulk(layer, planes(layer.shape, {.tile = {2, 1, 1}, .padding_words = words}), {3});
    CHECK(plan.shared.margin >= words);
    check_bulk(layer_of(shape_of(9, 8)), rows(4, {.padding_words = words}));
  }
}

TEST_CASE("bulk plan: a margin too small is refused") {
  const ConvShape shape = shape_of(9, 8);
  BakedPlan plan = plan_by_hand(layer_of(shape), rows(4));
  CHECK(plan.shared.margin == 12);  // a row and a pixel
  plan.shared.margin = 8;
  CHECK(any_contains(verify(plan, shape), "margin is 8, it must be at least 9"));
}

TEST_CASE("bulk plan: stride and dilation") {
  struct Walk {
    int stride_h, stride_w, dilation_h, dilation_w;
  };
  for (const Walk& walk : {Walk{2, 2, 1, 1}, {3, 1, 1, 1}, {1, 2, 2, 1}, {1, 1, 2, 3}, {2, 2, 2, 2}, {5, 4, 1, 1}}) {
    ConvShape shape = shape_of(13, 16);
    shape.stride_h = walk.stride_h;
    shape.stride_w = walk.stride_w;
    shape.dilation_h = walk.dilation_h;
    shape.dilation_w = walk.dilation_w;
    shape.pad = {walk.dilation_h, walk.dilation_h, walk.dilation_w, walk.dilation_w};
    const ConvLayer layer = layer_of(shape);
    check_bulk(layer, planes(shape, {.tile = {2, 1, 1}}), {1, 3});
    for (const int count : {1, 2}) check_bulk(layer, rows(count), {1, 2});
  }
}

TEST_CASE("bulk plan: padding as wide as it can be") {
  for (const Padding& pad : {Padding{0, 2, 1, 3}, {5, 4, 6, 5}, {0, 0, 4, 0}, {9, 9, 0, 0}}) {
    ConvShape shape = shape_of(7, 8);
    shape.pad = pad;
    const ConvLayer layer = layer_of(shape);
    check_bulk(layer, planes(shape), {2});
    for (const int count : {1, 2, 3}) check_bulk(layer, rows(count));
  }
}

// The tile's rows may all lie above or below the image: then nothing arrives, and nothing may be waited for.
TEST_CASE("bulk plan: a tile wholly in the padding copies nothing") {
  ConvShape shape = shape_of(5, 8);
  shape.kernel_h = shape.kernel_w = 1;
  shape.pad = {8, 8, 4, 4};
  const ConvLayer layer = layer_of(shape);
  for (const int count : {1, 2, 3, 4}) {
    check_bulk(layer, rows(count), {1, 2});
    check_bulk(layer, rows(count, {.stage_channels = 3, .buffers = 3}));
    check_bulk(layer, rows(count, {.splits = 2, .stage_channels = 2}));
  }
  ConvLayer biased = layer;
  biased.shape.epilogue.bias = true;
  biased.bias.assign(24, 0.5F);
  check_bulk(biased, rows(3));
  check_bulk(layer, rows(2, {.input_layout = TensorLayout::nchw4, .output_layout = TensorLayout::nchw4}));
}

TEST_CASE("bulk plan: one to eight buffers, the last stage not full") {
  const ConvLayer layer = layer_of(shape_of(9, 12));
  check_bulk(layer, rows(2, {.stage_channels = 16, .buffers = 1}));
  check_bulk(layer, planes(layer.shape, {.tile = {2, 1, 1}, .stage_channels = 16, .buffers = 1}), {3});
  for (int buffers = 2; buffers <= kMaxBuffers; ++buffers) {
    for (const int channels : {1, 3, 5}) {
      const BakedPlan plan = check_bulk(layer, rows(2, {.stage_channels = channels, .buffers = buffers}));
      CHECK(most_stages(plan) == (16 + channels - 1) / channels);
      check_bulk(layer, planes(layer.shape, {.tile = {2, 1, 1}, .stage_channels = channels, .buffers = buffers}), {3});
    }
  }
}

TEST_CASE("bulk plan: splits") {
  const ConvLayer layer = layer_of(shape_of(9, 12));
  for (const bool cluster : {false, true}) {
    for (const int splits : {2, 3, 5, 8}) {
      check_bulk(layer, rows(2, {.splits = splits, .cluster = cluster, .stage_channels = 2}), {2});
      check_bulk(layer,
                 planes(layer.shape, {.tile = {2, 1, 1}, .splits = splits, .cluster = cluster, .stage_channels = 3}),
                 {1, 3});
    }
  }
  ConvShape few = shape_of(9, 12);
  few.in_channels = 2;
  check_bulk(layer_of(few), rows(2, {.splits = 4}), {2});  // some have no channel
}

TEST_CASE("bulk plan: groups that read different channels") {
  for (const char* edge : {"groups_2", "one_group_empty", "depthwise", "one_nonzero", "all_zero", "channel_empty"}) {
    const ConvLayer layer = layer_of(edge);
    check_bulk(layer, planes(layer.shape, {.group_channels = 4, .stage_channels = 2}), {2});
    check_bulk(layer, planes(layer.shape, {.splits = 2, .all_channels = true, .backwards = true}));
  }
}

TEST_CASE("bulk plan: barriers within a stage, loads far ahead, threads without a pixel") {
  const ConvLayer layer = layer_of(shape_of(9, 12));
  check_bulk(layer, rows(3, {.idle_warps = 3, .barrier_every = 5}), {2});
  check_bulk(layer, rows(3, {.load_ahead = kMaxLoadAhead}));
  check_bulk(layer, planes(layer.shape, {.tile = {2, 1, 1}, .idle_warps = 1, .barrier_every = 1, .load_ahead = 1}),
             {3});
}

TEST_CASE("bulk plan: four channels side by side") {
  const TensorLayout four = TensorLayout::nchw4;
  for (const int in_channels : {16, 7}) {
    ConvShape shape = shape_of(7, 7);  // rows of any width
    shape.in_channels = in_channels;
    const ConvLayer layer = layer_of(shape);
    check_bulk(layer, planes(shape, {.tile = {2, 1, 1}, .input_layout = four, .output_layout = four}), {1, 3});
    check_bulk(layer, rows(2, {.splits = 2, .stage_channels = 4, .buffers = 3, .input_layout = four}), {2});
    check_bulk(layer, rows(3, {.stage_channels = 8, .padding_words = 5, .input_layout = four, .output_layout = four}));
  }
}
