// Which batch sizes get a program of their own where a range of them is asked for (--batch 1..32): as few as keep every
// size within kBatchBound times what a program of its own would take, by the models. A size runs on the smallest
// program that is for so many images or more, as at run time (ir/program.h, program_for()).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/options.h"
#include "ir/network.h"
#include "ir/program.h"

namespace burin {

inline constexpr double kBatchBound = 1.3;

// Times of sizes on programs, in microseconds.
struct BatchTimes {
  std::vector<int> sizes;               // ascending
  std::vector<double> own_us;           // of each, on a program of its own
  std::vector<std::vector<double>> us;  // us[p][s]: of sizes[s] on a program for sizes[p], s up to p; us[p][p] is own
  std::vector<bool> must;               // sizes that get a program in any case; the last one does
  std::vector<bool> bounded;            // sizes that the bound holds for
};

// The indices of the sizes that get a program, ascending. Of as few the one with the least sum of times over times of
// own programs. Exact: a shortest path over the programs.
std::vector<std::size_t> fewest_programs(const BatchTimes& times, double bound = kBatchBound);

struct BatchChoice {
  std::vector<int> batches;
  std::vector<BatchEstimate> curve;  // of every size of the ranges, and of the programs
};

// For CompileOptions::batches and ::batch_ranges. `network` is as simple as it gets. `planned` may be empty: it is
// called for each batch size. Throws Error(unsupported) where a step's kernel has no model.
BatchChoice choose_batches(const Network& network, const CompileOptions& options,
                           const std::function<void(int done, int all, const std::string& what)>& planned);

}  // namespace burin
