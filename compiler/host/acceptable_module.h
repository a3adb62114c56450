// What the host executor accepts. A module that a person edited becomes code of this process; so only
// what a specialised module needs is let through:
//
//   - one kernel with the parameters of a launch, functions that it reaches without recursion, device primitives with
//   the
//     types of templates/device.h, and intrinsics that are plain arithmetic;
//   - integers up to 64 bits, float, double, pointers, and small vectors and aggregates of them;
//   - memory through primitives alone. Local variables and constants may be accessed directly where the place is known
//   at
//     compile time and lies inside the variable, so that no access can leave it.
//
// Whatever else the module holds (functions that the kernel does not reach, annotations) is removed.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include <string>
#include <vector>

#include "compiler/kernel_cluster.h"
#include "ir/kernel.h"

namespace burin {

struct AcceptedKernel {
  llvm::Function* function = nullptr;
  ClusterExtent cluster;
  int call_depth = 1;  // functions of the module in the longest chain of calls that begins with the kernel
};

// `layout`: of the CPU; it becomes the module's. The kernel has the addresses of these tensors as its parameters, then
// the batch. Throws Error(bad_input) that names function and instruction.
AcceptedKernel require_acceptable(llvm::Module& module, const std::string& symbol, const llvm::DataLayout& layout,
                                  const std::vector<KernelTensor>& tensors);

}  // namespace burin
