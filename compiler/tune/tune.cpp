#include "compiler/tune/tune.h"
#include "compiler/choose/choose.h"
#include "compiler/kernel_cache.h"
#include "compiler/program_tasks.h"
#include "ir/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "compiler/tune/compile_pool.h"
#include "compiler/tune/expected_output.h"
#include "compiler/tune/measurements.h"
#include "compiler/tune/tuning_task.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/sparse_pattern.h"

namespace burin {
namespace {

// In other formats fewer candidates do: what they take decides of formats, and then of kernels.
constexpr int kPlansInOtherFormats = 4;
// They get no more time than such a share of what the formats of the graphs took, or of all that there is.
constexpr double kShareOfTimeTaken = 0.5, kShareOfBudget = 0.05;

// The models say what each task takes of the network's time.
std::vector<double> estimates_of(const std::vector<Task>& tasks, const CompileOptions& options) {
  std::vector<double> estimates(tasks.size());
  for_each_parallel(tasks.size(), options.jobs, [&](std::size_t i) { estimates[i] = estimated_us(tasks[i], options); });
  return estimates;
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
  Measurements measurements;
  std::vector<std::size_t> round;  // the candidates to try next
  std::optional<ConvLayer> made;   // of a fully connected layer
  std::optional<ExpectedOutput> expected, expected_of_spoilt;
  std::map<std::size_t, Package> kept;  // of candidates that may have to take turns once more, or be in the network
  std::set<std::size_t> awaited;        // those that are compiled for that

  Search(const Task& asked, const CompileOptions& options, const TuneOptions& tune_options, const TuningDevice& device)
      : task(asked, options, tune_options.plans, tune_options.providers, device),
        measurements(options.cache, asked, device, tune_options.anew) {}

  void expect(ExpectedOutput::Inputs inputs = ExpectedOutput::Inputs::finite) {
    const Task& asked = task.task();
    if (asked.layer == nullptr && !made) made = as_convolution(asked);
    const ConvLayer& layer = made ? *made : *asked.layer;
    const bool is_finite = inputs == ExpectedOutput::Inputs::finite;
    (is_finite ? expected : expected_of_spoilt)
        .emplace(layer, analyse(layer), asked.batch, asked.precision, asked.factors, asked.zeros, inputs);
  }

  // What to try next, and what measuring that needs. It takes its time.
  void plan_round(bool may_measure) {
    round = task.next_round();
    const auto is_new = [&](std::size_t i) { return measurements.find(task.candidate(i)) == nullptr; };
    if (may_measure && !expected && std::ranges::any_of(round, is_new)) expect();
  }

  void keep(std::size_t candidate, Package package) {
    kept.insert_or_assign(candidate, std::move(package));
    std::erase_if(kept, [&](const auto& entry) { return !task.may_be_taken(entry.first); });
  }
};

// The device cannot be used any more: what was measured so far is in the cache.
[[noreturn]] void end_tuning(const Search& search, std::size_t candidate, const Error& error) {
  fail(ErrorKind::device, "{}, {}: {}; the device cannot be used any more, so tuning ends", search.task.name(),
       search.task.describe(candidate), error.what());
}

// What the pool does for a search: planning a round, or compiling a candidate.
constexpr std::size_t kPlanning = 0, kFirstCandidate = 1;

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
        order_(tasks.size()),
        searches_(tasks.size()),
        results_(tasks.size()),
        at_once_(compile_threads(tune_options.jobs) + 1),
        pool_(compile_threads(tune_options.jobs)) {
    const std::vector<double> estimates = estimates_of(tasks, options);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, std::greater<>(), [&](std::size_t i) { return estimates[i]; });
  }

  Tuned run() {
    start_more();
    while (open_ > 0) {
      step(pool_.next());
      start_more();
    }
    tuned_.was_time_up = is_time_up_;
    tuned_.tasks = static_cast<int>(tasks_.size());
    for (std::optional<TunedKernel>& result : results_) {
      if (result) tuned_.kernels.push_back(*std::move(result));
    }
    tuned_.left_to_models = tuned_.tasks - static_cast<int>(tuned_.kernels.size());
    return std::move(tuned_);
  }

