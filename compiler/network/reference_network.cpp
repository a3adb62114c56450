#include "compiler/network/reference_network.h"

#include "ir/error.h"

namespace burin {
namespace {

// For each tensor, the last operator that reads it; the operators' count for outputs, -1 for what nobody reads.
std::vector<int> last_readers(const Network& network) {
  std::vector<int> last(network.tensors.size(), -1);
  for (std::size_t i = 0; i < network.operators.size(); ++i) {
    for (const int input : network.operators[i].inputs) last[static_cast<std::size_t>(input)] = static_cast<int>(i);
  }
  for (const int output : network.outputs) {
    last[static_cast<std::size_t>(output)] = static_cast<int>(network.operators.size());
  }
  return last;
}

}  // namespace

std::vector<std::vector<double>> run_reference(const Network& network, int batch,
                                               const std::vector<std::span<const float>>& inputs,
                                               const TensorVisitor& visit) {
  BURIN_CHECK(batch >= 1, "batch {}", batch);
  BURIN_CHECK(inputs.size() == network.inputs.size(), "{} inputs for a network that takes {}", inputs.size(),
              network.inputs.size());
  const std::vector<int> last = last_readers(network);
  std::vector<std::vector<double>> values(network.tensors.size());
  const auto keep = [&](int tensor, std::vector<double> made) {
    if (visit) visit(tensor, made);
    if (last[static_cast<std::size_t>(tensor)] >= 0) values[static_cast<std::size_t>(tensor)] = std::move(made);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Activations& tensor = network.tensors[static_cast<std::size_t>(network.inputs[i])];
    BURIN_CHECK(static_cast<std::int64_t>(inputs[i].size()) == batch * tensor.elements(),
                "network input {}: {} values, not {}", tensor.name, inputs[i].size(), batch * tensor.elements());
    keep(network.inputs[i], {inputs[i].begin(), inputs[i].end()});
  }
  for (std::size_t i = 0; i < network.operators.size(); ++i) {
    const Operator& op = network.operators[i];
    std::vector<std::span<const double>> read;
    for (const int input : op.inputs) read.emplace_back(values[static_cast<std::size_t>(input)]);
    keep(op.output, run_reference_operator(network, op, batch, read));
    for (const int input : op.inputs) {
      if (last[static_cast<std::size_t>(input)] == static_cast<int>(i)) values[static_cast<std::size_t>(input)] = {};
    }
  }
  std::vector<std::vector<double>> outputs;
  for (const int output : network.outputs) outputs.push_back(std::move(values[static_cast<std::size_t>(output)]));
  return outputs;
}

}  // namespace burin
