// LoadedCode: a kernel's code on one device, from the moment the driver took it until it is unloaded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/package/package.h"
#include "runtime/burin/runtime.hpp"
#include "runtime/device_state.h"

namespace burin {

// What loading needs to know of a kernel, whichever record of the manifest says it. Refers to that record.
struct KernelCode {
  KernelCode(const KernelRecord& record);    // NOLINT: every record of a kernel is one
  KernelCode(const OperatorRecord& record);  // NOLINT

  const std::string& symbol;
  std::string owner;  // for messages: "layer conv1", "operator pool1"
  const std::vector<KernelBinary>& binaries;
  int threads = 0, shared_bytes = 0;
};

struct LoadedCode {
  std::shared_ptr<const DeviceState> device;
  std::shared_ptr<const Package> package;  // keeps the record alive

  CUmodule module = nullptr;
  CUfunction function = nullptr;
  LoadedFrom from = LoadedFrom::cubin;
  std::string arch;
  std::string log;
  KernelAttributes attributes;

  LoadedCode() = default;
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
};

// Whether the code waits, before it touches memory, for kernels that it was launched before the end of: what is
// compiled for sm_90 or later does (docs/package-format.md). Code for earlier ones has no instruction for that, and
// does not on a later device either.
bool awaits_launch(const LoadedCode& code);

// The kernel of a layer.
struct LoadedKernel : LoadedCode {
  const KernelRecord* record = nullptr;
};

// Load the cubin that fits the device, else compile the PTX (the driver keeps what it compiled in its own cache).
// Throw Error(device) when the device lacks what the kernel needs, with the driver's log when it does not compile.
std::shared_ptr<const LoadedKernel> load_kernel(const std::shared_ptr<const DeviceState>& device,
                                                const std::shared_ptr<const Package>& package,
                                                const KernelRecord& record, bool force_jit);
std::shared_ptr<const LoadedCode> load_operator(const std::shared_ptr<const DeviceState>& device,
                                                const std::shared_ptr<const Package>& package,
                                                const OperatorRecord& record, bool force_jit);

}  // namespace burin
