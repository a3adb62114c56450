#include "compiler/cli/tuning_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "compiler/cli/table.h"
#include "compiler/measure/layer_times.h"

namespace burin {
namespace {

// The time of the models' choice over the chosen one's; nothing where the models' choice has a fault.
std::optional<double> gain_of(const TuningRecord& tuning) {
  const TuningCandidate& own = tuning.candidates.front();
  if (!own.fault.empty() || chosen(tuning).us <= 0) return std::nullopt;
  return own.us / chosen(tuning).us;
}

std::string gain_text(const std::optional<double>& gain) { return gain ? fmt::format("{:.2f}x", *gain) : "-"; }

std::string tried_text(const TuningRecord& tuning) {
  const auto failed = std::count_if(tuning.candidates.begin(), tuning.candidates.end(),
                                    [](const TuningCandidate& candidate) { return !candidate.fault.empty(); });
  std::string text = fmt::format("{}", tuning.candidates.size());
  if (failed > 0) text += fmt::format(", {} failed", failed);
  return text;
}

std::string remark_on(const TuningRecord& tuning, std::size_t candidate) {
  std::string text = tuning.candidates[candidate].fault;
  const auto add = [&](std::string_view remark) { text += fmt::format("{}{}", text.empty() ? "" : "; ", remark); };
  if (text.empty() && !tuning.candidates[candidate].error) add("too slow to be compared");
  if (candidate == 0) add("the models' choice");
  if (static_cast<int>(candidate) == tuning.chosen) add("chosen");
  return text;
}

}  // namespace

const TuningCandidate& chosen(const TuningRecord& tuning) {
  return tuning.candidates.at(static_cast<std::size_t>(tuning.chosen));
}

std::string tuning_summary(const Manifest& manifest) {
  Table table({"layer", ">batch", "provider", "plan", ">model us", ">tuned us", ">models' us", ">gain", ">plans"});
  std::vector<double> gains;
  for (const Kernel& kernel : manifest.kernels) {
    if (!kernel.tuning) continue;
    const TuningRecord& tuning = *kernel.tuning;
    const TuningCandidate& own = tuning.candidates.front();
    const std::optional<double> gain = gain_of(tuning);
    if (gain) gains.push_back(*gain);
    table.add({kernel.op, fmt::format("{}", kernel.planned_batch), kernel.provider, kernel.plan_short,
               kernel.predicted_us > 0 ? microseconds_text(kernel.predicted_us) : "-",
               microseconds_text(chosen(tuning).us), own.fault.empty() ? microseconds_text(own.us) : "-",
               gain_text(gain), tried_text(tuning)});
  }
  table.add_footer(
      {"geometric mean", "", "", "", "", "", "", gains.empty() ? "-" : gain_text(geometric_mean(gains)), ""});
  return table.print();
}

std::string tuning_table(const TuningRecord& tuning) {
  const std::vector<TuningCandidate>& candidates = tuning.candidates;
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool a_failed = !candidates[a].fault.empty(), b_failed = !candidates[b].fault.empty();
    return a_failed != b_failed ? b_failed : candidates[a].us < candidates[b].us;
  });
  Table table(
      {"provider", "plan", ">model us", ">measured us", ">network us", ">workspace", ">error/tolerance", "remark"});
  for (const std::size_t i : order) {
    const TuningCandidate& c = candidates[i];
    const bool measured = c.fault.empty();
    table.add({c.provider, c.plan, c.predicted_us > 0 ? microseconds_text(c.predicted_us) : "-",
               measured ? microseconds_text(c.us) : "-", c.network_us > 0 ? microseconds_text(c.network_us) : "",
               measured ? bytes_text(c.workspace_bytes) : "-", c.error ? fmt::format("{:.3f}", *c.error) : "-",
               remark_on(tuning, i)});
  }
  return fmt::format("{} plan{} on {} ({}, driver for CUDA {}{}); a launch in a graph, {} copies of the code in turn\n",
                     candidates.size(), candidates.size() == 1 ? "" : "s", tuning.device, tuning.arch,
                     cuda_version_text(tuning.driver_version), tuning.libraries.empty() ? "" : ", " + tuning.libraries,
                     tuning.code_copies) +
         table.print();
}

nlohmann::ordered_json to_json(const TuningRecord& tuning) {
  nlohmann::ordered_json candidates = nlohmann::ordered_json::array();
  for (const TuningCandidate& c : tuning.candidates) {
    nlohmann::ordered_json entry = {{"provider", c.provider}, {"plan", c.plan}, {"predicted_us", c.predicted_us}};
    if (c.fault.empty()) {
      entry.update({{"us", c.us}, {"samples", c.samples}, {"workspace_bytes", c.workspace_bytes}});
      if (c.error) entry["error"] = *c.error;
      if (c.network_us > 0) entry["network_us"] = c.network_us;
    } else {
      entry["fault"] = c.fault;
    }
    candidates.push_back(std::move(entry));
  }
  return {{"device", tuning.device},
          {"arch", tuning.arch},
          {"driver_version", tuning.driver_version},
          {"code_copies", tuning.code_copies},
          {"libraries", tuning.libraries},
          {"chosen", tuning.chosen},
          {"candidates", std::move(candidates)}};
}

}  // namespace burin
