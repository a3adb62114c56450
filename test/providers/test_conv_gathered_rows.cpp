// Convolutions of FP32 tensors on tensor cores, in halves and in TF32: what comes out, on the edge list and on random
// shapes: on the host executor, against the float64 reference.

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/choose/pays_from.h"
#include "compiler/providers/conv_gathered_rows/row_tiles.h"
#include "ir/factor_type.h"
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

constexpr const char* kProvider = "conv_gathered_rows";

struct RowsCase {
  OperatorCase edge;
  Network network;
  ProviderCheck check;

  RowsCase(const ConvLayer& source, FactorType factors, int batch)
      : edge{source.name, Convolution{}, {}, sum_tolerance(source), with_weights_of(factors, source)},
        network(network_of(edge)) {
    check.tolerance = edge.tolerance;
    check.tuned_batch = batch;
    check.batches = {batch};
    check.factors = factors;
  }
  const Operator& op() const { return network.operators.back(); }
  Task task() const {
    Task task = burin_test::task_of(network, op(), check);
    const ConvShape& shape = task.layer->shape;
    if (check.zeros.share > 0) task.zeros = count_synthetic(check.zeros, shape.in_channels, shape.in_h, shape.in_w);
    return task;
  }
  std::vector<Candidate> candidates(int count = 1) const {
    return find_provider(kProvider)->propose(task(), {.count = count});
  }
  // Runs its best candidate, or that with these choices.
  std::string run(const std::string& choices = "") const {
    const std::vector<Candidate> found = find_provider(kProvider)->propose(task(), {.count = 1, .plan = choices});
    return found.empty() ? "no candidate" : check_candidate(network, op(), found.front(), check);
  }
};

void check_rows_edge(const char* name) {
  const EdgeCase& edge = edge_case(name);
  const ConvLayer layer = edge.make_layer();
  // These have the range of all weights there are.
  for (const FactorType factors : {FactorType::bf16, FactorType::tf32}) {
    INFO("in " << to_string(factors));
    const RowsCase of(layer, factors, edge.batch);
    const bool expected =
        !edges_of_small_groups().contains(name) && !edges_of_depthwise().contains(name) && has_rows(layer.shape);
    CHECK(of.candidates().size() == (expected ? 1 : 0));
    if (expected) CHECK(of.run() == "");
  }
}

constexpr FactorType kAllFactors[] = {FactorType::f16, FactorType::bf16, FactorType::tf32};

ConvLayer rows_layer(int in, int out, int size, int filter, int groups, double density) {
  return *convolution_case("rows", in, out, size, filter, 1, filter / 2, density, false, groups).layer;
}

}  // namespace

