// Every operator template on the edge list: on the host executor, against the float64 reference.
#include <catch2/catch.hpp>

#include <variant>

#include "test/network/random_graphs.h"
#include "test/operators/operator_cases.h"
#include "test/operators/operator_check.h"

using namespace burin;
using namespace burin_test;

namespace {

void check_all(const std::vector<OperatorCase>& cases) {
  for (const OperatorCase& edge : cases) {
    INFO(edge.name);
    CHECK(check_everywhere(edge) == "");
  }
}

}  // namespace

TEST_CASE("operator kernels: pools") { check_all(pool_cases()); }
TEST_CASE("operator kernels: element by element and channel by channel") { check_all(channel_cases()); }
TEST_CASE("operator kernels: normalizations") { check_all(normalization_cases()); }
TEST_CASE("operator kernels: copies") { check_all(copy_cases()); }
TEST_CASE("operator kernels: fully connected layers") { check_all(linear_cases()); }

TEST_CASE("operator kernels: those of random graphs") {
  constexpr int kGraphs = 60;
  OperatorCheck check;
  check.before = 4;
  check.behind = 1;
  check.tolerance = 1e-5;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Network network = random_graph(seed);
    for (const Operator& op : network.operators) {
      if (std::holds_alternative<Convolution>(op.kind)) continue;
      INFO("graph " << seed << ", operator " << op.name);
      check.batches = {1 + static_cast<int>(seed % 3)};
      check.tuned_batch = check.batches.front();
      CHECK(check_operator(network, op, check) == "");
    }
  }
}
