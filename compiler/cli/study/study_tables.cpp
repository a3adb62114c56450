#include "compiler/cli/study/study_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/cli/table.h"
#include "compiler/study/rules.h"

namespace burin {
namespace {

std::string missing_text(const StudyPoint& point) {
  return point.fault.empty() ? point.done ? "no candidate is right" : "not measured" : point.fault;
}

std::string times(double us, double of) { return of > 0 ? fmt::format("{:.2f}", us / of) : ""; }

std::string memory_of(const StudyCandidate& entry) {
  return entry.memory ? bytes_text(entry.memory->total()) : std::string();
}

// The fastest at each value, the next, and the best dense.
std::string curve_table(const Study& study, const StudyCurve& curve) {
  const std::string us = study.source == Estimate::Source::model ? ">model us" : ">us";
  Table table({std::string(to_string(curve.axis)), "fastest", us, ">memory", "next", ">times", "best dense", ">times"});
  for (const std::size_t number : curve.points) {
    const StudyPoint& point = study.points[number];
    const std::string value = value_text(point.layer, curve.axis);
    const std::vector<Ranked> ranked = ranking(point, study.source);
    if (ranked.empty()) {
      table.add({value, missing_text(point), "", "", "", "", "", ""});
      continue;
    }
    const auto entry = [&](const Ranked& r) -> const StudyCandidate& { return point.candidates[r.candidate]; };
    const auto dense = std::ranges::find_if(
        ranked, [&](const Ranked& r) { return find_provider(entry(r).candidate.provider)->is_dense(); });
    const double best = ranked.front().us;
    table.add({value, entry(ranked.front()).algorithm, microseconds_text(best), memory_of(entry(ranked.front())),
               ranked.size() > 1 ? entry(ranked[1]).algorithm : "", ranked.size() > 1 ? times(ranked[1].us, best) : "",
               dense != ranked.end() ? entry(*dense).algorithm : "",
               dense != ranked.end() ? times(dense->us, best) : ""});
  }
  return table.print();
}

std::string map_table(const Study& study, const StudyMap& map) {
  std::vector<std::string> columns = {fmt::format("{} by {}", to_string(map.rows), to_string(map.columns))};
  for (const std::size_t number : map.points.front()) {
    columns.push_back(value_text(study.points[number].layer, map.columns));
  }
  Table table(std::move(columns));
  for (const std::vector<std::size_t>& row : map.points) {
    std::vector<std::string> cells = {value_text(study.points[row.front()].layer, map.rows)};
    for (const std::size_t number : row) {
      const StudyPoint& point = study.points[number];
      const std::vector<Ranked> ranked = ranking(point, study.source);
      cells.push_back(ranked.empty() ? missing_text(point)
                                     : point.candidates[ranked.front().candidate].algorithm +
                                           (ranked.size() > 1 ? " " + times(ranked[1].us, ranked.front().us) : ""));
    }
    table.add(std::move(cells));
  }
  return table.print();
}

}  // namespace

std::string study_tables(const Study& study) {
  std::string text = fmt::format("{}, {}\n", print(study.base), to_string(study.precision));
  text += study.source == Estimate::Source::model
              ? fmt::format("predicted for {} by the cost models; nothing was measured\n", study.device.arch)
              : fmt::format("measured on {} ({}){}\n", study.device.name, study.device.arch,
                            study.device.libraries.empty() ? "" : ", with " + text_of(study.device.libraries));
  for (const StudyCurve& curve : study.curves) text += "\n" + curve_table(study, curve);
  for (const StudyMap& map : study.maps) text += "\n" + map_table(study, map);
  const std::vector<StudyRule> rules = read_off(study);
  if (!rules.empty()) text += "\nrules read off\n";
  for (const StudyRule& rule : rules) text += fmt::format("  {}: {}\n", to_string(rule.axis), rule_text(study, rule));
  return text;
}

}  // namespace burin
