// KernelLaunch: a launch of one kernel, with everything but the stream. Whatever launches kernels does it through this.
#pragma once

#include <array>
#include <memory>

#include "ir/kernel.h"
#include "runtime/burin/runtime.hpp"
#include "runtime/loaded_code.h"

namespace burin {

struct KernelLaunch {
  std::shared_ptr<const LoadedCode> code;
  // A library's call, and what it is given; null: the code itself is launched.
  std::shared_ptr<const LibraryLaunch> call;
  CallPointers call_pointers;
  LaunchGrid grid;
  // One for each of the kernel's tensors; null where it has none.
  std::array<void*, kMaxKernelTensors> pointers{};
  std::array<TensorMap, kMaxKernelBoxes> boxes{};  // one for each of the kernel's boxes
  std::int32_t batch = 0;
  int step = -1;  // of a network; -1: none

  // Addresses of the parameters, valid as long as this lives: the driver takes no const, and changes nothing.
  using Parameters = std::array<void*, kMaxKernelTensors + kMaxKernelBoxes + 1>;
  Parameters parameters() const;
  // Allocates nothing.
  void enqueue(CUstream_st* stream) const;
  // For messages: "step 3, kernel pool1_pool of operator pool1, with batch 8: 98 x 1 blocks of 256 threads, 0 bytes of
  // shared memory".
  std::string what() const;
};

// The tensors of a launch by their role.
struct LaunchPointers {
  std::array<void*, 2> reads{};  // by KernelTensor::argument
  void* output = nullptr;
  WorkspaceView scratch;
  void *input_map = nullptr, *output_map = nullptr;
};

// Throws as launch_grid() does, and Error(device) where the driver refuses a box.
KernelLaunch make_launch(std::shared_ptr<const LoadedCode> code, const LaunchPointers& pointers, int batch);

}  // namespace burin
