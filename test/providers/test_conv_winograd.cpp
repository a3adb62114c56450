// conv_winograd beyond what all convolutions are tested for: its transforms, every way to divide the work, and where
// its error is too large.

#include <algorithm>
#include <cmath>
#include <string>

#include "compiler/providers/conv_winograd/winograd_transform.h"
#include "compiler/reference.h"
#include "test/catch.h"
#include "test/every_case.h"
#include "test/providers/transformed_case.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr const char* kWinograd = "conv_winograd";

ConvLayer winograd_sample(int inputs, int outputs, int rows, int cols, int padding = 1) {
  return transformed_sample(inputs, outputs, rows, cols, 3, 3, {padding, padding, padding, padding});
}

// The tolerance is of 4x4 outputs; what is kept for each, verify says.
ProviderCheck check_batch(int batch = 2) { return check_of_batch(batch, 1e-4); }

std::vector<Candidate> winograd_plans(const ConvLayer& layer, const std::string& plan, const ProviderCheck& check) {
  return plans_with(kWinograd, layer, plan, check);
}

std::string check_winograd(const ConvLayer& layer, const std::string& choices,
                           const ProviderCheck& check = check_batch()) {
  return check_plan_with(kWinograd, layer, choices, check);
}

bool offers_winograd(const ConvLayer& layer, int tile) { return offers(kWinograd, layer, "tile", tile); }

bool suits_winograd(const ConvShape& shape) {
  const auto all = [](int rows, int cols, int value) { return rows == value && cols == value; };
  return all(shape.kernel_h, shape.kernel_w, 3) && all(shape.stride_h, shape.stride_w, 1) &&
         all(shape.dilation_h, shape.dilation_w, 1) && shape.groups == 1 && !shape.epilogue.filters();
}

void check_dense_edge(const char* name, int batch) {
  const ConvLayer layer = edge_with_all_weights(name);
  const ConvShape& shape = layer.shape;
  // An output reads padding at most of the filter's positions.
  const bool is_padded = std::ranges::max({shape.pad.top, shape.pad.bottom, shape.pad.left, shape.pad.right}) > 2 ||
                         (shape.in_h == 1 && shape.in_w == 1);
  CHECK(offers_winograd(layer, 2) == suits_winograd(shape));
  CHECK(offers_winograd(layer, 4) == (suits_winograd(shape) && !is_padded));
  std::vector<int> offered;
  for (const int tile : kWinogradTiles) {
    if (offers_winograd(layer, tile)) offered.push_back(tile);
  }
  for (const int tile : some_of(offered, static_cast<int>(std::string_view(name).size()))) {
    CHECK(check_winograd(layer, "tile=" + std::to_string(tile), check_batch(batch)) == "");
  }
}

// Small whole numbers, whose sums are exact.
ConvLayer whole_numbers(int inputs, int outputs, int rows, int cols) {
  ConvLayer layer = winograd_sample(inputs, outputs, rows, cols);
  for (std::size_t i = 0; i < layer.weights.size(); ++i) layer.weights[i] = static_cast<float>(4 * (i * 7 % 5)) - 8;
  for (std::size_t i = 0; i < layer.bias.size(); ++i) layer.bias[i] = static_cast<float>(i % 3);
  return layer;
}

}  // namespace

