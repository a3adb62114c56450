// The edge list: operators on the shapes that templates get wrong.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/task.h"
#include "ir/network.h"
#include "ir/operators.h"

namespace burin_test {

// A network of one operator, "tested", on inputs of these shapes.
burin::Network network_of(burin::OperatorKind kind, const std::vector<std::vector<std::int64_t>>& inputs);

// Of the layer alone.
burin::Network network_of(const burin::ConvLayer& layer);

struct OperatorCase {
  std::string name;
  burin::OperatorKind kind;
  std::vector<std::vector<std::int64_t>> inputs;
  double tolerance = 2e-6;
  std::optional<burin::ConvLayer> layer = {};  // of a convolution, which then says all but the tolerance
  burin::TensorFormat from = {}, to = {};      // of its inputs and of its output
};
burin::Network network_of(const OperatorCase& edge);

// Its last operator as a task, on tensors with memory of their own. The network must outlive it.
burin::Task whole_task(const burin::Network& network, int batch, const std::string& arch);

// A square convolution with a bias and a ReLU, its weights random and of the given density.
OperatorCase convolution_case(std::string name, int in, int out, int size, int filter, int stride, int pad,
                              double density = 1, bool residual = false, int groups = 1);

std::vector<OperatorCase> pool_cases();
std::vector<OperatorCase> channel_cases();
std::vector<OperatorCase> function_cases();  // on the ranges where they have their ends, roots and steps
std::vector<OperatorCase> operand_cases();   // second operands that repeat values, and constants
std::vector<OperatorCase> group_cases();     // reductions, and normalizations over any axes
std::vector<OperatorCase> linear_cases();
std::vector<OperatorCase> matmul_cases();  // of any sizes, axes in any order, broadcast, with constants
std::vector<OperatorCase> normalization_cases();
std::vector<OperatorCase> copy_cases();
std::vector<OperatorCase> order_cases();  // all orders of three and four axes of odd and of even extents
std::vector<OperatorCase> resample_cases();
std::vector<OperatorCase> convert_cases();
std::vector<OperatorCase> loose_cases();  // conversions of loose halves
// Those of the lists of operators before, fully connected layers aside, that can be done in halves, in FP16 or BF16 by
// turns, and in n4c8hw.
std::vector<OperatorCase> half_cases();
// In n8c8hw or n4c8hw, with all there is to fill up.
std::vector<OperatorCase> octet_cases(const burin::TensorFormat& octets);

// One of each template, of the sizes that real networks have.
std::vector<OperatorCase> network_cases();
// More of them, by their names, that take long to make.
struct LargeCase {
  std::string name;
  std::function<OperatorCase()> make;
};
std::vector<LargeCase> large_cases();

}  // namespace burin_test
