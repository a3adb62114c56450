// DeviceState: what a Device and everything made from it share; and the scopes in which its context is current.
#pragma once

#include <memory>

#include "runtime/burin/runtime.hpp"
#include "runtime/driver/driver_table.h"

namespace burin {

class LibraryHandles;  // runtime/library/library_handle.h

struct DeviceState {
  const DriverTable* driver = nullptr;
  CUdevice device = 0;
  CUcontext context = nullptr;
  DeviceInfo info;

  std::unique_ptr<LibraryHandles> libraries;  // opened when something first asks for them

  DeviceState();
  ~DeviceState();
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;
};

// Makes the device's context current in this thread, and afterwards what was current before.
class BURIN_API ContextScope {
 public:
  explicit ContextScope(const DeviceState& device) : driver_(*device.driver) {
    CUcontext current = nullptr;
    check(driver_, driver_.cuCtxGetCurrent(&current), "cuCtxGetCurrent");
    if (current == device.context) return;  // the usual case in a launch: two driver calls saved
    check(driver_, driver_.cuCtxPushCurrent(device.context), "cuCtxPushCurrent");
    pushed_ = true;
  }
  ~ContextScope() {
    CUcontext popped = nullptr;
    if (pushed_) driver_.cuCtxPopCurrent(&popped);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const DriverTable& driver_;
  bool pushed_ = false;
};

// Calls the driver in the device's context; `name`, `context`: see check().
template <typename... Parameters, typename... Args>
void call(const DeviceState& device, CUresult (*DriverTable::*function)(Parameters...), std::string_view name,
          std::string_view context, Args... args) {
  const ContextScope scope(device);
  check(*device.driver, (device.driver->*function)(args...), name, context);
}

// Gives something back in a destructor: `release` runs in the device's context; failures are ignored, since nothing can
// be done about them there (at the end of a process the driver may be gone already).
template <typename Release>
void release_in_context(const DeviceState& device, Release release) noexcept {
  CUcontext popped = nullptr;
  const bool pushed = device.driver->cuCtxPushCurrent(device.context) == kCudaSuccess;
  release(*device.driver);
  if (pushed) device.driver->cuCtxPopCurrent(&popped);
}

}  // namespace burin
