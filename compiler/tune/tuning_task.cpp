#include "compiler/tune/tuning_task.h"

#include <algorithm>

#include "compiler/providers/conv_baked/plan/grouping.h"
#include "compiler/tune/neighbours.h"
#include "ir/derive_form.h"
#include "ir/printable.h"

namespace burin {
namespace {

constexpr double kWorthAnotherRound = 0.99;  // of the time before; below that is noise
constexpr std::size_t kMostFaultBytes = 400;

// One line of plain text: what went wrong may be a whole log.
std::string in_one_line(std::string text) {
  if (const std::size_t end = text.find('\n'); end != std::string::npos) text.resize(end);
  text = printable(text, kMostFaultBytes);
  return text.empty() ? "failed without a message" : text;
}

}  // namespace

TuningTask::TuningTask(const ConvLayer& layer, const SparsePattern& pattern, PlanRequest request, int plans,
                       const TuningDevice& device)
    : layer_(layer), pattern_(pattern), request_(std::move(request)), most_first_(plans), steps_left_(plans) {
  evidence_.device = device.name;
  evidence_.arch = device.arch;
  evidence_.driver_version = device.driver_version;
  evidence_.code_copies = device.code_copies;
}

std::string TuningTask::name() const { return fmt::format("layer '{}', batch {}", layer_.name, request_.batch); }

std::vector<std::size_t> TuningTask::next_round() {
  BURIN_CHECK(round_is_over(), "{}: a round of tuning is not over", name());
  std::vector<BakedPlan> plans;
  if (plans_.empty()) {
    plans = make_plans(layer_, pattern_, request_, static_cast<std::size_t>(most_first_));
  } else {
    const bool improved = best_ && (best_of_last_round_ == 0 || best_us() < kWorthAnotherRound * best_of_last_round_);
    if (!improved) return {};
    best_of_last_round_ = best_us();
    plans = neighbours();
    steps_left_ -= static_cast<int>(plans.size());
  }
  std::vector<std::size_t> added;
  for (BakedPlan& plan : plans) {
    added.push_back(plans_.size());
    TuningCandidate candidate;
    candidate.plan = print(constraints_of(plan));
    candidate.predicted_us = plan.predicted_us;
    evidence_.candidates.push_back(std::move(candidate));
    plans_.push_back(std::move(plan));
  }
  return added;
}

// Those of the best that were not tried before, as many as there are steps left.
std::vector<BakedPlan> TuningTask::neighbours() const {
  const std::vector<GroupOption> options = group_options(layer_.shape, pattern_);
  std::vector<BakedPlan> found;
  for (const PlanConstraints& constraints : neighbours_of(plans_[*best_], request_.constraints, options)) {
    if (static_cast<int>(found.size()) == steps_left_) break;
    PlanRequest request = request_;
    request.constraints = constraints;
    try {
      BakedPlan plan = make_plan(layer_, pattern_, request);
      const auto known = [&](const std::vector<BakedPlan>& plans) {
        return std::find(plans.begin(), plans.end(), plan) != plans.end();
      };
      if (!known(plans_) && !known(found)) found.push_back(std::move(plan));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;  // no plan keeps these constraints: there is no such neighbour
    }
  }
  return found;
}

void TuningTask::measured(std::size_t candidate, const LaunchTimes& times, double error) {
  TuningCandidate& record = evidence_.candidates[candidate];
  record.cold_us = times.cold_us;
  record.warm_us = times.warm_us;
  record.samples = times.samples;
  record.error = error;
  ++tried_;
  // Of equal times the earlier plan's wins, whatever the order in which they were measured.
  const auto rank = [&](std::size_t i) { return std::pair(outcome(i).cold_us, i); };
  if (!best_ || rank(candidate) < rank(*best_)) best_ = candidate;
}

void TuningTask::failed(std::size_t candidate, const Error& fault) {
  evidence_.candidates[candidate].fault = in_one_line(fault.what());
  ++tried_;
  if (first_fault_ && first_fault_of_ < candidate) return;
  first_fault_ = fault;
  first_fault_of_ = candidate;
}

double TuningTask::best_us() const { return best_ ? outcome(*best_).cold_us : 0; }

TunedKernel TuningTask::result() const {
  if (!best_) {
    BURIN_CHECK(first_fault_, "{}: no plan was tried", name());
    fail(first_fault_->kind(), "{}: none of {} plans can be used; the first, {}: {}", name(), plans_.size(),
         evidence_.candidates.front().plan, first_fault_->what());
  }
  const BakedPlan& plan = plans_[*best_];
  TunedKernel result{layer_.name,
                     request_.batch,
                     {std::string(kBakedProvider),
                      print(plan),
                      kernel_symbol(layer_.name, plan),
                      {best_us(), Estimate::Source::measured}},
                     evidence_};
  result.evidence.chosen = static_cast<int>(*best_);
  return result;
}

}  // namespace burin
