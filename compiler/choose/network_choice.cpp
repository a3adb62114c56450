#include "compiler/choose/network_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "compiler/choose/assignment.h"
#include "compiler/choose/memory_estimate.h"
#include "compiler/kernel_cache.h"
#include "ir/arena.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/parallel_for.h"

namespace burin {

// What a candidate takes; of memory, by estimate.
struct KernelProposal {
  Candidate candidate;
  double us = 0;  // that it counts with
  MemoryEstimate memory;
  std::string weights;  // a hash of them, since kernels may have a file in common
};

// An operator's kernels in all programs: which proposal each of its steps has.
struct KernelSet {
  std::vector<int> proposals;
  double us = 0;
  std::map<std::string, std::int64_t> loaded;  // code and weights, each once
  std::int64_t bytes = 0;                      // of all that
  std::vector<std::int64_t> scratch;           // of each step
};

namespace {

// What the library asked for when the call was measured; 0: it was not.
std::int64_t recorded_workspace(const CompileOptions& options, const Task& task, const Candidate& candidate) {
  const TunedKernel* tuned = find_tuned(options, task);
  if (tuned == nullptr) return 0;
  const std::string brief = find_provider(candidate.provider)->brief(candidate.plan);
  for (const TuningCandidate& record : tuned->evidence.candidates) {
    if (record.provider == candidate.provider && record.plan == brief) return record.workspace_bytes;
  }
  return 0;
}

// Throws Error(unsupported) where the candidate cannot be made.
KernelProposal proposal_of(const Task& task, Candidate candidate, const CompileOptions& options) {
  KernelProposal proposal;
  const Recipe recipe = find_provider(candidate.provider)->make(task, candidate.plan);
  proposal.memory = memory_estimate(task, candidate, recipe);
  if (recipe.call) {
    proposal.memory.partial_bytes = std::max(
        proposal.memory.partial_bytes, recorded_workspace(options, task, candidate) - proposal.memory.counter_bytes);
  }
  if (!recipe.weights.empty()) {
    proposal.weights = content_hash({std::string_view(reinterpret_cast<const char*>(recipe.weights.data()),
                                                      recipe.weights.size() * sizeof(std::uint32_t))});
  }
  proposal.candidate = std::move(candidate);
  return proposal;
}

// Whether nothing speaks for `b` where there is `a`, which stands before it. `last`: no further step can have something
// in common with either.
bool is_as_good(const KernelSet& a, const KernelSet& b, bool last) {
  if (a.us > b.us || a.bytes > b.bytes) return false;
  for (std::size_t i = 0; i < a.scratch.size(); ++i) {
    if (a.scratch[i] > b.scratch[i]) return false;
  }
  const auto has = [&](const auto& item) { return a.loaded.contains(item.first); };
  return last || std::ranges::all_of(b.loaded, has);
}

constexpr std::size_t kMostSets = 400;  // of an operator, in all programs together
constexpr int kAlternatives = 6;        // that each provider proposes

// Drops what another is as good as; of many, keeps those that the fastest and the smallest are among.
void keep_good(std::vector<KernelSet>& sets, bool last) {
  std::ranges::stable_sort(sets, {}, &KernelSet::us);
  std::vector<KernelSet> kept;
  for (KernelSet& set : sets) {
    const auto is_better = [&](const KernelSet& other) { return is_as_good(other, set, last); };
    if (std::ranges::none_of(kept, is_better)) kept.push_back(std::move(set));
  }
  if (kept.size() > kMostSets) {
    const auto half = static_cast<std::ptrdiff_t>(kMostSets / 2);
    std::ranges::stable_sort(kept.begin() + half, kept.end(), {}, &KernelSet::bytes);
    kept.resize(kMostSets);
  }
  sets = std::move(kept);
}

}  // namespace

std::string code_key(const std::string& op, const std::string& provider, const std::string& plan) {
  return fmt::format("{}\n{}\n{}", op, provider, plan);
}

struct NetworkChooser::Impl {
  std::vector<StepTask> steps;
  std::vector<const Program*> programs;
  const CompileOptions& options;
  std::vector<std::vector<KernelProposal>> proposals;  // of each step, what choose() takes first
  std::vector<std::vector<std::size_t>> groups;        // steps of one operator, in all programs

  Impl(std::vector<StepTask> all, std::vector<const Program*> of, const CompileOptions& asked,
       const std::function<std::optional<Choice>(const Task&)>& fed_back,
       const std::function<void(const Task&)>& planned)
      : steps(std::move(all)), programs(std::move(of)), options(asked), proposals(steps.size()) {
    std::map<std::string, std::size_t> group_of;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto [entry, is_new] = group_of.try_emplace(steps[i].task->name, groups.size());
      if (is_new) groups.emplace_back();
      groups[entry->second].push_back(i);
    }
    std::mutex mutex;
    for_each_parallel(steps.size(), options.jobs, [&](std::size_t i) {
      propose(i, fed_back(*steps[i].task));
      const std::lock_guard lock(mutex);
      planned(*steps[i].task);
    });
  }

