// What burin_random_layers draws: the same every time, legal, and from every part of the convolution space.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "compiler/providers/conv_baked/plan/constraints.h"
#include "ir/derive_form.h"
#include "ir/sparse_pattern.h"
#include "test/catch.h"
#include "test/codegen/random_case.h"

using namespace burin;
using namespace burin_test;

namespace {
constexpr std::uint64_t kSeed = 1;
constexpr int kCases = 400;
}  // namespace

TEST_CASE("a random case depends on seed and index alone") {
  const RandomCase drawn = draw_case(kSeed, 17, "sm_90"), again = draw_case(kSeed, 17, "sm_90");
  CHECK(drawn.describe() == again.describe());
  CHECK(drawn.layer.weights == again.layer.weights);
  CHECK(drawn.plan == again.plan);
  CHECK(drawn.arguments() == "--seed 1 --only 17");
  CHECK(drawn.describe() != draw_case(kSeed, 18, "sm_90").describe());
  CHECK(drawn.describe() != draw_case(kSeed + 1, 17, "sm_90").describe());
  CHECK(drawn.describe() != draw_case(kSeed + 1, 16, "sm_90").describe());
}

TEST_CASE("a random case's layer is the same in every precision") {
  const RandomCase drawn = draw_case(kSeed, 17, "sm_90");
  for (const Precision precision : kPrecisions) {
    const RandomCase given = draw_case(kSeed, 17, "sm_90", precision);
    CHECK(given.precision == precision);
    CHECK(given.layer.weights == drawn.layer.weights);
    CHECK(given.batch == drawn.batch);
    CHECK(given.arguments() == fmt::format("--seed 1 --only 17 --precision {}", to_string(precision)));
    if (precision == drawn.precision) CHECK(given.describe() == drawn.describe());
    if (given.source == PlanSource::by_hand) CHECK(given.plan.precision == precision);
  }
}

TEST_CASE("random cases of kernels that transform patches") {
  std::map<std::string, int> providers, sizes;
  int residual = 0, pooled = 0, oblong = 0, other_batch = 0, some_zeros = 0;
  for (int i = 0; i < kCases; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    const RandomCase drawn = draw_case(kSeed, index, "sm_90", {}, CaseKind::transformed);
    INFO(drawn.arguments() << ": " << drawn.describe());
    CHECK(drawn.describe() == draw_case(kSeed, index, "sm_90", {}, CaseKind::transformed).describe());
    CHECK(drawn.arguments() == fmt::format("--seed 1 --only {} --transformed", i));
    CHECK(verify(drawn.layer).empty());
    CHECK(drawn.precision == Precision::fp32);
    CHECK(drawn.provider() == drawn.transformed);
    ++providers[drawn.provider()];
    for (const char* size : {"tile=2", "tile=4", "side=8", "side=16"}) {
      sizes[size] += drawn.constraints.find(std::string(size) + ",") != std::string::npos;
    }
    residual += drawn.layer.shape.epilogue.residual;
    pooled += drawn.layer.shape.epilogue.pool.has_value();
    oblong += drawn.layer.shape.kernel_h != drawn.layer.shape.kernel_w;
    other_batch += drawn.batch != drawn.planned_batch;
    some_zeros += std::ranges::count(drawn.layer.weights, 0.0F) > 0;
  }
  constexpr int kLeast = kCases / 20;
  CHECK(providers.size() == 2);
  for (const auto& [name, count] : providers) CHECK(count >= kLeast);
  for (const auto& [size, count] : sizes) CHECK(count >= kLeast);
  for (const int count : {residual, pooled, oblong, other_batch, some_zeros}) CHECK(count >= kLeast);
}

TEST_CASE("random cases are legal") {
  for (int i = 0; i < kCases; ++i) {
    const RandomCase drawn = draw_case(kSeed, static_cast<std::uint64_t>(i), "sm_90");
    INFO(drawn.arguments() << ": " << drawn.describe());
    CHECK(verify(drawn.layer).empty());
    CHECK(drawn.archs.back() == "sm_90");
    CHECK((drawn.source == PlanSource::constrained) == !drawn.constraints.empty());
    if (drawn.provider() == kBakedProvider) CHECK_NOTHROW(parse_plan_constraints(drawn.constraints));
    if (drawn.source == PlanSource::by_hand) {
      CHECK(verify(drawn.plan, drawn.layer.shape, analyse(drawn.layer)).empty());
    }
  }
}

TEST_CASE("random cases reach every part of the space") {
  int depthwise = 0, grouped = 0, pointwise = 0, oblong = 0, strided = 0, dilated = 0, asymmetric = 0, unpadded = 0;
  int bias = 0, residual = 0, empty_filters = 0, empty_channels = 0, all_zero = 0, dense = 0, large_batch = 0,
      other_batch = 0, two_archs = 0, pooled = 0, residual_last = 0;
  std::map<std::string, int> functions;
  std::array<int, 3> sources{};
  std::array<int, kPrecisions.size()> precisions{};
  for (int i = 0; i < kCases; ++i) {
    const RandomCase drawn = draw_case(kSeed, static_cast<std::uint64_t>(i), "sm_90");
    const ConvShape& s = drawn.layer.shape;
    const PatternStatistics statistics = analyse(drawn.layer).statistics;
    depthwise += s.groups > 1 && s.groups == s.in_channels;
    grouped += s.groups > 1 && s.groups < s.in_channels;
    pointwise += s.kernel_h == 1 && s.kernel_w == 1;
    oblong += s.kernel_h != s.kernel_w;
    strided += s.stride_h > 1;
    dilated += s.dilation_h > 1 && s.kernel_h > 1;
    asymmetric += s.pad.top != s.pad.bottom && s.pad.left != s.pad.right;
    unpadded += s.pad == Padding{};
    bias += s.epilogue.bias;
    residual += s.epilogue.residual;
    residual_last += s.epilogue.residual_last;
    empty_filters += statistics.nonzeros > 0 && statistics.dead_outputs > 0;
    empty_channels += statistics.nonzeros > 0 && statistics.dead_inputs > 0;
    all_zero += statistics.nonzeros == 0;
    dense += statistics.nonzeros == statistics.weights;
    large_batch += drawn.batch > 20;
    other_batch += drawn.batch != drawn.planned_batch;
    two_archs += drawn.archs.size() == 2;
    pooled += s.epilogue.pool.has_value();
    ++functions[s.epilogue.function ? std::string(to_string(s.epilogue.function->function)) : "none"];
    ++sources[static_cast<std::size_t>(drawn.source)];
    ++precisions[static_cast<std::size_t>(drawn.precision)];
  }
  constexpr int kLeast = kCases / 50;
  for (const int count :
       {depthwise, grouped, pointwise, oblong, strided, dilated, asymmetric, unpadded, bias, residual, empty_filters,
        empty_channels, all_zero, dense, large_batch, other_batch, two_archs, pooled, residual_last}) {
    CHECK(count >= kLeast);
  }
  CHECK(functions.size() == 6);
  for (const auto& [name, count] : functions) CHECK(count >= kLeast);
  for (const int count : sources) CHECK(count >= kCases / 8);
  for (const int count : precisions) CHECK(count >= kCases / 12);
}
