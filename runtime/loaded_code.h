// LoadedCode: a kernel on one device, code and weights, from the moment the driver took it until it is unloaded.
#pragma once

#include <memory>
#include <string>

#include "ir/package/package.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/runtime.hpp"
#include "runtime/device_state.h"

namespace burin {

struct LoadedCode {
  std::shared_ptr<const DeviceState> device;
  std::shared_ptr<const Package> package;  // keeps `kernel` alive
  const Kernel* kernel = nullptr;

  CUmodule module = nullptr;
  CUfunction function = nullptr;
  LoadedFrom from = LoadedFrom::cubin;
  std::string arch;
  std::string log;
  KernelAttributes attributes;
  DeviceBuffer weights;  // empty: the kernel has none

  LoadedCode() = default;
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
};

// Whether the code waits, before it touches memory, for kernels that it was launched before the end of: what is
// compiled for sm_90 or later does (docs/package-format.md). Code for earlier ones has no instruction for that, and
// does not on a later device either.
bool awaits_launch(const LoadedCode& code);

// Loads the cubin that fits the device, else compiles the PTX (the driver keeps what it compiled in its own cache), and
// copies the weights to the device. Throws Error(device) when the device lacks what the kernel needs, with the driver's
// log when it does not compile.
std::shared_ptr<const LoadedCode> load_kernel(const Device& device, const std::shared_ptr<const Package>& package,
                                              const Kernel& kernel, bool force_jit);

}  // namespace burin
