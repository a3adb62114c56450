// Convolutions that pool their outputs, with plans set by hand: tiles that windows leave, whole planes, every
// reduction, in every precision and layout.

#include <string_view>

#include "ir/baked_plan_pool.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/codegen/hand_plan.h"
#include "test/codegen/host_check.h"

using namespace burin;
using namespace burin_test;

namespace {

void check_pooled(const char* edge, const HandPlan& hand, const std::vector<int>& batches = {1}) {
  const ConvLayer layer = edge_case(edge).make_layer();
  CHECK(check_on_host(layer, plan_by_hand(layer, hand), batches) == "");
}

// FP16 and BF16 differ in how they are converted alone, so that a case has one of them.
void check_halves(const char* edge, HandPlan hand, const std::vector<int>& batches = {1, 2}) {
  const ConvLayer layer = edge_case(edge).make_layer();
  const auto check = [&](Precision precision, bool keeps_halves) {
    hand.precision = precision;
    hand.promote_every = precision == Precision::fp16x2 ? 5 : 0;
    hand.keeps_halves = keeps_halves;
    INFO(edge << ", " << to_string(precision) << (keeps_halves ? ", halves are kept where they may be" : ""));
    CHECK(check_on_host(layer, plan_by_hand(layer, hand), batches) == "");
  };
  check(std::string_view(edge).size() % 2 == 0 ? Precision::fp16 : Precision::bf16, true);
  check(Precision::fp16x2, true);
  if (may_keep_halves(hand.precision, layer.shape)) check(Precision::fp16x2, false);
}

}  // namespace

TEST_CASE("pooled plan: tiles of some outputs and of all") {
  for (const char* edge : {"max_2x2", "max_3x3_stride_2", "max_3x3_stride_2_padded", "max_3x3_stride_2_rounded_up",
                           "max_3x3_stride_1", "max_2x2_stride_3", "max_asymmetric_pad", "max_1x4", "average_2x2",
                           "average_3x3_padded", "average_counts_padding", "average_rounded_up"}) {
    for (const PixelTile tile :
         {PixelTile{1, 1, 1}, PixelTile{1, 2, 3}, PixelTile{1, 3, 99}, PixelTile{1, 99, 2}, PixelTile{1, 99, 99}}) {
      check_pooled(edge, {.tile = tile}, {1, 2});
    }
  }
}

TEST_CASE("pooled plan: large windows, with as many lanes as there are") {
  for (const char* edge : {"max_6x6", "average_6x6"}) {
    check_pooled(edge, {.tile = {1, 1, 1}, .group_channels = 2});
    check_pooled(edge, {.tile = {1, 2, 2}, .idle_warps = 1, .group_channels = 1});
    check_pooled(edge, {.tile = {1, 99, 99}, .group_channels = 24});
  }
  for (const char* edge : {"max_of_all", "average_of_all", "averaged_residual_relu"}) {
    for (const int channels : {1, 2, 5, 24})
      check_pooled(edge, {.tile = {1, 1, 1}, .group_channels = channels}, {1, 2});
    check_pooled(edge, {.tile = {3, 1, 1}, .idle_warps = 2}, {1, 4});
  }
}

TEST_CASE("pooled plan: bulk copies of rows and of planes") {
  for (const char* edge : {"average_of_all", "pooled_stride_2", "max_3x3_stride_2_rounded_up"}) {
    check_pooled(edge, {.tile = {2, 99, 99}, .stage_channels = 8, .staging = Staging::bulk}, {1, 3});
  }
  check_pooled("max_3x3_stride_2_rounded_up", {.tile = {1, 2, 99}, .staging = Staging::bulk}, {1, 2});
  check_pooled("pooled_rows_of_48_bytes", {.tile = {1, 1, 99}, .staging = Staging::bulk}, {1, 2});
  check_pooled("pooled_rows_of_48_bytes", {.tile = {1, 2, 99}, .splits = 2, .cluster = true, .staging = Staging::bulk},
               {2});
}

TEST_CASE("pooled plan: activations straight from global memory") {
  check_pooled("pooled_1x1", {.tile = {1, 2, 2}, .staging = Staging::direct}, {1, 2});
  check_pooled("pooled_1x1_padded", {.tile = {2, 2, 3}, .splits = 2, .staging = Staging::direct}, {1, 3});
  check_pooled("average_of_all_1x1", {.tile = {3, 1, 1}, .splits = 3, .cluster = true, .staging = Staging::direct},
               {1, 5});
}

TEST_CASE("pooled plan: splits are added by the last block") {
  for (const int splits : {2, 3, 5}) {
    check_pooled("pooled_residual_relu", {.tile = {1, 2, 2}, .splits = splits}, {1, 3});
    check_pooled("average_of_all", {.tile = {1, 1, 1}, .splits = splits}, {1, 3});
  }
}

