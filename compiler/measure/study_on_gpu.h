// burin study: the candidates of a study on a GPU of this machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/study/study.h"

namespace burin {

inline constexpr int kDefaultStudyMinutes = 5;

// How far each of the two parts is.
struct StudyWatch {
  std::function<void(const StudyProgress&)> proposing, measuring;  // may be empty
};

// Proposes and measures on the first GPU whose architecture is one of options.compile.archs, within
// options.budget_s. Returns notes: what was not measured, and why. Throws Error(device) without such a GPU,
// Error(unsupported) without an assembler, before any work begins.
std::vector<std::string> study_on_gpu(Study& study, StudyOptions options, const StudyWatch& watch);

}  // namespace burin