 private:
  bool is_time_left() {
    if (!tune_options_.budget.is_time_left()) is_time_up_ = true;
    return !is_time_up_;
  }

  // Starts as many kernels as keep the compiling threads busy while one is measured. When the time is up, what was
  // measured before counts all the same.
  void start_more() {
    while (open_ < at_once_ && next_ < order_.size()) {
      const std::size_t place = next_++;
      auto search = std::make_unique<Search>(tasks_[order_[place]], options_, tune_options_, device_);
      if (!is_time_left() && !search->measurements.has_entries()) continue;
      searches_[place] = std::move(search);
      ++open_;
      go_on(place);
    }
  }

  // The next round is planned by another thread, which has the search for itself until then.
  void go_on(std::size_t place) {
    Search& search = *searches_[place];
    if (!search.task.round_is_over()) return;
    pool_.add({place, kPlanning}, [this, &search] {
      search.plan_round(!is_time_up_);
      return Package();
    });
  }

  void start_round(std::size_t place) {
    Search& search = *searches_[place];
    search.expected_of_spoilt.reset();  // calls are in the first round
    if (search.round.empty()) {
      if (!start_turns(place)) finish(place);
      return;
    }
    const bool may_measure = is_time_left();
    // Those that may be taken tell how far the others are behind.
    std::ranges::stable_partition(search.round, [&](std::size_t candidate) {
      const Measurements::Entry* const entry = search.measurements.find(search.task.candidate(candidate));
      return entry != nullptr && entry->is_sound;
    });
    for (const std::size_t candidate : search.round) {
      if (take_from_cache(search, candidate, may_measure)) continue;
      if (may_measure) {
        compile(place, candidate);
      } else {
        search.task.skipped(candidate);
      }
    }
    go_on(place);
  }

  // Returns false where the candidate was not measured before, or not as far as it matters now, if it can be.
  bool take_from_cache(Search& search, std::size_t candidate, bool may_measure) {
    const Measurements::Entry* const entry = search.measurements.find(search.task.candidate(candidate));
    if (entry == nullptr) return false;
    const bool is_too_little = !entry->fault && !entry->is_sound && search.task.may_matter(candidate, entry->time.us);
    if (is_too_little && may_measure) return false;
    if (entry->fault) {
      search.task.failed(candidate, *entry->fault);
    } else {
      search.task.measured(candidate, entry->time, entry->is_sound ? entry->error : std::nullopt);
    }
    ++tuned_.from_cache;
    tell(search.task);
    return true;
  }

  void compile(std::size_t place, std::size_t candidate) {
    const TuningTask& task = searches_[place]->task;
    pool_.add({place, kFirstCandidate + candidate}, [this, &task, candidate = task.candidate(candidate)] {
      return is_time_up_ ? Package() : compile_(task.task(), candidate);
    });
  }

  void step(CompilePool::Result compiled) {
    const auto [place, work] = compiled.key;
    Search& search = *searches_[place];
    (void)is_time_left();  // what waits to be compiled need not be when the time is up
    if (work == kPlanning) {
      if (compiled.fault) throw Error(*compiled.fault);
      return start_round(place);
    }
    const std::size_t candidate = work - kFirstCandidate;
    if (search.awaited.erase(candidate) > 0) {
      if (!compiled.fault) search.kept.insert_or_assign(candidate, std::move(compiled.package));
      if (!search.awaited.empty()) return;
      if (!is_time_up_) take_turns(search);
      finish(place);
      return;
    }
    if (compiled.fault) {
      search.task.failed(candidate, *compiled.fault);
    } else if (is_time_up_) {
      search.task.skipped(candidate);
    } else {
      measure(search, candidate, compiled.package);
      search.keep(candidate, std::move(compiled.package));
    }
    tell(search.task);
    go_on(place);
  }

