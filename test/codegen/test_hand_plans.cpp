// What the planner seldom chooses: plans set by hand, on the host executor.

#include <algorithm>
#include <set>

#include "ir/limits.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/codegen/hand_plan.h"
#include "test/codegen/host_check.h"

using namespace burin;
using namespace burin_test;

namespace {

void check_plan(const ConvLayer& layer, const HandPlan& hand, const std::vector<int>& batches = {1}) {
  CHECK(check_on_host(layer, plan_by_hand(layer, hand), batches) == "");
}

ConvLayer hand_layer_of(const char* edge) { return edge_case(edge).make_layer(); }

// Patch positions that each thread copies per channel.
std::int64_t positions_per_thread(const BakedPlan& plan) {
  const std::int64_t positions = std::int64_t{plan.tile.images} * plan.shared.patch_rows * plan.shared.patch_cols;
  return (positions + plan.threads - 1) / plan.threads;
}

}  // namespace

TEST_CASE("hand plan: splits are added by the last block") {
  for (const int splits : {2, 3, 5}) check_plan(hand_layer_of("bias_residual_silu"), {.splits = splits}, {1, 3});
}

TEST_CASE("hand plan: more splits than channels") {
  check_plan(hand_layer_of("one_input_channel"), {.splits = 3}, {1, 2});
  check_plan(hand_layer_of("one_nonzero"), {.splits = 2});
  check_plan(hand_layer_of("all_zero_bias_relu"), {.splits = 2});
}

TEST_CASE("hand plan: one buffer") {
  check_plan(hand_layer_of("3x3"), {.stage_channels = 16, .buffers = 1});
  check_plan(hand_layer_of("3x3"), {.splits = 2, .stage_channels = 8, .buffers = 1});
}

TEST_CASE("hand plan: two to eight buffers") {
  for (int buffers = 2; buffers <= kMaxBuffers; ++buffers) {
    check_plan(hand_layer_of("3x3"), {.stage_channels = 2, .buffers = buffers});
  }
}

TEST_CASE("hand plan: more buffers than stages") {
  check_plan(hand_layer_of("3x3"), {.stage_channels = 16, .buffers = 4});
  check_plan(hand_layer_of("3x3"), {.splits = 4, .stage_channels = 3, .buffers = 8});
}

TEST_CASE("hand plan: stages of few and of all channels") {
  for (const int channels : {1, 3, 5, 15, 16, 40}) check_plan(hand_layer_of("3x3"), {.stage_channels = channels});
}

TEST_CASE("hand plan: several channels side by side in one row") {
  for (const int channels : {2, 3, 4})
    check_plan(hand_layer_of("3x3"), {.stage_channels = 6, .channels_per_row = channels});
  check_plan(hand_layer_of("dilation_2_stride_2"), {.stage_channels = 5, .channels_per_row = 3, .padding_words = 1});
  for (const char* name : {"dilation_2_stride_2", "11x11_stride_4"}) {
    for (const int channels : {1, 2}) check_plan(hand_layer_of(name), {.channels_per_row = channels, .phases = true});
  }
}

TEST_CASE("hand plan: rows, images and channels padded apart") {
  for (const int words : {1, 3, 17}) {
    check_plan(hand_layer_of("batch_3"), {.tile = {2, 4, 4}, .padding_words = words}, {3});
  }
}

TEST_CASE("hand plan: barriers between multiply-adds") {
  for (const int every : {1, 2, 7, 1000}) check_plan(hand_layer_of("3x3"), {.barrier_every = every});
}

TEST_CASE("hand plan: loads far ahead and not at all") {
  for (const int ahead : {1, 2, kMaxLoadAhead}) check_plan(hand_layer_of("3x3"), {.load_ahead = ahead});
}

TEST_CASE("hand plan: tiles of several images") {
  check_plan(hand_layer_of("3x3"), {.tile = {2, 9, 10}}, {1, 2, 3, 5});
  check_plan(hand_layer_of("one_pixel"), {.tile = {7, 1, 1}}, {1, 7, 8, 15});
}

TEST_CASE("hand plan: tiles that reach beyond the output") {
  check_plan(hand_layer_of("3x3"), {.tile = {1, 4, 7}}, {1, 2});
  check_plan(hand_layer_of("3x3"), {.tile = {3, 2, 9}}, {1, 4});
  check_plan(hand_layer_of("stride_2"), {.tile = {2, 3, 3}}, {1, 3});
}

TEST_CASE("hand plan: a tile of one pixel") { check_plan(hand_layer_of("3x3"), {.tile = {1, 1, 1}}); }

