// LoadedCode: a kernel on one device, code and weights, from the moment the driver took it until it is unloaded.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "ir/package/package.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/runtime.hpp"
#include "runtime/device_state.h"
#include "runtime/library/library_code.h"

namespace burin {

// The weights of a package on one device: a file that several kernels read is there once, as long as one of them is
// loaded. Threads may ask at once.
class SharedWeights {
 public:
  std::shared_ptr<const DeviceBuffer> get(const Device& device, const Package& package, const std::string& path);

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const DeviceBuffer>> loaded_;  // by the path in the package
};

// What the driver made of a kernel's binary.
struct LoadedModule {
  std::shared_ptr<const DeviceState> device;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  std::string log;
  KernelAttributes attributes;

  LoadedModule() = default;
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;
};

// The modules of a package on one device. What Kernel::shared_code() names is there once, and a launch finds what
// another one has left in the instruction caches.
// Threads may ask at once.
class SharedModules {
 public:
  using Load = std::function<std::shared_ptr<const LoadedModule>()>;
  std::shared_ptr<const LoadedModule> get(const Kernel& kernel, const KernelBinary& binary, const Load& load);

 private:
  struct Slot {
    std::mutex mutex;  // held while it is loaded
    std::weak_ptr<const LoadedModule> module;
  };
  std::mutex mutex_;
  std::map<std::string, Slot> loaded_;
};

struct LoadedCode {
  std::shared_ptr<const DeviceState> device;
  std::shared_ptr<const Package> package;  // keeps `kernel` alive
  const Kernel* kernel = nullptr;

  std::shared_ptr<const LoadedModule> module;
  LoadedFrom from = LoadedFrom::cubin;
  std::string arch;
  std::shared_ptr<const DeviceBuffer> weights;  // null: the kernel has none
  // Its call of a library; null: it has none, or the library is not there. Both are loaded, since the library may
  // refuse one batch and not another.
  std::unique_ptr<const LibraryCode> library;

  // The call that stands for a launch of so many images; null: its own code runs.
  std::shared_ptr<const LibraryLaunch> call_for(int batch) const {
    return library == nullptr ? nullptr : library->for_batch(batch);
  }
  std::int64_t weight_bytes() const {
    return static_cast<std::int64_t>((weights == nullptr ? 0 : weights->bytes()) +
                                     (library == nullptr ? 0 : library->weight_bytes()));
  }

  LoadedCode() = default;
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
};

// Whether the code waits, before it touches memory, for kernels that it was launched before the end of: what is
// compiled for sm_90 or later does (docs/package-format.md). Code for earlier ones has no instruction for that, and
// does not on a later device either.
bool awaits_launch(const LoadedCode& code);

// Loads the cubin that fits the device, else compiles the PTX (the driver keeps what it compiled in its own cache),
// where no other kernel has the same, and copies the weights to the device where no other kernel has. Throws
// Error(device) when the device lacks what the kernel needs, with the driver's log when it does not compile.
std::shared_ptr<const LoadedCode> load_kernel(const Device& device, const std::shared_ptr<const Package>& package,
                                              const Kernel& kernel, const LoadOptions& options, SharedModules& modules,
                                              SharedWeights& weights, const std::shared_ptr<LoadNotes>& notes);

// The scratch memory of a launch: of the call that it makes, else of its own code. Throws as launch_workspace() does.
WorkspaceSize workspace_of(const LoadedCode& code, int batch);

}  // namespace burin
