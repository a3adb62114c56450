// Fully connected layers of several images on tensor cores: what comes out, on the edge list and for every kind of
// tiles: on the host executor, against the float64 reference.

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "compiler/providers/linear_expanded/panels.h"
#include "ir/arch.h"
#include "ir/factor_type.h"
#include "test/catch.h"
#include "test/every_case.h"
#include "test/providers/provider_check.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr const char* kProvider = "linear_expanded";

struct ExpandedCase {
  Network network;
  ProviderCheck check;

  ExpandedCase(const OperatorCase& edge, FactorType factors, int batch) : network(network_of(edge)) {
    Linear& op = std::get<Linear>(network.operators.back().kind);
    op.weights = rounded(factors, op.weights);
    check.tolerance = edge.tolerance;
    check.tuned_batch = batch;
    check.batches = {batch};
    check.factors = factors;
  }
  const Operator& op() const { return network.operators.back(); }
  Linear& linear() { return std::get<Linear>(network.operators.back().kind); }
  Task task() const { return burin_test::task_of(network, op(), check); }
  std::vector<Candidate> candidates(int count = 1) const {
    return find_provider(kProvider)->propose(task(), {.count = count});
  }
  std::string run() const {
    const std::vector<Candidate> found = candidates();
    return found.empty() ? "no candidate" : check_candidate(network, op(), found.front(), check);
  }
};

// Of random weights that both types have.
OperatorCase linear_case(int in, int out, double density) {
  for (OperatorCase edge : linear_cases()) {
    if (edge.name != "linear_prime_shape") continue;
    Linear& op = std::get<Linear>(edge.kind);
    op.in_features = in;
    op.out_features = out;
    op.weights = rounded(FactorType::f16, random_tensor(std::int64_t{in} * out, 11));
    const std::vector<float> chosen = random_tensor(std::int64_t{in} * out, 12);
    for (std::size_t i = 0; i < op.weights.size(); ++i) {
      if ((chosen[i] + 1) / 2 >= density) op.weights[i] = 0;
    }
    op.bias = random_tensor(out, 13);
    edge.inputs = {{in}};
    edge.tolerance = 2e-6 * std::sqrt(1.0 + in / 64.0);
    return edge;
  }
  return {};
}

}  // namespace

TEST_CASE("fully connected on tensor cores: the edge list") {
  int checked = 0, number = 0;
  for (const OperatorCase& edge : linear_cases()) {
    ++number;
    for (const int batch : {1, 8, 33}) {
      for (const FactorType factors : {FactorType::f16, FactorType::bf16}) {
        if (!is_taken(number++, 2)) continue;  // each batch in one of both, by turns
        INFO(edge.name << ", " << to_string(factors) << ", batch " << batch);
        ExpandedCase of(edge, factors, batch);
        // A list has at most 96 quads: three quarters of a panel of 16 x 32.
        const bool expected = PanelCounts(of.linear(), factors).quads(ExpandedTiles()).longest <= 96;
        CHECK(of.candidates().size() == (expected ? 1 : 0));
        if (!expected) continue;
        CHECK(of.run() == "");
        ++checked;
      }
    }
  }
  CHECK(checked > 30);
}

TEST_CASE("fully connected on tensor cores: every kind of tiles") {
  std::set<int> clusters, splits, rows, cols, tiles;
  int checked = 0;
  for (const int batch : {8, 20}) {
    const ExpandedCase of(linear_case(700, 150, 0.1), FactorType::f16, batch);
    for (const Candidate& candidate : of.candidates(1000)) {
      if (!is_taken(checked++, 9)) continue;
      INFO(candidate.plan);
      CHECK(check_candidate(of.network, of.op(), candidate, of.check) == "");
      const TemplatePlan plan = parse_template_plan(candidate.plan);
      CHECK(stored_weights(plan) == FactorType::f16);
      CHECK(multiplied_inputs(plan) == FactorType::f16);
      clusters.insert(plan.launch().cluster_tiles);
      splits.insert(plan.integers.at("split_warps"));
      rows.insert(plan.integers.at("row_warps"));
      cols.insert(plan.integers.at("panel_cols"));
      tiles.insert(plan.integers.at("warp_tiles"));
    }
  }
  CHECK(checked > 200);
  CHECK(clusters == std::set<int>{1, 2, 4, 8});
  CHECK(splits == std::set<int>{1, 2, 4, 8, 16});
  CHECK(rows == std::set<int>{1, 2, 4, 8, 16});
  CHECK(cols == std::set<int>{32, 64, 128});
  CHECK(tiles == std::set<int>{1, 2, 4});
}

TEST_CASE("fully connected on tensor cores: slices of other tensors, fewer images than planned for") {
  for (const int before : {0, 3, 4}) {
    for (const int behind : {0, 5, 8}) {
      ExpandedCase of(linear_case(97, 31, 0.2), FactorType::f16, 16);
      of.check.before = before;
      of.check.behind = behind;
      of.check.batches = {1, 9, 17};
      CHECK(of.run() == "");
    }
  }
}

TEST_CASE("fully connected on tensor cores: a weight that FP16 cannot hold, and one that it holds as zero") {
  ExpandedCase of(linear_case(40, 20, 0.3), FactorType::f16, 8);
  const PanelCounts before(of.linear(), FactorType::f16);
  of.linear().weights[5] = 1e-9F;
  const PanelCounts after(of.linear(), FactorType::f16);
  CHECK(after.nonzeros() <= before.nonzeros());
  CHECK(!of.candidates().empty());
  of.linear().weights[5] = 1e6F;
  CHECK(of.candidates().empty());
  of.check.factors = FactorType::bf16;
  CHECK(!of.candidates().empty());
  of.check.factors = FactorType::tf32;
  CHECK(of.candidates().empty());
}

TEST_CASE("fully connected on tensor cores: lists are as long as what is packed") {
  const OperatorCase edge = linear_case(300, 90, 0.3);
  const Linear& op = std::get<Linear>(edge.kind);
  const PanelCounts counts(op, FactorType::f16);
  int checked = 0;
  for (const int warp_tiles : {1, 2, 4}) {
    for (const int cols : {32, 64, 128}) {
      for (const int cluster : {1, 4}) {
        const ExpandedTiles tiles{.warp_tiles = warp_tiles,
                                  .panel_cols = cols,
                                  .octets = 2,
                                  .row_warps = 2,
                                  .split_warps = 2,
                                  .cluster = cluster};
        const auto words = static_cast<std::int64_t>(pack_expanded(tiles, op, FactorType::f16).size());
        CHECK(words == expanded_words(tiles, op, counts.quads(tiles).all));
        ++checked;
      }
    }
  }
  CHECK(checked == 18);
}
