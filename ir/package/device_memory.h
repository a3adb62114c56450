// What of a GPU's memory a package's programs take, step by step and in total, and what the same weights take as dense
// and as compressed matrices (docs/networks.md says what each figure counts).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/package/manifest.h"

namespace burin {

// The weights of layers in other forms: values of 2 bytes where the kernel computes in, or rounds weights to, a half
// type, else of 4. Biases are not among them.
struct WeightForms {
  std::int64_t dense_bytes = 0, csr_bytes = 0;
  WeightForms& operator+=(const WeightForms& other);
};
// Nothing: the kernel is of no convolution or fully connected layer.
std::optional<WeightForms> weight_forms(const Kernel& kernel);

// What a kernel brings along when it is loaded.
struct KernelMemory {
  std::int64_t code_bytes = -1;    // machine code; below 0: not known, since there is PTX alone
  std::int64_t weight_bytes = 0;   // the words that its code reads
  std::int64_t library_bytes = 0;  // dense weights and biases for the call of a library
};
KernelMemory memory_of(const Kernel& kernel, const std::optional<std::string>& arch);
// The scratch memory of a launch; of a call as tuning recorded it, where that is more than what the kernel's own code
// takes. What is over kMaxWorkspaceBytes counts as that: no launch gets more.
std::int64_t scratch_bytes(const Kernel& kernel, std::int64_t batch);

struct StepMemory {
  const Kernel* kernel = nullptr;
  KernelMemory loaded;
  std::int64_t scratch_bytes = 0;
  std::optional<WeightForms> forms;  // of a layer's weights
};

struct MemorySum {
  std::int64_t code_bytes = 0;    // of kernels, each once
  int kernels_without_code = 0;   // whose code is not known, and not counted
  std::int64_t weight_bytes = 0;  // of files that kernels read, each once, and of calls
  std::int64_t arena_bytes = 0, scratch_bytes = 0;
  WeightForms forms;  // of each layer once

  std::int64_t total() const { return code_bytes + weight_bytes + arena_bytes + scratch_bytes; }
};

struct ProgramMemory {
  const Program* program = nullptr;
  std::vector<StepMemory> steps;
  MemorySum sum;
};

// With all kernels of the package loaded and one program bound, the one that takes most: arena and scratch memory are
// that program's.
struct DeviceMemory {
  std::vector<ProgramMemory> programs;
  MemorySum sum;
};
// `arch` chooses the machine code (default: the first of each kernel). `manifest` must outlive the result.
DeviceMemory device_memory(const Manifest& manifest, const std::optional<std::string>& arch);

}  // namespace burin
