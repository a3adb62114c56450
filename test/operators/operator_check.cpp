#include "test/operators/operator_check.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "compiler/host/operator_executor.h"
#include "compiler/network/reference_network.h"
#include "compiler/reference.h"
#include "compiler/specialise/operator_module.h"
#include "ir/error.h"
#include "test/operators/operator_cases.h"

using namespace burin;

namespace burin_test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A tensor of `batch` images in a buffer with `before` and `behind` words around each image, NaN in them.
std::vector<float> surrounded(const std::vector<float>& values, std::int64_t words, const OperatorCheck& check) {
  std::vector<float> buffer;
  for (std::size_t image = 0; image < values.size(); image += static_cast<std::size_t>(words)) {
    buffer.insert(buffer.end(), static_cast<std::size_t>(check.before), kNaN);
    buffer.insert(buffer.end(), values.begin() + static_cast<std::ptrdiff_t>(image),
                  values.begin() + static_cast<std::ptrdiff_t>(image) + words);
    buffer.insert(buffer.end(), static_cast<std::size_t>(check.behind), kNaN);
  }
  return buffer;
}

BufferPlace place_of(std::int64_t words, const OperatorCheck& check) {
  return {check.before + words + check.behind, check.before};
}

std::string compare(const std::vector<double>& expected, const std::vector<float>& buffer, std::int64_t words,
                    const OperatorCheck& check) {
  const std::int64_t pitch = check.before + words + check.behind;
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    const std::int64_t image = static_cast<std::int64_t>(i) / pitch;
    const std::int64_t word = static_cast<std::int64_t>(i) % pitch - check.before;
    if (word < 0 || word >= words) {
      if (!std::isnan(buffer[i])) return fmt::format("word {} around the output was written", i);
      continue;
    }
    const double wanted = expected[static_cast<std::size_t>(image * words + word)];
    if (std::isinf(wanted) ? buffer[i] == wanted
                           : std::abs(buffer[i] - wanted) <= check.tolerance * (1 + std::abs(wanted))) {
      continue;
    }
    return fmt::format("image {}, word {} is {}, expected {}", image, word, buffer[i], wanted);
  }
  return {};
}

std::string run_batch(const Network& network, const Operator& op, const std::vector<PlannedOperator>& kernels,
                      int batch, const OperatorCheck& check) {
  const auto words_of = [&](int tensor) { return network.tensors[static_cast<std::size_t>(tensor)].elements(); };
  std::vector<std::vector<float>> buffers;
  std::vector<std::vector<double>> values;
  std::vector<std::span<const double>> inputs;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const std::vector<float> tensor = random_tensor(words_of(op.inputs[i]) * batch, 17 * i + 1);
    values.emplace_back(tensor.begin(), tensor.end());
    buffers.push_back(surrounded(tensor, words_of(op.inputs[i]), check));
  }
  for (const auto& tensor : values) inputs.emplace_back(tensor);
  const std::int64_t words = words_of(op.output);
  std::vector<float> output(static_cast<std::size_t>(batch * (words + check.before + check.behind)), kNaN);
  for (const PlannedOperator& kernel : kernels) {
    const std::string symbol = kernel_symbol(op.name, kernel.plan);
    HostOperator host(to_bitcode(specialise_operator(kernel.plan, symbol)), symbol, kernel.plan);
    const auto buffer = [&](int input) {
      return input < 0 ? std::span<const float>() : std::span<const float>(buffers[static_cast<std::size_t>(input)]);
    };
    host.run({batch, buffer(kernel.input), output, buffer(kernel.second), kernel.weights});
  }
  return compare(run_reference_operator(network, op, batch, inputs), output, words, check);
}

}  // namespace

std::string check_operator(const Network& network, const OperatorCheck& check) {
  return check_operator(network, network.operators.back(), check);
}

std::string check_kernels(const Network& network, const Operator& op, const std::vector<PlannedOperator>& kernels,
                          const OperatorCheck& check) {
  std::string text;
  for (const PlannedOperator& kernel : kernels) {
    text += print(kernel.plan);
    for (const std::string& fault : verify(kernel.plan)) {
      return fmt::format("the plan is not legal: {}\n{}", fault, text);
    }
    if (parse_operator_plan(print(kernel.plan)) != kernel.plan) return "the plan is not what its text says\n" + text;
  }
  for (const int batch : check.batches) {
    std::string fault;
    try {
      fault = run_batch(network, op, kernels, batch, check);
    } catch (const Error& error) {
      fault = error.what();
    }
    if (fault.empty()) continue;
    return fmt::format("{}, batch {}, {} words before and {} behind: {}\n{}", describe(network, op), batch,
                       check.before, check.behind, fault, text);
  }
  return {};
}

std::string check_operator(const Network& network, const Operator& op, const OperatorCheck& check) {
  OperatorRequest request;
  request.batch = check.tuned_batch;
  const auto place = [&](int tensor) {
    return place_of(network.tensors[static_cast<std::size_t>(tensor)].elements(), check);
  };
  for (const int input : op.inputs) request.inputs.push_back(place(input));
  request.output = place(op.output);
  try {
    for (const std::vector<PlannedOperator>& kernels : ways_to_compute(network, op, request)) {
      std::string fault = check_kernels(network, op, kernels, check);
      if (!fault.empty()) return fault;
    }
  } catch (const Error& error) {
    return fmt::format("{}: planning: {}", describe(network, op), error.what());
  }
  return {};
}

std::string check_everywhere(const OperatorCase& edge) {
  const Network network = network_of(edge);
  OperatorCheck check;
  check.tolerance = edge.tolerance;
  std::string fault = check_operator(network, check);
  if (!fault.empty()) return fault;
  check.tuned_batch = 32;  // and in slices
  check.before = 8;
  check.behind = 4;
  fault = check_operator(network, check);
  if (!fault.empty()) return fault;
  check.before = 3;
  check.batches = {2};
  return check_operator(network, check);
}

}  // namespace burin_test
