#include "compiler/cli/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "compiler/cli/inspect_rows.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/table.h"
#include "compiler/import/names.h"
#include "compiler/providers/provider.h"
#include "ir/error.h"
#include "ir/package/manifest_index.h"
#include "ir/printable.h"

namespace burin {
namespace {

std::optional<double> known_us(double us) { return us > 0 ? std::optional<double>(us) : std::nullopt; }

bool gains_nothing_by_zeros(const std::string& provider) {
  const Provider* found = find_provider(provider);
  return found != nullptr && found->is_dense();
}

StepCandidate candidate_from(const TuningCandidate& tried) {
  StepCandidate candidate{.provider = tried.provider, .plan = tried.plan, .fault = tried.fault};
  candidate.predicted_us = known_us(tried.predicted_us);
  if (tried.fault.empty()) candidate.measured_us = known_us(tried.us);
  candidate.is_dense = gains_nothing_by_zeros(tried.provider);
  return candidate;
}

StepCandidate candidate_from(const KernelOption& option) {
  StepCandidate candidate{.provider = option.provider};
  (option.measured ? candidate.measured_us : candidate.predicted_us) = known_us(option.us);
  candidate.is_dense = gains_nothing_by_zeros(option.provider);
  return candidate;
}

std::vector<StepCandidate> tuned_candidates(const TuningRecord& tuning) {
  std::vector<StepCandidate> all;
  for (const TuningCandidate& tried : tuning.candidates) all.push_back(candidate_from(tried));
  const auto chosen = all.begin() + tuning.chosen;
  std::rotate(all.begin(), chosen, chosen + 1);
  return all;
}

// What has no time is last, and a fault behind that.
auto order_of(const StepCandidate& candidate) {
  return std::tuple(!candidate.fault.empty(), !candidate.us().has_value(), candidate.us().value_or(0));
}

std::string us_text(const std::optional<double>& us) { return us ? microseconds_text(*us) : ""; }

// A kernel and a step that launches it.
struct WhyRow {
  const Program* program = nullptr;
  const Step* step = nullptr;
  const Kernel* kernel = nullptr;
};

std::vector<WhyRow> why_rows(const Manifest& manifest, const std::string& glob) {
  const ManifestIndex index(manifest);
  std::vector<WhyRow> rows;
  std::set<std::string_view> shown;
  std::vector<std::string> names;
  for (const Program& program : manifest.programs) {
    for (const Step& step : program.steps) {
      const Kernel& kernel = index.kernel(step.kernel);
      names.push_back(step.name);
      // What was measured is the kernel's, whoever launches it for as many images; what else was compared is the
      // step's.
      if (!matches(glob, step.name)) continue;
      if (is_tuned_for(step, kernel, program.batch) && !shown.insert(step.kernel).second) continue;
      rows.push_back({&program, &step, &kernel});
    }
  }
  if (rows.empty()) {
    fail(ErrorKind::usage, "--why '{}': no layer or operator of the package has this name{}", printable(glob),
         did_you_mean(glob, names));
  }
  return rows;
}

// "conv2, batch 1: conv_baked, chosen by the models; the best dense one, conv_dense, takes 1.40 times its time".
std::string heading(const WhyRow& row, const StepCandidates& candidates) {
  const StepCandidate& chosen = candidates.chosen();
  std::string text = fmt::format("{}, batch {}: {}", printable(row.step->name), row.program->batch, chosen.provider);
  if (candidates.all.size() == 1) return text + "; the package keeps no other candidate";
  text += chosen.measured_us ? ", chosen by measurement" : ", chosen by the models";
  if (candidates.tuned) text += " on " + printable(row.kernel->tuning->device);
  const StepCandidate* dense = candidates.best_dense();
  if (dense == nullptr) return text + "; the package keeps no dense candidate";
  if (dense == &chosen) return text + "; it is dense";
  const std::optional<TimeRatio> ratio = ratio_to(chosen, *dense);
  if (!ratio) return text;
  return fmt::format("{}; the best dense one, {}, takes {:.2f} times its time", text, dense->provider, ratio->ratio);
}

}  // namespace

const StepCandidate* StepCandidates::runner_up() const {
  const auto suits = [&](const StepCandidate& c) {
    return c.provider != chosen().provider && c.us() && c.fault.empty();
  };
  const auto found = std::ranges::find_if(all, suits);  // they are in the order of their times
  return found == all.end() ? nullptr : &*found;
}

const StepCandidate* StepCandidates::best_dense() const {
  const StepCandidate* best = nullptr;  // the chosen one comes first, and need not be the fastest
  for (const StepCandidate& candidate : all) {
    if (!candidate.is_dense || !candidate.us() || !candidate.fault.empty()) continue;
    if (best == nullptr || *candidate.us() < *best->us()) best = &candidate;
  }
  return best;
}

bool is_tuned_for(const Step& step, const Kernel& kernel, int batch) {
  return kernel.tuning && (kernel.planned_batch == batch || step.options.empty());
}

StepCandidates candidates_of(const Step& step, const Kernel& kernel, int batch) {
  if (!is_tuned_for(step, kernel, batch)) {
    const bool is_compared = !step.options.empty();
    return candidates_of(is_compared ? step.options : std::vector{KernelOption{kernel.provider, kernel.predicted_us}},
                         kernel.plan_short);
  }
  StepCandidates candidates{.all = tuned_candidates(*kernel.tuning), .tuned = true};
  std::ranges::stable_sort(candidates.all.begin() + 1, candidates.all.end(), {}, order_of);
  return candidates;
}

StepCandidates candidates_of(const std::vector<KernelOption>& options, const std::string& plan) {
  StepCandidates candidates;
  for (const KernelOption& option : options) candidates.all.push_back(candidate_from(option));
  candidates.all.front().plan = plan;
  std::ranges::stable_sort(candidates.all.begin() + 1, candidates.all.end(), {}, order_of);
  return candidates;
}

std::optional<TimeRatio> ratio_to(const StepCandidate& chosen, const StepCandidate& candidate) {
  if (chosen.measured_us && candidate.measured_us) return TimeRatio{*candidate.measured_us / *chosen.measured_us, true};
  if (chosen.predicted_us && candidate.predicted_us) {
    return TimeRatio{*candidate.predicted_us / *chosen.predicted_us, false};
  }
  return std::nullopt;
}

std::string verdict_on(const StepCandidates& candidates, std::size_t index) {
  const StepCandidate& candidate = candidates.all[index];
  if (index == 0) return "chosen";
  if (!candidate.fault.empty()) return "left out: " + printable(candidate.fault);
  const std::optional<TimeRatio> ratio = ratio_to(candidates.chosen(), candidate);
  if (!ratio) return "not compared";
  return fmt::format("{:.2f} times the chosen one's time{}", ratio->ratio, ratio->measured ? "" : " by the models");
}

nlohmann::ordered_json to_json(const StepCandidates& candidates) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < candidates.all.size(); ++i) {
    const StepCandidate& candidate = candidates.all[i];
    list.push_back({{"provider", candidate.provider},
                    {"plan", candidate.plan},
                    {"predicted_us", known_json(candidate.predicted_us)},
                    {"measured_us", known_json(candidate.measured_us)},
                    {"dense", candidate.is_dense},
                    {"verdict", verdict_on(candidates, i)}});
  }
  return list;
}

