// What tuning needs of a GPU. The tool implements it over the runtime; tuning itself needs no driver.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ir/package/package.h"

namespace burin {

struct TuningDevice {
  std::string name, arch;      // "NVIDIA H200", "sm_90"
  int driver_version = 0;      // 13000: the driver supports CUDA 13.0
  int code_copies = 1;         // that take turns, so that code is cold as in a network
  std::string libraries = {};  // that candidates may call: "cuDNN 9.19.0"; empty: none
};

struct LaunchTime {
  double us = 0;                     // what an Estimate says, as the median
  int samples = 0;                   // behind it
  std::int64_t workspace_bytes = 0;  // scratch memory of the launch
};

// `package` holds one kernel, with machine code for the device. One call at a time. run() and time() throw Error when
// the kernel cannot be launched or faults.
class Measurer {
 public:
  virtual ~Measurer() = default;
  virtual TuningDevice device() const = 0;
  // Fills `output`, whose content before is what a kernel that writes too little leaves there. Tensors are NCHW in host
  // memory; `residual` is empty unless the layer has one.
  virtual void run(const Package& package, int batch, std::span<const float> input, std::span<const float> residual,
                   std::span<float> output) = 0;
  virtual LaunchTime time(const Package& package, int batch, std::span<const float> input) = 0;
  // Whether the device still works for this process: after some faults of a kernel, nothing does.
  virtual bool usable() = 0;
};

}  // namespace burin
