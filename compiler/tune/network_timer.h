// What tuning needs of a GPU beside a Measurer: times of whole networks.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ir/package/package.h"
#include "ir/program.h"

namespace burin {

// A network's program, and the package whose kernels it launches, which need not hold it.
struct TimedProgram {
  std::shared_ptr<const Package> package;
  std::shared_ptr<const Program> program;
};

// What a launch of each program takes among others that follow at once, in microseconds: medians of so many turns. The
// programs take turns, so that whatever drifts does so for all of them. Throws Error(device) where one cannot be
// launched.
using NetworkTimer = std::function<std::vector<double>(std::span<const TimedProgram> programs, int turns)>;

}  // namespace burin
