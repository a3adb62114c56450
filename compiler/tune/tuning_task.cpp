#include "compiler/tune/tuning_task.h"

#include <algorithm>
#include <iterator>
#include <ranges>

#include "compiler/choose/choose.h"

namespace burin {
namespace {

constexpr double kWorthAnotherRound = 0.99;  // of the time before; below that is noise
constexpr double kHardlyMore = 1.05;         // of the best time: clocks drift by as much
constexpr std::size_t kMostContenders = 4;
// What takes little more than the best a network may make up for; but each rival is compiled once more for it.
constexpr double kLittleMore = 1.1;
constexpr std::size_t kMostRivals = 3;
constexpr double kNear = 1.15;  // of the best time: that of what takes little more, and a clock that drifts

}  // namespace

TuningTask::TuningTask(const Task& task, const CompileOptions& options, int plans,
                       const std::vector<std::string>& providers, const TuningDevice& device)
    : task_(task), options_(options), most_first_(plans), providers_(providers), device_(device), steps_left_(plans) {
  evidence_.device = device.name;
  evidence_.arch = device.arch;
  evidence_.driver_version = device.driver_version;
  evidence_.code_copies = device.code_copies;
  evidence_.libraries = text_of(device.libraries);
}

std::string TuningTask::name() const { return fmt::format("layer '{}', batch {}", task_.name, task_.batch); }

std::string TuningTask::describe(std::size_t index) const { return "plan " + outcome(index).plan; }

std::vector<Candidate> TuningTask::first() const {
  std::vector<Candidate> all = all_candidates(task_, options_, most_first_);
  // Candidates that no model speaks of are all tried.
  std::vector<Candidate> unmodelled = unmodelled_candidates(task_, options_);
  std::erase_if(unmodelled, [&](const Candidate& candidate) {
    return !is_asked(candidate) || !device_.has(find_provider(candidate.provider)->library());
  });
  if (unmodelled.empty() && std::ranges::none_of(all, [&](const auto& candidate) { return is_asked(candidate); })) {
    return {};
  }
  all.erase(
      std::remove_if(all.begin() + 1, all.end(), [&](const Candidate& candidate) { return !is_asked(candidate); }),
      all.end());
  const double worthwhile = kFarBehind * all.front().estimate.us;
  const int most = std::max(most_first_, is_asked(all.front()) ? 1 : 2);
  std::vector<Candidate> chosen, others;
  for (Candidate& candidate : all) {
    const bool has_one = std::ranges::find(chosen, candidate.provider, &Candidate::provider) != chosen.end();
    const bool is_close = candidate.estimate.us <= worthwhile;
    if (!has_one && is_close && static_cast<int>(chosen.size()) < most) {
      chosen.push_back(std::move(candidate));
    } else if (is_close || candidate.provider == chosen.front().provider) {
      others.push_back(std::move(candidate));
    }
  }
  for (Candidate& candidate : others) {
    if (static_cast<int>(chosen.size()) == most) break;
    chosen.push_back(std::move(candidate));
  }
  std::ranges::move(unmodelled, std::back_inserter(chosen));
  return chosen;
}

bool TuningTask::is_asked(const Candidate& candidate) const {
  return providers_.empty() || std::ranges::find(providers_, candidate.provider) != providers_.end();
}

std::vector<std::size_t> TuningTask::next_round() {
  BURIN_CHECK(round_is_over(), "{}: a round of tuning is not over", name());
  std::vector<Candidate> round;
  if (candidates_.empty()) {
    round = without_late(first());
  } else if (!late_.empty()) {
    round = promising_late();
  }
  if (round.empty() && !candidates_.empty()) {
    const bool improved = best_ && (best_of_last_round_ == 0 || best_us() < kWorthAnotherRound * best_of_last_round_);
    if (!improved) return {};
    best_of_last_round_ = best_us();
    round = neighbours();
    steps_left_ -= static_cast<int>(round.size());
  }
  std::vector<std::size_t> added;
  for (Candidate& candidate : round) {
    added.push_back(candidates_.size());
    TuningCandidate& record = evidence_.candidates.emplace_back();
    record.provider = candidate.provider;
    record.plan = find_provider(candidate.provider)->brief(candidate.plan);
    record.predicted_us = candidate.estimate.us;
    candidates_.push_back(std::move(candidate));
  }
  return added;
}

// The models' choice is tried in any case.
std::vector<Candidate> TuningTask::without_late(std::vector<Candidate> candidates) {
  const auto takes_long = [&](const Candidate& candidate) {
    return candidate != candidates.front() && find_provider(candidate.provider)->takes_long_to_make(task_);
  };
  std::vector<Candidate> at_once;
  for (const Candidate& candidate : candidates) (takes_long(candidate) ? late_ : at_once).push_back(candidate);
  return at_once;
}

// How far the provider's model was off, where it took the least too much for granted. Nothing: none was measured.
std::optional<double> TuningTask::model_is_off_by(const std::string& provider) const {
  std::optional<double> least;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].provider != provider || !has_time(i)) continue;
    const double off = outcome(i).us / candidates_[i].estimate.us;
    least = std::min(off, least.value_or(off));
  }
  return least;
}

// Where none of a provider was measured its first one is enough: it tells how much the model's word is worth.
std::vector<Candidate> TuningTask::promising_late() {
  std::vector<Candidate> promising, left;
  for (Candidate& late : late_) {
    const std::optional<double> off = model_is_off_by(late.provider);
    if (best_ && late.estimate.us * off.value_or(1) > kHardlyMore * best_us()) {
      dropped_.push_back(std::move(late));
      continue;
    }
    const bool has_one = std::ranges::find(promising, late.provider, &Candidate::provider) != promising.end();
    (off || !has_one ? promising : left).push_back(std::move(late));
  }
  late_ = std::move(left);
  return promising;
}

