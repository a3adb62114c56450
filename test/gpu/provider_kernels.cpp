// burin_provider_kernels: what the providers make, but for baked code, on a GPU and at the sizes of real networks.
// Each kernel is compared with the float64 reference, then timed: with as many sets of tensors and weights, which take
// turns, as the L2 cache cannot hold, and with one. A table on stdout; the exit code says whether all were right.
//
// burin_provider_kernels [--edges] [DEVICE [NAME [COUNT]]]: the ordinal of the device (0), a part of the names of what
// is run (all), and how many candidates each provider is asked for (1), best first by its model. --edges: the lists of
// edges that the host executor runs in the tests, compared alone; those that are wrong are named.
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
#include "ir/error.h"
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
      inputs.push_back(random_tensor(network.tensors[i].elements() * batch, i + 1));
      values.emplace_back(inputs.back().begin(), inputs.back().end());
    }
    expected = run_reference_operator(network, network.operators.back(), batch, {values.begin(), values.end()});
    task = whole_task(network, batch, arch);
    task.name = edge.name;
  }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  const OperatorCase& edge;
  Network network;
  Task task;
  std::vector<std::vector<float>> inputs;
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
    bytes_ += static_cast<double>(problem.expected.size() * kWordBytes);
    if (const KernelTensor* weights = made.kernel.form.find(TensorRole::weights)) {
      bytes_ += static_cast<double>(weights->run_words * kWordBytes);
    }
    plan_ = find_provider(candidate.provider)->brief(candidate.plan);
    Package package;
    package.manifest.tool_version = package.manifest.source = "burin_provider_kernels";
    add_kernel(package, std::move(made));
    package_ = std::make_shared<const Package>(std::move(package));
  }

  // Whether the kernel is right; prints why not.
  bool check() {
    const double error = run_once();
    const bool right = error <= problem_.edge.tolerance;
    if (!right) {
      fmt::print("{} of {}, batch {}: error {:.1e}, allowed {:.1e}; {}\n", problem_.edge.name, candidate_.provider,
                 problem_.task.batch, error, problem_.edge.tolerance, plan_);
    }
    return right;
  }

  // Prints a line of the table. Whether the kernel is right.
  bool run() {
    const double error = run_once();
    const double warm_us = time_us();
    const auto wanted = static_cast<int>(std::ceil(kBytesBeyondCache / bytes_));
    while (static_cast<int>(sets_.size()) < std::min(wanted, kMaxSets)) sets_.push_back(make_set());
    const double us = time_us();
    const bool right = error <= problem_.edge.tolerance;
    constexpr double kBytesOfMegabyte = 1e6;
    fmt::print("{:24} {:18} {:5} {:9.2f} {:9.2f} {:9.2f} {:9.2f} {:8.0f} {:9.1e} {} {}\n", problem_.edge.name,
               candidate_.provider, problem_.task.batch, bytes_ / kBytesOfMegabyte, us, warm_us, candidate_.estimate.us,
               bytes_ / us / 1e3, error, right ? "right" : "WRONG", plan_);
    return right;
  }

 private:
  // What the worst value is off.
  double run_once() {
    sets_.push_back(make_set());
    enqueue(stream_, 0);
    stream_.synchronize();
    return largest_error(sets_.front().output.to_vector<float>());
  }

  double time_us() const {
    return measure(device_, stream_, [&](CUstream_st* stream, int i) { enqueue(stream, i); }).median_us;
  }

  Set make_set() const {
    Set set{{},
            DeviceBuffer(device_, problem_.expected.size() * kWordBytes),
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
      // What a kernel may do with numbers that are none is for verification to say: here they must be the same.
      const bool same = output[i] == expected[i] || (std::isnan(output[i]) && std::isnan(expected[i]));
      const double error = same ? 0 : std::abs(output[i] - expected[i]) / (1 + std::abs(expected[i]));
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

// Calls `each` with every candidate of all providers; of fully connected layers with weights in FP16 too.
template <typename Each>
void for_each_candidate(Problem& problem, int count, const Each& each) {
  const auto for_all = [&] {
    int cases = 0;
    for (const Provider* provider : providers()) {
      if (provider->name() == kBakedProvider || provider->needs_measuring()) continue;
      for (const Candidate& candidate : provider->propose(problem.task, {.count = count})) {
        each(candidate);
        ++cases;
      }
    }
    if (cases == 0) fail(ErrorKind::internal, "no provider has a kernel for {}", problem.edge.name);
  };
  for_all();
  if (problem.task.get<Linear>() == nullptr) return;
  problem.task.linear_storage = ElementType::f16;
  for_all();
}

struct Arguments {
  bool edges = false;
  int device = 0;
  std::string part;
  int candidates = 1;
};

Arguments read_arguments(std::vector<std::string> texts) {
  Arguments arguments;
  arguments.edges = std::erase(texts, "--edges") > 0;
  if (!texts.empty()) arguments.device = std::atoi(texts[0].c_str());
  if (texts.size() > 1) arguments.part = texts[1];
  if (texts.size() > 2) arguments.candidates = std::atoi(texts[2].c_str());
  return arguments;
}

// Edges on plain tensors.
std::vector<OperatorCase> edge_cases() {
  std::vector<OperatorCase> cases;
  for (const auto& list : {pool_cases, channel_cases, function_cases, operand_cases, group_cases, linear_cases,
                           normalization_cases, copy_cases, order_cases, resample_cases, matmul_cases}) {
    std::ranges::copy_if(list(), std::back_inserter(cases),
                         [](const OperatorCase& edge) { return edge.from.is_plain() && edge.to.is_plain(); });
  }
  return cases;
}

// Whether all were right; a line with their number at the end, or the table.
bool run_cases(const Device& device, const Arguments& arguments) {
  const std::vector<int> batches = arguments.edges ? std::vector{1, 3} : std::vector{1, 32};
  int kernels = 0, wrong = 0;
  for (const OperatorCase& edge : arguments.edges ? edge_cases() : network_cases()) {
    if (edge.name.find(arguments.part) == std::string::npos) continue;
    for (const int batch : batches) {
      Problem problem(edge, batch, device.info().arch());
      for_each_candidate(problem, arguments.candidates, [&](const Candidate& candidate) {
        Case sample(device, problem, candidate);
        ++kernels;
        wrong += arguments.edges ? !sample.check() : !sample.run();
      });
    }
  }
  if (kernels == 0) fail(ErrorKind::usage, "no name has the part '{}'", arguments.part);
  if (arguments.edges) fmt::print("{} kernels, {} wrong\n", kernels, wrong);
  return wrong == 0;
}

}  // namespace

int main(int count, char** texts) {
  try {
    const Arguments arguments = read_arguments({texts + 1, texts + count});
    const Device device = Device::open(arguments.device);
    if (!arguments.edges) {
      fmt::print("{:24} {:18} {:>5} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9}\n", device.info().name, "provider", "batch",
                 "MB", "us", "cached us", "model us", "GB/s", "error");
    }
    return run_cases(device, arguments) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
