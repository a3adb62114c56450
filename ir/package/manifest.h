// Manifest: what a package says of itself. Everything the runtime needs to load and launch, and everything a person
// needs to judge what was compiled. Serialised as manifest.json (docs/package-format.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel.h"
#include "ir/objective.h"
#include "ir/program.h"
#include "ir/quantized_pairs.h"

namespace burin {

inline constexpr int kPackageFormatVersion = 9;

struct TensorRecord {
  std::string name;
  std::string path;  // inside the package: little-endian float32
  std::vector<std::int64_t> shape;
  bool operator==(const TensorRecord&) const = default;
};

struct Manifest {
  int format_version = kPackageFormatVersion;
  std::string tool_version;
  std::string source;  // base name of the weights file
  float zero_threshold = 0;
  QuantizedPairs quantized = QuantizedPairs::simulate;
  Objective objective = Objective::time;
  std::optional<std::int64_t> memory_limit;  // bytes on a device that were allowed; nothing: there was no limit
  std::vector<Kernel> kernels;
  std::vector<TensorRecord> tensors;
  std::vector<BatchEstimate> batches;  // where programs were chosen for a range of batch sizes, images ascending
  std::vector<Program> programs;       // those of one name one after the other, batch sizes ascending
  bool operator==(const Manifest&) const = default;
};

// The names of the programs, each once, in their order.
std::vector<std::string> program_names(const Manifest& manifest);
// Whether each program is a layer by itself.
bool holds_layers(const Manifest& manifest);

std::vector<std::string> verify(const Manifest& manifest);
// A part of it: the programs and what they need of the rest, when that has no faults.
void check_programs(const Manifest& manifest, std::vector<std::string>& faults);
std::string print(const Manifest& manifest);     // JSON, keys in a fixed order
Manifest parse_manifest(std::string_view json);  // throws Error(bad_input)

}  // namespace burin
