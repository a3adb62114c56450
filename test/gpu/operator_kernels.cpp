// burin_operator_kernels: the kernels whose weights are data on a GPU, at the sizes of real networks: of the operators
// beside the convolutions, and of each way to compute a convolution.
// Each is compared with the float64 reference, then timed: with as many sets of tensors and weights, which take turns,
// as the L2 cache cannot hold, and with one. A table on stdout; the exit code says whether all were right.
//
// burin_operator_kernels [DEVICE [NAME [TILES]]]: the ordinal of the device (0), a part of the names of what is run
// (all), and how many tiles of conv_dense are tried for a convolution (1), best first by the model.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "compiler/emit/ptx.h"
#include "compiler/network/reference_network.h"
#include "compiler/operators/plan_conv_dense.h"
#include "compiler/operators/plan_operator.h"
#include "compiler/reference.h"
#include "compiler/specialise/operator_module.h"
#include "ir/error.h"
#include "runtime/bench/measure.h"
#include "runtime/device_state.h"
#include "test/operators/operator_cases.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr double kBytesBeyondCache = 256e6;
constexpr int kMaxSets = 64;
constexpr int kBytesOfWord = 4;

// One kernel in the driver's hands.
class LoadedOperator {
 public:
  LoadedOperator(const Device& device, const OperatorPlan& plan, const std::string& symbol)
      : device_(device.state()), plan_(plan) {
    const DriverTable& driver = *device_->driver;
    const ContextScope scope(*device_);
    const std::string ptx = emit_ptx(specialise_operator(plan_, symbol), plan_.arch);
    check(driver, driver.cuModuleLoadDataEx(&module_, ptx.c_str(), 0, nullptr, nullptr), "cuModuleLoadDataEx");
    check(driver, driver.cuModuleGetFunction(&function_, module_, symbol.c_str()), "cuModuleGetFunction");
    check(driver, driver.cuFuncSetAttribute(function_, kFunctionMaxDynamicSharedBytes, plan_.shared_bytes),
          "cuFuncSetAttribute");
  }
  ~LoadedOperator() {
    release_in_context(*device_, [&](const DriverTable& driver) { driver.cuModuleUnload(module_); });
  }
  LoadedOperator(const LoadedOperator&) = delete;
  LoadedOperator& operator=(const LoadedOperator&) = delete;

  void launch(CUstream_st* stream, const float* input, float* output, const float* second, const std::uint32_t* weights,
              int batch) const {
    std::array<void*, 5> parameters = {&input, &output, &second, &weights, &batch};
    const DriverTable& driver = *device_->driver;
    const ContextScope scope(*device_);
    check(driver,
          driver.cuLaunchKernel(function_, static_cast<unsigned>(plan_.blocks(batch)), 1, 1,
                                static_cast<unsigned>(plan_.threads), 1, 1, static_cast<unsigned>(plan_.shared_bytes),
                                stream, parameters.data(), nullptr),
          "cuLaunchKernel");
  }

 private:
  std::shared_ptr<const DeviceState> device_;
  OperatorPlan plan_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

// What a launch reads and writes.
struct Set {
  std::vector<DeviceBuffer> inputs, weights;
  DeviceBuffer output;
};

// An operator on random inputs of a batch, and what comes of it.
struct Problem {
  Problem(const OperatorCase& edge, int batch) : edge(edge), batch(batch), network(network_of(edge)) {
    std::vector<std::vector<double>> values;
    for (std::size_t i = 0; i < network.inputs.size(); ++i) {
      inputs.push_back(random_tensor(network.tensors[i].elements() * batch, i + 1));
      values.emplace_back(inputs.back().begin(), inputs.back().end());
    }
    expected = run_reference_operator(network, op(), batch, {values.begin(), values.end()});
  }
  const Operator& op() const { return network.operators.back(); }

  const OperatorCase& edge;
  int batch;
  Network network;
  std::vector<std::vector<float>> inputs;
  std::vector<double> expected;
};

// The kernels that compute it in one way.
class Case {
 public:
  Case(const Device& device, const Problem& problem, std::vector<PlannedOperator> planned, std::string note = {})
      : device_(device), stream_(device), problem_(problem), planned_(std::move(planned)), note_(std::move(note)) {
    for (const std::vector<float>& input : problem.inputs) bytes_ += static_cast<double>(input.size() * kBytesOfWord);
    bytes_ += static_cast<double>(problem.expected.size() * kBytesOfWord);
    for (const PlannedOperator& planned : planned_) {
      bytes_ += static_cast<double>(planned.plan.weight_words * kBytesOfWord);
      kernels_.push_back(
          std::make_unique<LoadedOperator>(device, planned.plan, kernel_symbol(problem.edge.name, planned.plan)));
    }
  }

