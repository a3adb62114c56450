#include "ir/error.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/runtime.hpp"
#include "runtime/launch_plan.h"

namespace burin {

// Counters first, partial sums behind all of them: where they lie depends on the workspace alone and not on the batch
// of a launch, so that no launch leaves partial sums where another one expects zeroed counters.
Workspace::Workspace(const Device& device, const WorkspaceSize& size) : size_(size) {
  if (size.counter_bytes < 0 || size.partial_bytes < 0 || size.counter_bytes % kWorkspaceAlignment != 0) {
    fail(ErrorKind::usage, "a workspace of {} + {} bytes: sizes must not be negative, counters a multiple of {}",
         size.counter_bytes, size.partial_bytes, kWorkspaceAlignment);
  }
  if (size.total() == 0) return;
  memory_ = std::make_unique<DeviceBuffer>(device, static_cast<std::size_t>(size.total()));
  memory_->fill(0);
}

Workspace::Workspace() = default;
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&& other) noexcept = default;
Workspace& Workspace::operator=(Workspace&& other) noexcept = default;

WorkspaceView Workspace::view() const {
  WorkspaceView view;
  if (memory_ == nullptr) return view;
  auto* start = memory_->data<unsigned char>();
  if (size_.counter_bytes > 0) {
    view.counters = reinterpret_cast<std::uint32_t*>(start);
    view.counter_bytes = size_.counter_bytes;
  }
  if (size_.partial_bytes > 0) {
    view.partials = reinterpret_cast<float*>(start + size_.counter_bytes);
    view.partial_bytes = size_.partial_bytes;
  }
  return view;
}

}  // namespace burin
