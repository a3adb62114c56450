// Executors whose kernels have element types and layouts of their own, for callers who only know float32 in NCHW.
#pragma once

#include "compiler/execute/layer_executor.h"

namespace burin {

class ConvertingExecutor : public Executor {
 public:
  // What goes in is rounded to the kernel's element type. Filling channels and images are NaN on their way in, so that
  // an output that takes one in shows.
  void run(const Kernel& kernel, int batch, std::span<const float> input, std::span<const float> residual,
           std::span<float> output, const ActivityMaps& maps = {}) final;

 protected:
  // What run() promises, with tensors in the kernel's element types and layouts, as words (pack_words()).
  virtual void launch(const Kernel& kernel, int batch, std::span<const float> input, std::span<const float> residual,
                      std::span<float> output, const ActivityMaps& maps) = 0;
};

}  // namespace burin