TEST_CASE("hand plan: threads without a pixel") {
  check_plan(hand_layer_of("3x3"), {.tile = {1, 3, 3}, .idle_warps = 7});
}

TEST_CASE("hand plan: a thread copies more positions than it holds addresses") {
  const ConvLayer layer = hand_layer_of("11x11_stride_4");
  for (const int splits : {1, 2}) {
    const HandPlan hand = {.tile = {1, 4, 4}, .splits = splits, .stage_channels = 1, .buffers = 3};
    CHECK(positions_per_thread(plan_by_hand(layer, hand)) > 4);
    check_plan(layer, hand, {1, 2});
  }
  const HandPlan images = {.tile = {3, 1, 1}, .stage_channels = 2};
  CHECK(positions_per_thread(plan_by_hand(layer, images)) > 4);
  check_plan(layer, images, {4});
}

TEST_CASE("hand plan: each count of positions per thread") {
  const ConvLayer layer = hand_layer_of("stride_larger_than_filter");  // 21x23, stride 5x4
  std::set<std::int64_t> seen;
  for (int rows = 1; rows <= 5; ++rows) {
    const HandPlan hand = {.tile = {1, rows, 5}};
    seen.insert(positions_per_thread(plan_by_hand(layer, hand)));
    check_plan(layer, hand);
  }
  CHECK(seen.size() >= 4);
}

TEST_CASE("hand plan: activations straight from global memory") {
  check_plan(hand_layer_of("1x1"), {.staging = Staging::direct}, {1, 3});
  check_plan(hand_layer_of("1x1"), {.tile = {2, 4, 7}, .idle_warps = 2, .staging = Staging::direct}, {1, 2, 5});
  check_plan(hand_layer_of("1x1"), {.splits = 3, .barrier_every = 10, .load_ahead = 64, .staging = Staging::direct},
             {2});
  check_plan(hand_layer_of("stride_2_1x1"), {.tile = {3, 2, 3}, .load_ahead = 1, .staging = Staging::direct}, {1, 4});
  check_plan(hand_layer_of("one_pixel_1x1"), {.tile = {5, 1, 1}, .staging = Staging::direct}, {1, 7});
  check_plan(hand_layer_of("many_inputs"), {.splits = 2, .staging = Staging::direct, .backwards = true});
  check_plan(hand_layer_of("groups_2_1x1"), {.all_channels = true, .staging = Staging::direct});
  check_plan(hand_layer_of("all_zero_1x1"), {.splits = 2, .staging = Staging::direct});
  for (const int together : {2, 3, 8}) {
    check_plan(hand_layer_of("many_inputs"), {.load_together = together, .staging = Staging::direct}, {1, 3});
  }
}

TEST_CASE("hand plan: groups of one channel") {
  check_plan(hand_layer_of("3x3"), {.group_channels = 1});
  check_plan(hand_layer_of("depthwise"), {.group_channels = 1, .splits = 2}, {2});
}

TEST_CASE("hand plan: a group of as many channels as a thread can hold") {
  check_plan(hand_layer_of("many_outputs"), {.group_channels = kMaxGroupChannels, .stage_channels = 6});
}

TEST_CASE("hand plan: channels that no nonzero reads") {
  check_plan(hand_layer_of("one_nonzero"), {.all_channels = true});
  check_plan(hand_layer_of("depthwise"), {.splits = 3, .all_channels = true});
  check_plan(hand_layer_of("all_zero"), {.splits = 2, .stage_channels = 3, .buffers = 3, .all_channels = true});
}

TEST_CASE("hand plan: channels and outputs in another order") {
  check_plan(hand_layer_of("bias"), {.splits = 2, .backwards = true});
  check_plan(hand_layer_of("groups_2"), {.all_channels = true, .backwards = true});
}

TEST_CASE("hand plan: wrong code is noticed") {
  // The check itself: a layer's code against the reference of one that differs in a single weight.
  const ConvLayer layer = hand_layer_of("3x3");
  ConvLayer other = layer;
  *std::find_if(other.weights.begin() + 1000, other.weights.end(), [](float w) { return w != 0; }) *= 1.001F;
  const BakedPlan plan = plan_by_hand(layer, {});
  CHECK(check_against(layer, layer, plan, {1}) == "");
  CHECK_THAT(check_against(other, layer, plan, {1}), burin_test::Contains("3x3, batch 1: image 0, channel"));

  BakedPlan lossy = plan;
  lossy.slices[1].channels.pop_back();
  CHECK_THAT(check_on_host(layer, lossy, {1}), burin_test::Contains("the plan is not legal: group 1 loses"));
}
