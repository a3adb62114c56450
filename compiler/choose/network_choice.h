// The kernels of a whole network at once, where a limit of memory is asked for, or the least memory: an assignment of
// candidates to steps, over all programs of a package. Without either, each step gets what is fastest by itself, which
// is the same assignment without a limit (choose.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/choose/choose.h"
#include "compiler/options.h"
#include "compiler/task.h"
#include "ir/program.h"

namespace burin {

// A step of a program that needs a kernel.
struct StepTask {
  const Task* task = nullptr;
  std::size_t program = 0, step = 0;
};

// Bytes of machine code, by code_key(): measured, where a kernel was compiled before.
using CodeSizes = std::map<std::string, std::int64_t>;
std::string code_key(const std::string& op, const std::string& provider, const std::string& plan);

// What the choice of a whole network comes to, by estimates: times in microseconds are sums over the steps of all
// programs.
struct NetworkChoice {
  std::vector<Choice> choices;  // of each step
  double us = 0;
  double fastest_us = 0;         // without a limit
  double least_us = 0;           // no choice within the limit takes less
  std::int64_t bytes = 0;        // as device_memory() counts them
  std::int64_t least_bytes = 0;  // with the smallest kernels
};

// What providers propose for the steps, and what each proposal takes.
class NetworkChooser {
 public:
  // Tasks, programs and options must outlive it. `fed_back`: for a step whose kernel a person has chosen, that choice.
  // `planned` is called for each step, one call at a time.
  NetworkChooser(std::vector<StepTask> steps, std::vector<const Program*> programs, const CompileOptions& options,
                 const std::function<std::optional<Choice>(const Task&)>& fed_back,
                 const std::function<void(const Task&)>& planned);
  ~NetworkChooser();

  // Throws Error(unsupported) where no choice keeps CompileOptions::memory_limit, with the least that one takes. Where
  // models may be wrong about that, the smallest choice: whether it keeps the limit is known when it was compiled.
  NetworkChoice choose(const CodeSizes& measured) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace burin
