#include "compiler/kernel_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "compiler/choose/pays_from.h"
#include "compiler/import/names.h"
#include "compiler/kernel_cache.h"
#include "compiler/network/memory_plan.h"
#include "compiler/network/passes.h"
#include "compiler/observer.h"
#include "compiler/program_tasks.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/numbered_names.h"
#include "ir/parallel_for.h"

namespace burin {

// Steps of all programs, and what may compute them.
class PlannedSteps {
 public:
  PlannedSteps(const ProgramGraphs& graphs, const CompileOptions& options, const Reentry& reentry,
               const std::function<void(int, int, const std::string&)>& planned)
      : source_(graphs.any().source), options_(options), reentry_(reentry) {
    if (graphs.any().separate) {
      for (const Operator& op : graphs.any().operators) {
        add_programs(network_of(graphs.any(), op), op.name);
      }
    } else {
      add_programs(graphs, std::string(kNetworkName));
    }
    check_reentry();
    int done = 0;
    const std::size_t all = options.seeks_weight_zeros ? 2 * tasks_.size() : tasks_.size();
    const auto tell = [&](const Task& task) {
      ++done;
      if (planned) planned(done, static_cast<int>(all), task.name);
    };
    if (options_.chooses_together()) {
      propose_all(tell);
    } else {
      choose_all(tell);
    }
    weight_zeros_.resize(tasks_.size());
    if (options_.seeks_weight_zeros) seek_weight_zeros(tell);
  }

  // Those of the steps by themselves, or of all together.
  std::vector<Choice> choices(const CodeSizes& measured, std::optional<NetworkChoice>& together) const {
    if (chooser_ == nullptr) return choices_;
    together = chooser_->choose(measured);
    return together->choices;
  }

  const std::vector<Task>& tasks() const { return tasks_; }
  // From which share of zero weights on they pay, of each task; nothing where nobody asked, or nothing is compared.
  const std::vector<std::optional<WeightZeros>>& weight_zeros() const { return weight_zeros_; }
  const std::vector<std::size_t>& programs_of_tasks() const { return program_of_; }
  const std::deque<Program>& programs() const { return programs_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void add_programs(const ProgramGraphs& graphs, const std::string& name) {
    std::vector<int> batches = options_.batches;
    std::ranges::sort(batches);
    last_graph_ = nullptr;
    for (const int batch : batches) {
      const Network& formatted = formatted_for(graphs.of(batch), batch);
      const Program& program = programs_.emplace_back(plan_network(formatted, name, batch));
      count(program);
      for (const Step& step : program.steps) {
        tasks_.push_back(task_of(formatted, program, step, options_));
        program_of_.push_back(programs_.size() - 1);
      }
    }
  }

  // A package with more is not read.
  void count(const Program& program) {
    cost_ += cost_of(program);
    if (cost_.is_allowed()) return;
    fail(ErrorKind::unsupported,
         "{}: for all batch sizes together there are {} pairs of a write and a use of the same tensor, and {} waits of "
         "a step for another; at most {} and {} can be planned (kMaxPlanPairs, kMaxPlanWaits); fewer of --batch help",
         source_, cost_.pairs, cost_.waits, kMaxPlanPairs, kMaxPlanWaits);
  }

  // Batch sizes of one graph for which all tensors have the same formats share kernels.
  const Network& formatted_for(const Network& graph, int batch) {
    Network made = in_formats(graph, options_, batch);
    notes_.insert(notes_.end(), made.notes.begin() + static_cast<std::ptrdiff_t>(graph.notes.size()), made.notes.end());
    if (std::exchange(last_graph_, &graph) == &graph) {
      const Network& last = networks_.back();
      if (has_same_formats(last, made)) return last;
    }
    return networks_.emplace_back(std::move(made));
  }

  // What is fed back is of a step that there is: passes take operators away, and add some.
  void check_reentry() const {
    if (reentry_.path.empty()) return;
    std::vector<std::string> names;
    for (const Task& task : tasks_) {
      if (reentry_.is_for(task)) return;
      names.push_back(task.name);
    }
    fail(ErrorKind::usage, "--from {}={}: no kernel of {} has the name '{}'{}", reentry_.op, reentry_.path, source_,
         reentry_.op, did_you_mean(reentry_.op, names));
  }

  // Side by side: planning takes its time.
  void choose_all(const std::function<void(const Task&)>& tell) {
    choices_.resize(tasks_.size());
    std::mutex mutex;
    for_each_parallel(tasks_.size(), options_.jobs, [&](std::size_t i) {
      choices_[i] = choose_for(tasks_[i]);
      const std::lock_guard lock(mutex);
      tell(tasks_[i]);
    });
  }

  void seek_weight_zeros(const std::function<void(const Task&)>& tell) {
    std::mutex mutex;
    for_each_parallel(tasks_.size(), options_.jobs, [&](std::size_t i) {
      weight_zeros_[i] = zero_weights_pay_from(tasks_[i], options_);
      const std::lock_guard lock(mutex);
      tell(tasks_[i]);
    });
  }

  void propose_all(const std::function<void(const Task&)>& tell) {
    std::vector<StepTask> steps;
    std::vector<std::size_t> listed(programs_.size());  // steps of each program
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      steps.push_back({&tasks_[i], program_of_[i], listed[program_of_[i]]++});
    }
    std::vector<const Program*> programs;
    for (const Program& program : programs_) programs.push_back(&program);
    const auto fed_back = [&](const Task& task) -> std::optional<Choice> {
      if (!reentry_.is_for(task) || reentry_.plan.empty()) return std::nullopt;
      return reentry_choice(reentry_, task);
    };
    chooser_ = std::make_unique<NetworkChooser>(std::move(steps), std::move(programs), options_, fed_back, tell);
  }

