// What a candidate's kernel will take of a device's memory, before there is any code of it.
#pragma once

#include <cstdint>

#include "compiler/providers/provider.h"
#include "compiler/task.h"

namespace burin {

struct MemoryEstimate {
  std::int64_t code_bytes = 0;                        // by its provider's model
  std::int64_t weight_bytes = 0;                      // the words that its code reads
  std::int64_t library_bytes = 0;                     // dense weights and biases for the call of a library
  std::int64_t counter_bytes = 0, partial_bytes = 0;  // of a launch; what a library asks for is not known

  std::int64_t scratch_bytes() const { return counter_bytes + partial_bytes; }
};

// `recipe` is what the candidate's provider makes of it.
MemoryEstimate memory_estimate(const Task& task, const Candidate& candidate, const Recipe& recipe);

}  // namespace burin