#define EDGE_CASE(name, batch, layer) \
  TEST_CASE("winograd: " #name ", dense") { check_dense_edge(#name, batch); }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

TEST_CASE("winograd: random shapes") {
  constexpr int kShapes = 60;
  Random random(5);
  int checked = 0;
  for (int i = 0; i < kShapes; ++i) {
    ConvShape shape = random_shape(random);
    shape.groups = shape.stride_h = shape.stride_w = shape.dilation_h = shape.dilation_w = 1;
    shape.kernel_h = shape.kernel_w = 3;
    shape.in_channels = random.integer(3, 60);
    shape.out_channels = random.integer(1, 70);
    shape.in_h = random.integer(1, 13);
    shape.in_w = random.integer(1, 13);
    shape.pad = {random.integer(0, 2), random.integer(0, 2), random.integer(0, 2), random.integer(0, 2)};
    shape.epilogue.bias = random.chance(0.5);
    if (random.chance(0.3)) shape.epilogue.pool = random_pool(random);
    add_residual(shape, random);
    if (!verify(shape).empty()) continue;  // the filter is larger than what was left of the image
    const ConvLayer layer = make_layer("random", shape, 0.8, static_cast<std::uint64_t>(i) + 1);
    INFO("shape " << i << ": " << describe(shape));
    std::vector<int> offered;
    for (const int tile : kWinogradTiles) {
      if (offers_winograd(layer, tile)) offered.push_back(tile);
    }
    for (const int tile : some_of(offered, i)) {
      CHECK(check_winograd(layer, "tile=" + std::to_string(tile), check_batch(random.integer(1, 4))) == "");
      ++checked;
    }
  }
  CHECK(checked >= 20);
}

TEST_CASE("winograd: transformed filters") {
  // Ones alone: at each point the value of 1 + x + x^2, by what the patch is multiplied with.
  const std::vector<float> ones(9, 1.0F);
  std::vector<float> two(16), four(36);
  winograd_filter(2)(ones, two);
  const float rows_of_two[] = {-1, 1.5F, 0.5F, 1};
  for (std::size_t i = 0; i < two.size(); ++i) CHECK(two[i] == rows_of_two[i / 4] * rows_of_two[i % 4]);
  winograd_filter(4)(ones, four);
  constexpr double kNear2 = 0.390625, kFar2 = 2.25;
  CHECK(four[0] == static_cast<float>(1 / (kNear2 * kFar2) / (kNear2 * kFar2)));
  CHECK(four[35] == 1);
  const double near = (1 + 0.625 + kNear2) / (2 * kNear2 * (kNear2 - kFar2));
  CHECK(four[7] == static_cast<float>(near * near));
}

TEST_CASE("winograd: small whole numbers come out exactly with tiles of 2x2") {
  ProviderCheck check = check_batch(1);
  check.tolerance = 0;
  check.special.clear();
  for (int i = 0; i < 5 * 6 * 7; ++i) check.special.push_back(static_cast<float>(i * 11 % 9 - 4));
  CHECK(check_winograd(whole_numbers(5, 6, 6, 7), "tile=2", check) == "");
}

TEST_CASE("winograd: every way to divide the work") {
  const ConvLayer layer = with_residual_and_silu(winograd_sample(37, 21, 9, 11));
  for (const char* plan :
       {"tile=2,points=1,tile_quads=1,output_quads=1,tile_threads=1,output_threads=2,cluster=1,slice_channels=4",
        "tile=2,points=2,tile_quads=2,output_quads=2,tile_threads=4,output_threads=8,cluster=1,slice_channels=8",
        "tile=2,points=4,tile_quads=1,output_quads=2,tile_threads=2,output_threads=4,cluster=1,slice_channels=4",
        "tile=2,points=1,cluster=2", "tile=2,points=2,cluster=4", "tile=2,points=4,cluster=8",
        "tile=4,points=1,tile_quads=1,output_quads=2,tile_threads=1,output_threads=2,cluster=1,slice_channels=4",
        "tile=4,points=2,tile_quads=2,output_quads=2,tile_threads=2,output_threads=4,cluster=1,slice_channels=8",
        "tile=4,points=3,tile_quads=1,output_quads=2,tile_threads=4,output_threads=2,cluster=1,slice_channels=4",
        "tile=4,points=4,tile_quads=2,output_quads=1,tile_threads=1,output_threads=4,cluster=1,slice_channels=2",
        "tile=4,points=1,cluster=2", "tile=4,points=2,cluster=4", "tile=4,points=3,cluster=8"}) {
    INFO(plan);
    CHECK(check_winograd(layer, plan) == "");
  }
}

TEST_CASE("winograd: sizes that are no multiples of a tile, and images that share a block") {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 3}, {4, 5}, {5, 4}, {7, 7}, {8, 13}, {14, 1}}) {
    for (const int padding : {1, 2}) {
      const ConvLayer layer = winograd_sample(34, 5, rows, cols, padding);
      for (const int tile : kWinogradTiles) {
        if (!offers_winograd(layer, tile)) continue;
        INFO(rows << "x" << cols << ", padding " << padding << ", tile " << tile);
        CHECK(check_winograd(layer, "tile=" + std::to_string(tile), check_batch(1)) == "");
        CHECK(check_winograd(layer, "tile=" + std::to_string(tile), check_batch(6)) == "");
      }
    }
  }
  for (const int tile : kWinogradTiles) {
    CHECK(check_winograd(winograd_sample(33, 4, 6, 6, 0), "tile=" + std::to_string(tile)) == "");
    CHECK(check_winograd(winograd_sample(33, 4, 7, 9, 0), "tile=" + std::to_string(tile)) == "");
  }
  ConvLayer uneven = winograd_sample(40, 9, 7, 6, 0);
  uneven.shape.pad = {0, 1, 1, 0};
  for (const int tile : kWinogradTiles) CHECK(check_winograd(uneven, "tile=" + std::to_string(tile)) == "");
}

