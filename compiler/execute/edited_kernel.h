// A kernel whose module a person edited, on the host executor: compiled and run in a sandbox, since such a module may
// hold anything.
#pragma once

#include <optional>
#include <string>

#include "compiler/host/launch_memory.h"
#include "compiler/sandbox/sandbox.h"
#include "ir/kernel.h"

namespace burin {

class EditedKernel {
 public:
  // `text`: the module, from the file `path`. No other thread may be at work with LLVM meanwhile (Sandbox).
  EditedKernel(const std::string& path, const std::string& text, const Kernel& kernel,
               const SandboxLimits& limits = {});

  // As HostKernel::run(), where the first call compiles. Throws Error(bad_input) for what is no such module, and for
  // how its process ended.
  void run(const HostLaunchArguments& arguments);

 private:
  std::string subject_;
  std::optional<Sandbox> sandbox_;
};

}  // namespace burin
