#include "ir/package/manifest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "ir/arch_name.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/package/manifest_checks.h"
#include "ir/package/names.h"
#include "ir/precision.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr std::size_t kMaxPlanBytes = std::size_t{16} << 20;
constexpr int kMaxRegistersPerThread = 255;
constexpr int kMaxTensorAlignment = 256;  // what the driver's allocations have
constexpr int kMaxCodeCopies = 1024, kMaxTuningSamples = 1'000'000;

// Collects faults, each under the path of the attribute it is about: "kernels[2].launch.threads: 1056 is over 1024".
class Checker {
 public:
  explicit Checker(std::vector<std::string>& faults) : faults_(faults) {}

  void fault(const std::string& path, const std::string& text) { faults_.push_back(path + ": " + text); }

  bool range(const std::string& path, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low) fault(path, fmt::format("{} is under {}", value, low));
    if (value > high) fault(path, fmt::format("{} is over {}", value, high));
    return value >= low && value <= high;
  }

  void finite(const std::string& path, double value) {
    if (!std::isfinite(value) || value < 0) fault(path, fmt::format("{} is not a finite number from 0 up", value));
  }

  void text(const std::string& path, const std::string& value, std::size_t limit) {
    if (value.empty()) fault(path, "is empty");
    if (value.size() > limit) return fault(path, fmt::format("{} bytes are over {}", value.size(), limit));
    if (!is_plain_text(value)) fault(path, "is not printable UTF-8 text");
  }

  void package_path(const std::string& path, const std::string& value) {
    if (!is_package_path(value)) {
      fault(path, fmt::format("'{}' is not a relative path of plain names without '.' or '..'", printable(value)));
    } else if (!seen_paths_.insert(value).second) {
      fault(path, fmt::format("'{}' is named twice", value));
    }
  }

  void symbol(const std::string& path, const std::string& value) {
    if (!is_symbol(value)) {
      fault(path, fmt::format("'{}' is not a symbol: [A-Za-z_][A-Za-z0-9_]*, at most {} bytes", printable(value),
                              kMaxSymbolBytes));
    } else if (!seen_symbols_.insert(value).second) {
      fault(path, fmt::format("'{}' is the symbol of two kernels", value));
    }
  }

 private:
  std::vector<std::string>& faults_;
  std::set<std::string> seen_paths_, seen_symbols_;
};

// The input or the output: what its values are, how they lie and where the tensor may begin.
struct TensorForm {
  ElementType element;
  TensorLayout layout;
  int alignment = kFloatBytes;
};

void check_tensors(Checker& check, const std::string& path, const TensorForm& form, std::int64_t elements) {
  const int images = images_together(form.layout), channels = channels_together(form.layout);
  const int at_once = channels * kFloatBytes;
  if (check.range(path + "_alignment", form.alignment, kFloatBytes, kMaxTensorAlignment) &&
      !std::has_single_bit(static_cast<unsigned>(form.alignment))) {
    check.fault(path + "_alignment", fmt::format("{} is not a power of two", form.alignment));
  } else if (form.alignment < at_once && form.alignment >= kFloatBytes) {
    check.fault(path + "_alignment",
                fmt::format("{} is under {}: {} channels of a pixel are read or written at once in {}", form.alignment,
                            at_once, channels, to_string(form.layout)));
  }
  if (images != elements_per_word(form.element)) {
    check.fault(path + "_element",
                fmt::format("{} does not lie in {}: {} value{} of its type to a word of 4 bytes, {} "
                            "image{} of the layout",
                            to_string(form.element), to_string(form.layout), elements_per_word(form.element),
                            elements_per_word(form.element) == 1 ? "" : "s", images, images == 1 ? "" : "s"));
  }
  if (elements > kMaxImageBytes / kFloatBytes) {
    check.fault(path + "_layout",
                fmt::format("{} in {} is over {} bytes", images == 1 ? "an image" : "a pair of images",
                            to_string(form.layout), kMaxImageBytes));
  }
}

