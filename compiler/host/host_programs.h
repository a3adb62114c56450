// Runs programs of a package on the host executor, step by step: each kernel through HostKernel, which checks every
// access, on an arena that is poisoned before.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "compiler/host/executor.h"
#include "ir/package/package.h"
#include "ir/place_values.h"

namespace burin {

// One tensor for each of a program's inputs or outputs: float32, dense NCHW, images one after the other, whatever the
// format in which the program has it; of an activity map its bytes, cell by cell.
using Tensors = std::vector<std::vector<float>>;

// What a step found and what it made: float32, dense NCHW, images one after the other.
struct StepValues {
  int step = 0;                           // index into the program's
  std::vector<std::vector<float>> reads;  // as they were right before it, in the order of Step::reads
  std::vector<float> output;              // right after it
  std::string fault = {};                 // of what fills up the output's channels (ir/place_values.h)
};
// Called after each step, in the order of the steps; the arena's memory is used again by later ones.
using StepVisitor = std::function<void(const StepValues&)>;

// The specialised module of a kernel, as bitcode. May throw Error; called from several threads.
using ModuleSource = std::function<std::string(const Kernel& kernel)>;

// What launches kernels that are not compiled here, by their symbols. Each throws what HostKernel::run() would.
using HostLaunchers = std::map<std::string, std::function<void(const HostLaunchArguments& arguments)>>;

class HostPrograms {
 public:
  // `package` must outlive this. `jobs`: kernels of a program that are compiled for this CPU at the same time; 0: as
  // many as there are processors. `functions`: of a user's, that kernels call.
  HostPrograms(const Package& package, ModuleSource modules, int jobs, HostLaunchers launchers,
               HostFunctions functions = {});

  // The outputs in the order of the program's, where what no step wrote is NaN (of a map 255). `inputs` in their order,
  // of `batch` images each; at most as many as the program takes. Values are rounded to the inputs' element types.
  // Kernels are compiled when they are first needed, and kept. Several threads may run programs at once. Throws
  // Error(verification) with the first fault of a step.
  Tensors run(const Program& program, int batch, const Tensors& inputs, const StepVisitor& visit);

 private:
  struct StepKernel {
    std::mutex mutex;  // of what follows: a kernel runs for one caller at a time
    const Kernel* kernel = nullptr;
    std::vector<std::uint32_t> weights;
    std::optional<HostKernel> host;  // nothing: it has not been compiled yet, or a launcher has it
  };

  StepKernel& kernel_of(const Step& step);
  void make(StepKernel& made) const;
  // Those of the program. The first exception is thrown again.
  void make_kernels(const Program& program);
  void launch(const Step& step, StepKernel& kernel, HostLaunchArguments arguments) const;

  const Package& package_;
  ModuleSource modules_;
  int jobs_;
  HostLaunchers launchers_;
  HostFunctions functions_;
  std::map<std::string, StepKernel, std::less<>> kernels_;  // by symbol
};

}  // namespace burin
