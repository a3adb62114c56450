// Graphs for tests, put together operator by operator.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/network.h"
#include "test/catch.h"

namespace burin_test {

// Adds operators in the order of calls; output shapes follow from the operators.
class GraphBuilder {
 public:
  int input(std::vector<std::int64_t> shape, std::string name = {}) {
    if (name.empty()) name = "input" + std::to_string(network.inputs.size());
    network.inputs.push_back(tensor(std::move(name), std::move(shape)));
    return network.inputs.back();
  }

  // Returns the output tensor, named NAME_out.
  int add(std::string name, burin::OperatorKind kind, std::vector<int> inputs) {
    burin::Operator op{std::move(name), std::move(kind), std::move(inputs), 0};
    std::vector<std::vector<std::int64_t>> shapes;
    for (const int i : op.inputs) shapes.push_back(network.tensors.at(static_cast<std::size_t>(i)).shape);
    std::vector<std::string> faults;
    const std::vector<std::int64_t> shape = output_shape(network, op, shapes, faults);
    INFO((faults.empty() ? std::string() : faults.front()));
    REQUIRE(faults.empty());
    op.output = tensor(op.name + "_out", shape);
    network.operators.push_back(std::move(op));
    return network.operators.back().output;
  }

  // The layer's input extents are those of the tensor.
  int convolution(burin::ConvLayer layer, std::vector<int> inputs) {
    const std::vector<std::int64_t>& shape = network.tensors.at(static_cast<std::size_t>(inputs.at(0))).shape;
    layer.shape.in_h = static_cast<int>(shape.at(1));
    layer.shape.in_w = static_cast<int>(shape.at(2));
    const std::string name = layer.name;
    network.layers.push_back(std::move(layer));
    return add(name, burin::Convolution{static_cast<int>(network.layers.size()) - 1}, std::move(inputs));
  }

  burin::Network finish(std::vector<int> outputs) {
    network.outputs = std::move(outputs);
    return std::move(network);
  }

  burin::Network network;

 private:
  int tensor(std::string name, std::vector<std::int64_t> shape) {
    network.tensors.push_back({std::move(name), std::move(shape)});
    return static_cast<int>(network.tensors.size()) - 1;
  }
};

}  // namespace burin_test
