// conv_fft beyond what all convolutions are tested for: its transforms, filters of every size, every way to divide the
// work, and where its error is too large.

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <string>

#include "compiler/providers/conv_fft/fft_transform.h"
#include "compiler/reference.h"
#include "test/catch.h"
#include "test/every_case.h"
#include "test/providers/transformed_case.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr const char* kFft = "conv_fft";

ConvLayer fft_sample(int inputs, int outputs, int rows, int cols, int filter_rows = 3, int filter_cols = 3) {
  const int down = filter_rows / 2, across = filter_cols / 2;
  return transformed_sample(inputs, outputs, rows, cols, filter_rows, filter_cols, {down, down, across, across});
}

ProviderCheck check_of(const ConvLayer& layer, int batch = 2) {
  // Roundings of so many terms; what is kept for each output, verify says.
  constexpr double kRounding = 6e-8;
  const double terms = static_cast<double>(layer.weights.size()) / layer.shape.out_channels;
  return check_of_batch(batch, 2e-6 + kRounding * std::sqrt(terms) * 8);
}

std::vector<Candidate> fft_plans(const ConvLayer& layer, const std::string& plan, const ProviderCheck& check) {
  return plans_with(kFft, layer, plan, check);
}

std::string check_fft(const ConvLayer& layer, const std::string& choices, const ProviderCheck& check) {
  return check_plan_with(kFft, layer, choices, check);
}
std::string check_fft(const ConvLayer& layer, const std::string& choices, int batch = 2) {
  return check_fft(layer, choices, check_of(layer, batch));
}

std::string of_side(int side) { return "side=" + std::to_string(side); }

bool offers_fft(const ConvLayer& layer, int side) { return offers(kFft, layer, "side", side); }

bool suits_fft(const ConvShape& shape, int side) {
  const auto all = [](int rows, int cols, int value) { return rows == value && cols == value; };
  return std::min(shape.kernel_h, shape.kernel_w) >= 3 && std::max(shape.kernel_h, shape.kernel_w) < side &&
         all(shape.stride_h, shape.stride_w, 1) && all(shape.dilation_h, shape.dilation_w, 1) && shape.groups == 1 &&
         !shape.epilogue.filters();
}

void check_fft_edge(const char* name, int batch) {
  const ConvLayer layer = edge_with_all_weights(name);
  const ConvShape& shape = layer.shape;
  // Some outputs read padding alone.
  const bool is_padded = std::max(shape.pad.top, shape.pad.bottom) >= shape.kernel_h ||
                         std::max(shape.pad.left, shape.pad.right) >= shape.kernel_w;
  std::vector<int> offered;
  for (const int side : kFftSides) {
    CHECK(offers_fft(layer, side) == (suits_fft(shape, side) && !is_padded));
    if (offers_fft(layer, side)) offered.push_back(side);
  }
  for (const int side : some_of(offered, static_cast<int>(std::string_view(name).size()))) {
    CHECK(check_fft(layer, of_side(side), batch) == "");
  }
}

// What the definition says of a bin of a filter: its value at the inverses of two roots, over half of side^2.
std::complex<double> bin_of(const std::vector<float>& filter, int cols, double row_angle, double col_angle) {
  std::complex<double> sum = 0;
  for (std::size_t i = 0; i < filter.size(); ++i) {
    const auto row = static_cast<double>(i / static_cast<std::size_t>(cols)),
               col = static_cast<double>(i % static_cast<std::size_t>(cols));
    sum += static_cast<double>(filter[i]) * std::polar(1.0, -row * row_angle - col * col_angle);
  }
  return sum;
}

}  // namespace

