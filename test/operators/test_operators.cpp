// Every operator template on the edge list: on the host executor, against the float64 reference.
#include <catch2/catch.hpp>

#include "test/operators/operator_cases.h"
#include "test/operators/operator_check.h"

using namespace burin;
using namespace burin_test;

namespace {

void check_all(const std::vector<OperatorCase>& cases) {
  for (const OperatorCase& edge : cases) {
    INFO(edge.name);
    CHECK(check_everywhere(edge.kind, edge.inputs, edge.tolerance) == "");
  }
}

}  // namespace

TEST_CASE("operator kernels: pools") { check_all(pool_cases()); }
TEST_CASE("operator kernels: element by element and channel by channel") { check_all(channel_cases()); }
TEST_CASE("operator kernels: normalizations") { check_all(normalization_cases()); }
TEST_CASE("operator kernels: copies") { check_all(copy_cases()); }
TEST_CASE("operator kernels: fully connected layers") { check_all(linear_cases()); }