#define EDGE_CASE(name, batch, layer) \
  TEST_CASE("convolution of few images on tensor cores: " #name) { check_rows_edge(#name); }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

TEST_CASE("convolution of few images on tensor cores: FP16, and TF32 of more images") {
  for (const char* name : {"3x3", "1x1", "bias_residual_silu", "stride_2", "one_pixel", "all_zero"}) {
    for (const int batch : {1, 3}) {
      INFO(name << ", batch " << batch);
      CHECK(RowsCase(edge_case(name).make_layer(), FactorType::f16, batch).run() == "");
      CHECK(RowsCase(edge_case(name).make_layer(), FactorType::tf32, 4 * batch).run() == "");
    }
  }
}

TEST_CASE("convolution of few images on tensor cores: slices of other tensors") {
  for (const int before : {0, 3, 4}) {
    for (const int behind : {0, 5, 8}) {
      for (const char* name : {"bias_residual_silu", "1x1"}) {
        for (const FactorType factors : {FactorType::f16, FactorType::tf32}) {
          RowsCase of(edge_case(name).make_layer(), factors, 2);
          of.check.before = before;
          of.check.behind = behind;
          CHECK(of.run() == "");
        }
      }
    }
  }
}

namespace {

RowsCase with_dead_channels(const ConvLayer& layer, FactorType factors, int batch, double share) {
  RowsCase of(layer, factors, batch);
  of.check.zeros = {ZeroPattern::channels, share};
  return of;
}

void check_every_kind_that_skips(FactorType factors) {
  std::set<std::vector<int>> kinds;
  int seen = 0;
  for (const int filter : {1, 3}) {
    const RowsCase of = with_dead_channels(rows_layer(75, 70, 12, filter, 1, 0.3), factors, 1, 0.8);
    for (const Candidate& candidate : of.candidates(400)) {
      const TemplatePlan plan = parse_template_plan(candidate.plan);
      if (plan.integers.at("skip_dead") == 0) continue;
      const bool is_new = kinds.insert({filter, plan.integers.at("warp_tiles"), plan.launch().cluster_tiles}).second;
      if (!is_taken(seen++, 40) && !is_new) continue;
      INFO(candidate.plan);
      CHECK(check_candidate(of.network, of.op(), candidate, of.check) == "");
    }
  }
  CHECK(seen > 40);
  CHECK(kinds.size() == 2 * 3 * 3);  // each of which ran
}

void check_every_kind_of_tiles(FactorType factors) {
  std::set<int> clusters, splits, sparse;
  int checked = 0;
  for (const int filter : {1, 3}) {
    const RowsCase of(rows_layer(75, 70, 12, filter, 1, 0.15), factors, 1);
    for (const Candidate& candidate : of.candidates(200)) {
      INFO(candidate.plan);
      const TemplatePlan plan = parse_template_plan(candidate.plan);
      CHECK(stored_weights(plan) == factors);
      CHECK(multiplied_inputs(plan) == factors);
      const bool is_new = clusters.insert(plan.launch().cluster_tiles).second |
                          splits.insert(plan.integers.at("split_warps")).second |
                          sparse.insert(plan.integers.at("sparse")).second;
      if (is_new || is_taken(checked, 12)) CHECK(check_candidate(of.network, of.op(), candidate, of.check) == "");
      ++checked;
    }
  }
  CHECK(checked > 60);
  CHECK(clusters == std::set<int>{1, 2, 4});
  CHECK(splits.size() == 5);
  CHECK(sparse.size() == 2);
}

}  // namespace

TEST_CASE("convolution of few images on tensor cores: every kind of tiles") {
  check_every_kind_of_tiles(FactorType::f16);
}
TEST_CASE("convolution of few images on tensor cores: every kind of tiles in TF32") {
  check_every_kind_of_tiles(FactorType::tf32);
}

TEST_CASE("convolution of few images on tensor cores: inputs by fours, with padding on either side") {
  for (const int left : {0, 1, 3}) {
    for (const int right : {0, 2}) {
      for (const int width : {4, 8, 12, 20}) {
        ConvLayer layer = rows_layer(20, 20, width, 3, 1, 0.3);
        layer.shape.pad = {1, left, 0, right};
        INFO(describe(layer.shape));
        REQUIRE(loads_fours({}, layer.shape));
        CHECK(RowsCase(layer, FactorType::f16, 1).run() == "");
        CHECK(RowsCase(layer, FactorType::tf32, 1).run() == "");
      }
    }
  }
}

TEST_CASE("convolution of few images on tensor cores: dense weights, of which no two of four columns go together") {
  ConvLayer layer = rows_layer(100, 100, 9, 3, 1, 1);
  layer.shape.stride_h = 3;
  for (const FactorType factors : kAllFactors) CHECK(RowsCase(layer, factors, 1).run() == "");
}

TEST_CASE("convolution of few images on tensor cores: random shapes") {
  constexpr int kShapes = 60;
  Random random(29);
  int checked = 0;
  for (int i = 0; i < kShapes; ++i) {
    ConvShape shape = random_shape(random);
    shape.in_h = std::min(shape.in_h, 24);
    shape.in_w = std::min(shape.in_w, 24);
    shape.epilogue.bias = random.chance(0.5);
    add_residual(shape, random);
    if (!verify(shape).empty()) continue;  // the filter is larger than what was left of the image
    if (!fills_tiles(shape) || !has_rows(shape)) continue;
    INFO("shape " << i << ": " << describe(shape));
    const FactorType half = i % 2 == 0 ? FactorType::f16 : FactorType::bf16;
    const ConvLayer layer =
        make_layer("random", shape, random.chance(0.5) ? 0.1 : 0.6, static_cast<std::uint64_t>(i) + 1);
    const int batch = random.integer(1, 3);
    CHECK(RowsCase(layer, half, batch).run() == "");
    CHECK(RowsCase(layer, FactorType::tf32, batch).run() == "");
    ++checked;
  }
  CHECK(checked >= 25);
}

TEST_CASE("convolution of few images on tensor cores: dead channels are skipped, with every kind of tiles") {
  check_every_kind_that_skips(FactorType::bf16);
}
TEST_CASE("convolution of few images on tensor cores: dead channels are skipped, with every kind of tiles in TF32") {
  check_every_kind_that_skips(FactorType::tf32);
}

TEST_CASE("convolution of few images on tensor cores: from no dead channel to nothing but dead ones") {
  int number = 0;
  for (const char* name : {"3x3", "1x1", "bias_residual_silu", "stride_2", "one_pixel", "all_zero"}) {
    const EdgeCase& edge = edge_case(name);
    for (const FactorType factors : kAllFactors) {
      for (const int tenths : some_of({0, 7, 10}, number++)) {
        INFO(name << " in " << to_string(factors) << ", tenths " << tenths);
        const RowsCase of = with_dead_channels(edge.make_layer(), factors, edge.batch, tenths / 10.0);
        CHECK(of.run("skip_dead=1,sparse=0") == "");
      }
    }
  }
}

TEST_CASE("convolution of few images on tensor cores: a channel with NaN, infinity or one value is not dead") {
  const auto layer = rows_layer(20, 24, 5, 3, 1, 1);
  for (const FactorType factors : kAllFactors) {
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 0.5F}) {
      RowsCase of = with_dead_channels(layer, factors, 1, 1);
      of.check.special = {0, -0.0F, 0, value};
      INFO(to_string(factors) << ", " << value);
      CHECK(of.run("skip_dead=1,sparse=0") == "");
    }
  }
}

