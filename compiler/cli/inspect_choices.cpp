#include "compiler/cli/inspect_choices.h"

#include <fmt/format.h>

#include "compiler/cli/inspect_rows.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/table.h"
#include "compiler/import/names.h"
#include "ir/package/manifest_index.h"

namespace burin {
namespace {

std::string provider_text(const StepCandidate* candidate) { return candidate == nullptr ? "" : candidate->provider; }

std::string time_text(const StepCandidate* candidate) {
  return candidate == nullptr || !candidate->us() ? "" : microseconds_text(*candidate->us());
}

std::optional<TimeRatio> dense_ratio(const StepCandidates& candidates) {
  const StepCandidate* dense = candidates.best_dense();
  return dense == nullptr ? std::nullopt : ratio_to(candidates.chosen(), *dense);
}

// Who has said what the chosen one takes; empty: nobody has.
std::string source_of_times(const StepCandidate& chosen) {
  return chosen.measured_us ? "measured" : chosen.predicted_us ? "model" : "";
}

nlohmann::ordered_json candidate_json(const StepCandidate* candidate) {
  if (candidate == nullptr) return nullptr;
  return {{"provider", candidate->provider}, {"us", known_json(candidate->us())}};
}

}  // namespace

std::vector<ChoiceRow> choices_of_package(const Package& package, const std::optional<std::string>& layer_glob) {
  const ManifestIndex index(package.manifest);
  std::vector<ChoiceRow> rows;
  for (const Program& program : package.manifest.programs) {
    for (const Step& step : program.steps) {
      const Kernel& kernel = index.kernel(step.kernel);
      if (!kernel.matrix() || !matches(layer_glob, step.name)) continue;
      ChoiceRow& row = rows.emplace_back();
      row.layer = step.name;
      row.batch = program.batch;
      row.candidates = candidates_of(step, kernel, program.batch);
      if (const WeightZeros* zeros = kernel.weight_zeros_of(program.batch)) row.weight_zeros = *zeros;
    }
  }
  return rows;
}

std::string print_choices(const std::vector<ChoiceRow>& rows) {
  Table table({"choice", ">batch", "provider", ">us", "runner-up", ">us", "best dense", ">us", ">dense/chosen", "times",
               ">zeros pay from"});
  for (const ChoiceRow& row : rows) {
    const StepCandidates& candidates = row.candidates;
    const StepCandidate *chosen = &candidates.chosen(), *next = candidates.runner_up(),
                        *dense = candidates.best_dense();
    const std::optional<TimeRatio> ratio = dense_ratio(candidates);
    std::string pays_from;
    if (row.weight_zeros) {
      pays_from = row.weight_zeros->pays_from ? percent_text(row.weight_zeros->pays_from) : "no share";
    }
    table.add({row.layer, fmt::format("{}", row.batch), chosen->provider, time_text(chosen), provider_text(next),
               time_text(next), provider_text(dense), time_text(dense),
               ratio ? fmt::format("{:.2f}", ratio->ratio) : "", source_of_times(*chosen), pays_from});
  }
  return table.print();
}

nlohmann::ordered_json weight_zeros_json(const WeightZeros* zeros) {
  if (zeros == nullptr) return nullptr;
  return {{"pays_from", known_json(zeros->pays_from)}};
}

nlohmann::ordered_json to_json(const ChoiceRow& row) {
  const StepCandidate& chosen = row.candidates.chosen();
  const std::string source = source_of_times(chosen);
  const std::optional<TimeRatio> ratio = dense_ratio(row.candidates);
  return {{"layer", row.layer},
          {"batch", row.batch},
          {"provider", chosen.provider},
          {"us", known_json(chosen.us())},
          {"source", source.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(source)},
          {"runner_up", candidate_json(row.candidates.runner_up())},
          {"best_dense", candidate_json(row.candidates.best_dense())},
          {"dense_ratio", ratio ? nlohmann::ordered_json(ratio->ratio) : nlohmann::ordered_json()},
          {"weight_zeros", weight_zeros_json(row.weight_zeros ? &*row.weight_zeros : nullptr)}};
}

}  // namespace burin
