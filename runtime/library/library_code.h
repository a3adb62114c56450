// LibraryCode: a kernel's call of a library, on one device: the weights as the library reads them, and for each batch
// that is launched what the library was told of it. A call that the library refuses is found here, before anything is
// launched: its kernel's own code then runs.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "ir/kernel.h"
#include "ir/layer_data.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/runtime.hpp"
#include "runtime/library/library_handle.h"
#include "runtime/library/load_notes.h"

namespace burin {

class LibraryCode {
 public:
  // `layer`: of `kernel`, which has a call and outlives this. Throws Error(device) where memory is short.
  LibraryCode(const Device& device, std::shared_ptr<const LibraryHandle> handle, const Kernel& kernel,
              const ConvLayer& layer, LibraryUse use, std::shared_ptr<LoadNotes> notes);

  std::size_t weight_bytes() const { return weights_.bytes() + bias_.bytes(); }
  // Made when it is first asked for, run once on memory of its own and captured: an algorithm may load code when it
  // first runs, and not all can be part of a graph. Null, and noted: the library refuses. With LibraryUse::required
  // that throws Error(unsupported).
  std::shared_ptr<const LibraryLaunch> for_batch(int batch) const;

 private:
  std::shared_ptr<const LibraryLaunch> tried(int batch) const;

  Device device_;
  std::shared_ptr<const LibraryHandle> handle_;
  const Kernel& kernel_;
  LibraryUse use_;
  std::shared_ptr<LoadNotes> notes_;
  DeviceBuffer weights_, bias_;
  mutable std::mutex mutex_;
  mutable std::map<int, std::shared_ptr<const LibraryLaunch>> launches_;  // by batch; null: refused
};

// Loads the code of a kernel with a call; null, and noted, where the library is not there. With LibraryUse::required
// that throws.
std::unique_ptr<const LibraryCode> load_library_code(const Device& device, const Kernel& kernel,
                                                     std::string_view layer_data, const LoadOptions& options,
                                                     const std::shared_ptr<LoadNotes>& notes);

}  // namespace burin