TEST_CASE("convolution of few images on tensor cores: random shapes with dead channels") {
  constexpr int kShapes = 40;
  Random random(31);
  int checked = 0;
  for (int i = 0; i < kShapes; ++i) {
    ConvShape shape = random_shape(random);
    shape.in_h = std::min(shape.in_h, 20);
    shape.in_w = std::min(shape.in_w, 20);
    add_residual(shape, random);
    if (!verify(shape).empty() || !fills_tiles(shape) || !has_rows(shape)) continue;
    INFO("shape " << i << ": " << describe(shape));
    const ConvLayer layer =
        make_layer("random", shape, random.chance(0.5) ? 0.2 : 0.8, static_cast<std::uint64_t>(i) + 1);
    CHECK(with_dead_channels(layer, kAllFactors[i % 3], random.integer(1, 2), 0.5).run("skip_dead=1,sparse=0") == "");
    ++checked;
  }
  CHECK(checked >= 15);
}

TEST_CASE("convolution of few images on tensor cores: dead channels that nobody knows of are not looked for") {
  const RowsCase unknown(rows_layer(75, 70, 12, 3, 1, 0.3), FactorType::tf32, 1);
  for (const Candidate& candidate : unknown.candidates(400)) {
    CHECK(parse_template_plan(candidate.plan).integers.at("skip_dead") == 0);
  }
  const auto best = [](double share) {
    const RowsCase of = with_dead_channels(rows_layer(192, 64, 14, 3, 1, 0.3), FactorType::tf32, 32, share);
    return parse_template_plan(of.candidates().front().plan).integers.at("skip_dead");
  };
  CHECK(best(0.05) == 0);
  CHECK(best(1) == 1);
}

TEST_CASE("convolution of few images on tensor cores: from which share on skipping dead channels pays") {
  const RowsCase of = with_dead_channels(rows_layer(192, 64, 14, 3, 1, 0.3), FactorType::tf32, 32, 0.6);
  const Task task = of.task();
  const auto best = [&](double share) {
    Task with = task;
    with.zeros = task.zeros->with_share(share);
    const std::vector<Candidate> found = find_provider(kProvider)->propose(with, {});
    return parse_template_plan(found.front().plan).integers.at("skip_dead");
  };
  Task unknown = task;
  unknown.zeros.reset();
  const double us = find_provider(kProvider)->propose(unknown, {}).front().estimate.us;
  // Its own kernels that skip nothing are no gain over another provider's that are slower.
  for (const char* compared : {kProvider, "conv_warpgroup_rows"}) {
    INFO(compared);
    const std::optional<double> share = skipping_pays_from(task, {{compared, 1.1 * us, false}}).pays_from;
    REQUIRE(share);
    CHECK(*share > 0.05);
    CHECK(*share < 0.99);
    CHECK(best(*share - 0.02) == 0);
    CHECK(best(*share) == 1);
  }
  CHECK(skipping_pays_from(task, {{"conv_warpgroup_rows", 0.1, false}}).pays_from == std::nullopt);
}

