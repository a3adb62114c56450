// The host executor: runs specialised IR on the CPU, block by block and thread by thread, with the semantics of the
// GPU's barriers and asynchronous copies. Correctness of generation is tested with it where there is no GPU.
//
// It reports, with block, thread and address: global accesses outside the buffers of the launch, shared accesses
// outside the block's shared memory, reads of shared memory that was never written (or whose asynchronous copy has not
// been waited for), shared-memory races between two barriers, barriers that not all threads of a block reach, output
// elements that no thread wrote or that two threads wrote (filling channels apart). docs/host-executor.md has the whole
// list.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ir/conv_layer.h"
#include "ir/package/manifest.h"

namespace burin {

// Tensors in the launch geometry's layouts, as 4-byte words; the output's filling channels stay as they are. With n2chw
// a word's bits are two halves (pack_words() of ir/element_type.h).
struct HostLaunchArguments {
  int batch = 1;
  std::span<const float> input;
  std::span<float> output;
  std::span<const float> residual;  // empty when the layer has none
  // Activity maps in the launch geometry's cells; empty: a launch without the map. Every byte of the output's must be
  // written, and nothing is known of what it holds before.
  std::span<const std::uint8_t> input_activity = {};
  std::span<std::uint8_t> output_activity = {};
};

// One kernel, compiled for this CPU. run() may be called many times, from one thread at a time.
class HostKernel {
 public:
  // `bitcode`: the specialised module, primitives still calls. Throws Error(bad_input) when it is not that.
  HostKernel(std::string_view bitcode, const std::string& symbol, const LaunchGeometry& launch, const ConvShape& shape);
  ~HostKernel();
  HostKernel(HostKernel&&) noexcept;
  HostKernel& operator=(HostKernel&&) noexcept;

  // Throws Error(verification) with the first fault found.
  void run(const HostLaunchArguments& arguments);
  // Gives back what is kept from run to run beside the code. For whoever has many kernels: a process may have only so
  // many stacks.
  void release();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace burin
