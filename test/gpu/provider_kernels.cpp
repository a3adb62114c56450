// burin_provider_kernels: what the providers make, but for baked code, on a GPU and at the sizes of real networks.
// Each kernel is compared with the float64 reference, then timed: with as many sets of tensors and weights, which take
// turns, as the L2 cache cannot hold, and with one. A table on stdout; the exit code says whether all were right.
//
// burin_provider_kernels [--edges] [--spread] [--floats] [--plan=PROVIDER:CHOICES]... [DEVICE [NAME [COUNT
// [BATCHES]]]]: the ordinal of the device (0), a part of the names of what is run (all) or several parts between
// commas, how many candidates each provider is asked for (1), best first by its model, and batch sizes between commas
// (1,32). --edges: the lists of edges that the host executor runs in the tests, compared alone; those that are wrong
// are named. --spread: of the candidates those alone whose numbers grow by a third each. --floats: fully connected
// layers with weights in FP32 alone. --plan: a plan beside those that are proposed.
//
// Kernels are made on all processors, while those that were made before are timed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

PackagedKernel made_kernel(const Task& task, const Candidate& candidate) {
  CompileOptions options;
  options.archs = task.archs;
  return *make_kernel(task, candidate, options, {}, std::nullopt);
}

class Case {
 public:
  Case(const Device& device, const Problem& problem, const Candidate& candidate, PackagedKernel made)
      : device_(device), stream_(device), problem_(problem), candidate_(candidate) {
    for (const std::vector<float>& input : problem.inputs) bytes_ += static_cast<double>(input.size() * kWordBytes);
    bytes_ += static_cast<double>(problem.expected.size() * kWordBytes);
    if (const KernelTensor* weights = made.kernel.form.find(TensorRole::weights)) {
      bytes_ += static_cast<double>(weights->run_words * kWordBytes);
    }
    plan_ = made.kernel.plan_short + ": " + find_provider(candidate.provider)->brief(candidate.plan);
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
    std::fflush(stdout);
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

  // It is an output's, as a share of 1 + its magnitude.
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

struct Arguments {
  bool edges = false, spread = false, floats = false;
  int device = 0;
  std::vector<std::string> parts;
  int candidates = 1;
  std::vector<int> batches;
  std::vector<std::pair<std::string, std::string>> plans;  // of a provider, its choices

  bool wants(const std::string& name) const {
    const auto has = [&](const std::string& part) { return name.find(part) != std::string::npos; };
    return parts.empty() || std::ranges::any_of(parts, has);
  }
};

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    items.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return items;
}

Arguments read_arguments(std::vector<std::string> texts) {
  Arguments arguments;
  arguments.edges = std::erase(texts, "--edges") > 0;
  arguments.spread = std::erase(texts, "--spread") > 0;
  arguments.floats = std::erase(texts, "--floats") > 0;
  std::erase_if(texts, [&](const std::string& text) {
    constexpr std::string_view kPlan = "--plan=";
    const std::size_t colon = text.find(':');
    if (!text.starts_with(kPlan) || colon == std::string::npos) return false;
    arguments.plans.emplace_back(text.substr(kPlan.size(), colon - kPlan.size()), text.substr(colon + 1));
    return true;
  });
  if (!texts.empty()) arguments.device = std::atoi(texts[0].c_str());
  if (texts.size() > 1) arguments.parts = split_list(texts[1]);
  if (texts.size() > 2) arguments.candidates = std::atoi(texts[2].c_str());
  arguments.batches = arguments.edges ? std::vector{1, 3} : std::vector{1, 32};
  if (texts.size() > 3) {
    arguments.batches.clear();
    for (const std::string& batch : split_list(texts[3])) arguments.batches.push_back(std::atoi(batch.c_str()));
  }
  return arguments;
}

// A candidate, and its kernel when it has been made.
struct Made {
  Candidate candidate;
  std::future<PackagedKernel> kernel;
};
struct Prepared {
  std::unique_ptr<Problem> problem;
  std::vector<Made> kernels;
};

// Begins to make the candidates of all providers; of fully connected layers with weights in FP16 too.
Prepared prepare(const OperatorCase& edge, int batch, const std::string& arch, const Arguments& arguments) {
  Prepared prepared{std::make_unique<Problem>(edge, batch, arch), {}};
  Task& task = prepared.problem->task;
  const auto add = [&](const Candidate& candidate) {
    const auto make = [task, candidate] { return made_kernel(task, candidate); };
    prepared.kernels.push_back({candidate, std::async(std::launch::async, make)});
  };
  const auto for_all = [&] {
    for (const Provider* provider : providers()) {
      if (provider->name() == kBakedProvider || provider->needs_measuring()) continue;
      const std::vector<Candidate> candidates = provider->propose(task, {.count = arguments.candidates});
      for (std::size_t i = 0; i < candidates.size(); i = arguments.spread ? i + 1 + i / 3 : i + 1) add(candidates[i]);
      for (const auto& [name, choices] : arguments.plans) {
        if (provider->name() != name) continue;
        for (const Candidate& candidate : provider->propose(task, {.plan = choices})) add(candidate);
      }
    }
  };
  for_all();
  if (prepared.kernels.empty()) fail(ErrorKind::internal, "no provider has a kernel for {}", edge.name);
  if (task.get<Linear>() == nullptr || arguments.floats) return prepared;
  task.linear_storage = ElementType::f16;
  for_all();
  return prepared;
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
  constexpr std::size_t kPreparedAtOnce = 3;
  std::vector<OperatorCase> cases = arguments.edges ? edge_cases() : network_cases();
  std::erase_if(cases, [&](const OperatorCase& edge) { return !arguments.wants(edge.name); });
  if (!arguments.edges && !arguments.parts.empty()) {
    for (const auto& [name, make] : large_cases()) {
      if (arguments.wants(name)) cases.push_back(make());
    }
  }
  if (cases.empty()) fail(ErrorKind::usage, "no name has one of the parts '{}'", fmt::join(arguments.parts, ","));
  std::vector<std::pair<const OperatorCase*, int>> tasks;
  for (const OperatorCase& edge : cases) {
    for (const int batch : arguments.batches) tasks.emplace_back(&edge, batch);
  }
  std::vector<std::future<Prepared>> prepared;
  int kernels = 0, wrong = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    while (prepared.size() < std::min(i + kPreparedAtOnce, tasks.size())) {
      const auto [edge, batch] = tasks[prepared.size()];
      prepared.push_back(std::async(std::launch::async, [edge, batch, &device, &arguments] {
        return prepare(*edge, batch, device.info().arch(), arguments);
      }));
    }
    Prepared ready = prepared[i].get();
    for (Made& made : ready.kernels) {
      Case sample(device, *ready.problem, made.candidate, made.kernel.get());
      ++kernels;
      wrong += arguments.edges ? !sample.check() : !sample.run();
    }
  }
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