std::string print_why(const Package& package, const std::string& step_glob, const std::optional<std::string>& arch) {
  std::string text;
  for (const WhyRow& row : why_rows(package.manifest, step_glob)) {
    const StepCandidates candidates = candidates_of(*row.step, *row.kernel, row.program->batch);
    const KernelBinary code = described_code(*row.kernel, arch);
    Table table({"provider", "plan", ">model us", ">measured us", ">regs", ">spill B", ">code", "verdict"});
    for (std::size_t i = 0; i < candidates.all.size(); ++i) {
      const StepCandidate& candidate = candidates.all[i];
      const bool made = i == 0;  // the package has its code
      table.add({candidate.provider, candidate.plan, us_text(candidate.predicted_us), us_text(candidate.measured_us),
                 made ? known_count(code.registers) : "", made ? known_count(code.spill_bytes) : "",
                 made ? known_bytes(code.code_bytes) : "", verdict_on(candidates, i)});
    }
    text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", heading(row, candidates), table.print());
  }
  return text;
}

nlohmann::ordered_json why_json(const Package& package, const std::string& step_glob,
                                const std::optional<std::string>& arch) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const WhyRow& row : why_rows(package.manifest, step_glob)) {
    const KernelBinary code = described_code(*row.kernel, arch);
    steps.push_back({{"operator", row.step->name},
                     {"kind", row.step->kind},
                     {"program", row.program->name},
                     {"batch", row.program->batch},
                     {"symbol", row.kernel->symbol},
                     {"arch", code.arch},
                     {"registers", known_json(code.registers)},
                     {"spill_bytes", known_json(code.spill_bytes)},
                     {"code_bytes", known_json(code.code_bytes)},
                     {"candidates", to_json(candidates_of(*row.step, *row.kernel, row.program->batch))}});
  }
  return steps;
}

}  // namespace burin
