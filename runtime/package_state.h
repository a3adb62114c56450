// PackageState: what a LoadedPackage and everything made from it share: the package and its kernels on one device.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/package/manifest_index.h"
#include "ir/package/package.h"
#include "runtime/burin/runtime.hpp"
#include "runtime/loaded_code.h"

namespace burin {

// "conv1, conv2 and 3 more"; "none"
std::string list_names(const std::vector<std::string>& names);

// A kernel that is loaded when it is first asked for, by one thread; the others wait. A failure is not remembered.
struct KernelSlot {
  const Kernel* kernel = nullptr;
  mutable std::mutex mutex;
  std::shared_ptr<const LoadedCode> loaded;
};

struct PackageState {
  PackageState(const Device& opened, std::shared_ptr<const Package> read)
      : device(opened), package(std::move(read)), index(package->manifest) {
    for (const Kernel& kernel : package->manifest.kernels) slots[kernel.symbol].kernel = &kernel;
  }

  Device device;
  std::shared_ptr<const Package> package;
  ManifestIndex index;
  std::string name;  // in messages
  LoadOptions options;
  std::shared_ptr<LoadNotes> notes = std::make_shared<LoadNotes>();
  mutable SharedModules modules;
  mutable SharedWeights weights;
  std::map<std::string_view, KernelSlot> slots;  // by symbol; one for each of the manifest's kernels

  std::shared_ptr<const LoadedCode> load(KernelSlot& slot) const {
    const std::lock_guard lock(slot.mutex);
    if (slot.loaded == nullptr)
      slot.loaded = load_kernel(device, package, *slot.kernel, options, modules, weights, notes);
    return slot.loaded;
  }
};

}  // namespace burin
