// What tuning needs of a GPU. The tool implements it over the runtime; tuning itself needs no driver.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/package/package.h"

namespace burin {

class ExpectedOutput;  // compiler/tune/expected_output.h

// A library that is there, and can be called.
struct LibraryVersion {
  Library library = Library::cudnn;
  std::string version = {};  // "9.19.0"
};
// "cuDNN 9.19.0, cuBLASLt 13.0.2".
std::string text_of(const std::vector<LibraryVersion>& libraries);

struct TuningDevice {
  std::string name, arch;                      // "NVIDIA H200", "sm_90"
  int driver_version = 0;                      // 13000: the driver supports CUDA 13.0
  int code_copies = 1;                         // that take turns, so that code is cold as in a network
  std::vector<LibraryVersion> libraries = {};  // that candidates may call

  // Whether it is there; so is what kernels call that have code alone.
  bool has(const std::optional<Library>& library) const;
};

struct LaunchTime {
  double us = 0;                     // what an Estimate says, as the median
  int samples = 0;                   // behind it
  std::int64_t workspace_bytes = 0;  // scratch memory of the launch
};

// What came of timing one kernel.
struct Timing {
  LaunchTime time;
  std::optional<Error> fault;  // instead of a time: it cannot be launched, or faults
};

// A package holds one kernel, with machine code for the device. One call at a time. run() and time() throw Error when
// the kernel cannot be launched or faults.
class Measurer {
 public:
  virtual ~Measurer() = default;
  virtual TuningDevice device() const = 0;
  // Fills `output`, whose content before is what a kernel that writes too little leaves there. Tensors are NCHW in host
  // memory; `residual` is empty unless the layer has one.
  virtual void run(const Package& package, int batch, std::span<const float> input, std::span<const float> residual,
                   std::span<float> output) = 0;
  // Kernels for one task. They take turns, several times over, so that whatever drifts does so for all of them.
  // `input`: NCHW images that they read; empty: random values.
  virtual std::vector<Timing> time_in_turns(std::span<const Package* const> packages, int batch,
                                            std::span<const float> input) = 0;
  LaunchTime time(const Package& package, int batch, std::span<const float> input = {});
  // Whether the device still works for this process: after some faults of a kernel, nothing does.
  virtual bool usable() = 0;
};

// What is kept of a candidate's fault: one line of plain text, since what went wrong may be a whole log.
std::string recorded_fault(const Error& fault);

// Runs a kernel on the measurer's device: its error as a share of the tolerance. Throws Error(verification) where it
// computes something else.
double checked_error(Measurer& measurer, const Package& package, int batch, ExpectedOutput& expected);

}  // namespace burin
