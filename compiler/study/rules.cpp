#include "compiler/study/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ir/error.h"

namespace burin {
namespace {

// Who can win, with the best time of each at a point; the fastest first.
struct Standing {
  std::string name;
  double us = 0;
};

std::string class_of(RuleSubject subject, const StudyCandidate& candidate) {
  const Provider& provider = *find_provider(candidate.candidate.provider);
  switch (subject) {
    case RuleSubject::algorithm:
      return candidate.algorithm;
    case RuleSubject::zeros:
      if (provider.needs_zeros()) return "kernels that skip zeros of the input";
      return provider.is_dense() ? "dense kernels" : "kernels that skip zeros";
    case RuleSubject::library:
      return provider.needs_measuring() ? "calls of a library" : "kernels of burin's own";
  }
  return {};
}

std::vector<Standing> standings(const Study& study, const StudyPoint& point, RuleSubject subject) {
  std::vector<Standing> found;
  for (const Ranked& ranked : ranking(point, study.source)) {
    const std::string name = class_of(subject, point.candidates[ranked.candidate]);
    if (std::ranges::find(found, name, &Standing::name) == found.end()) found.push_back({name, ranked.us});
  }
  return found;
}

// Adds a point of a stretch, which `winner` wins.
void extend(StudyRule& rule, std::size_t value, const std::vector<Standing>& all) {
  rule.to = value;
  const auto own = std::ranges::find(all, rule.winner, &Standing::name);
  const auto other = std::ranges::find_if(all, [&](const Standing& s) { return s.name != rule.winner; });
  if (other == all.end() || own->us <= 0) return;
  const double ratio = other->us / own->us;
  rule.least_ratio = std::min(rule.least_ratio.value_or(ratio), ratio);
  rule.most_ratio = std::max(rule.most_ratio.value_or(ratio), ratio);
}

std::vector<StudyRule> stretches(const Study& study, const StudyCurve& curve, RuleSubject subject) {
  std::vector<StudyRule> rules;
  for (std::size_t value = 0; value < curve.values.size(); ++value) {
    const std::vector<Standing> all = standings(study, study.points[curve.points[value]], subject);
    if (all.empty()) continue;
    if (!rules.empty()) {
      const auto before = std::ranges::find(all, rules.back().winner, &Standing::name);
      if (before != all.end() && before->us <= kAsFast * all.front().us) {
        extend(rules.back(), value, all);
        continue;
      }
      rules.back().is_last = false;
    }
    rules.push_back({.subject = subject,
                     .axis = curve.axis,
                     .from = value,
                     .to = value,
                     .is_first = rules.empty(),
                     .is_last = true,
                     .winner = all.front().name,
                     .least_ratio = {},
                     .most_ratio = {}});
    extend(rules.back(), value, all);
  }
  return rules;
}

// Whether two kinds stand at the same point somewhere: else there is nothing that one wins against.
bool has_rivals(const Study& study, const StudyCurve& curve, RuleSubject subject) {
  return std::ranges::any_of(
      curve.points, [&](std::size_t point) { return standings(study, study.points[point], subject).size() > 1; });
}

const StudyCurve& curve_of(const Study& study, StudyAxis axis) {
  const auto found = std::ranges::find(study.curves, axis, &StudyCurve::axis);
  BURIN_CHECK(found != study.curves.end(), "a rule of an axis without a curve");
  return *found;
}

std::string stretch_text(const Study& study, const StudyRule& rule) {
  const StudyCurve& curve = curve_of(study, rule.axis);
  const auto text = [&](std::size_t value) { return value_text(study.points[curve.points[value]].layer, rule.axis); };
  if (rule.from == rule.to) return fmt::format("with {}", text(rule.from));
  if (rule.is_first && rule.is_last) return fmt::format("from {} to {}, everywhere,", text(rule.from), text(rule.to));
  if (rule.is_first) return fmt::format("up to {}", text(rule.to));
  if (rule.is_last) return fmt::format("from {} on", text(rule.from));
  return fmt::format("from {} to {}", text(rule.from), text(rule.to));
}

std::string lead_text(const StudyRule& rule) {
  if (!rule.least_ratio) return "and the only one";
  const std::string least = fmt::format("{:.2f}", *rule.least_ratio), most = fmt::format("{:.2f}", *rule.most_ratio);
  if (*rule.most_ratio < kAsFast) return "and the next is within 2 %";
  if (least == most) return fmt::format("{} times as fast as the next", most);
  if (*rule.least_ratio < kAsFast) return fmt::format("up to {} times as fast as the next, or within 2 % of it", most);
  return fmt::format("{} to {} times as fast as the next", least, most);
}

}  // namespace

std::vector<StudyRule> read_off(const Study& study) {
  std::vector<StudyRule> rules;
  for (const StudyCurve& curve : study.curves) {
    for (const RuleSubject subject : {RuleSubject::algorithm, RuleSubject::zeros, RuleSubject::library}) {
      if (subject != RuleSubject::algorithm && !has_rivals(study, curve, subject)) continue;
      std::ranges::move(stretches(study, curve, subject), std::back_inserter(rules));
    }
  }
  return rules;
}

std::string rule_text(const Study& study, const StudyRule& rule) {
  const bool many = rule.subject != RuleSubject::algorithm;
  const bool predicted = study.source == Estimate::Source::model;
  const std::string verb = fmt::format("{}{} the fastest", many ? "are" : "is", predicted ? " predicted to be" : "");
  return fmt::format("{} {} {}, {}", stretch_text(study, rule), rule.winner, verb, lead_text(rule));
}

}  // namespace burin
