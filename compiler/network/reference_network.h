// A graph in float64: what a network is compared with, operator by operator or as a whole.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/network.h"

namespace burin {

// Called with each tensor, by its index, as soon as it is made; `values` go when it returns. First the inputs.
using TensorVisitor = std::function<void(int tensor, std::span<const double> values)>;

// The outputs in the order of Network::outputs. `inputs` in that of Network::inputs, for `batch` images one after the
// other. The network must be one that verify() finds no fault with. Tensors are dropped after their last reader, so
// that memory is what the widest place of the graph takes.
std::vector<std::vector<double>> run_reference(const Network& network, int batch,
                                               const std::vector<std::span<const float>>& inputs,
                                               const TensorVisitor& visit = {});

// One operator alone, for the values that something else has given it.
std::vector<double> run_reference_operator(const Network& network, const Operator& op, int batch,
                                           const std::vector<std::span<const double>>& inputs);

// Gives the output of an operator for the values of its inputs.
using OperatorEvaluator =
    std::function<std::vector<double>(const Operator& op, const std::vector<std::span<const double>>& inputs)>;

// The outputs of a graph whose operators are evaluated one after the other, and its tensors dropped, as in
// run_reference(). `inputs` are the values of Network::inputs.
std::vector<std::vector<double>> run_graph(const Network& network, std::vector<std::vector<double>> inputs,
                                           const OperatorEvaluator& evaluate);

}  // namespace burin
