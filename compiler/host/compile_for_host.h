// Turns specialised bitcode into machine code for this CPU.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "compiler/host/block.h"
#include "compiler/kernel_cluster.h"
#include "ir/user_function.h"

namespace burin {

// Machine code and what owns it.
class HostCode {
 public:
  // `form`: the kernel's. Throws Error(bad_input) for bitcode that is no specialised module,
  // Error(unsupported) when its threads would need too much stack. `functions`: of a user's, that it may call.
  HostCode(std::string_view bitcode, const std::string& symbol, const KernelForm& form, const HostFunctions& functions);
  ~HostCode();

  HostEntry* kernel() const { return kernel_; }
  const ClusterExtent& cluster() const { return cluster_; }
  bool awaits() const { return awaits_; }  // its launch, before it touches memory
  // What one thread needs, primitives included.
  std::size_t stack_bytes() const { return stack_bytes_; }

 private:
  struct Jit;
  std::unique_ptr<Jit> jit_;
  HostEntry* kernel_ = nullptr;
  ClusterExtent cluster_;
  bool awaits_ = false;
  std::size_t stack_bytes_ = 0;
};

}  // namespace burin
