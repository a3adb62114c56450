// burin_provider_kernels: what the providers make, but for baked code, on a GPU and at the sizes of real networks.
// Each kernel is compared with the float64 reference, then timed: with as many sets of tensors and weights, which take
// turns, as the L2 cache cannot hold, and with one. A table on stdout; the exit code says whether all were right.
//
// burin_provider_kernels [DEVICE [NAME [COUNT]]]: the ordinal of the device (0), a part of the names of what is run
// (all), and how many candidates each provider is asked for (1), best first by its model.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "compiler/make_kernel.h"
#include "compiler/network/reference_network.h"
#include "compiler/reference.h"
#include "ir/derive_form.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/saturate.h"
#include "runtime/bench/measure.h"
#include "runtime/burin/runtime.hpp"
#include "test/providers/provider_cases.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr double kBytesBeyondCache = 256e6;
constexpr int kMaxSets = 64;

// An operator on random inputs of a batch, and what comes of it.
struct Problem {
  Problem(const OperatorCase& edge, int batch, const std::string& arch) : edge(edge), network(network_of(edge)) {
    std::vector<std::vector<double>> values;
    for (std::size_t i = 0; i < network.inputs.size(); ++i) {
      const Activations& tensor = network.tensors[i];
      const std::vector<float> input = rounded(tensor.format.element, random_tensor(tensor.elements() * batch, i + 1));
      inputs.push_back(in_words(tensor, input));
      values.emplace_back(input.begin(), input.end());
    }
    expected = run_reference_operator(network, network.operators.back(), batch, {values.begin(), values.end()});
    task = whole_task(network, batch, arch);
    task.name = edge.name;
  }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  const Activations& made() const { return network.tensors.back(); }
  std::size_t output_words() const {
    const TensorFormat& format = made().format;
    return static_cast<std::size_t>(image_words(format, made().shape) * ceil_div(task.batch, format.images_together()));
  }

  const OperatorCase& edge;
  Network network;
  Task task;
  std::vector<std::vector<float>> inputs;  // as words
  std::vector<double> expected;
};

// What a launch reads and writes; the kernel has the weights.
struct Set {
  std::vector<DeviceBuffer> inputs;
  DeviceBuffer output;
  LoadedKernel kernel;
};

class Case {
 public:
  Case(const Device& device, const Problem& problem, const Candidate& candidate)
      : device_(device), stream_(device), problem_(problem), candidate_(candidate) {
    CompileOptions options;
    options.archs = problem.task.archs;
    PackagedKernel made = *make_kernel(problem.task, candidate, candidate.symbol, options, {}, std::nullopt);
    for (const std::vector<float>& input : problem.inputs) bytes_ += static_cast<double>(input.size() * kWordBytes);
    bytes_ += static_cast<double>(problem.output_words() * kWordBytes);
    if (const KernelTensor* weights = made.kernel.form.find(TensorRole::weights)) {
      bytes_ += static_cast<double>(weights->run_words * kWordBytes);
    }
    plan_ = made.kernel.plan_short;
    Package package;
    package.manifest.tool_version = package.manifest.source = "burin_provider_kernels";
    add_kernel(package, std::move(made));
    package_ = std::make_shared<const Package>(std::move(package));
  }

  // Prints a line of the table. Whether the kernel is right.
  bool run() {
    sets_.push_back(make_set());
    enqueue(stream_, 0);
    stream_.synchronize();
    const double error =
        largest_error(from_words(problem_.made(), sets_.front().output.to_vector<float>(), problem_.task.batch));
    const double warm_us = time_us();
    const auto wanted = static_cast<int>(std::ceil(kBytesBeyondCache / bytes_));
    while (static_cast<int>(sets_.size()) < std::min(wanted, kMaxSets)) sets_.push_back(make_set());
    const double us = time_us();
    const ElementType element = problem_.made().format.element;
    const double rounding = element == ElementType::f32 ? 0 : epsilon_of(element) / 2;
    const bool right = error <= problem_.edge.tolerance + rounding;
    constexpr double kBytesOfMegabyte = 1e6;
    fmt::print("{:24} {:18} {:5} {:9.2f} {:9.2f} {:9.2f} {:9.2f} {:8.0f} {:9.1e} {} {}\n", problem_.edge.name,
               candidate_.provider, problem_.task.batch, bytes_ / kBytesOfMegabyte, us, warm_us, candidate_.estimate.us,
               bytes_ / us / 1e3, error, right ? "right" : "WRONG", plan_);
    return right;
  }

 private:
  double time_us() const {
    return measure(device_, stream_, [&](CUstream_st* stream, int i) { enqueue(stream, i); }).median_us;
  }

  Set make_set() const {
    Set set{{},
            DeviceBuffer(device_, problem_.output_words() * kWordBytes),
            LoadedPackage(device_, package_, "case").kernel_by_symbol(candidate_.symbol)};
    for (const std::vector<float>& input : problem_.inputs) set.inputs.emplace_back(device_, std::span(input));
    constexpr unsigned char kNaNByte = 0xFF;
    set.output.fill(kNaNByte);
    return set;
  }

  void enqueue(CUstream_st* stream, int i) const {
    const Set& set = sets_[static_cast<std::size_t>(i) % sets_.size()];
    set.kernel.launch(stream, {.input = set.inputs[0].data(),
                               .output = set.output.data(),
                               .residual = set.inputs.size() > 1 ? set.inputs[1].data() : nullptr,
                               .batch = problem_.task.batch});
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
  Candidate candidate_;
  std::string plan_;
  std::shared_ptr<const Package> package_;
  double bytes_ = 0;  // read and written at least once
  std::vector<Set> sets_;
};

// Of all providers; of fully connected layers with weights in FP16 too.
bool run_problem(const Device& device, Problem& problem, int count) {
  bool right = true;
  const auto run_all = [&] {
    int cases = 0;
    for (const Provider* provider : providers()) {
      if (provider->name() == kBakedProvider) continue;
      for (const Candidate& candidate : provider->propose(problem.task, {.count = count})) {
        right &= Case(device, problem, candidate).run();
        ++cases;
      }
    }
    if (cases == 0) fail(ErrorKind::internal, "no provider has a kernel for {}", problem.edge.name);
  };
  run_all();
  if (problem.task.get<Linear>() == nullptr) return right;
  problem.task.linear_storage = ElementType::f16;
  run_all();
  return right;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const Device device = Device::open(count > 1 ? std::atoi(arguments[1]) : 0);
    const std::string part = count > 2 ? arguments[2] : "";
    fmt::print("{:24} {:18} {:>5} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9}\n", device.info().name, "provider", "batch", "MB",
               "us", "cached us", "model us", "GB/s", "error");
    const int candidates = count > 3 ? std::atoi(arguments[3]) : 1;
    bool right = true;
    int problems = 0;
    std::vector<OperatorCase> edges = network_cases();
    for (OperatorCase& edge : half_network_cases()) edges.push_back(std::move(edge));
    for (const OperatorCase& edge : edges) {
      if (edge.name.find(part) == std::string::npos) continue;
      for (const int batch : {1, 32}) {
        Problem problem(edge, batch, device.info().arch());
        right &= run_problem(device, problem, candidates);
        ++problems;
      }
    }
    if (problems == 0) fail(ErrorKind::usage, "no name has the part '{}'", part);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
