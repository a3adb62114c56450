// Why each convolution and fully connected layer has its kernel: what was chosen, who came next, what the best dense
// kernel takes, and from which share of zero weights on these pay. The table `choice` of `burin inspect`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compiler/cli/candidates.h"
#include "ir/kernel.h"
#include "ir/package/package.h"

namespace burin {

struct ChoiceRow {
  std::string layer;
  int batch = 1;
  StepCandidates candidates;
  std::optional<WeightZeros> weight_zeros = {};  // for this batch; nothing: nobody asked, or nothing was compared
};

// A row for each step of a package's programs whose layer matches.
std::vector<ChoiceRow> choices_of_package(const Package& package, const std::optional<std::string>& layer_glob);

std::string print_choices(const std::vector<ChoiceRow>& rows);
nlohmann::ordered_json to_json(const ChoiceRow& row);

// {"pays_from": SHARE}, of which null says that they pay at no share; null where `zeros` is.
nlohmann::ordered_json weight_zeros_json(const WeightZeros* zeros);

}  // namespace burin
