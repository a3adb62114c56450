// The edge list: operators on the shapes that templates get wrong.
#pragma once

#include <string>
#include <vector>

#include "ir/network.h"
#include "ir/operators.h"

namespace burin_test {

// A network of one operator, "tested", on inputs of these shapes.
burin::Network network_of(burin::OperatorKind kind, const std::vector<std::vector<std::int64_t>>& inputs);

struct OperatorCase {
  std::string name;
  burin::OperatorKind kind;
  std::vector<std::vector<std::int64_t>> inputs;
  double tolerance = 2e-6;
};

std::vector<OperatorCase> pool_cases();
std::vector<OperatorCase> channel_cases();
std::vector<OperatorCase> linear_cases();
std::vector<OperatorCase> normalization_cases();
std::vector<OperatorCase> copy_cases();

// One of each template, of the sizes that real networks have.
std::vector<OperatorCase> network_cases();

}  // namespace burin_test