void check_tensors(Checker& check, const std::string& path, const KernelRecord& kernel) {
  const LaunchGeometry& launch = kernel.launch;
  const ConvShape& shape = kernel.shape;
  check_tensors(check, path + ".input", {launch.input_element, launch.input_layout, launch.input_alignment},
                image_elements(launch.input_layout, shape.in_channels, shape.in_h, shape.in_w));
  check_tensors(check, path + ".output", {launch.output_element, launch.output_layout, launch.output_alignment},
                image_elements(launch.output_layout, shape.out_channels, shape.out_h(), shape.out_w()));
  const auto check_slice = [&](const char* name, std::int64_t words, std::int64_t own, bool has_tensor) {
    if (words == 0) return;
    const std::string slice = fmt::format("{}.{}", path, name);
    if (!has_tensor || launch.output_layout != TensorLayout::nchw) {
      check.fault(slice, "is of a tensor that is no slice of a larger one");
    }
    check.range(slice, words, own, kMaxImageBytes / kFloatBytes);
  };
  check_slice("output_image_words", launch.output_image_words, shape.output_elements(), true);
  check_slice("residual_image_words", launch.residual_image_words, shape.conv_elements(), shape.epilogue.residual);
  const int together = std::max(images_together(launch.input_layout), images_together(launch.output_layout));
  if (launch.tile_images >= 1 && launch.tile_images % together != 0) {
    check.fault(path + ".tile_images", fmt::format("{} is not a multiple of {}: that many images share each word",
                                                   launch.tile_images, together));
  }
}

void check_map(Checker& check, const std::string& path, const ActivityMap& map, const ActivityExtent& extent,
               int images_together) {
  const std::vector<std::string> faults = verify(map, extent, images_together, "map");
  for (const std::string& fault : faults) check.fault(path, fault);
  if (faults.empty() && map_bytes(map, extent) > kMaxActivityBytes) {
    check.fault(path, fmt::format("{} bytes at batch {} are over {}", map_bytes(map, extent), extent.images,
                                  kMaxActivityBytes));
  }
}

void check_activity(Checker& check, const std::string& path, const KernelRecord& kernel) {
  const LaunchGeometry& launch = kernel.launch;
  const ConvShape& shape = kernel.shape;
  const int batch = std::clamp(kernel.planned_batch, 1, kMaxBatch);
  if (launch.input_activity) {
    check_map(check, path + ".input_activity", *launch.input_activity,
              {batch, shape.in_channels, shape.in_h, shape.in_w}, images_together(launch.input_layout));
  }
  if (!launch.output_activity) return;
  const ActivityMap& map = *launch.output_activity;
  const ActivityExtent extent = {batch, shape.out_channels, shape.out_h(), shape.out_w()};
  check_map(check, path + ".output_activity", map, extent, images_together(launch.output_layout));
  if (map.images != launch.tile_images || map.rows < 1 || map.cols < 1 ||
      cells_per_images(map, extent) != launch.tiles_per_image) {
    check.fault(path + ".output_activity", fmt::format("cells of {} are not the kernel's tiles: {} images, {} tiles",
                                                       print(map), launch.tile_images, launch.tiles_per_image));
  }
}

