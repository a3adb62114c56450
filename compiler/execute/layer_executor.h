// Where a package's kernels are executed: a GPU through the runtime, or the host executor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/package/package.h"

namespace burin {

// What --device accepts.
struct DeviceChoice {
  bool host = true;
  int ordinal = 0;        // of the GPU
  std::string note = {};  // what was taken instead of a GPU that is not there; empty: what was asked for
};

// "auto", "host", "cuda" or "cuda:N". "auto" takes the first GPU, or, saying so, the host executor where there is
// none. Throws Error(usage) for other texts and Error(device) for a GPU that is not there.
DeviceChoice choose_device(const std::string& text);

// "sm_90" of the first GPU, or nothing where there is none.
std::optional<std::string> native_arch();

// The kernel of `layer` that the runtime would choose: the largest planned batch that does not exceed `batch`, else the
// smallest. Null where the package has no such layer.
const Kernel* kernel_for(const Manifest& manifest, const std::string& layer, int batch);

// Activity maps of a launch (ir/activity_map.h); empty: the launch is without that map, or the kernel is.
struct ActivityMaps {
  std::span<const std::uint8_t> input = {};
  std::span<std::uint8_t> output = {};  // whose content before is what a kernel that writes too little leaves there
};

// Executes kernels of one package. Tensors are float32 in NCHW in host memory, whatever the kernels' element types and
// layouts; to half types, values are rounded.
class Executor {
 public:
  virtual ~Executor() = default;

  // What it runs on, for people: "host", "cuda:0 (NVIDIA H200, sm_90)".
  virtual std::string name() const = 0;
  // Whether several threads may call run() at once.
  virtual bool concurrent() const = 0;
  // Fills `output` - whose content before is what a kernel that writes too little leaves there. `residual` is empty
  // unless the layer has one. Throws Error(verification) for faults of the kernel that the executor detects, such as
  // writes outside the output.
  virtual void run(const Kernel& kernel, int batch, std::span<const float> input, std::span<const float> residual,
                   std::span<float> output, const ActivityMaps& maps = {}) = 0;
};

// `package` must outlive the executor.
std::unique_ptr<Executor> make_executor(const DeviceChoice& choice, const Package& package);

}  // namespace burin
