#include "compiler/tune/tune.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <thread>

#include "compiler/tune/compile_pool.h"
#include "compiler/tune/expected_output.h"
#include "compiler/tune/tuning_task.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/sparse_pattern.h"

namespace burin {
namespace {

// One thread fewer than processors: a processor is left to the thread that measures.
int compile_threads(int jobs) {
  const int wanted = jobs > 0 ? jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return std::max(1, wanted - 1);
}

// The outcome of one candidate that was compiled.
void measure(TuningTask& task, std::size_t candidate, const Package& package, const ExpectedOutput& expected,
             Measurer& measurer) {
  std::vector<float> output(static_cast<std::size_t>(expected.elements()), std::numeric_limits<float>::quiet_NaN());
  try {
    measurer.run(package, task.batch(), expected.input(), expected.residual(), output);
    const ExpectedOutput::Verdict verdict = expected.judge(output, task.plan(candidate).promote_every);
    if (!verdict.fault.empty()) throw Error(ErrorKind::verification, verdict.fault);
    task.measured(candidate, measurer.time(package, task.batch()), verdict.error);
  } catch (const Error& error) {
    if (!measurer.usable()) {
      fail(ErrorKind::device, "{}, plan {}: {}; the device cannot be used any more, so tuning ends", task.name(),
           print(constraints_of(task.plan(candidate))), error.what());
    }
    task.failed(candidate, error);
  }
}

}  // namespace

std::vector<TunedKernel> tune_network(const Network& network, const TuneOptions& options,
                                      const CandidateCompiler& compile, Measurer& measurer,
                                      const std::function<void(const TuneProgress&)>& progress) {
  BURIN_CHECK(options.plans >= 1 && options.plans <= kMaxTuningPlans, "{} plans to tune", options.plans);
  const TuningDevice device = measurer.device();
  std::deque<SparsePattern> patterns;
  std::deque<TuningTask> tasks;  // does not move what it holds
  for (const ConvLayer& layer : network.layers) {
    patterns.push_back(analyse(layer));
    for (const int batch : options.batches) {
      PlanRequest request = options.request;
      request.batch = batch;
      tasks.emplace_back(layer, patterns.back(), std::move(request), options.plans, device);
    }
  }

  CompilePool pool(compile_threads(options.jobs));
  const auto start_round = [&](std::size_t index) {
    TuningTask& task = tasks[index];
    const std::vector<std::size_t> round = task.next_round();
    for (const std::size_t candidate : round) {
      pool.add({index, candidate},
               [&compile, &task, plan = task.plan(candidate)] { return compile(task.layer(), task.pattern(), plan); });
    }
    return !round.empty();
  };
  for (std::size_t i = 0; i < tasks.size(); ++i) start_round(i);

  std::vector<std::optional<ExpectedOutput>> expected(tasks.size());
  std::vector<std::optional<TunedKernel>> results(tasks.size());
  std::size_t done = 0;
  while (done < tasks.size()) {
    const CompilePool::Result compiled = pool.next();
    const auto [index, candidate] = compiled.key;
    TuningTask& task = tasks[index];
    if (compiled.fault) {
      task.failed(candidate, *compiled.fault);
    } else {
      if (!expected[index]) expected[index].emplace(task.layer(), task.pattern(), task.batch(), task.precision());
      measure(task, candidate, compiled.package, *expected[index], measurer);
    }
    const TuneProgress state{static_cast<int>(done), static_cast<int>(tasks.size()),
                             task.layer().name,      task.batch(),
                             task.tried(),           task.known(),
                             task.best_us()};
    if (progress) progress(state);
    if (!task.round_is_over() || start_round(index)) continue;
    results[index] = task.result();
    expected[index].reset();
    ++done;
  }

  std::vector<TunedKernel> kernels;
  for (std::optional<TunedKernel>& result : results) kernels.push_back(*std::move(result));
  return kernels;
}

}  // namespace burin