TEST_CASE("winograd: pools, in every way to divide the work") {
  ConvLayer layer = with_residual_and_silu(winograd_sample(37, 21, 9, 11));
  for (const Pool& pool : some_pools()) {
    layer.shape.epilogue.pool = pool;
    for (const char* plan :
         {"tile=2,points=1,tile_quads=2,output_quads=1,tile_threads=2,output_threads=2,cluster=1,slice_channels=4",
          "tile=2,points=2,cluster=2", "tile=4,points=3,tile_quads=1,output_quads=2,cluster=1", "tile=4,cluster=4"}) {
      INFO("windows of " << pool.kernel_h << "x" << pool.kernel_w << ", " << plan);
      CHECK(check_winograd(layer, plan) == "");
    }
  }
  // Images that share a block have all their windows in it.
  ConvLayer small = winograd_sample(33, 8, 6, 6);
  small.shape.epilogue.pool = Pool{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  CHECK(check_winograd(small, "tile=2,images=2", check_batch(3)) == "");
  CHECK_THROWS_AS(winograd_plans(small, "tile=2,images=2,window_rows=2", check_batch(3)), Error);
  // One whose windows no block holds.
  ConvLayer large = winograd_sample(33, 8, 40, 40);
  large.shape.epilogue.pool = Pool{.kernel_h = 40, .kernel_w = 40};
  CHECK_FALSE(offers_winograd(large, 2));
  CHECK_FALSE(offers_winograd(large, 4));
}

TEST_CASE("winograd: four outputs of a row at once, where they lie together") {
  const ConvLayer layer = with_residual_and_silu(winograd_sample(33, 6, 5, 8));
  const auto vector_of = [&](int before) {
    ProviderCheck check = check_batch();
    check.before = before;
    CHECK(check_winograd(layer, "tile=4", check) == "");
    return parse_template_plan(winograd_plans(layer, "tile=4", check).front().plan).integers.at("vector");
  };
  CHECK(vector_of(0) == 4);
  CHECK(vector_of(4) == 4);
  CHECK(vector_of(1) == 1);
  CHECK(check_winograd(layer, "tile=4,cluster=2") == "");
}

TEST_CASE("winograd: where it is offered") {
  CHECK(offers_winograd(winograd_sample(64, 8, 8, 8), 2));
  CHECK(offers_winograd(winograd_sample(64, 8, 8, 8), 4));
  // The error would be too large a share of the tolerance where there are few terms.
  CHECK(offers_winograd(winograd_sample(4, 8, 8, 8), 2));
  CHECK_FALSE(offers_winograd(winograd_sample(4, 8, 8, 8), 4));
  CHECK_FALSE(offers_winograd(winograd_sample(1, 8, 8, 8), 2));
  // Outputs that read padding alone are exact with tiles of 2x2.
  CHECK(offers_winograd(winograd_sample(64, 8, 8, 8, 3), 2));
  CHECK_FALSE(offers_winograd(winograd_sample(64, 8, 8, 8, 3), 4));
  // One filter has few nonzeros, or those that it has lie in the padding of some output.
  ConvLayer few = winograd_sample(64, 8, 8, 8), above = few, none = few;
  const auto terms = static_cast<std::ptrdiff_t>(few.weights.size() / 8);
  std::fill(few.weights.begin() + 1, few.weights.begin() + terms, 0.0F);
  CHECK_FALSE(offers_winograd(few, 2));
  for (std::size_t i = 0; i < above.weights.size(); ++i) {
    if (i % 9 >= 3) above.weights[i] = 0;
  }
  CHECK_FALSE(offers_winograd(above, 2));
  // A filter without weights is exact.
  std::fill(none.weights.begin(), none.weights.begin() + terms, 0.0F);
  CHECK(offers_winograd(none, 4));
  CHECK(check_winograd(none, "tile=4") == "");
  // Filters of another size, and what is not plain.
  ConvLayer strided = winograd_sample(64, 8, 8, 8);
  strided.shape.stride_w = 2;
  CHECK_FALSE(offers_winograd(strided, 2));
}

TEST_CASE("winograd: plans that are none") {
  const ConvLayer layer = winograd_sample(33, 6, 5, 8);
  const auto refusal = [&](const std::string& plan) {
    return error_of([&] { winograd_plans(layer, plan, check_batch()); }, ErrorKind::usage);
  };
  CHECK_THAT(refusal("tile=3"), Contains("together with the best of its other choices they do not fit"));
  CHECK_THAT(refusal("tile=8"), Contains("tile is 8, allowed is 2 to 4"));
  CHECK_THAT(refusal("tile=2,points=3"), Contains("do not fit"));
  CHECK_THAT(refusal("rows=3"), Contains("conv_winograd knows images, cluster, tile, points, "));
  CHECK_THAT(error_of([&] { winograd_plans(winograd_sample(4, 8, 8, 8), "tile=4", check_batch()); }, ErrorKind::usage),
             Contains("do not fit"));
}

TEST_CASE("winograd: a plan whose numbers were edited is refused, or computes the same") {
  const ConvLayer layer = with_residual_and_silu(winograd_sample(33, 6, 5, 8));
  check_edited_plans(kWinograd, layer, {"tile=4,cluster=2"}, check_batch());
  ConvLayer pooled = layer;
  pooled.shape.epilogue.pool = Pool{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  check_edited_plans(kWinograd, pooled, {"tile=2,cluster=1"}, check_batch());
  // Products that wrap.
  const std::string many = "tile=2,images=256,window_rows=268435456,window_cols=268435456";
  CHECK_THROWS_AS(winograd_plans(pooled, many, check_batch()), Error);
  CHECK_THROWS_AS(winograd_plans(layer, "tile=2,window_rows=2", check_batch()), Error);
}
