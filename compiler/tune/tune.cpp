#include "compiler/tune/tune.h"
#include "compiler/choose/choose.h"
#include "compiler/program_tasks.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>

#include "compiler/tune/compile_pool.h"
#include "compiler/tune/expected_output.h"
#include "compiler/tune/time_budget.h"
#include "compiler/tune/tuning_task.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/sparse_pattern.h"

namespace burin {
namespace {

// What a task's share of the network's time grows with: multiply-adds, and values that are moved.
double work_of(const Task& task) {
  const double pixels =
      task.layer == nullptr ? 1 : static_cast<double>(task.layer->shape.conv_h()) * task.layer->shape.conv_w();
  return task.batch * (static_cast<double>(nonzeros_of(task)) * pixels +
                       static_cast<double>(task.reads[0].words() + task.writes.words()));
}

// The same as a convolution of one pixel, with its weights as they are stored.
ConvLayer as_convolution(const Task& task) {
  const Linear& op = *task.get<Linear>();
  ConvLayer layer{.name = task.name, .shape = {}, .weights = stored_linear(task).weights, .bias = op.bias};
  layer.shape.in_channels = op.in_features;
  layer.shape.out_channels = op.out_features;
  layer.shape.in_h = layer.shape.in_w = layer.shape.kernel_h = layer.shape.kernel_w = 1;
  layer.shape.epilogue.bias = !op.bias.empty();
  layer.shape.epilogue.function = op.function;
  return layer;
}

// The search for one task's kernel, and what its candidates are run on.
struct Search {
  TuningTask task;
  std::optional<ConvLayer> made;  // of a fully connected layer
  std::optional<ExpectedOutput> expected;

  Search(const Task& asked, const CompileOptions& options, int plans, const TuningDevice& device)
      : task(asked, options, plans, device) {}

  void expect() {
    const Task& asked = task.task();
    if (asked.layer == nullptr) made = as_convolution(asked);
    const ConvLayer& layer = made ? *made : *asked.layer;
    expected.emplace(layer, analyse(layer), asked.batch, asked.precision, asked.factors, asked.zeros);
  }
};

// The outcome of one candidate that was compiled.
void measure(Search& search, std::size_t candidate, const Package& package, Measurer& measurer) {
  TuningTask& task = search.task;
  const Task& asked = task.task();
  if (!search.expected) search.expect();
  try {
    const double error = checked_error(measurer, package, asked.batch, *search.expected);
    task.measured(candidate, measurer.time(package, asked.batch, search.expected->input()), error);
  } catch (const Error& error) {
    if (!measurer.usable()) {
      fail(ErrorKind::device, "{}, {}: {}; the device cannot be used any more, so tuning ends", task.name(),
           task.describe(candidate), error.what());
    }
    task.failed(candidate, error);
  }
}

class Tuner {
 public:
  Tuner(const std::vector<Task>& tasks, const CompileOptions& options, const TuneOptions& tune_options,
        const CandidateCompiler& compile, Measurer& measurer, const std::function<void(const TuneProgress&)>& progress)
      : tasks_(tasks),
        options_(options),
        tune_options_(tune_options),
        compile_(compile),
        measurer_(measurer),
        progress_(progress),
        device_(measurer.device()),
        budget_(tune_options.budget_s, tune_options.seconds),
        order_(tasks.size()),
        searches_(tasks.size()),
        results_(tasks.size()),
        at_once_(compile_threads(tune_options.jobs) + 1),
        pool_(compile_threads(tune_options.jobs)) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, std::greater<>(), [&](std::size_t i) { return work_of(tasks_[i]); });
  }

  std::vector<TunedKernel> run() {
    start_more();
    while (open_ > 0) {
      step(pool_.next());
      start_more();
    }
    std::vector<TunedKernel> kernels;
    for (std::optional<TunedKernel>& result : results_) {
      if (result) kernels.push_back(*std::move(result));
    }
    return kernels;
  }

 private:
  // Starts as many kernels as keep the compiling threads busy while one is measured.
  void start_more() {
    while (open_ < at_once_ && next_ < order_.size() && budget_.is_time_left()) {
      const std::size_t place = next_++;
      const Task& task = tasks_[order_[place]];
      searches_[place] = std::make_unique<Search>(task, options_, tune_options_.plans, device_);
      ++open_;
      start_round(place);
    }
  }

  // False where there is nothing more to try.
  bool start_round(std::size_t place) {
    const TuningTask& task = searches_[place]->task;
    const std::vector<std::size_t> round = searches_[place]->task.next_round();
    for (const std::size_t candidate : round) {
      pool_.add({place, candidate},
                [this, &task, candidate = task.candidate(candidate)] { return compile_(task.task(), candidate); });
    }
    return !round.empty();
  }

  void step(const CompilePool::Result& compiled) {
    const auto [place, candidate] = compiled.key;
    Search& search = *searches_[place];
    TuningTask& task = search.task;
    if (compiled.fault) {
      task.failed(candidate, *compiled.fault);
    } else {
      measure(search, candidate, compiled.package, measurer_);
    }
    if (progress_) {
      progress_({done_, static_cast<int>(tasks_.size()), task.task().name, task.task().batch, task.tried(),
                 task.known(), task.best_us()});
    }
    if (!task.round_is_over()) return;
    if (budget_.is_time_left() && start_round(place)) return;
    results_[order_[place]] = task.result();
    searches_[place].reset();
    --open_;
    ++done_;
  }

  const std::vector<Task>& tasks_;
  const CompileOptions& options_;
  const TuneOptions& tune_options_;
  const CandidateCompiler& compile_;
  Measurer& measurer_;
  const std::function<void(const TuneProgress&)>& progress_;
  const TuningDevice device_;
  const TimeBudget budget_;
  std::vector<std::size_t> order_;  // the tasks, those with the most work first
  std::vector<std::unique_ptr<Search>> searches_;
  std::vector<std::optional<TunedKernel>> results_;  // of each task
  const int at_once_;
  std::size_t next_ = 0;
  int open_ = 0, done_ = 0;
  CompilePool pool_;  // goes first: what it compiles refers to the rest
};

}  // namespace

TuningTasks tuning_tasks(const ProgramGraphs& graphs, const CompileOptions& options) {
  TuningTasks tuning;
  std::vector<std::vector<Task>> of_batches;
  std::size_t most = 0;
  for (const int batch : options.batches) {
    const Network& formatted = tuning.networks.emplace_back(in_formats(graphs.of(batch), options, batch));
    most = std::max(most, of_batches.emplace_back(layer_tasks(formatted, options, batch)).size());
  }
  for (std::size_t i = 0; i < most; ++i) {
    for (std::vector<Task>& tasks : of_batches) {
      if (i < tasks.size()) tuning.tasks.push_back(std::move(tasks[i]));
    }
  }
  return tuning;
}

std::vector<TunedKernel> tune_tasks(const std::vector<Task>& tasks, const CompileOptions& options,
                                    const TuneOptions& tune_options, const CandidateCompiler& compile,
                                    Measurer& measurer, const std::function<void(const TuneProgress&)>& progress) {
  BURIN_CHECK(tune_options.plans >= 1 && tune_options.plans <= kMaxTuningPlans, "{} plans to tune", tune_options.plans);
  return Tuner(tasks, options, tune_options, compile, measurer, progress).run();
}

}  // namespace burin
