#include "test/gpu/case_runner.h"

#include <algorithm>
#include <filesystem>

#include "compiler/compile.h"
#include "compiler/verify/layer_verification.h"
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

  void run(const Kernel& kernel, int batch, std::span<const float> input, std::span<const float> residual,
           std::span<float> output, const ActivityMaps& maps) override {
    const std::lock_guard turn(runner_.gpu_);
    const Announced announced(runner_, what_);
    make_executor(runner_.device_, package_)->run(kernel, batch, input, residual, output, maps);
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

Package CaseRunner::compile(const RandomCase& drawn) const {
  Network network;
  network.source = "random layers";
  network.layers = {drawn.layer};
  CompileOptions options;
  options.archs = drawn.archs;
  options.batches = {drawn.planned_batch};
  options.jobs = 1;
  options.keep_bitcode = device_.host;
  options.plan_constraints = parse_plan_constraints(drawn.constraints);
  const std::string plan_file = folder_ / fmt::format("{}.txt", drawn.index);
  options.precision = drawn.precision;
  options.kernels.all = kBakedProvider;
  if (drawn.layout != TensorLayout::nchw) options.layout = drawn.layout;
  if (drawn.source == PlanSource::by_hand) {
    write_file(plan_file, print(drawn.plan));
    options.from_file = plan_file;
  }
  Package package = compile_network(network, options, {}).package;
  if (options.from_file) std::filesystem::remove(plan_file);
  return package;
}

CaseOutcome CaseRunner::verify(const RandomCase& drawn) {
  const Package package = compile(drawn);
  const Kernel& kernel = package.manifest.kernels.front();
  CaseOutcome outcome;
  outcome.plan = parse_baked_plan(kernel.plan);
  const VerificationTask task{&kernel, drawn.layer, drawn.batch};
  VerificationResult result;
  if (device_.host) {
    result = verify_kernel(task, drawn.seed, *make_executor(device_, package));
  } else {
    const auto is_cubin = [&](const KernelBinary& binary) {
      return binary.kind == BinaryKind::cubin && binary.arch == drawn.archs.back();
    };
    if (std::none_of(kernel.binaries.begin(), kernel.binaries.end(), is_cubin)) {
      outcome.text = "the package has no cubin for " + drawn.archs.back();
      return outcome;
    }
    TakesTurns executor(*this, package, drawn.arguments() + ": " + drawn.describe());
    result = verify_kernel(task, drawn.seed, executor);
  }
  outcome.worst_ratio = result.comparison.worst_ratio;
  if (result.passed) {
    outcome.kind = CaseOutcome::Kind::right;
  } else {
    outcome.text = describe_worst(task, result);
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
