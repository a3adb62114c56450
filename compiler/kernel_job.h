// What there is to compile: a list of kernels, and for each program, which of its steps launches which.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/choose/choose.h"
#include "compiler/options.h"
#include "compiler/reentry.h"
#include "compiler/task.h"
#include "ir/network.h"
#include "ir/program.h"

namespace burin {

// One kernel serves every step of its operator, whatever the batch size, for which all of it is the same.
struct KernelJob {
  Task task;
  Candidate candidate;
  std::string suffix;  // of the symbol: tells apart operators whose names reduce to the same, and kernels of one
  std::string folder;  // of its dump
  double work = 0;     // what compiling it takes, in nonzeros
};

// A program, and which kernel each of its steps launches.
struct ProgramJob {
  Program program;
  std::vector<std::size_t> kernels;  // of each step, its index in KernelJobs::kernels
};

struct KernelJobs {
  std::vector<KernelJob> kernels;
  std::vector<ProgramJob> programs;
  std::deque<Network> networks;  // that tasks refer to
};

// `planned` may be empty: it is called for each task whose kernel was chosen, one call
// at a time.
KernelJobs list_kernels(const Network& network, const CompileOptions& options, const Reentry& reentry,
                        const std::function<void(int done, int all, const std::string& what)>& planned);

}  // namespace burin
