#include "runtime/network_scratch.h"

#include "ir/arena.h"
#include "ir/step_order.h"
#include "runtime/launch_plan.h"

namespace burin {

ScratchLayout lay_out_scratch(const Program& program, const std::vector<WorkspaceSize>& sizes) {
  ScratchLayout layout;
  StepOrder order(program.steps.size());
  std::vector<int> with_partials;
  std::vector<std::int64_t> bytes;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    order.add(program.steps[i].after);
    layout.steps.push_back({layout.total.counter_bytes, 0, sizes[i]});
    layout.total.counter_bytes += sizes[i].counter_bytes;
    if (sizes[i].partial_bytes == 0) continue;
    with_partials.push_back(static_cast<int>(i));
    bytes.push_back(sizes[i].partial_bytes);
  }
  const auto step = [&](int index) { return with_partials[static_cast<std::size_t>(index)]; };
  const ArenaLayout arena =
      lay_out_arena(bytes, kWorkspaceAlignment, [&](int a, int b) { return !order.is_ordered(step(a), step(b)); });
  for (std::size_t i = 0; i < with_partials.size(); ++i) {
    layout.steps[static_cast<std::size_t>(with_partials[i])].partials = arena.offsets[i];
  }
  layout.total.partial_bytes = arena.bytes;
  return layout;
}

}  // namespace burin