void check_launch(Checker& check, const std::string& path, const KernelRecord& kernel, bool shape_is_legal) {
  const LaunchGeometry& launch = kernel.launch;
  if (check.range(path + ".threads", launch.threads, kWarpSize, kMaxThreadsPerBlock) &&
      launch.threads % kWarpSize != 0) {
    check.fault(path + ".threads",
                fmt::format("{} is not a multiple of {}: a block is whole warps", launch.threads, kWarpSize));
  }
  check.range(path + ".shared_bytes", launch.shared_bytes, 0, kMaxSharedBytes);
  check.range(path + ".slices", launch.slices, 1, kMaxSlices);
  const bool images = check.range(path + ".tile_images", launch.tile_images, 1, kMaxBatch);
  bool tiles = check.range(path + ".tiles_per_image", launch.tiles_per_image, 1, kMaxTiles);
  const bool workspace =
      check.range(path + ".workspace_bytes_per_tile", launch.workspace_bytes_per_tile, 0, kMaxWorkspaceBytes);
  if (launch.workspace_bytes_per_tile % static_cast<int>(sizeof(float)) != 0) {
    check.fault(path + ".workspace_bytes_per_tile", fmt::format("{} is not a multiple of {}: partial sums are float32",
                                                                launch.workspace_bytes_per_tile, sizeof(float)));
  }
  check.range(path + ".counters_per_tile", launch.counters_per_tile, 0, kMaxSlices);
  tiles &= check.range(path + ".cluster_tiles", launch.cluster_tiles, 1, kMaxClusterBlocks);
  if (tiles && shape_is_legal) {
    const std::int64_t pixels = std::int64_t{kernel.shape.out_h()} * kernel.shape.out_w();
    if (launch.tiles_per_image > pixels) {
      check.fault(path + ".tiles_per_image", fmt::format("{} is over the {} output pixels of an image: a tile would be "
                                                         "empty",
                                                         launch.tiles_per_image, pixels));
      tiles = false;
    }
  }
  if (!images || !tiles || kernel.planned_batch < 1 || kernel.planned_batch > kMaxBatch) return;
  const std::int64_t blocks = grid_width(launch, kernel.planned_batch);  // at most 2^20 * 2^31 + 7
  if (blocks > kMaxTiles) {
    check.fault(path, fmt::format("{} tiles at batch {} are over {}, the most blocks of a grid", blocks,
                                  kernel.planned_batch, kMaxTiles));
  } else if (workspace && saturating_product({blocks, launch.workspace_bytes_per_tile}) > kMaxWorkspaceBytes) {
    check.fault(path, fmt::format("{} tiles of {} bytes of workspace are over {} bytes", blocks,
                                  launch.workspace_bytes_per_tile, kMaxWorkspaceBytes));
  }
}

void check_binary(Checker& check, const std::string& path, const KernelBinary& binary) {
  if (binary.kind == BinaryKind::bitcode) {
    if (!binary.arch.empty()) {
      check.fault(path + ".arch", fmt::format("'{}': bitcode is for no architecture", printable(binary.arch)));
    }
  } else if (!parse_arch_name(binary.arch)) {
    check.fault(path + ".arch",
                fmt::format("'{}' is not the name of an architecture, such as sm_90", printable(binary.arch)));
  }
  check.package_path(path + ".path", binary.path);
  check.range(path + ".bytes", binary.bytes, 1, kMaxPackageEntryBytes);
  if (binary.kind != BinaryKind::cubin) {
    if (binary.registers != -1 || binary.spill_bytes != -1 || binary.stack_bytes != -1 || binary.code_bytes != -1) {
      check.fault(path, "carries an assembler's report, which only a cubin has");
    }
    return;
  }
  check.range(path + ".registers", binary.registers, -1, kMaxRegistersPerThread);
  check.range(path + ".spill_bytes", binary.spill_bytes, -1, kMaxPackageEntryBytes);
  check.range(path + ".stack_bytes", binary.stack_bytes, -1, kMaxPackageEntryBytes);
  check.range(path + ".code_bytes", binary.code_bytes, -1, kMaxPackageEntryBytes);
}

void check_candidate(Checker& check, const std::string& path, const TuningCandidate& candidate) {
  check.text(path + ".plan", candidate.plan, kMaxNameBytes);
  check.finite(path + ".predicted_us", candidate.predicted_us);
  if (!candidate.fault.empty()) {
    check.text(path + ".fault", candidate.fault, kMaxNameBytes);
    if (candidate.cold_us != 0 || candidate.warm_us != 0 || candidate.samples != 0 || candidate.error != 0) {
      check.fault(path, "has a fault and figures");
    }
    return;
  }
  check.finite(path + ".cold_us", candidate.cold_us);
  check.finite(path + ".warm_us", candidate.warm_us);
  check.finite(path + ".error", candidate.error);
  check.range(path + ".samples", candidate.samples, 1, kMaxTuningSamples);
}