  Choice choose_for(const Task& task) const {
    if (reentry_.is_for(task) && !reentry_.plan.empty()) return reentry_choice(reentry_, task);
    return cached_choice(task, options_);
  }

  std::string source_;
  const CompileOptions& options_;
  const Reentry& reentry_;
  std::deque<Network> networks_;  // that tasks refer to
  std::vector<std::string> notes_;
  std::deque<Program> programs_;
  std::vector<Task> tasks_;
  std::vector<std::size_t> program_of_;  // of each task
  std::vector<Choice> choices_;          // of each task, by itself
  std::vector<std::optional<WeightZeros>> weight_zeros_;
  std::unique_ptr<NetworkChooser> chooser_;
  PlanCost cost_;                        // of all programs
  const Network* last_graph_ = nullptr;  // of the program before, of the same name
};

namespace {

// From choices to kernels: which steps launch the same one, and what each is called.
class JobList {
 public:
  JobList(bool separate, const CompileOptions& options)
      : separate_(separate), options_(options), folders_(options.batches.size() > 1) {}

  KernelJobs run(const PlannedSteps& planned, const CodeSizes& measured) {
    std::vector<Choice> choices = planned.choices(measured, jobs_.choice);
    jobs_.notes = planned.notes();
    for (const Program& program : planned.programs()) jobs_.programs.push_back({program, {}, {}});
    for (std::size_t i = 0; i < choices.size(); ++i) {
      ProgramJob& job = jobs_.programs[planned.programs_of_tasks()[i]];
      job.kernels.push_back(kernel_of(planned.tasks()[i], choices[i]));
      // Programs come with growing batch sizes, and each has a step of an operator once.
      if (const auto& zeros = planned.weight_zeros()[i]) {
        jobs_.kernels[job.kernels.back()].weight_zeros.push_back(*zeros);
      }
      job.program.steps[job.kernels.size() - 1].options = std::move(choices[i].options);
    }
    // They come last: so all others have the symbols that they would have without.
    for (std::size_t i = 0; options_.rivals && i < choices.size(); ++i) {
      jobs_.programs[planned.programs_of_tasks()[i]].rivals.push_back(rivals_of(planned.tasks()[i]));
    }
    return std::move(jobs_);
  }

 private:
  static bool is_same(const KernelJob& job, const Task& task, const Candidate& candidate) {
    if (job.candidate != candidate || job.task.reads != task.reads || job.task.writes != task.writes) return false;
    return job.task.op == task.op || source_of(job.task) == source_of(task);
  }
  // Steps of different graphs compute the same where this is the same.
  static std::string source_of(Task task) {
    task.batch = 1;
    return source_hash(task, "", "");
  }

  std::size_t kernel_of(const Task& task, const Choice& choice) {
    const Candidate& candidate = choice.candidate;
    // Whoever launches a layer by itself asks for the kernel of a batch size.
    for (const std::size_t i : kernels_of_[task.name]) {
      if (!separate_ && is_same(jobs_.kernels[i], task, candidate)) return i;
    }
    const std::size_t index = jobs_.kernels.size();
    kernels_of_[task.name].push_back(index);
    constexpr double kFixedWork = 500;
    KernelJob& job = jobs_.kernels.emplace_back();
    job.task = task;
    job.candidate = candidate;
    job.compared = choice.options;
    // What a kernel costs is in proportion to its nonzeros where each is an instruction, but for a part that all have.
    const bool baked = candidate.provider == kBakedProvider;
    job.work = kFixedWork + (baked ? static_cast<double>(nonzeros_of(task)) : 0);
    job.folder = folders_.of(task.name, task.batch);
    job.suffix = symbols_.suffix(candidate.symbol);
    return index;
  }

  std::vector<std::size_t> rivals_of(const Task& task) {
    std::vector<std::size_t> kernels;
    for (Candidate& candidate : rivals_for(task, options_)) {
      kernels.push_back(kernel_of(task, {std::move(candidate), {}}));
    }
    return kernels;
  }

  bool separate_;
  const CompileOptions& options_;
  std::map<std::string, std::vector<std::size_t>> kernels_of_;  // by operator
  DumpFolders folders_;
  NumberedNames symbols_;
  KernelJobs jobs_;
};

}  // namespace

KernelLister::KernelLister(const ProgramGraphs& graphs, const CompileOptions& options, const Reentry& reentry,
                           const std::function<void(int, int, const std::string&)>& planned)
    : separate_(graphs.any().separate),
      options_(options),
      planned_(std::make_shared<const PlannedSteps>(graphs, options, reentry, planned)) {}

KernelJobs KernelLister::list(const CodeSizes& measured) const {
  KernelJobs jobs = JobList(separate_, options_).run(*planned_, measured);
  jobs.planned = planned_;
  return jobs;
}

}  // namespace burin