TEST_CASE("pooled plan: splits are the blocks of a cluster") {
  for (const int splits : {2, 3, 5}) {
    for (const int channels : {1, 8, 24}) {
      check_pooled("pooled_residual_relu",
                   {.tile = {1, 2, 2}, .group_channels = channels, .splits = splits, .cluster = true}, {1, 3});
    }
    check_pooled("average_of_all", {.tile = {2, 1, 1}, .splits = splits, .cluster = true}, {1, 3});
  }
  check_pooled("max_3x3_stride_2_padded", {.tile = {1, 2, 3}, .splits = 2, .cluster = true, .cluster_tiles = 2},
               {1, 3});
}

TEST_CASE("pooled plan: channels in another order, more threads than pixels") {
  check_pooled("pooled_bias_relu", {.tile = {1, 2, 2}, .idle_warps = 3, .backwards = true}, {1, 2});
}

TEST_CASE("pooled plan: halves, tiles of some outputs and of all") {
  for (const char* edge :
       {"max_2x2", "max_3x3_stride_2_padded", "max_3x3_stride_2_rounded_up", "max_3x3_stride_1", "max_asymmetric_pad",
        "average_2x2", "average_3x3_padded", "average_counts_padding", "average_rounded_up"}) {
    for (const PixelTile tile : {PixelTile{1, 2, 3}, PixelTile{1, 99, 99}}) check_halves(edge, {.tile = tile}, {1, 2});
  }
}

TEST_CASE("pooled plan: halves, large windows with as many lanes as there are") {
  for (const char* edge : {"max_6x6", "average_6x6"}) {
    check_halves(edge, {.tile = {1, 2, 2}, .idle_warps = 1, .group_channels = 1});
  }
  for (const char* edge : {"max_of_all", "average_of_all", "averaged_residual_relu"}) {
    for (const int channels : {1, 5, 24}) check_halves(edge, {.tile = {1, 1, 1}, .group_channels = channels}, {1, 4});
    check_halves(edge, {.tile = {3, 1, 1}, .idle_warps = 2}, {1, 5, 8});
  }
}

TEST_CASE("pooled plan: halves, every staging") {
  check_halves("average_of_all", {.tile = {2, 99, 99}, .stage_channels = 8, .staging = Staging::bulk}, {1, 5});
  check_halves("pooled_rows_of_48_bytes", {.tile = {1, 2, 99}, .splits = 2, .cluster = true, .staging = Staging::bulk},
               {2, 3});
  check_halves("pooled_1x1_padded", {.tile = {2, 2, 3}, .splits = 2, .staging = Staging::direct}, {1, 5});
  check_halves("average_of_all_1x1", {.tile = {3, 1, 1}, .splits = 3, .cluster = true, .staging = Staging::direct},
               {1, 5});
}

TEST_CASE("pooled plan: halves, every reduction") {
  for (const int splits : {2, 5}) {
    check_halves("pooled_residual_relu", {.tile = {1, 2, 2}, .splits = splits}, {1, 4});
    check_halves("averaged_residual_relu", {.tile = {1, 1, 1}, .splits = splits}, {1, 4});
    for (const int channels : {1, 24}) {
      check_halves("pooled_residual_relu",
                   {.tile = {1, 2, 2}, .group_channels = channels, .splits = splits, .cluster = true}, {1, 4});
    }
    check_halves("average_of_all", {.tile = {2, 1, 1}, .splits = splits, .cluster = true}, {1, 4});
  }
  check_halves("max_3x3_stride_2_padded", {.tile = {1, 2, 3}, .splits = 2, .cluster = true, .cluster_tiles = 2},
               {1, 5});
  check_halves("pooled_bias_relu", {.tile = {1, 2, 2}, .idle_warps = 3, .backwards = true}, {1, 2});
}

TEST_CASE("pooled plan: four channels side by side") {
  for (const char* edge : {"max_3x3_stride_2_padded", "average_rounded_up", "pooled_residual_relu", "max_of_all"}) {
    check_pooled(edge, {.tile = {1, 2, 3}, .output_layout = TensorLayout::nchw4}, {1, 2});
    check_pooled(edge, {.tile = {2, 2, 99}, .splits = 2, .cluster = true, .output_layout = TensorLayout::nchw4}, {3});
    check_pooled(edge,
                 {.tile = {1, 2, 99},
                  .staging = Staging::bulk,
                  .input_layout = TensorLayout::nchw4,
                  .output_layout = TensorLayout::nchw4},
                 {1, 2});
  }
}
