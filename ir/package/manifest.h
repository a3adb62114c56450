// Manifest: what a package says of itself. Everything the runtime needs to load and launch, and everything a person
// needs to judge what was compiled. Serialised as manifest.json (docs/package-format.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/activity_map.h"
#include "ir/conv_layer.h"
#include "ir/element_type.h"
#include "ir/package/kernel_binary.h"
#include "ir/package/network_record.h"
#include "ir/tensor_layout.h"

namespace burin {

inline constexpr int kPackageFormatVersion = 4;

inline constexpr int kFloatBytes = 4;
// What an access to several values at once needs: a bulk copy, or the channels of a pixel that lie side by side.
inline constexpr int kWideAccessBytes = 16;

// Grid: ceil(batch / tile_images) * tiles_per_image blocks in x, rounded up to a multiple of cluster_tiles; `slices` in
// y.
struct LaunchGeometry {
  int threads = 0;
  int shared_bytes = 0;  // dynamic
  int slices = 1;
  int tile_images = 1;
  int tiles_per_image = 1;
  int cluster_tiles = 1;  // blocks in x that make a cluster
  // Scratch that a launch needs for partial sums: per tile (block in x), all slices together. 0: none.
  std::int64_t workspace_bytes_per_tile = 0;
  // 32-bit arrival counters per tile, zero before the first launch; every launch leaves them zero.
  int counters_per_tile = 0;
  // What the tensors' values are, how they lie in memory, and what their addresses must be a multiple of, in bytes. A
  // residual is like the output.
  ElementType input_element = ElementType::f32, output_element = ElementType::f32;
  TensorLayout input_layout = TensorLayout::nchw, output_layout = TensorLayout::nchw;
  int input_alignment = kFloatBytes, output_alignment = kFloatBytes;
  // Words from one image of the output, or of the residual, to the next, where they are slices of larger tensors; 0:
  // images follow one another.
  std::int64_t output_image_words = 0, residual_image_words = 0;
  // Maps of which channels hold nothing but zeros: that of the input, which the kernel looks channels up in, and that
  // of the output, which it writes, with its tiles as cells. Nothing: the kernel does not.
  std::optional<ActivityMap> input_activity, output_activity;
  bool has_activity() const { return input_activity || output_activity; }
  bool operator==(const LaunchGeometry&) const = default;
};

inline std::int64_t tile_count(const LaunchGeometry& launch, std::int64_t batch) {
  return (batch + launch.tile_images - 1) / launch.tile_images * launch.tiles_per_image;
}
// Blocks in x: those beyond the tiles end at once.
inline std::int64_t grid_width(const LaunchGeometry& launch, std::int64_t batch) {
  return (tile_count(launch, batch) + launch.cluster_tiles - 1) / launch.cluster_tiles * launch.cluster_tiles;
}

// 4-byte words that a launch spans, from the first value of the output, or of the residual, to the last.
std::int64_t output_words(const LaunchGeometry& launch, const ConvShape& shape, std::int64_t batch);
std::int64_t residual_words(const LaunchGeometry& launch, const ConvShape& shape, std::int64_t batch);

// A plan that was tried for a kernel on a GPU.
struct TuningCandidate {
  std::string plan;  // in short: what --plan takes
  double predicted_us = 0;
  std::string fault;  // why there are no figures, such as a wrong result; empty: measured, and right
  // Medians of one launch: other code ran in between / the same code again and again.
  double cold_us = 0, warm_us = 0;
  int samples = 0;   // behind each median
  double error = 0;  // of the worst element, as a share of its tolerance
  bool operator==(const TuningCandidate&) const = default;
};

// How a kernel's plan was chosen by measurement. The first candidate is the cost model's choice.
struct TuningRecord {
  std::string device, arch;  // "NVIDIA H200", "sm_90"
  int driver_version = 0;    // 13000: the driver supports CUDA 13.0
  int code_copies = 1;       // loaded copies of the code that took turns for the cold times
  std::vector<TuningCandidate> candidates;
  int chosen = 0;  // index
  bool operator==(const TuningRecord&) const = default;
};

// One kernel: a layer, compiled for one batch size. Its parameters are, in this order:
//   const T* input, U* output, const U* residual, float* partial sums, uint32_t* counters, int32_t batch
// T and U being launch.input_element and launch.output_element. Where launch.has_activity(), two more follow, each of
// which may be null, and must be where there is no such map:
//   const uint8_t* input activity, uint8_t* output activity
struct KernelRecord {
  std::string symbol;
  std::string layer;
  ConvShape shape;
  std::int64_t nonzeros = 0;
  int dead_inputs = 0, dead_outputs = 0;
  std::string template_name;
  std::string precision;
  std::string plan;        // the plan's text form
  std::string plan_short;  // for tables
  int planned_batch = 1;
  double predicted_us = 0;
  std::optional<TuningRecord> tuning;  // nothing: the plan is the cost model's choice, or a person's
  LaunchGeometry launch;
  std::string source_hash;  // of everything the code was made from: tool version, layer, plan
  std::vector<KernelBinary> binaries;
  bool operator==(const KernelRecord&) const = default;
};

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
  std::vector<KernelRecord> kernels;
  std::vector<TensorRecord> tensors;
  // Of a package that was compiled from a model file.
  std::optional<NetworkRecord> network;
  std::vector<OperatorRecord> operators;
  bool operator==(const Manifest&) const = default;
};

std::vector<std::string> verify(const Manifest& manifest);
std::string print(const Manifest& manifest);     // JSON, keys in a fixed order
Manifest parse_manifest(std::string_view json);  // throws Error(bad_input)

}  // namespace burin