void check_tuning(Checker& check, const std::string& path, const TuningRecord& tuning) {
  check.text(path + ".device", tuning.device, kMaxShortTextBytes);
  if (!parse_arch_name(tuning.arch)) {
    check.fault(path + ".arch",
                fmt::format("'{}' is not the name of an architecture, such as sm_90", printable(tuning.arch)));
  }
  check.range(path + ".driver_version", tuning.driver_version, 0, std::numeric_limits<int>::max());
  check.range(path + ".code_copies", tuning.code_copies, 1, kMaxCodeCopies);
  const auto count = static_cast<std::int64_t>(tuning.candidates.size());
  if (count > kMaxTuningCandidates) {
    return check.fault(path + ".candidates", fmt::format("{} are over {}", count, kMaxTuningCandidates));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    check_candidate(check, fmt::format("{}.candidates[{}]", path, i), tuning.candidates[static_cast<std::size_t>(i)]);
  }
  if (tuning.chosen < 0 || tuning.chosen >= count) {
    check.fault(path + ".chosen", fmt::format("{} is none of the {} candidates", tuning.chosen, count));
  } else if (!tuning.candidates[static_cast<std::size_t>(tuning.chosen)].fault.empty()) {
    check.fault(path + ".chosen", fmt::format("candidate {} has a fault", tuning.chosen));
  }
}

void check_precision(Checker& check, const std::string& path, const KernelRecord& kernel) {
  const std::optional<Precision> precision = parse_precision(kernel.precision);
  if (!precision) {
    check.fault(path + ".precision", fmt::format("'{}' is not a precision this burin knows ({})",
                                                 printable(kernel.precision), precision_names()));
  } else if (element_of(*precision) != kernel.launch.input_element) {
    check.fault(path + ".launch.input_element",
                fmt::format("{} is not what {} kernels read: {}", to_string(kernel.launch.input_element),
                            kernel.precision, to_string(element_of(*precision))));
  }
}

void check_binaries(Checker& check, const std::string& path, const std::vector<KernelBinary>& binaries) {
  if (binaries.empty()) check.fault(path, "is empty: there would be nothing to load");
  std::set<std::pair<BinaryKind, std::string>> kinds;
  for (std::size_t i = 0; i < binaries.size(); ++i) {
    const std::string binary_path = fmt::format("{}[{}]", path, i);
    check_binary(check, binary_path, binaries[i]);
    if (!kinds.emplace(binaries[i].kind, binaries[i].arch).second) {
      check.fault(binary_path, "is of the same kind and architecture as one before it");
    }
  }
}

void check_kernel(Checker& check, const std::string& path, const KernelRecord& kernel) {
  check.symbol(path + ".symbol", kernel.symbol);
  check.text(path + ".layer", kernel.layer, kMaxLayerNameBytes);
  const std::vector<std::string> shape_faults = verify(kernel.shape);
  for (const std::string& fault : shape_faults) check.fault(path + ".shape", fault);
  if (shape_faults.empty()) {
    check.range(path + ".nonzeros", kernel.nonzeros, 0, kernel.shape.weight_elements());
    check.range(path + ".dead_inputs", kernel.dead_inputs, 0, kernel.shape.in_channels);
    check.range(path + ".dead_outputs", kernel.dead_outputs, 0, kernel.shape.out_channels);
  }
  check.text(path + ".template", kernel.template_name, kMaxShortTextBytes);
  check_precision(check, path, kernel);
  if (kernel.plan.size() > kMaxPlanBytes) {
    check.fault(path + ".plan", fmt::format("{} bytes are over {}", kernel.plan.size(), kMaxPlanBytes));
  } else if (!is_utf8(kernel.plan)) {
    check.fault(path + ".plan", "is not UTF-8 text");
  }
  if (!kernel.plan_short.empty()) check.text(path + ".plan_short", kernel.plan_short, kMaxNameBytes);
  check.range(path + ".planned_batch", kernel.planned_batch, 1, kMaxBatch);
  check.finite(path + ".predicted_us", kernel.predicted_us);
  if (kernel.tuning) check_tuning(check, path + ".tuning", *kernel.tuning);
  check_launch(check, path + ".launch", kernel, shape_faults.empty());
  if (shape_faults.empty()) {
    check_tensors(check, path + ".launch", kernel);
    check_activity(check, path + ".launch", kernel);
  }
  check.text(path + ".source_hash", kernel.source_hash, kMaxShortTextBytes);
  check_binaries(check, path + ".binaries", kernel.binaries);
}

