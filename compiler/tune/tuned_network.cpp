#include "compiler/tune/tuned_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "compiler/tune/time_budget.h"
#include "ir/error.h"

namespace burin {
namespace {

// Medians of so many turns repeat within two thousandths.
constexpr int kTurns = 5, kTurnsToConfirm = 11;
constexpr double kGain = 0.998;      // of the time before; above that is noise
constexpr double kPassGain = 0.995;  // another pass is not worth less
constexpr int kMostPasses = 3;

// Which kernel each step of a program launches: 0, the fastest by itself; k, its rival k - 1.
using StepKernels = std::vector<std::size_t>;

// What came of exchanging kernels in one program.
struct Exchange {
  StepKernels kernels;
  double us = 0, fastest_us = 0, models_us = 0;  // with these, those that are the fastest, and the models' choice
  int tried = 0;                                 // steps whose rivals were launched
  bool was_time_up = false;
};

// The trials of one program.
class ProgramTrials {
 public:
  // `tuned`: what was measured of each step; null where nothing was.
  ProgramTrials(std::shared_ptr<const Package> package, const Program& program, const std::vector<StepRivals>& rivals,
                std::vector<TunedKernel*> tuned, const NetworkTimer& time)
      : package_(std::move(package)), program_(program), rivals_(rivals), tuned_(std::move(tuned)), time_(time) {
    for (std::size_t step = 0; step < rivals_.size(); ++step) {
      const std::size_t known = tuned_[step] == nullptr ? 0 : tuned_[step]->rivals.size();
      BURIN_CHECK(rivals_[step].size() == known, "step {} has {} rivals of {}", program_.steps[step].name,
                  rivals_[step].size(), known);
    }
  }

  bool have_rivals() const {
    return std::ranges::any_of(rivals_, [](const StepRivals& rivals) { return !rivals.empty(); });
  }

  // `tell` is called for each step.
  Exchange run(const TimeBudget& budget, const std::function<void(const std::string& step, int done, int all)>& tell) {
    const StepKernels fastest(program_.steps.size()), models = models_choice();
    const std::vector<double> at_first = times({fastest, models}, kTurnsToConfirm);
    current_ = at_first[1] < kGain * at_first[0] ? models : fastest;
    Exchange exchange;
    const std::vector<std::size_t> order = steps_in_order();
    double before = current_ == fastest ? at_first[0] : at_first[1];
    for (int pass = 0; pass < kMostPasses && !exchange.was_time_up; ++pass) {
      double after = before;
      for (std::size_t i = 0; i < order.size(); ++i) {
        exchange.was_time_up = !budget.is_time_left();
        if (exchange.was_time_up) break;
        after = exchanged_us(order[i], after);
        if (pass == 0) ++exchange.tried;
        tell(program_.steps[order[i]].name, static_cast<int>(i) + 1, static_cast<int>(order.size()));
      }
      if (after > kPassGain * before) break;
      before = after;
    }
    const std::vector<double> at_last = times({fastest, models, current_}, kTurnsToConfirm);
    exchange.fastest_us = at_last[0];
    exchange.models_us = at_last[1];
    exchange.kernels = fastest;
    exchange.us = at_last[0];
    for (const auto& [kernels, us] : {std::pair(models, at_last[1]), {current_, at_last[2]}}) {
      if (us > kGain * exchange.us) continue;
      exchange.kernels = kernels;
      exchange.us = us;
    }
    return exchange;
  }

 private:
  // Where the models' choice was not measured, or is wrong, the fastest.
  StepKernels models_choice() const {
    StepKernels kernels(program_.steps.size());
    for (std::size_t step = 0; step < kernels.size(); ++step) {
      if (tuned_[step] == nullptr) continue;
      const std::vector<Rival>& rivals = tuned_[step]->rivals;
      const auto own = std::ranges::find(rivals, 0, &Rival::index);
      if (own != rivals.end()) kernels[step] = static_cast<std::size_t>(own - rivals.begin()) + 1;
    }
    return kernels;
  }

  // Those that have rivals, the ones that take most time first.
  std::vector<std::size_t> steps_in_order() const {
    std::vector<std::size_t> order;
    for (std::size_t step = 0; step < rivals_.size(); ++step) {
      if (!rivals_[step].empty()) order.push_back(step);
    }
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](std::size_t step) { return tuned_[step]->candidate.estimate.us; });
    return order;
  }

  TimedProgram with(const StepKernels& kernels) const {
    auto program = std::make_shared<Program>(program_);
    for (std::size_t step = 0; step < kernels.size(); ++step) {
      if (kernels[step] > 0) program->steps[step].kernel = rivals_[step][kernels[step] - 1];
    }
    return {package_, std::move(program)};
  }

  std::vector<double> times(const std::vector<StepKernels>& all, int turns) const {
    std::vector<TimedProgram> programs;
    for (const StepKernels& kernels : all) programs.push_back(with(kernels));
    return time_(programs, turns);
  }

