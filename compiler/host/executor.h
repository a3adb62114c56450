// The host executor: runs specialised IR on the CPU, block by block and thread by thread, with the semantics of the
// GPU's barriers and asynchronous copies. Correctness of generation is tested with it where there is no GPU.
//
// It reports, with block, thread and address: global accesses outside the buffers of the launch, shared accesses
// outside the block's shared memory, reads of shared memory that was never written (or whose asynchronous copy has not
// been waited for), shared-memory races between two barriers, barriers that not all threads of a block reach, output
// elements that no thread wrote or that two threads wrote (filling channels apart). docs/host-executor.md has the whole
// list.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler/host/launch_memory.h"
#include "ir/kernel.h"
#include "ir/user_function.h"

namespace burin {

// One kernel, compiled for this CPU. run() may be called many times, from one thread at a time.
class HostKernel {
 public:
  // `bitcode`: the specialised module, primitives still calls. Throws Error(bad_input) when it is not that, or not of
  // this form. `cores`: of the CPU, for its blocks; 0: all. `functions`: of a user's, that it may call.
  HostKernel(std::string_view bitcode, const std::string& symbol, const KernelForm& form, int cores = 0,
             const HostFunctions& functions = {});
  ~HostKernel();
  HostKernel(HostKernel&&) noexcept;
  HostKernel& operator=(HostKernel&&) noexcept;

  // Throws Error(verification) with the first fault found.
  void run(const HostLaunchArguments& arguments);
  // Gives back what is kept from run to run beside the code. For whoever has many kernels: a process may have only so
  // many stacks.
  void release();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace burin
