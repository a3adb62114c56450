// LoadedKernel: one kernel's code on one device, from the moment the driver took it until it is unloaded.
#pragma once

#include <memory>
#include <string>

#include "ir/package/package.h"
#include "runtime/burin/runtime.hpp"
#include "runtime/device_state.h"

namespace burin {

struct LoadedKernel {
  std::shared_ptr<const DeviceState> device;
  std::shared_ptr<const Package> package;  // keeps `record` alive
  const KernelRecord* record = nullptr;

  CUmodule module = nullptr;
  CUfunction function = nullptr;
  LoadedFrom from = LoadedFrom::cubin;
  std::string arch;
  std::string log;
  KernelAttributes attributes;

  LoadedKernel() = default;
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;
};

// Loads the cubin that fits the device, else compiles the PTX (the driver keeps what it compiled in its own cache).
// Throws Error(device) when the device lacks what the kernel needs, with the driver's log when it does not compile.
std::shared_ptr<const LoadedKernel> load_kernel(const std::shared_ptr<const DeviceState>& device,
                                                const std::shared_ptr<const Package>& package,
                                                const KernelRecord& record, bool force_jit);

}  // namespace burin
