#include "compiler/choose/memory_estimate.h"

#include <algorithm>

#include "ir/limits.h"

namespace burin {

MemoryEstimate memory_estimate(const Task& task, const Candidate& candidate, const Recipe& recipe) {
  MemoryEstimate memory;
  const LaunchGeometry& launch = recipe.form.launch;
  memory.counter_bytes = std::min(counter_bytes(launch, task.batch), kMaxWorkspaceBytes);
  memory.partial_bytes = std::min(partial_bytes(launch, task.batch), kMaxWorkspaceBytes);
  memory.weight_bytes = static_cast<std::int64_t>(recipe.weights.size() * sizeof(std::uint32_t));
  if (recipe.call) memory.library_bytes = library_bytes(*recipe.call, called_shape(task), task.writes.format());
  memory.code_bytes = find_provider(candidate.provider)->code_bytes(task, candidate.plan);
  return memory;
}

}  // namespace burin
