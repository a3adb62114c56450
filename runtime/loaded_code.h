// LoadedCode: a kernel on one device, code and weights, from the moment the driver took it until it is unloaded.
#pragma once

#include <memory>
#include <string>

#include "ir/package/package.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/runtime.hpp"
#include "runtime/device_state.h"
#include "runtime/library/library_code.h"

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
  // Its call of a library; null: it has none, or the library is not there. Both are loaded, since the library may
  // refuse one batch and not another.
  std::unique_ptr<const LibraryCode> library;

  // The call that stands for a launch of so many images; null: its own code runs.
  std::shared_ptr<const LibraryLaunch> call_for(int batch) const {
    return library == nullptr ? nullptr : library->for_batch(batch);
  }
  std::int64_t weight_bytes() const {
    return static_cast<std::int64_t>(weights.bytes() + (library == nullptr ? 0 : library->weight_bytes()));
  }

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
                                              const Kernel& kernel, const LoadOptions& options,
                                              const std::shared_ptr<LoadNotes>& notes);

// The scratch memory of a launch: of the call that it makes, else of its own code. Throws as launch_workspace() does.
WorkspaceSize workspace_of(const LoadedCode& code, int batch);

}  // namespace burin