TEST_CASE("convolution of few images on tensor cores: no plan skips dead channels and multiplies sparse columns") {
  const RowsCase of(rows_layer(32, 32, 8, 3, 1, 0.2), FactorType::tf32, 1);
  CHECK_THROWS_AS(of.run("skip_dead=1,sparse=1"), Error);
}

namespace {

// Some plans of layers with these pools run, and the first with each kind of tiles.
void check_every_pool(FactorType factors, bool residual) {
  std::set<std::vector<int>> kinds;
  int seen = 0;
  for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
    for (Pool pool : {window_of(kind, 2, 2), window_of(kind, 3, 2, 1), window_of(kind, 3, 1, 1), window_of(kind, 2, 3),
                      window_of(kind, 5, 4, 2), window_of(kind, 4, 4)}) {
      pool.round_up = pool.kernel_h == 3;
      pool.count_padding = pool.stride_h == 1;
      ConvLayer layer = rows_layer(20, 37, pool.kernel_h == 4 ? 16 : 11, 3, 1, 0.3);
      layer.shape.epilogue.pool = pool;
      layer.shape.epilogue.residual = residual;
      RowsCase of(layer, factors, 1);
      of.check.batches = {1, 2};
      for (const Candidate& candidate : of.candidates(100)) {
        const TemplatePlan plan = parse_template_plan(candidate.plan);
        CHECK(plan.launch().cluster_tiles == 1);
        const bool is_new = kinds
                                .insert({plan.integers.at("warp_tiles"), plan.integers.at("split_warps") > 1,
                                         plan.integers.at("sparse"), plan.integers.at("vector")})
                                .second;
        if (!is_taken(seen++, 80) && !is_new) continue;
        INFO(candidate.plan);
        CHECK(check_candidate(of.network, of.op(), candidate, of.check) == "");
      }
    }
  }
  CHECK(seen > 100);
  CHECK(kinds.size() > 12);  // each of which ran
}

}  // namespace

TEST_CASE("convolution of few images on tensor cores: every kind of pool") { check_every_pool(FactorType::f16, false); }
TEST_CASE("convolution of few images on tensor cores: every kind of pool in TF32, behind residuals") {
  check_every_pool(FactorType::tf32, true);
}

TEST_CASE("convolution of few images on tensor cores: dead channels are skipped before a pool") {
  ConvLayer layer = rows_layer(40, 24, 10, 3, 1, 0.5);
  layer.shape.epilogue.pool = window_of(PoolKind::max, 2, 2);
  for (const FactorType factors : kAllFactors) {
    CHECK(with_dead_channels(layer, factors, 2, 0.6).run("skip_dead=1,sparse=0") == "");
  }
}

TEST_CASE("convolution of few images on tensor cores: random shapes with pools") {
  constexpr int kShapes = 60;
  Random random(37);
  int checked = 0;
  for (int i = 0; i < kShapes; ++i) {
    ConvShape shape = random_shape(random);
    shape.in_h = std::min(shape.in_h, 20);
    shape.in_w = std::min(shape.in_w, 20);
    shape.epilogue.pool = random_pool(random);
    add_residual(shape, random);
    if (!verify(shape).empty() || !fills_tiles(shape) || !has_rows(shape)) continue;
    INFO("shape " << i << ": " << describe(shape));
    const ConvLayer layer = make_layer("random", shape, 0.4, static_cast<std::uint64_t>(i) + 1);
    const RowsCase of = with_dead_channels(layer, kAllFactors[i % 3], random.integer(1, 2), 0.5);
    CHECK(of.run(i % 2 == 0 ? "skip_dead=1,sparse=0" : "skip_dead=0") == "");
    ++checked;
  }
  CHECK(checked >= 15);
}

TEST_CASE("convolution of few images on tensor cores: windows that padding has made larger than the image") {
  for (const auto& [size, kernel, stride, pad] : {std::array{1, 2, 1, 1}, {2, 3, 2, 1}, {8, 9, 1, 4}, {3, 5, 3, 2}}) {
    ConvLayer layer = rows_layer(20, 20, size, 3, 1, 0.5);
    layer.shape.epilogue.pool = window_of(PoolKind::max, kernel, stride, pad);
    INFO(size << "x" << size << ", windows of " << kernel);
    CHECK(RowsCase(layer, FactorType::tf32, 2).run() == "");
  }
}
