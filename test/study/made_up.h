// Studies whose times a test makes up.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/study/study.h"

namespace burin_test {

// Times of an algorithm at each value of an axis, in microseconds; nothing: it has none there. The name of an algorithm
// is that of a provider, with one more word for a library's call.
using MadeUpTimes = std::vector<std::pair<std::string, std::vector<std::optional<double>>>>;

inline std::string provider_of(const std::string& algorithm) { return algorithm.substr(0, algorithm.find(' ')); }

// Adds to each point of the curve what the times say. Points where nobody has a time stay undone.
inline void set_times(burin::Study& study, const burin::StudyCurve& curve, const MadeUpTimes& times) {
  for (std::size_t place = 0; place < curve.points.size(); ++place) {
    burin::StudyPoint& point = study.points[curve.points[place]];
    point.candidates.clear();
    for (const auto& [algorithm, us] : times) {
      if (!us.at(place)) continue;
      burin::StudyCandidate& entry = point.candidates.emplace_back();
      entry.candidate.provider = provider_of(algorithm);
      entry.plan = "tile=1x7x7";
      entry.algorithm = algorithm;
      entry.us = entry.predicted_us = us[place];
      entry.samples = 50;
      entry.memory = burin::CandidateMemory{1000, 2000, 0, 500};
      point.done = true;
    }
  }
}

// A study of one axis around a layer, with these values and times.
inline burin::Study made_up(const std::string& base, burin::StudyAxis axis, const std::vector<double>& values,
                            const MadeUpTimes& times) {
  burin::Study study = burin::plan_study(burin::parse_study_layer(base), {{axis, values}}, {});
  study.source = burin::Estimate::Source::measured;
  study.device = {.name = "Made up", .arch = "sm_90", .driver_version = 13000};
  set_times(study, study.curves.front(), times);
  return study;
}

}  // namespace burin_test
