#include "compiler/study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "compiler/choose/choose.h"
#include "compiler/choose/memory_estimate.h"
#include "compiler/study/point_task.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/parallel_for.h"

namespace burin {
namespace {

class Planner {
 public:
  Planner(const StudyLayer& base, const AxisValues& axes) : axes_(axes) {
    study_.base = base;
    (void)point(base);
    for (auto& [axis, values] : axes_) {
      values.push_back(value_of(base, axis));
      std::ranges::sort(values);
      values.erase(std::ranges::unique(values).begin(), values.end());
    }
  }

  void add_curves() {
    for (const auto& [axis, values] : axes_) {
      StudyCurve& curve = study_.curves.emplace_back(StudyCurve{axis, values, {}});
      for (const double value : values) curve.points.push_back(point(varied(study_.base, axis, value)));
    }
  }

  void add_map(const MapAxes& axes) {
    const auto& [rows, columns] = axes;
    StudyMap& map =
        study_.maps.emplace_back(StudyMap{rows, columns, values_of_axis(rows), values_of_axis(columns), {}});
    for (const double row : map.row_values) {
      const StudyLayer layer = varied(study_.base, rows, row);
      std::vector<std::size_t>& points = map.points.emplace_back();
      for (const double column : map.column_values) points.push_back(point(varied(layer, columns, column)));
    }
  }

  Study study() && { return std::move(study_); }

 private:
  const std::vector<double>& values_of_axis(StudyAxis axis) const {
    const auto found = axes_.find(axis);
    if (found == axes_.end()) {
      fail(ErrorKind::usage, "--map names the axis {}, and --{} gives it no values", to_string(axis), to_string(axis));
    }
    return found->second;
  }

  std::size_t point(const StudyLayer& layer) {
    const auto [entry, is_new] = numbers_.try_emplace(print(layer), study_.points.size());
    if (!is_new) return entry->second;
    if (study_.points.size() == std::size_t{kMaxStudyPoints}) {
      fail(ErrorKind::usage, "the study has more than {} points; fewer values, or maps of fewer axes, make it smaller",
           kMaxStudyPoints);
    }
    study_.points.push_back({.layer = layer, .fault = {}});
    return entry->second;
  }

  Study study_;
  AxisValues axes_;
  std::map<std::string, std::size_t> numbers_;  // of points, by their text
};

bool is_asked(const StudyOptions& options, const Candidate& candidate) {
  return options.providers.empty() ||
         std::ranges::find(options.providers, candidate.provider) != options.providers.end();
}

// Up to `plans` candidates of each provider, those with the least estimates first.
std::vector<StudyCandidate> modelled(const Task& task, const StudyOptions& options, int plans) {
  constexpr int kToHearAll = 2;  // who is asked for one says nothing where another is surely faster
  std::vector<StudyCandidate> found;
  std::map<std::string, int> counts;
  for (Candidate& candidate : all_candidates(task, options.compile, std::max(plans, kToHearAll))) {
    if (!is_asked(options, candidate) || ++counts[candidate.provider] > plans) continue;
    StudyCandidate& entry = found.emplace_back();
    entry.predicted_us = candidate.estimate.us;
    entry.candidate = std::move(candidate);
  }
  return found;
}

CandidateMemory estimated_memory(const Task& task, const Candidate& candidate) {
  const MemoryEstimate memory =
      memory_estimate(task, candidate, find_provider(candidate.provider)->make(task, candidate.plan));
  return {memory.code_bytes, memory.weight_bytes, memory.library_bytes, memory.scratch_bytes()};
}

std::vector<StudyCandidate> candidates_of_point(const Study& study, const StudyPoint& point,
                                                const StudyOptions& options) {
  const PointTask made(point.layer, study.seed, options.compile);
  std::vector<StudyCandidate> candidates = modelled(made.task(), options, study.plans);
  if (study.source == Estimate::Source::model) {
    for (StudyCandidate& entry : candidates) entry.memory = estimated_memory(made.task(), entry.candidate);
  } else {
    for (Candidate& candidate : unmodelled_candidates(made.task(), options.compile)) {
      const bool is_there = study.device.has(find_provider(candidate.provider)->library());
      if (is_there && is_asked(options, candidate)) candidates.emplace_back().candidate = std::move(candidate);
    }
  }
  for (StudyCandidate& entry : candidates) {
    entry.algorithm = algorithm_of(entry.candidate);
    entry.plan = find_provider(entry.candidate.provider)->brief(entry.candidate.plan);
  }
  if (candidates.empty()) fail(ErrorKind::unsupported, "none of the providers that are asked computes it");
  return candidates;
}

}  // namespace

int Study::done() const { return static_cast<int>(std::ranges::count(points, true, &StudyPoint::done)); }

int Study::known() const { return static_cast<int>(std::ranges::count(points, true, &StudyPoint::known)); }

Study plan_study(const StudyLayer& base, const AxisValues& axes, const std::vector<MapAxes>& maps) {
  Planner planner(base, axes);
  planner.add_curves();
  for (const MapAxes& map : maps) {
    if (map.first == map.second) {
      fail(ErrorKind::usage, "--map {},{}: a map is of two different axes", to_string(map.first),
           to_string(map.second));
    }
    planner.add_map(map);
  }
  return std::move(planner).study();
}

std::string algorithm_of(const Candidate& candidate) {
  const Provider& provider = *find_provider(candidate.provider);
  if (!provider.needs_measuring()) return candidate.provider;
  const std::string brief = provider.brief(candidate.plan);
  return fmt::format("{} {}", candidate.provider, brief.substr(brief.find('=') + 1));
}

void propose(Study& study, const StudyOptions& options, const TimeBudget& budget,
             const std::function<void(const StudyProgress&)>& progress) {
  std::mutex mutex;
  int finished = 0;
  for_each_parallel(study.points.size(), options.jobs, [&](std::size_t i) {
    StudyPoint& point = study.points[i];
    if (!budget.is_time_left()) return;
    try {
      point.candidates = candidates_of_point(study, point, options);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      point.fault = error.what();
    }
    point.done = study.source == Estimate::Source::model || !point.fault.empty();
    const std::lock_guard lock(mutex);
    ++finished;
    if (progress) progress({finished, static_cast<int>(study.points.size()), print(point.layer)});
  });
}

std::vector<Ranked> ranking(const StudyPoint& point, Estimate::Source source) {
  std::vector<Ranked> ranked;
  if (!point.done) return ranked;
  std::map<std::string, std::size_t> places;  // by algorithm
  for (std::size_t i = 0; i < point.candidates.size(); ++i) {
    const StudyCandidate& candidate = point.candidates[i];
    const std::optional<double>& us = source == Estimate::Source::model ? candidate.predicted_us : candidate.us;
    if (!us || !candidate.fault.empty()) continue;
    const auto [place, is_new] = places.try_emplace(candidate.algorithm, ranked.size());
    if (is_new) {
      ranked.push_back({i, *us});
    } else if (*us < ranked[place->second].us) {
      ranked[place->second] = {i, *us};
    }
  }
  std::ranges::stable_sort(ranked, {}, &Ranked::us);
  return ranked;
}

}  // namespace burin