#define EDGE_CASE(name, batch, layer) \
  TEST_CASE("fft: " #name ", dense") { check_fft_edge(#name, batch); }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

TEST_CASE("fft: random shapes") {
  constexpr int kShapes = 70;
  Random random(7);
  int checked = 0;
  for (int i = 0; i < kShapes; ++i) {
    ConvShape shape = random_shape(random);
    shape.groups = shape.stride_h = shape.stride_w = shape.dilation_h = shape.dilation_w = 1;
    shape.kernel_h = random.integer(3, random.chance(0.7) ? 6 : 14);
    shape.kernel_w = random.chance(0.5) ? shape.kernel_h : random.integer(3, 14);
    shape.in_channels = random.integer(2, 20);
    shape.out_channels = random.integer(1, 40);
    shape.in_h = random.integer(1, 20);
    shape.in_w = random.integer(1, 20);
    shape.pad = {random.integer(0, 2), random.integer(0, 2), random.integer(0, 2), random.integer(0, 2)};
    shape.epilogue.bias = random.chance(0.5);
    add_residual(shape, random);
    if (!verify(shape).empty()) continue;  // the filter is larger than what was left of the image
    const ConvLayer layer = make_layer("random", shape, 0.8, static_cast<std::uint64_t>(i) + 1);
    INFO("shape " << i << ": " << describe(shape));
    std::vector<int> offered;
    for (const int side : kFftSides) {
      if (offers_fft(layer, side)) offered.push_back(side);
    }
    for (const int side : some_of(offered, i)) {
      CHECK(check_fft(layer, of_side(side), random.integer(1, 4)) == "");
      ++checked;
    }
  }
  CHECK(checked >= 20);
}

TEST_CASE("fft: transformed filters") {
  // The bins of a filter are its values at the inverses of all eighth roots of 1 along its columns, and along its rows
  // of four of the eighth roots of -1, which have no conjugates among them.
  const std::vector<float> filter = {1, -2, 3, 0.5F, 4, -1, 2, 0.25F, -3, 1, 5, -0.5F};
  std::vector<float> points(64);
  fft_filter(3, 4, 8)(filter, points);
  constexpr double kPi = std::numbers::pi;
  for (int row = 0; row < 8; ++row) {
    for (int col = 0; col < 4; ++col) {
      const std::complex<double> wanted = bin_of(filter, 4, row * kPi / 4, kPi / 8 + col * kPi / 2) / 32.0;
      int found = 0;
      for (std::size_t i = 0; i < points.size(); i += 2) {
        found += std::abs(std::complex<double>(points[i], points[i + 1]) - wanted) < 1e-7;
      }
      INFO(row << ", " << col);
      CHECK(found == 1);
    }
  }
  // One position alone: all bins are as large.
  std::vector<float> one(7 * 7), of_one(256);
  one[23] = 1;
  fft_filter(7, 7, 16)(one, of_one);
  for (std::size_t i = 0; i < of_one.size(); i += 2) {
    CHECK(std::abs(std::hypot(of_one[i], of_one[i + 1]) * 128 - 1) < 1e-6);
  }
}

TEST_CASE("fft: filters of every size that a patch allows") {
  int number = 0;
  for (const int side : kFftSides) {
    for (const int rows : {3, 4, 5, 7, 8, 11, 14, 15}) {
      for (const int cols : {3, 6, 7, 10, 15}) {
        const ConvLayer layer = fft_sample(9, 5, 17, 13, rows, cols);
        INFO(rows << "x" << cols << ", side " << side);
        CHECK(offers_fft(layer, side) == (std::max(rows, cols) < side));
        if (std::max(rows, cols) < side && is_taken(number++, 2)) CHECK(check_fft(layer, of_side(side), 1) == "");
      }
    }
  }
}

TEST_CASE("fft: every way to divide the work") {
  const ConvLayer layer = with_residual_and_silu(fft_sample(37, 21, 15, 19, 5, 5));
  for (const char* plan :
       {"side=8,points=1,tile_quads=1,output_quads=1,tile_threads=1,output_threads=2,cluster=1,slice_channels=4",
        "side=8,points=2,tile_quads=1,output_quads=2,tile_threads=4,output_threads=4,cluster=1,slice_channels=4",
        "side=8,points=2,tile_quads=1,output_quads=1,tile_threads=4,output_threads=8,cluster=1,slice_channels=2",
        "side=8,points=1,tile_quads=2,output_quads=2,tile_threads=1,output_threads=2,cluster=1,slice_channels=4",
        "side=8,points=1,tile_quads=1,output_quads=4,tile_threads=4,output_threads=2,cluster=1,slice_channels=2",
        "side=8,points=1,cluster=2", "side=8,points=2,cluster=4", "side=8,points=2,cluster=8",
        "side=16,points=2,tile_quads=2,output_quads=1,tile_threads=1,output_threads=2,cluster=1,slice_channels=2",
        "side=16,points=1,tile_quads=1,output_quads=1,tile_threads=2,output_threads=2,cluster=1,slice_channels=2",
        "side=16,points=2,tile_quads=1,output_quads=2,tile_threads=2,output_threads=2,cluster=1,slice_channels=4",
        "side=16,points=1,cluster=2", "side=16,points=2,cluster=2"}) {
    INFO(plan);
    CHECK(check_fft(layer, plan) == "");
  }
}

TEST_CASE("fft: pools, in every way to divide the work") {
  ConvLayer layer = with_residual_and_silu(fft_sample(37, 21, 15, 19, 5, 5));
  for (const Pool& pool : some_pools()) {
    layer.shape.epilogue.pool = pool;
    for (const char* plan :
         {"side=8,points=2,tile_quads=1,output_quads=2,tile_threads=4,output_threads=4,cluster=1,slice_channels=4",
          "side=8,points=1,cluster=2", "side=16,points=1,cluster=2"}) {
      INFO("windows of " << pool.kernel_h << "x" << pool.kernel_w << ", " << plan);
      CHECK(check_fft(layer, plan) == "");
    }
  }
}

TEST_CASE("fft: sizes that are no multiples of a tile, and images that share a block") {
  for (const auto& [rows, cols] : {std::pair{3, 3}, {4, 5}, {5, 4}, {7, 7}, {8, 13}, {14, 3}, {24, 25}}) {
    const ConvLayer layer = fft_sample(10, 5, rows, cols, 3, 3);
    for (const int side : kFftSides) {
      INFO(rows << "x" << cols << ", side " << side);
      CHECK(check_fft(layer, of_side(side), 1) == "");
      CHECK(check_fft(layer, of_side(side), 6) == "");
    }
  }
  ConvLayer uneven = fft_sample(40, 9, 11, 10, 4, 5);
  uneven.shape.pad = {0, 1, 1, 0};
  for (const int side : kFftSides) CHECK(check_fft(uneven, of_side(side)) == "");
  uneven.shape.pad = {};
  for (const int side : kFftSides) CHECK(check_fft(uneven, of_side(side)) == "");
}

TEST_CASE("fft: four outputs of a row at once, where they lie together") {
  const auto vector_of = [](const ConvLayer& layer, int side, int before) {
    ProviderCheck check = check_of(layer);
    check.before = before;
    CHECK(check_fft(layer, of_side(side), check) == "");
    return parse_template_plan(fft_plans(layer, of_side(side), check).front().plan).integers.at("vector");
  };
  // Tiles of 4x4 and of 12x12.
  const ConvLayer five = with_residual_and_silu(fft_sample(12, 6, 7, 20, 5, 5));
  for (const int side : kFftSides) {
    CHECK(vector_of(five, side, 0) == 4);
    CHECK(vector_of(five, side, 4) == 4);
    CHECK(vector_of(five, side, 1) == 1);
    CHECK(check_fft(five, of_side(side) + ",cluster=2") == "");
  }
  // Tiles of 6x6, and of 8x8 of which an image has half a one.
  CHECK(vector_of(fft_sample(12, 6, 8, 20, 3, 3), 8, 0) == 1);
  CHECK(vector_of(fft_sample(12, 6, 9, 12, 9, 9), 16, 0) == 4);
}

TEST_CASE("fft: where it is offered") {
  CHECK(offers_fft(fft_sample(64, 8, 8, 8), 8));
  CHECK(offers_fft(fft_sample(64, 8, 8, 8), 16));
  // Of few terms the error would be too large a share of the tolerance.
  CHECK(offers_fft(fft_sample(4, 8, 8, 8), 8));
  CHECK_FALSE(offers_fft(fft_sample(1, 8, 8, 8), 8));
  CHECK(offers_fft(fft_sample(2, 8, 20, 20, 7, 7), 16));
  // An output that reads padding alone has no tolerance.
  ConvLayer padded = fft_sample(64, 8, 8, 8);
  padded.shape.pad.top = 3;
  CHECK_FALSE(offers_fft(padded, 8));
  // One filter has few nonzeros, or those that it has lie in the padding of some output.
  ConvLayer few = fft_sample(64, 8, 8, 8), above = few, none = few;
  const auto terms = static_cast<std::ptrdiff_t>(few.weights.size() / 8);
  std::fill(few.weights.begin() + 1, few.weights.begin() + terms, 0.0F);
  CHECK_FALSE(offers_fft(few, 8));
  for (std::size_t i = 0; i < above.weights.size(); ++i) {
    if (i % 9 >= 3) above.weights[i] = 0;
  }
  CHECK_FALSE(offers_fft(above, 8));
  // A filter without weights is exact.
  std::fill(none.weights.begin(), none.weights.begin() + terms, 0.0F);
  CHECK(offers_fft(none, 8));
  CHECK(check_fft(none, "side=8") == "");
  // Filters of a row, and what is not plain.
  CHECK_FALSE(offers_fft(fft_sample(64, 8, 8, 8, 1, 7), 16));
  ConvLayer strided = fft_sample(64, 8, 8, 8);
  strided.shape.stride_w = 2;
  CHECK_FALSE(offers_fft(strided, 8));
}

// The tolerance that verify keeps is of one output; what is offered should keep it by far.
TEST_CASE("fft: errors are a small part of what is kept for each output") {
  for (const auto& [inputs, filter] : {std::pair{4, 3}, {24, 3}, {3, 5}, {16, 5}, {2, 7}, {1, 11}}) {
    const ConvLayer layer = fft_sample(inputs, 6, 21, 22, filter, filter);
    for (const int side : kFftSides) {
      if (filter >= side || !offers_fft(layer, side)) continue;
      INFO(inputs << " channels, " << filter << "x" << filter << ", side " << side);
      CHECK(fft_error(layer, side) <= 0.25);
      ProviderCheck check = check_of(layer, 1);
      const double magnitude = static_cast<double>(inputs * filter * filter);
      check.tolerance = 0.25 * tolerance_of({.longest_reduction = inputs * filter * filter}, 0, magnitude);
      CHECK(check_fft(layer, of_side(side), check) == "");
    }
  }
}

TEST_CASE("fft: plans that are none") {
  const ConvLayer layer = fft_sample(33, 6, 9, 8, 5, 5);
  const auto refusal = [&](const std::string& plan) {
    return error_of([&] { fft_plans(layer, plan, check_of(layer)); }, ErrorKind::usage);
  };
  CHECK_THAT(refusal("side=12"), Contains("together with the best of its other choices they do not fit"));
  CHECK_THAT(refusal("side=4"), Contains("side is 4, allowed is 8 to 16"));
  CHECK_THAT(refusal("side=8,points=3"), Contains("do not fit"));
  CHECK_THAT(refusal("side=8,points=4"), Contains("do not fit"));
  CHECK_THAT(refusal("tile=3"), Contains("conv_fft knows images, cluster, side, points, "));
  CHECK_THAT(error_of([] { fft_plans(fft_sample(12, 8, 9, 9, 9, 9), "side=8", {}); }, ErrorKind::usage),
             Contains("do not fit"));
}

TEST_CASE("fft: a plan whose numbers were edited is refused, or computes the same") {
  const ConvLayer layer = with_residual_and_silu(fft_sample(17, 6, 7, 8, 5, 3));
  check_edited_plans(kFft, layer, {"side=8,cluster=1", "side=16,cluster=2"}, check_of(layer));
}