  // Prints a line of the table. Whether the kernels are right.
  bool run() {
    sets_.push_back(make_set());
    enqueue(stream_, 0);
    stream_.synchronize();
    const double error = largest_error(sets_.front().output.to_vector<float>());
    const double warm_us = time_us();
    const auto wanted = static_cast<int>(std::ceil(kBytesBeyondCache / bytes_));
    while (static_cast<int>(sets_.size()) < std::min(wanted, kMaxSets)) sets_.push_back(make_set());
    const double us = time_us();
    const bool right = error <= problem_.edge.tolerance;
    constexpr double kBytesOfMegabyte = 1e6;
    const double predicted = planned_.front().predicted_us;
    fmt::print("{:24} {:18} {:5} {:9.2f} {:9.2f} {:9.2f} {:>9} {:8.0f} {:9.1e} {} {}\n", problem_.edge.name,
               planned_.front().plan.template_name + (stores_halves(planned_.front().plan) ? " fp16" : ""),
               problem_.batch, bytes_ / kBytesOfMegabyte, us, warm_us,
               predicted > 0 ? fmt::format("{:.2f}", predicted) : "", bytes_ / us / 1e3, error,
               right ? "right" : "WRONG", note_);
    return right;
  }

 private:
  double time_us() const {
    return measure(device_, stream_, [&](CUstream_st* stream, int i) { enqueue(stream, i); }).median_us;
  }

  Set make_set() const {
    Set set;
    for (const std::vector<float>& input : problem_.inputs) set.inputs.emplace_back(device_, std::span(input));
    set.output = DeviceBuffer(device_, problem_.expected.size() * kBytesOfWord);
    constexpr unsigned char kNaNByte = 0xFF;
    set.output.fill(kNaNByte);
    for (const PlannedOperator& planned : planned_) set.weights.emplace_back(device_, std::span(planned.weights));
    return set;
  }

  void enqueue(CUstream_st* stream, int i) const {
    const Set& set = sets_[static_cast<std::size_t>(i) % sets_.size()];
    for (std::size_t k = 0; k < planned_.size(); ++k) {
      const auto input = [&](int index) {
        return index < 0 ? nullptr : set.inputs[static_cast<std::size_t>(index)].data<float>();
      };
      kernels_[k]->launch(stream, input(planned_[k].input), set.output.data<float>(), input(planned_[k].second),
                          set.weights[k].data<std::uint32_t>(), problem_.batch);
    }
  }

  // Of an output, as a share of 1 + its magnitude.
  double largest_error(const std::vector<float>& output) const {
    const std::vector<double>& expected = problem_.expected;
    double largest = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double error = std::abs(output[i] - expected[i]) / (1 + std::abs(expected[i]));
      if (std::isnan(error)) return std::numeric_limits<double>::infinity();
      largest = std::max(largest, error);
    }
    return largest;
  }

  const Device& device_;
  Stream stream_;
  const Problem& problem_;
  std::vector<PlannedOperator> planned_;
  std::string note_;
  std::vector<std::unique_ptr<LoadedOperator>> kernels_;  // of planned_
  double bytes_ = 0;                                      // read and written at least once
  std::vector<Set> sets_;
};

bool try_tiles(const Device& device, const Problem& problem, std::size_t count) {
  const OperatorRequest request{.batch = problem.batch, .arch = device.info().arch()};
  const ConvLayer& layer = *problem.edge.layer;
  bool right = true;
  for (const ConvDenseTiles& tiles : choose_tiles(layer.shape, problem.batch, conv_dense_vector(layer.shape, request),
                                                  arch_by_name(request.arch), count)) {
    right &= Case(device, problem, {plan_conv_dense(layer, request, tiles)}, describe(tiles)).run();
  }
  return right;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const Device device = Device::open(count > 1 ? std::atoi(arguments[1]) : 0);
    const std::string part = count > 2 ? arguments[2] : "";
    fmt::print("{:24} {:18} {:>5} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9}\n", device.info().name, "template", "batch", "MB",
               "us", "cached us", "model us", "GB/s", "error");
    const int tiles = count > 3 ? std::atoi(arguments[3]) : 1;
    bool right = true;
    for (const OperatorCase& edge : network_cases()) {
      if (edge.name.find(part) == std::string::npos) continue;
      for (const int batch : {1, 32}) {
        const Problem problem(edge, batch);
        if (tiles > 1 && edge.layer) right &= try_tiles(device, problem, static_cast<std::size_t>(tiles));
        for (std::vector<PlannedOperator>& way :
             ways_to_compute(problem.network, problem.op(), {.batch = batch, .arch = device.info().arch()})) {
          right &= Case(device, problem, std::move(way)).run();
        }
      }
    }
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
