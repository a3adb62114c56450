// The host executor for operators beside the convolutions: executor.h's checks, for kernels of ir/operator_plan.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ir/operator_plan.h"

namespace burin {

// Whole tensors, of which the operator reads and writes what its plan says: `batch` times the plan's image_words.
struct HostOperatorArguments {
  int batch = 1;
  std::span<const float> input;
  std::span<float> output;
  std::span<const float> second;           // empty when the plan has none
  std::span<const std::uint32_t> weights;  // as packed for the plan, in words
};

// One kernel, compiled for this CPU. run() may be called many times, from one thread at a time.
class HostOperator {
 public:
  // `bitcode`: the specialised module. Throws Error(bad_input) when it is not that, or the plan does not verify.
  HostOperator(std::string_view bitcode, const std::string& symbol, const OperatorPlan& plan);
  ~HostOperator();
  HostOperator(HostOperator&&) noexcept;
  HostOperator& operator=(HostOperator&&) noexcept;

  // Throws Error(verification) with the first fault found: all that executor.h names; and a word of the output that is
  // not the operator's, or that it should have written.
  void run(const HostOperatorArguments& arguments);
  // Gives back what is kept from run to run beside the code. For whoever has many kernels: a process may have only so
  // many stacks.
  void release();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace burin