void check_operator(Checker& check, const std::string& path, const OperatorRecord& record) {
  check.symbol(path + ".symbol", record.symbol);
  check.text(path + ".operator", record.op, kMaxNameBytes);
  check.text(path + ".kind", record.kind, kMaxShortTextBytes);
  for (const std::string& fault : verify(record.plan)) check.fault(path + ".plan", fault);
  check.text(path + ".source_hash", record.source_hash, kMaxShortTextBytes);
  if (!record.weights.empty()) check.package_path(path + ".weights", record.weights);
  if (record.weights.empty() != (record.plan.weight_words == 0)) {
    check.fault(path + ".weights", fmt::format("the plan has {} words of them", record.plan.weight_words));
  }
  check_binaries(check, path + ".binaries", record.binaries);
}

void check_tensor(Checker& check, const std::string& path, const TensorRecord& tensor) {
  check.text(path + ".name", tensor.name, kMaxNameBytes);
  check.package_path(path + ".path", tensor.path);
  if (!tensor_bytes(tensor)) {
    check.fault(path + ".shape", fmt::format("[{}] is not at most {} extents from 0 up whose values fit into {} bytes",
                                             fmt::join(tensor.shape, ", "), kMaxTensorRank, kMaxPackageEntryBytes));
  }
}

}  // namespace

std::optional<std::int64_t> tensor_bytes(const TensorRecord& tensor) {
  if (tensor.shape.size() > static_cast<std::size_t>(kMaxTensorRank)) return std::nullopt;
  std::int64_t bytes = sizeof(float);
  bool empty = false;
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 0) return std::nullopt;
    empty = empty || extent == 0;
    if (extent > 0 && __builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  if (bytes > kMaxPackageEntryBytes) return std::nullopt;
  return empty ? 0 : bytes;
}

namespace {

std::int64_t spanned_words(const LaunchGeometry& launch, int channels, int rows, int cols, std::int64_t image_words,
                           std::int64_t batch) {
  if (image_words == 0) return tensor_words(launch.output_layout, batch, channels, rows, cols);
  return (batch - 1) * image_words + saturating_product({channels, rows, cols});
}

}  // namespace

std::int64_t output_words(const LaunchGeometry& launch, const ConvShape& shape, std::int64_t batch) {
  return spanned_words(launch, shape.out_channels, shape.out_h(), shape.out_w(), launch.output_image_words, batch);
}

std::int64_t residual_words(const LaunchGeometry& launch, const ConvShape& shape, std::int64_t batch) {
  return spanned_words(launch, shape.out_channels, shape.conv_h(), shape.conv_w(), launch.residual_image_words, batch);
}

std::vector<std::string> verify(const Manifest& manifest) {
  std::vector<std::string> faults;
  Checker check(faults);
  if (manifest.format_version != kPackageFormatVersion) {
    check.fault("format_version",
                fmt::format("{} is not one this burin knows ({})", manifest.format_version, kPackageFormatVersion));
    return faults;  // what the rest means is not known
  }
  check.text("tool_version", manifest.tool_version, kMaxShortTextBytes);
  check.text("source", manifest.source, kMaxNameBytes);
  check.finite("zero_threshold", manifest.zero_threshold);
  for (std::size_t i = 0; i < manifest.kernels.size(); ++i) {
    check_kernel(check, fmt::format("kernels[{}]", i), manifest.kernels[i]);
  }
  for (std::size_t i = 0; i < manifest.operators.size(); ++i) {
    check_operator(check, fmt::format("operators[{}]", i), manifest.operators[i]);
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
    const std::string path = fmt::format("tensors[{}]", i);
    check_tensor(check, path, manifest.tensors[i]);
    if (!names.insert(manifest.tensors[i].name).second) {
      check.fault(path + ".name", fmt::format("'{}' is the name of two tensors", printable(manifest.tensors[i].name)));
    }
  }
  check_network(manifest, faults);
  return faults;
}

}  // namespace burin
