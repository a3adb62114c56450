// What there is to compile: a list of kernels, and for each program, which of its steps launches which.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/choose/choose.h"
#include "compiler/choose/network_choice.h"
#include "compiler/options.h"
#include "compiler/program_graphs.h"
#include "compiler/reentry.h"
#include "compiler/task.h"
#include "ir/network.h"
#include "ir/program.h"

namespace burin {

// One kernel serves every step of its operator, whatever the batch size, for which all of it is the same.
struct KernelJob {
  Task task;
  Candidate candidate;
  std::vector<KernelOption> compared;          // Choice::options
  std::vector<WeightZeros> weight_zeros = {};  // Kernel::weight_zeros
  std::string suffix;  // of the symbol: tells apart operators whose names reduce to the same, and kernels of one
  std::string folder;  // of its dump
  double work = 0;     // what compiling it takes, in nonzeros
};

// A program, and which kernel each of its steps launches.
struct ProgramJob {
  Program program;
  std::vector<std::size_t> kernels;  // of each step, its index in KernelJobs::kernels
  // Where CompileOptions::rivals are asked for, those of each step, likewise.
  std::vector<std::vector<std::size_t>> rivals = {};
};

class PlannedSteps;

struct KernelJobs {
  std::vector<KernelJob> kernels;
  std::vector<ProgramJob> programs;
  std::optional<NetworkChoice> choice;          // where the kernels of a network were chosen together
  std::vector<std::string> notes;               // what the user should know of formats, beside Network::notes
  std::shared_ptr<const PlannedSteps> planned;  // what tasks refer to
};

// Places, proposes and chooses.
class KernelLister {
 public:
  // `options` and `reentry` must outlive it. `planned` may be empty: it is called for each task whose kernel was
  // chosen, one call at a time.
  KernelLister(const ProgramGraphs& graphs, const CompileOptions& options, const Reentry& reentry,
               const std::function<void(int done, int all, const std::string& what)>& planned);

  // Where kernels are chosen together, with what is known of their code; then the list may be made again when more is
  // known. Throws as NetworkChooser::choose() does.
  KernelJobs list(const CodeSizes& measured = {}) const;

 private:
  bool separate_;
  const CompileOptions& options_;
  std::shared_ptr<const PlannedSteps> planned_;
};

}  // namespace burin
