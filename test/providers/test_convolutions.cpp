// Convolutions whose weights are data, on the edge list and on random shapes: on the host executor, against the float64
// reference.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "ir/error.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/every_case.h"
#include "test/ir/random_layers.h"
#include "test/providers/plan_check.h"
#include "test/providers/provider_check.h"
#include "test/providers/tensor_cores.h"

using namespace burin;
using namespace burin_test;

namespace {

// It is an output's, as a share of 1 + its magnitude: roundings of all its terms.
double tolerance_of(const ConvLayer& layer) {
  double largest = 0;
  for (const float weight : layer.weights) largest = std::max(largest, std::abs(static_cast<double>(weight)));
  const double terms = static_cast<double>(layer.weights.size()) / layer.shape.out_channels;
  constexpr double kEpsilon = 1.2e-7;
  return 2e-6 + kEpsilon * largest * std::sqrt(terms + 1) * 4;
}

std::string check_layer(const ConvLayer& layer, int batch) {
  ProviderCheck check;
  check.tolerance = tolerance_of(layer);
  check.tuned_batch = batch;
  check.batches = {batch};
  return check_operator(network_of(layer), check);
}

// Whose activations are copied four at a time.
ConvLayer by_fours() {
  ConvShape shape;
  shape.in_channels = 19;
  shape.out_channels = 21;
  shape.in_h = 6;
  shape.in_w = 10;
  shape.epilogue.bias = shape.epilogue.residual = true;
  shape.epilogue.function = function_of(Activation::silu);
  return make_layer("by_fours", shape, 0.9);
}

// The layer has a 3x3 filter and all there may be at its end; the caller adds a pool.
ConvShape pooled_shape(int inputs, int outputs, int rows, int cols) {
  ConvShape shape;
  shape.in_channels = inputs;
  shape.out_channels = outputs;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  shape.in_h = rows;
  shape.in_w = cols;
  shape.epilogue.bias = shape.epilogue.residual = true;
  shape.epilogue.function = function_of(Activation::relu);
  return shape;
}

std::set<std::string> names(const std::string& list) {
  std::istringstream stream(list);
  return {std::istream_iterator<std::string>(stream), {}};
}

// All plans that conv_dense proposes for a layer, made for eight images and checked with three.
struct AllPlans {
  explicit AllPlans(const ConvLayer& layer) : network(network_of(layer)) {
    check.tolerance = tolerance_of(layer);
    check.batches = {3};
    check.tuned_batch = 8;
    all = find_provider("conv_dense")->propose(task_of(network, network.operators.back(), check), {.count = 1000});
  }
  std::string run(const Candidate& candidate) const {
    return check_candidate(network, network.operators.back(), candidate, check);
  }