  // Launches what the step has and its rivals in turns, and takes one of them that is faster twice. Returns what the
  // network takes then; `us`: what it took before.
  double exchanged_us(std::size_t step, double us) {
    std::vector<StepKernels> all = {current_};
    for (std::size_t kernel = 0; kernel <= rivals_[step].size(); ++kernel) {
      if (kernel == current_[step]) continue;
      all.push_back(current_);
      all.back()[step] = kernel;
    }
    const std::vector<double> taken = times(all, kTurns);
    for (std::size_t i = 0; i < all.size(); ++i) record(step, all[i][step], taken[i]);
    const auto best = static_cast<std::size_t>(std::ranges::min_element(taken) - taken.begin());
    if (taken[best] > kGain * taken[0]) return us;
    const std::vector<double> again = times({current_, all[best]}, kTurnsToConfirm);
    if (again[1] > kGain * again[0]) return us;
    current_ = all[best];
    return again[1];
  }

  void record(std::size_t step, std::size_t kernel, double us) const {
    TunedKernel& tuned = *tuned_[step];
    const int index = kernel == 0 ? tuned.evidence.chosen : tuned.rivals[kernel - 1].index;
    tuned.evidence.candidates.at(static_cast<std::size_t>(index)).network_us = us;
  }

  std::shared_ptr<const Package> package_;
  const Program& program_;
  const std::vector<StepRivals>& rivals_;
  std::vector<TunedKernel*> tuned_;
  const NetworkTimer& time_;
  StepKernels current_;
};

std::vector<TunedKernel*> tuned_of(const Program& program, std::vector<TunedKernel>& tuned) {
  std::vector<TunedKernel*> of_steps;
  for (const Step& step : program.steps) {
    const OperatorFormats formats{program.buffer(step.reads.front()).format, program.buffer(step.writes).format};
    const auto found = std::ranges::find_if(tuned, [&](const TunedKernel& kernel) {
      return !step.is_copy() && kernel.is_of(step.name, program.batch, formats);
    });
    of_steps.push_back(found == tuned.end() ? nullptr : &*found);
  }
  return of_steps;
}

// The rival becomes the chosen one, and that a rival.
void take(TunedKernel& tuned, std::size_t rival) {
  std::swap(tuned.candidate, tuned.rivals[rival].candidate);
  std::swap(tuned.evidence.chosen, tuned.rivals[rival].index);
}

std::string note_of(const Program& program, const Exchange& exchange) {
  const auto exchanged = std::ranges::count_if(exchange.kernels, [](std::size_t kernel) { return kernel > 0; });
  return fmt::format(
      "batch {}: the network takes {:.1f} us; {:.1f} with the kernels that are the fastest by themselves, {:.1f} with "
      "those that the models choose. In the network others were tried for {} steps{}, and {} have one",
      program.batch, exchange.us, exchange.fastest_us, exchange.models_us, exchange.tried,
      exchange.was_time_up ? " until the time was up" : "", exchanged);
}

// Exchanges kernels in each program of the network, and takes into `tuned` what is faster. Returns a note for each.
std::vector<std::string> exchange_kernels(CompileResult made, std::vector<TunedKernel>& tuned, const TimeBudget& budget,
                                          const std::function<void(const CompileProgress&)>& progress,
                                          const NetworkTimer& time) {
  const auto package = std::make_shared<const Package>(std::move(made.package));
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < package->manifest.programs.size(); ++i) {
    const Program& program = package->manifest.programs[i];
    std::vector<TunedKernel> exchanged = tuned;
    const std::vector<TunedKernel*> of_steps = tuned_of(program, exchanged);
    ProgramTrials trials(package, program, made.rivals.at(i), of_steps, time);
    if (!trials.have_rivals()) continue;
    try {
      const Exchange exchange = trials.run(budget, [&](const std::string& step, int done, int all) {
        if (progress) progress({0, all, 0, fmt::format("timed {} in the network ({} of {})", step, done, all)});
      });
      for (std::size_t step = 0; step < exchange.kernels.size(); ++step) {
        if (exchange.kernels[step] > 0) take(*of_steps[step], exchange.kernels[step] - 1);
      }
      notes.push_back(note_of(program, exchange));
      tuned = std::move(exchanged);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      notes.push_back(
          fmt::format("batch {}: the network was not timed as a whole, and has the kernels that are the fastest by "
                      "themselves: {}",
                      program.batch, error.what()));
    }
  }
  return notes;
}

}  // namespace

CompileResult compile_tuned(const Network& network, CompileOptions options, const TuneOptions& tune_options,
                            const std::function<void(const CompileProgress&)>& progress, const NetworkTimer& time) {
  const bool has_rivals = std::ranges::any_of(options.tuned, [](const auto& tuned) { return !tuned.rivals.empty(); });
  std::vector<std::string> notes;
  // Where activity maps lie follows from the kernels.
  const TimeBudget budget = tune_options.budget.first(kShareUntilPacked);
  const bool may_exchange =
      !options.skip_dead_tiles && !options.chooses_together() && options.makes_package() && budget.is_time_left();
  if (has_rivals && may_exchange && !network.separate) {
    // Stages are dumped of what is packed.
    CompileOptions with_rivals = options;
    with_rivals.dump_dir.reset();
    with_rivals.rivals = true;
    with_rivals.seeks_weight_zeros = false;
    try {
      CompileResult made = compile_network(network, with_rivals, progress);
      notes = exchange_kernels(std::move(made), options.tuned, budget, progress, time);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      notes = {fmt::format("kernels were not exchanged in the network: {}", error.what())};
    }
  }
  CompileResult result = compile_network(network, options, progress);
  result.notes.insert(result.notes.end(), notes.begin(), notes.end());
  return result;
}

}  // namespace burin