  // The outcome of one candidate that was compiled. One that is not taken need not be right.
  void measure(Search& search, std::size_t candidate, const Package& package) {
    TuningTask& task = search.task;
    const Task& asked = task.task();
    if (!search.expected) search.expect();
    ++tuned_.measured;
    try {
      const LaunchTime time = measurer_.time(package, asked.batch, search.expected->input());
      std::optional<double> error;
      if (task.may_matter(candidate, time.us)) {
        error = checked_error(measurer_, package, asked.batch, *search.expected);
        if (package.manifest.kernels.front().call) check_spoilt(search, package);
      }
      task.measured(candidate, time, error);
      search.measurements.store(task.candidate(candidate), time, error, error.has_value());
    } catch (const Error& error) {
      const bool is_lost = !measurer_.usable();
      search.measurements.store_fault(task.candidate(candidate), error, is_lost);
      if (is_lost) end_tuning(search, candidate, error);
      task.failed(candidate, error);
    }
  }

  // A library's own idea of what NaN and infinities give.
  void check_spoilt(Search& search, const Package& package) {
    if (!search.expected_of_spoilt) search.expect(ExpectedOutput::Inputs::some_spoilt);
    try {
      checked_error(measurer_, package, search.task.task().batch, *search.expected_of_spoilt);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::verification) throw;
      fail(error.kind(), "with NaN and infinities among the inputs {}", error.what());
    }
  }

  // Lets those near the best take turns, unless they did in an earlier run, or the time is up. Returns whether some are
  // compiled for it first.
  bool start_turns(std::size_t place) {
    Search& search = *searches_[place];
    const std::vector<std::size_t> contenders = search.task.contenders();
    if (contenders.size() < 2) return false;
    std::vector<std::pair<std::size_t, double>> earlier;
    for (const std::size_t candidate : contenders) {
      const Measurements::Entry* const entry = search.measurements.find(search.task.candidate(candidate));
      if (entry != nullptr && entry->turns_us > 0) earlier.emplace_back(candidate, entry->turns_us);
    }
    if (earlier.size() == contenders.size()) {
      search.task.took_turns(earlier);
      return false;
    }
    if (!is_time_left()) return false;
    for (const std::size_t candidate : contenders) {
      if (!search.kept.contains(candidate)) search.awaited.insert(candidate);
    }
    for (const std::size_t candidate : search.awaited) compile(place, candidate);
    if (!search.awaited.empty()) return true;
    take_turns(search);
    return false;
  }

  // Those near the best are timed once more, one after the other and again, so that a clock that drifts does so for
  // all.
  void take_turns(Search& search) {
    std::vector<std::size_t> contenders = search.task.contenders();
    std::erase_if(contenders,
                  [&](std::size_t i) { return !search.kept.contains(i); });  // it could not be compiled again
    if (contenders.size() < 2) return;
    if (!search.expected) search.expect();
    std::vector<const Package*> packages;
    for (const std::size_t candidate : contenders) packages.push_back(&search.kept.at(candidate));
    const std::vector<Timing> timings =
        measurer_.time_in_turns(packages, search.task.task().batch, search.expected->input());
    std::vector<std::pair<std::size_t, double>> times_us;
    std::vector<std::pair<Candidate, LaunchTime>> to_keep;
    for (std::size_t i = 0; i < timings.size(); ++i) {
      if (timings[i].fault) {
        if (!measurer_.usable()) end_tuning(search, contenders[i], *timings[i].fault);
        search.task.ruled_out(contenders[i], *timings[i].fault);
        continue;
      }
      times_us.emplace_back(contenders[i], timings[i].time.us);
      to_keep.emplace_back(search.task.candidate(contenders[i]), timings[i].time);
    }
    search.task.took_turns(times_us);
    search.measurements.store_turns(to_keep);
  }

  void finish(std::size_t place) {
    const TuningTask& task = searches_[place]->task;
    // Without a best one the kernel is left to the models: nobody who is asked can make it, or the time was up before.
    // Where all candidates of all providers were tried, there is nothing to leave it to.
    const bool was_tried = task.proposed() > 0 && !task.was_cut_short() && tune_options_.providers.empty();
    if (task.has_best() || (was_tried && task.has_fault() && !tune_options_.may_fail)) {
      results_[order_[place]] = task.result();
      keep_code(*searches_[place]);
    } else if (task.has_fault()) {
      tuned_.notes.push_back(
          fmt::format("{}: none of the candidates that were tried can be used; the models choose", task.name()));
    }
    searches_[place].reset();
    --open_;
    ++done_;
  }

  // What the network may launch need not be compiled again.
  void keep_code(const Search& search) const {
    if (!tune_options_.keep) return;
    std::vector<std::size_t> taken = search.task.rivals();
    taken.push_back(search.task.best());
    for (const std::size_t candidate : taken) {
      const auto found = search.kept.find(candidate);
      if (found != search.kept.end()) {
        tune_options_.keep(search.task.task(), search.task.candidate(candidate), found->second);
      }
    }
  }

  void tell(const TuningTask& task) const {
    if (!progress_) return;
    progress_({done_, static_cast<int>(tasks_.size()), task.task().name, task.task().batch, task.tried(),
               task.proposed(), task.best_us()});
  }

  const std::vector<Task>& tasks_;
  const CompileOptions& options_;
  const TuneOptions& tune_options_;
  const CandidateCompiler& compile_;
  Measurer& measurer_;
  const std::function<void(const TuneProgress&)>& progress_;
  const TuningDevice device_;
  std::vector<std::size_t> order_;  // the tasks, those that take most of the time first
  std::vector<std::unique_ptr<Search>> searches_;
  std::vector<std::optional<TunedKernel>> results_;  // of each task
  Tuned tuned_;
  std::atomic<bool> is_time_up_ = false;
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