  Network network;
  ProviderCheck check;
  std::vector<Candidate> all;
};

// The lists say by name which provider must compute an edge and which must refuse it; an edge that is in none of them
// conv_dense, conv_streamed and conv_zero_skip compute.
// conv_depthwise alone computes these.
const std::set<std::string> kDepthwise =
    names("groups_4_of_one_input depthwise depthwise_stride_2 depthwise_multiplier_2 pooled_depthwise");
// conv_zero_skip pools windows of up to nine pixels, without a depthwise convolution before them.
const std::set<std::string> kNotSkipped = names(
    "groups_4_of_one_input depthwise depthwise_stride_2 depthwise_multiplier_2 pooled_depthwise max_6x6 max_of_all "
    "average_6x6 average_of_all average_of_all_1x1 average_of_all_batch_5 averaged_residual_relu");
// conv_streamed refuses more than 128 pixels, filters of more than 7 rows or columns, and groups.
const std::set<std::string> kNotStreamed = names(
    "odd_width wide_row many_tiles prime_shape pad_larger_than_kernel pad_larger_than_image "
    "11x11_stride_4 3x11 groups_2 groups_2_1x1 groups_of_one_output one_group_empty max_2x2_stride_3 "
    "max_6x6 average_6x6 pooled_stride_2 pooled_many_tiles");

// conv_winograd computes 3x3 filters alone, conv_fft larger ones too, where their errors are a small part of the
// tolerance (test_conv_winograd.cpp and test_conv_fft.cpp have the other edges with more weights).
const std::set<std::string> kFourier = names(
    "all_zero full_dense only_the_last_output one_weight_everywhere one_output_pixel_no_pad one_output_channel no_pad "
    "all_zero_bias_relu all_zero_sigmoid_residual all_zero_residual_sigmoid pooled_all_zero 5x5 7x7 3x11");
const std::set<std::string> kTransformed = names(
    "all_zero full_dense row_empty column_empty channel_empty only_the_last_output one_weight_everywhere "
    "negative_zero_is_zero one_output_pixel_no_pad odd_width rows_of_48_bytes one_output_channel 3x3 no_pad "
    "batch_2 batch_3 batch_7_of_small_images batch_33 bias relu relu6 leaky_relu leaky_relu_steep "
    "leaky_relu_negative_slope sigmoid sigmoid_saturated silu silu_saturated residual bias_relu bias_relu6 "
    "bias_residual residual_relu residual_sigmoid bias_residual_relu6 bias_residual_leaky_relu "
    "bias_residual_silu bias_silu_batch_3 all_zero_bias_relu bias_silu_residual relu_residual "
    "all_zero_sigmoid_residual all_zero_residual_sigmoid max_2x2 max_3x3_stride_2 max_3x3_stride_2_padded "
    "max_3x3_stride_2_rounded_up max_3x3_stride_1 max_2x2_stride_3 max_asymmetric_pad max_1x4 max_6x6 max_of_all "
    "average_2x2 average_3x3_padded average_counts_padding average_rounded_up average_6x6 average_of_all "
    "pooled_rows_of_48_bytes pooled_batch_3 pooled_all_zero pooled_bias_relu pooled_residual_relu "
    "averaged_residual_relu pooled_bias_silu");

std::set<std::string> providers_for(const std::string& edge) {
  std::set<std::string> wanted;
  if (kTransformed.contains(edge)) wanted.insert("conv_winograd");
  if (kFourier.contains(edge)) wanted.insert("conv_fft");
  if (!kNotSkipped.contains(edge)) wanted.insert("conv_zero_skip");
  if (kDepthwise.contains(edge)) return {"conv_depthwise"};
  wanted.insert("conv_dense");
  if (!kNotStreamed.contains(edge)) wanted.insert("conv_streamed");
  return wanted;
}

void check_edge(const char* name) {
  const EdgeCase& edge = edge_case(name);
  const ConvLayer layer = edge.make_layer();
  ProviderCheck check;
  check.tuned_batch = edge.batch;
  const std::set<std::string> found = providers_of(network_of(layer), check);
  CHECK(found == providers_for(name));
  if (!found.empty()) CHECK(check_layer(layer, edge.batch) == "");
}

}  // namespace