// Those of the best that were not tried before, as many as there are steps left.
std::vector<Candidate> TuningTask::neighbours() const {
  if (steps_left_ <= 0) return {};
  const Candidate& best = candidates_[*best_];
  std::vector<Candidate> found = find_provider(best.provider)
                                     ->neighbours(task_, best.plan,
                                                  {.count = steps_left_ + proposed(),
                                                   .plan = choices_for(*find_provider(best.provider), options_)});
  std::erase_if(found, [&](const Candidate& candidate) {
    return std::ranges::find(candidates_, candidate) != candidates_.end() ||
           std::ranges::find(dropped_, candidate) != dropped_.end();
  });
  if (static_cast<int>(found.size()) > steps_left_) found.resize(static_cast<std::size_t>(steps_left_));
  return found;
}

void TuningTask::measured(std::size_t candidate, const LaunchTime& time, const std::optional<double>& error) {
  TuningCandidate& record = evidence_.candidates[candidate];
  record.us = time.us;
  record.samples = time.samples;
  record.error = error;
  record.workspace_bytes = time.workspace_bytes;
  ++tried_;
  if (error && (!best_ || rank(candidate) < rank(*best_))) best_ = candidate;
}

void TuningTask::failed(std::size_t candidate, const Error& fault) {
  evidence_.candidates[candidate].fault = recorded_fault(fault);
  ++tried_;
  if (first_fault_ && first_fault_of_ < candidate) return;
  first_fault_ = fault;
  first_fault_of_ = candidate;
}

bool TuningTask::has_time(std::size_t candidate) const {
  return outcome(candidate).fault.empty() && outcome(candidate).us > 0;
}

bool TuningTask::is_right(std::size_t candidate) const { return has_time(candidate) && outcome(candidate).error; }

bool TuningTask::may_contend(std::size_t candidate) const {
  return best_ && is_right(candidate) && outcome(candidate).us <= kHardlyMore * best_us();
}

bool TuningTask::may_be_taken(std::size_t candidate) const {
  return best_ && is_right(candidate) && (candidate == 0 || outcome(candidate).us <= kLittleMore * best_us());
}

bool TuningTask::may_matter(std::size_t candidate, double us) const {
  return candidate == 0 || !best_ || us <= kNear * best_us();
}

std::vector<std::size_t> TuningTask::contenders() const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (may_contend(i)) found.push_back(i);
  }
  std::ranges::sort(found, {}, [&](std::size_t i) { return rank(i); });
  if (found.size() > kMostContenders) found.resize(kMostContenders);
  return found;
}

void TuningTask::took_turns(const std::vector<std::pair<std::size_t, double>>& times_us) {
  if (times_us.empty()) return;
  for (const auto& [candidate, us] : times_us) evidence_.candidates[candidate].us = us;
  // The others have times of other moments, and took longer then.
  best_ = std::ranges::min(times_us, {}, [&](const auto& timed) { return rank(timed.first); }).first;
}

void TuningTask::ruled_out(std::size_t candidate, const Error& fault) {
  TuningCandidate& record = evidence_.candidates[candidate];
  record.us = 0;
  record.error.reset();
  record.samples = 0;
  record.workspace_bytes = 0;
  record.fault = recorded_fault(fault);
  if (!first_fault_) {
    first_fault_ = fault;
    first_fault_of_ = candidate;
  }
  find_best();
}

void TuningTask::find_best() {
  best_.reset();
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (is_right(i) && (!best_ || rank(i) < rank(*best_))) best_ = i;
  }
}

void TuningTask::skipped(std::size_t candidate) {
  skipped_.insert(candidate);
  ++tried_;
}

double TuningTask::best_us() const { return best_ ? outcome(*best_).us : 0; }

TunedKernel TuningTask::result() const {
  if (!best_) {
    BURIN_CHECK(first_fault_, "{}: no plan was tried", name());
    fail(first_fault_->kind(), "{}: none of {} plans can be used; the first, {}: {}", name(), candidates_.size(),
         evidence_.candidates[first_fault_of_].plan, first_fault_->what());
  }
  TunedKernel result{task_.name, task_.batch, task_.formats(), as_measured(*best_), evidence_};
  for (const std::size_t candidate : rivals()) {
    result.rivals.push_back({as_measured(candidate), static_cast<int>(candidate)});
  }
  result.evidence.chosen = static_cast<int>(*best_);
  std::vector<TuningCandidate>& evidence = result.evidence.candidates;
  for (const std::size_t candidate : std::views::reverse(skipped_)) {
    if (candidate == 0) {  // the models' choice is there in any case
      evidence[0].fault = kNotMeasured;
      continue;
    }
    evidence.erase(evidence.begin() + static_cast<std::ptrdiff_t>(candidate));
    const auto move_up = [&](int& index) {
      if (static_cast<int>(candidate) < index) --index;
    };
    move_up(result.evidence.chosen);
    for (Rival& rival : result.rivals) move_up(rival.index);
  }
  return result;
}

Candidate TuningTask::as_measured(std::size_t candidate) const {
  Candidate measured = candidates_[candidate];
  measured.estimate = {outcome(candidate).us, Estimate::Source::measured};
  return measured;
}

std::vector<std::size_t> TuningTask::rivals() const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (i != *best_ && may_be_taken(i)) found.push_back(i);
  }
  std::ranges::sort(found, {}, [&](std::size_t i) { return rank(i); });
  if (found.size() <= kMostRivals) return found;
  const bool has_models_choice = std::ranges::find(found, std::size_t{0}) != found.end();
  found.resize(kMostRivals);
  if (has_models_choice && std::ranges::find(found, std::size_t{0}) == found.end()) found.back() = 0;
  return found;
}

}  // namespace burin