Tuned tune_tasks(const std::vector<Task>& tasks, const CompileOptions& options, const TuneOptions& tune_options,
                 const CandidateCompiler& compile, Measurer& measurer,
                 const std::function<void(const TuneProgress&)>& progress) {
  BURIN_CHECK(tune_options.plans >= 1 && tune_options.plans <= kMaxTuningPlans, "{} plans to tune", tune_options.plans);
  return Tuner(tasks, options, tune_options, compile, measurer, progress).run();
}

std::vector<Task> tasks_in_other_formats(const ProgramGraphs& graphs, const TuningTasks& tuning,
                                         const CompileOptions& options,
                                         const std::function<bool(const Provider& provider)>& measures) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < options.batches.size(); ++i) {
    const int batch = options.batches[i];
    std::ranges::move(in_other_formats(graphs.of(batch), tuning.networks.at(i), options, batch, measures),
                      std::back_inserter(tasks));
  }
  return tasks;
}

Tuned tune_graphs(const ProgramGraphs& graphs, const CompileOptions& options, const TuneOptions& tune_options,
                  const CandidateCompiler& compile, Measurer& measurer,
                  const std::function<void(const TuneProgress&)>& progress) {
  TuneOptions of_graphs = tune_options;
  of_graphs.budget = tune_options.budget.first(kShareOfLayers);
  const TuningTasks tuning = tuning_tasks(graphs, options);
  const double begin = of_graphs.budget.seconds_passed();
  Tuned tuned = tune_tasks(tuning.tasks, options, of_graphs, compile, measurer, progress);
  if (!tune_options.other_formats || tuned.was_time_up) return tuned;
  const auto measures = [&, device = measurer.device()](const Provider& provider) {
    const std::vector<std::string>& asked = tune_options.providers;
    return device.has(provider.library()) &&
           (asked.empty() || std::ranges::find(asked, provider.name()) != asked.end());
  };
  const std::vector<Task> others = tasks_in_other_formats(graphs, tuning, options, measures);
  if (others.empty() || !of_graphs.budget.is_time_left()) return tuned;
  const double seconds_taken = of_graphs.budget.seconds_passed() - begin;
  TuneOptions rest = tune_options;
  rest.may_fail = true;
  rest.plans = std::min(rest.plans, kPlansInOtherFormats);
  rest.budget = of_graphs.budget.next(
      std::max(kShareOfTimeTaken * seconds_taken, kShareOfBudget * tune_options.budget.seconds()));
  Tuned elsewhere = tune_tasks(others, options, rest, compile, measurer, progress);
  tuned.measured += elsewhere.measured;
  tuned.from_cache += elsewhere.from_cache;
  tuned.notes.push_back(fmt::format("{} of {} kernels of convolutions in other formats were measured, too",
                                    elsewhere.kernels.size(), others.size()));
  for (const std::string& note : elsewhere.notes) tuned.notes.push_back("in another format, " + note);
  std::ranges::move(elsewhere.kernels, std::back_inserter(tuned.kernels));
  return tuned;
}

}  // namespace burin