#define EDGE_CASE(name, batch, layer) \
  TEST_CASE("convolution with weights as data: " #name) { check_edge(#name); }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

TEST_CASE("convolution with weights as data: what is said of edges is said of edges that there are") {
  for (const std::set<std::string>* names : {&kDepthwise, &kNotStreamed, &kNotSkipped, &kTransformed, &kFourier}) {
    for (const std::string& name : *names) CHECK(edge_case(name).name == name);
  }
}

TEST_CASE("convolution with weights as data: other batches, and slices of other tensors") {
  for (const char* name : {"3x3", "1x1", "groups_2", "bias_residual_silu", "one_pixel", "rows_of_48_bytes"}) {
    const ConvLayer layer = edge_case(name).make_layer();
    CHECK(check_everywhere({name, {}, {}, tolerance_of(layer), layer}) == "");
  }
}

TEST_CASE("convolution with weights as data: four pixels at a time, where they lie together") {
  const auto vector_of = [](const ConvLayer& layer, int before) {
    const Network network = network_of(layer);
    ProviderCheck check;
    check.before = before;
    return plan_of(network, "conv_dense", check).integers.at("vector");
  };
  const ConvLayer layer = by_fours();
  CHECK(vector_of(layer, 0) == 4);
  CHECK(vector_of(layer, 8) == 4);
  CHECK(vector_of(layer, 2) == 1);
  CHECK(check_everywhere({layer.name, {}, {}, tolerance_of(layer), layer}) == "");
  ConvLayer padded = layer;
  padded.shape.pad.left = 1;
  CHECK(vector_of(padded, 0) == 1);
}

TEST_CASE("convolution with weights as data: random shapes") {
  constexpr int kShapes = 40;
  Random random(11);
  int checked = 0;
  for (int i = 0; i < kShapes; ++i) {
    ConvShape shape = random_shape(random);
    shape.in_h = std::min(shape.in_h, 20);
    shape.in_w = std::min(shape.in_w, 20);
    shape.epilogue.bias = random.chance(0.5);
    if (random.chance(0.3)) shape.epilogue.pool = random_pool(random);
    add_residual(shape, random);
    if (!verify(shape).empty()) continue;  // the filter is larger than what was left of the image
    // Depthwise filters of more positions than conv_depthwise takes are baked.
    if (shape.groups > 1 && shape.channels_per_group() == 1 && shape.kernel_h * shape.kernel_w > 49) continue;
    INFO("shape " << i << ": " << describe(shape));
    CHECK(check_layer(make_layer("random", shape, 0.5, static_cast<std::uint64_t>(i) + 1), random.integer(1, 5)) == "");
    ++checked;
  }
  CHECK(checked >= 25);
}

TEST_CASE("convolution with weights as data: every kind of tile") {
  std::size_t odd = 0;  // both layers have as many kinds: each checks every other
  std::vector<std::size_t> kinds;
  for (const ConvLayer& layer : {edge_case("stride_2").make_layer(), by_fours()}) {
    const AllPlans plans(layer);
    CHECK(plans.all.size() > 20);
    kinds.push_back(plans.all.size());
    for (std::size_t i = odd; i < plans.all.size(); i += 2) CHECK(plans.run(plans.all[i]) == "");
    odd = 1 - odd;
  }
  CHECK(kinds.front() == kinds.back());
}

TEST_CASE("convolution with weights as data: every kind of pool, behind every kind of tile") {
  int kinds = 0, number = 0;
  for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
    for (Pool pool : {window_of(kind, 2, 2), window_of(kind, 3, 2), window_of(kind, 3, 2, 1), window_of(kind, 3, 1, 1),
                      window_of(kind, 2, 3), window_of(kind, 5, 4, 2)}) {
      pool.round_up = pool.kernel_h == 3;
      pool.count_padding = pool.stride_h == 1;
      ConvShape shape = pooled_shape(19, 21, 9, 11);
      shape.epilogue.pool = pool;
      const AllPlans plans(make_layer("pooled", shape, 0.7));
      INFO("windows of " << pool.kernel_h << ", step " << pool.stride_h);
      CHECK(plans.all.size() > 20);
      for (const Candidate& candidate : plans.all) {
        if (!is_taken(number++, 31)) continue;
        CHECK(plans.run(candidate) == "");
        ++kinds;
      }
    }
  }
  CHECK(kinds > 20);
}

TEST_CASE("convolution with weights as data: tiles that are asked for have whole windows") {
  ConvShape shape = pooled_shape(8, 16, 12, 12);
  shape.epilogue.pool = window_of(PoolKind::max, 3, 2);
  const ConvLayer layer = make_layer("pooled", shape, 1);
  const auto plans = [&](const char* choices) { return plans_with("conv_dense", layer, choices, {}).size(); };
  CHECK(plans("window_rows=2,window_cols=2") == 1);
  CHECK(check_plan_with("conv_dense", layer, "window_rows=2,window_cols=2", check_of_batch(1, tolerance_of(layer))) ==
        "");
  CHECK_THROWS_AS(plans("window_rows=5,window_cols=6"), Error);  // 11 x 13 pixels
  CHECK_THROWS_AS(plans("window_rows=1,window_cols=2,images=2"), Error);
  // Windows that padding has made larger than the image, and images that share a tile.
  for (const auto& [size, kernel, stride, pad] : {std::array{2, 3, 2, 1}, {3, 5, 3, 2}, {4, 2, 2, 0}}) {
    ConvShape small = pooled_shape(8, 16, size, size);
    small.epilogue.pool = window_of(PoolKind::max, kernel, stride, pad);
    const ConvLayer of_small = make_layer("small", small, 1);
    INFO(size << "x" << size << ", windows of " << kernel);
    CHECK(check_layer(of_small, 1) == "");
    const std::string all =
        fmt::format("images=2,pixel_threads=8,window_rows={},window_cols={}", small.out_h(), small.out_w());
    CHECK(check_plan_with("conv_dense", of_small, all, check_of_batch(3, tolerance_of(of_small))) == "");
  }
  check_edited_plans("conv_dense", layer, {"window_rows=2,window_cols=2"}, check_of_batch(1, tolerance_of(layer)));
  ConvShape wide = shape;
  wide.in_h = wide.in_w = 24;
  wide.epilogue.pool = window_of(PoolKind::average, 12, 12);  // 144 pixels
  CHECK(plans_with("conv_dense", make_layer("wide", wide, 1), "", {}).empty());
}
