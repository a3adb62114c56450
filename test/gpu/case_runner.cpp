#include "test/gpu/case_runner.h"

#include <algorithm>
#include <filesystem>

#include "compiler/compile.h"
#include "compiler/verify/verification.h"
#include "ir/derive_form.h"
#include "ir/error.h"

using namespace burin;

namespace burin_test {

// The GPU's executor, for one caller at a time.
class CaseRunner::TakesTurns : public Executor {
 public:
  TakesTurns(CaseRunner& runner, const Package& package, std::string what)
      : runner_(runner), package_(package), what_(std::move(what)) {}

  std::string name() const override { return "one GPU for all"; }
  bool concurrent() const override { return true; }

  Tensors run(const Program& program, int batch, const Tensors& inputs, const StepVisitor& visit) override {
    const std::lock_guard turn(runner_.gpu_);
    const Announced announced(runner_, what_);
    return make_executor(runner_.device_, package_)->run(program, batch, inputs, visit);
  }

 private:
  struct Announced {
    Announced(CaseRunner& runner, const std::string& what) : runner(runner) {
      const std::lock_guard lock(runner.running_mutex_);
      runner.running_ = {what, std::chrono::steady_clock::now()};
    }
    ~Announced() {
      const std::lock_guard lock(runner.running_mutex_);
      runner.running_.reset();
    }
    CaseRunner& runner;
  };

  CaseRunner& runner_;
  const Package& package_;
  const std::string what_;
};

Network CaseRunner::network_of(const RandomCase& drawn) {
  Network network;
  network.source = "random layers";
  network.layers = {drawn.layer};
  separate_layers(network);
  return network;
}

Package CaseRunner::compile(const RandomCase& drawn) const {
  CompileOptions options;
  options.archs = drawn.archs;
  options.batches = {drawn.planned_batch};
  options.jobs = 1;
  options.plan = drawn.constraints;
  const std::string plan_file = folder_ / fmt::format("{}.txt", drawn.index);
  options.precisions = {drawn.precision};
  options.kernels.all = drawn.provider();
  if (drawn.zeros) {
    const ConvShape& shape = drawn.layer.shape;
    options.activation_zeros[drawn.layer.name] =
        count_synthetic(*drawn.zeros, shape.in_channels, shape.in_h, shape.in_w);
  }
  options.layout = drawn.asked_layout();
  if (drawn.source == PlanSource::by_hand) {
    write_file(plan_file, print(drawn.plan));
    options.from_file = plan_file;
  }
  Package package = compile_network(network_of(drawn), options, {}).package;
  if (options.from_file) std::filesystem::remove(plan_file);
  return package;
}

CaseOutcome CaseRunner::verify(const RandomCase& drawn) {
  const Package package = compile(drawn);
  const Kernel& kernel = package.manifest.kernels.front();
  CaseOutcome outcome;
  outcome.provider = kernel.provider;
  if (kernel.provider == kBakedProvider) outcome.plan = parse_baked_plan(kernel.plan);
  const Network reference = reference_of(network_of(drawn), package.manifest, std::nullopt);
  VerifyOptions options;
  options.batch = drawn.batch;
  options.seed = drawn.seed;
  options.zeros = drawn.zeros;
  options.non_finite = drawn.non_finite();
  options.jobs = 1;
  Verification verification;
  if (device_.host) {
    verification = verify_programs(package, reference, options, *make_executor(device_, package, 1));
  } else {
    // Code for one architecture alone has an `a` behind its name.
    const auto is_cubin = [&](const KernelBinary& binary) {
      return binary.kind == BinaryKind::cubin &&
             (binary.arch == drawn.archs.back() || binary.arch == drawn.archs.back() + "a");
    };
    if (std::none_of(kernel.binaries.begin(), kernel.binaries.end(), is_cubin)) {
      outcome.text = "the package has no cubin for " + drawn.archs.back();
      return outcome;
    }
    TakesTurns executor(*this, package, drawn.arguments() + ": " + drawn.describe());
    verification = verify_programs(package, reference, options, executor);
  }
  const VerifiedProgram& result = verification.results.at(0);
  if (!result.fault.empty()) {
    outcome.text = result.fault;
    return outcome;
  }
  const StepResult& step = result.steps.at(0);
  outcome.worst_ratio = step.comparison.worst_ratio;
  if (verification.passed()) {
    outcome.kind = CaseOutcome::Kind::right;
    return outcome;
  }
  outcome.text = describe_worst(step, step.shape, result.images);
  for (const OutputResult& output : result.outputs) {
    if (!output.fault.empty()) outcome.text = output.fault;
  }
  return outcome;
}

CaseOutcome CaseRunner::run(const RandomCase& drawn) {
  CaseOutcome outcome;
  try {
    return verify(drawn);
  } catch (const Error& error) {
    outcome.text = error.what();
    if (error.kind() == ErrorKind::unsupported) outcome.kind = CaseOutcome::Kind::unsupported;
    outcome.device_lost = error.kind() == ErrorKind::device;
  } catch (const std::exception& error) {
    outcome.text = error.what();
  }
  return outcome;
}

std::optional<std::string> CaseRunner::stuck(std::chrono::seconds limit) const {
  const std::lock_guard lock(running_mutex_);
  if (!running_ || std::chrono::steady_clock::now() - running_->since < limit) return std::nullopt;
  return running_->what;
}

}  // namespace burin_test