  void propose(std::size_t step, const std::optional<Choice>& known) {
    const Task& task = *steps[step].task;
    std::vector<Candidate> candidates;
    if (known) {
      candidates.push_back(known->candidate);
    } else {
      candidates = alternatives(task, options, kAlternatives);
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      try {
        KernelProposal proposal = proposal_of(task, candidates[i], options);
        // A search for one plan looks at more than estimates: what it did not find is no faster.
        proposal.us = std::max(proposal.candidate.estimate.us, candidates[0].estimate.us);
        proposals[step].push_back(std::move(proposal));
      } catch (const Error& error) {
        // The fastest is what the step would have without a limit, and whose fault would be the step's.
        if (i == 0 || error.kind() != ErrorKind::unsupported) throw;
      }
    }
  }

  // By how much the providers' models were off, of what was measured.
  std::map<std::string, double> corrections(const CodeSizes& measured) const {
    std::map<std::string, std::pair<double, double>> sums;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const KernelProposal& proposal : proposals[i]) {
        const auto found = measured.find(key_of(*steps[i].task, proposal));
        if (found == measured.end()) continue;
        auto& [known, estimated] = sums[proposal.candidate.provider];
        known += static_cast<double>(found->second);
        estimated += static_cast<double>(proposal.memory.code_bytes);
      }
    }
    std::map<std::string, double> corrections;
    for (const auto& [provider, sum] : sums) corrections[provider] = sum.second > 0 ? sum.first / sum.second : 1;
    return corrections;
  }

  static std::string key_of(const Task& task, const KernelProposal& proposal) {
    return code_key(task.name, proposal.candidate.provider, proposal.candidate.plan);
  }

  // Each proposal of each step has its own.
  std::vector<std::vector<std::int64_t>> code_bytes(const CodeSizes& measured) const {
    const std::map<std::string, double> corrected = corrections(measured);
    std::vector<std::vector<std::int64_t>> all(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const KernelProposal& proposal : proposals[i]) {
        const auto found = measured.find(key_of(*steps[i].task, proposal));
        const auto factor = corrected.find(proposal.candidate.provider);
        const double by = factor == corrected.end() ? 1 : factor->second;
        all[i].push_back(found != measured.end()
                             ? found->second
                             : static_cast<std::int64_t>(by * static_cast<double>(proposal.memory.code_bytes)));
      }
    }
    return all;
  }

  // How much less the kernels' code may be than models say of what was not measured.
  std::int64_t uncertain_bytes(const std::vector<const KernelProposal*>& chosen, const CodeSizes& measured) const {
    constexpr double kUncertain = 0.25;  // of an estimate
    double sum = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (measured.contains(key_of(*steps[i].task, *chosen[i]))) continue;
      sum += kUncertain * static_cast<double>(chosen[i]->memory.code_bytes);
    }
    return static_cast<std::int64_t>(sum);
  }

  // What of the kernels' code counts several times, while those with the same plan share it (Kernel::shared_code()).
  std::int64_t shared_code_bytes(const std::vector<const KernelProposal*>& chosen, const CodeSizes& measured) const {
    std::set<std::string> operators, plans;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Candidate& candidate = chosen[i]->candidate;
      const std::string plan = candidate.provider + "\n" + candidate.plan;
      if (candidate.provider == kBakedProvider || !operators.insert(steps[i].task->name + "\n" + plan).second) continue;
      if (plans.insert(plan).second) continue;
      const auto found = measured.find(key_of(*steps[i].task, *chosen[i]));
      sum += found != measured.end() ? found->second : chosen[i]->memory.code_bytes;
    }
    return sum;
  }

  // Adds the step's proposal to what the steps before it have.
  KernelSet with(const KernelSet& before, std::size_t step, int index, std::int64_t code) const {
    const Task& task = *steps[step].task;
    const KernelProposal& proposal = proposals[step][static_cast<std::size_t>(index)];
    KernelSet made = before;
    made.proposals.push_back(index);
    made.us += proposal.us;
    made.scratch.push_back(proposal.memory.scratch_bytes());
    const auto add = [&](const std::string& what, std::int64_t bytes) {
      if (made.loaded.emplace(what, bytes).second) made.bytes += bytes;
    };
    // A step of another program has the same kernel where operator and plan, which says where tensors lie, are the
    // same.
    add(fmt::format("{} {} {}", static_cast<const void*>(task.op), proposal.candidate.provider,
                    proposal.candidate.plan),
        code + proposal.memory.library_bytes);
    if (!proposal.weights.empty()) add(proposal.weights, proposal.memory.weight_bytes);
    return made;
  }

  std::vector<KernelSet> sets(const std::vector<std::size_t>& group,
                              const std::vector<std::vector<std::int64_t>>& code) const {
    std::vector<KernelSet> all(1);
    for (std::size_t i = 0; i < group.size(); ++i) {
      std::vector<KernelSet> longer;
      for (const KernelSet& before : all) {
        for (std::size_t p = 0; p < proposals[group[i]].size(); ++p) {
          longer.push_back(with(before, group[i], static_cast<int>(p), code[group[i]][p]));
        }
      }
      all = std::move(longer);
      keep_good(all, i + 1 == group.size());
    }
    return all;
  }

  // What the program that takes most has beside kernels.
  std::int64_t shared_bytes(const std::vector<const KernelProposal*>& chosen) const {
    std::int64_t most = 0;
    for (std::size_t p = 0; p < programs.size(); ++p) {
      std::int64_t counters = 0;
      std::vector<std::int64_t> partials(programs[p]->steps.size());
      bool any = false;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].program != p) continue;
        counters += chosen[i]->memory.counter_bytes;
        partials[steps[i].step] = chosen[i]->memory.partial_bytes;
        any = any || chosen[i]->memory.partial_bytes > 0;
      }
      most = std::max(most,
                      programs[p]->arena_bytes + counters + (any ? lay_out_partials(*programs[p], partials).bytes : 0));
    }
    return most;
  }
};

