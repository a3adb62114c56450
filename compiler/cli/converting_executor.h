// Executors whose kernels have layouts of their own, for callers who only know NCHW.
#pragma once

#include "compiler/cli/executing.h"

namespace burin {

class ConvertingExecutor : public Executor {
 public:
  // Filling channels are NaN on their way in, so that an output that takes one in shows.
  void run(const KernelRecord& kernel, int batch, std::span<const float> input, std::span<const float> residual,
           std::span<float> output) final;

 protected:
  // What run() promises, with tensors in the kernel's layouts.
  virtual void launch(const KernelRecord& kernel, int batch, std::span<const float> input,
                      std::span<const float> residual, std::span<float> output) = 0;
};

}  // namespace burin
