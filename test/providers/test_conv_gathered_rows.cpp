// Convolutions of FP32 tensors on tensor cores, in halves and in TF32: what comes out, on the edge list and on random
// shapes: on the host executor, against the float64 reference.

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "compiler/providers/conv_gathered_rows/row_tiles.h"
#include "ir/factor_type.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/every_case.h"
#include "test/ir/random_layers.h"
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
  Task task() const { return burin_test::task_of(network, op(), check); }
  std::vector<Candidate> candidates(int count = 1) const {
    return find_provider(kProvider)->propose(task(), {.count = count});
  }
  // Of its best candidate.
  std::string run() const {
    const std::vector<Candidate> found = candidates();
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
    const bool expected = !edges_of_small_groups().contains(name) && !edges_of_depthwise().contains(name) &&
                          !layer.shape.epilogue.pool && has_rows(layer.shape);
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
      if (is_new || is_taken(checked, 6)) CHECK(check_candidate(of.network, of.op(), candidate, of.check) == "");
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
        REQUIRE(loads_fours(layer.shape));
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