NetworkChooser::NetworkChooser(std::vector<StepTask> steps, std::vector<const Program*> programs,
                               const CompileOptions& options,
                               const std::function<std::optional<Choice>(const Task&)>& fed_back,
                               const std::function<void(const Task&)>& planned)
    : impl_(std::make_unique<Impl>(std::move(steps), std::move(programs), options, fed_back, planned)) {}

NetworkChooser::~NetworkChooser() = default;

NetworkChoice NetworkChooser::choose(const CodeSizes& measured) const {
  const Impl& impl = *impl_;
  std::vector<std::vector<KernelSet>> sets;
  AssignmentProblem problem;
  NetworkChoice result;
  const std::vector<std::vector<std::int64_t>> code = impl.code_bytes(measured);
  for (const std::vector<std::size_t>& group : impl.groups) {
    const std::vector<KernelSet>& all = sets.emplace_back(impl.sets(group, code));
    std::vector<AssignmentOption>& options = problem.groups.emplace_back();
    for (const KernelSet& set : all) {
      AssignmentOption& option = options.emplace_back(AssignmentOption{set.us, set.bytes, 0});
      for (std::size_t i = 0; i < group.size(); ++i) {
        const Program& program = *impl.programs[impl.steps[group[i]].program];
        option.least_shared = std::max(option.least_shared, program.arena_bytes + set.scratch[i]);
      }
    }
    result.fastest_us += all.front().us;
  }
  const auto chosen_by = [&](const std::vector<int>& chosen) {
    std::vector<const KernelProposal*> proposals(impl.steps.size());
    for (std::size_t g = 0; g < impl.groups.size(); ++g) {
      const KernelSet& set = sets[g][static_cast<std::size_t>(chosen[g])];
      for (std::size_t i = 0; i < impl.groups[g].size(); ++i) {
        const std::size_t step = impl.groups[g][i];
        proposals[step] = &impl.proposals[step][static_cast<std::size_t>(set.proposals[i])];
      }
    }
    return proposals;
  };
  problem.shared_bytes = [&](const std::vector<int>& chosen) { return impl.shared_bytes(chosen_by(chosen)); };

  const Assignment least = least_memory(problem);
  Assignment taken = least;
  if (const std::optional<std::int64_t> limit = impl.options.memory_limit) {
    if (least.bytes <= *limit) {
      if (impl.options.objective == Objective::time) taken = least_time(problem, *limit, least);
    } else {
      const std::vector<const KernelProposal*> chosen = chosen_by(least.chosen);
      const std::int64_t bytes = least.bytes - impl.shared_code_bytes(chosen, measured);
      if (bytes - impl.uncertain_bytes(chosen, measured) > *limit) {
        const std::int64_t to_work_in = problem.shared_bytes(least.chosen);
        fail(ErrorKind::unsupported,
             "--memory-limit of {} bytes: the network takes {} bytes at least{}: {} for kernels and their weights, and "
             "{} to work in; fewer or smaller batch sizes take less",
             *limit, bytes, measured.empty() ? ", by estimate" : "", bytes - to_work_in, to_work_in);
      }
    }
  }
  result.us = taken.us;
  result.least_us = taken.least_us;
  result.bytes = taken.bytes;
  result.least_bytes = least.least_bytes;
  const std::vector<const KernelProposal*> proposals = chosen_by(taken.chosen);
  for (std::size_t i = 0; i < impl.steps.size(); ++i) {
    std::vector<Candidate> candidates = {proposals[i]->candidate};
    for (const KernelProposal& proposal : impl.proposals[i]) candidates.push_back(proposal.candidate);
    result.choices.push_back(choice_of(candidates));
  }
  return result;
}

}  // namespace burin
