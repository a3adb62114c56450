#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "ir/error.h"
#include "ir/package/manifest_json.h"

namespace burin {
namespace {

using nlohmann::ordered_json;  // keys stay in the order in which they are written here

// The double with the shortest decimal form that gives back the float: 0.01 and not 0.009999999776482582.
double shortest(float value) {
  if (!std::isfinite(value)) return value;
  const std::string text = fmt::format("{}", value);
  double result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

// One element per line, so that a plan can be read in the manifest; join_lines() gives the text back, byte for byte.
ordered_json split_lines(std::string_view text) {
  ordered_json lines = ordered_json::array();
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  lines.push_back(text);
  return lines;
}

ordered_json pool_json(const Pool& pool) {
  return {
      {"kind", to_string(pool.kind)},  {"kernel_h", pool.kernel_h},           {"kernel_w", pool.kernel_w},
      {"stride_h", pool.stride_h},     {"stride_w", pool.stride_w},           {"pad_top", pool.pad.top},
      {"pad_bottom", pool.pad.bottom}, {"pad_left", pool.pad.left},           {"pad_right", pool.pad.right},
      {"round_up", pool.round_up},     {"count_padding", pool.count_padding},
  };
}

ordered_json shape_json(const ConvShape& shape) {
  ordered_json result = {
      {"in_channels", shape.in_channels},
      {"out_channels", shape.out_channels},
      {"in_h", shape.in_h},
      {"in_w", shape.in_w},
      {"kernel_h", shape.kernel_h},
      {"kernel_w", shape.kernel_w},
      {"stride_h", shape.stride_h},
      {"stride_w", shape.stride_w},
      {"pad_top", shape.pad.top},
      {"pad_bottom", shape.pad.bottom},
      {"pad_left", shape.pad.left},
      {"pad_right", shape.pad.right},
      {"dilation_h", shape.dilation_h},
      {"dilation_w", shape.dilation_w},
      {"groups", shape.groups},
      {"bias", shape.epilogue.bias},
      {"residual", shape.epilogue.residual},
      {"activation", to_string(shape.epilogue.activation)},
      {"leaky_slope", shortest(shape.epilogue.leaky_slope)},
  };
  if (shape.epilogue.pool) result["pool"] = pool_json(*shape.epilogue.pool);
  return result;
}

ordered_json binary_json(const KernelBinary& binary) {
  ordered_json result = {{"kind", to_string(binary.kind)}};
  if (!binary.arch.empty()) result["arch"] = binary.arch;
  result["path"] = binary.path;
  result["bytes"] = binary.bytes;
  if (binary.registers != -1) result["registers"] = binary.registers;
  if (binary.spill_bytes != -1) result["spill_bytes"] = binary.spill_bytes;
  if (binary.stack_bytes != -1) result["stack_bytes"] = binary.stack_bytes;
  if (binary.code_bytes != -1) result["code_bytes"] = binary.code_bytes;
  return result;
}

ordered_json candidate_json(const TuningCandidate& candidate) {
  ordered_json result = {
      {"provider", candidate.provider}, {"plan", candidate.plan}, {"predicted_us", candidate.predicted_us}};
  if (!candidate.fault.empty()) {
    result["fault"] = candidate.fault;
    return result;
  }
  result["us"] = candidate.us;
  result["samples"] = candidate.samples;
  result["error"] = candidate.error;
  return result;
}

ordered_json tuning_json(const TuningRecord& tuning) {
  ordered_json candidates = ordered_json::array();
  for (const TuningCandidate& candidate : tuning.candidates) candidates.push_back(candidate_json(candidate));
  return {
      {"device", tuning.device},           {"arch", tuning.arch},     {"driver_version", tuning.driver_version},
      {"code_copies", tuning.code_copies}, {"chosen", tuning.chosen}, {"candidates", candidates},
  };
}

ordered_json layer_json(const KernelLayer& layer) {
  ordered_json result = {{"shape", shape_json(layer.shape)},
                         {"nonzeros", layer.nonzeros},
                         {"dead_inputs", layer.dead_inputs},
                         {"dead_outputs", layer.dead_outputs}};
  if (!layer.data.empty()) result["data"] = layer.data;
  return result;
}

ordered_json kernel_json(const Kernel& kernel) {
  ordered_json binaries = ordered_json::array();
  for (const KernelBinary& binary : kernel.binaries) binaries.push_back(binary_json(binary));
  ordered_json result = {{"symbol", kernel.symbol},
                         {"operator", kernel.op},
                         {"kind", kernel.kind},
                         {"provider", kernel.provider},
                         {"precision", kernel.precision}};
  if (kernel.layer) result["layer"] = layer_json(*kernel.layer);
  if (kernel.planned_batch != 0) result["planned_batch"] = kernel.planned_batch;
  if (kernel.predicted_us != 0) result["predicted_us"] = kernel.predicted_us;
  if (kernel.tuning) result["tuning"] = tuning_json(*kernel.tuning);
  if (!kernel.weights.empty()) result["weights"] = kernel.weights;
  if (kernel.edited) result["edited"] = true;
  result["source_hash"] = kernel.source_hash;
  result["binaries"] = std::move(binaries);
  result["plan"] = split_lines(kernel.plan);
  return result;
}

ordered_json manifest_json(const Manifest& manifest) {
  ordered_json kernels = ordered_json::array();
  for (const Kernel& kernel : manifest.kernels) kernels.push_back(kernel_json(kernel));
  ordered_json tensors = ordered_json::array();
  for (const TensorRecord& tensor : manifest.tensors) {
    tensors.push_back(ordered_json{{"name", tensor.name}, {"path", tensor.path}, {"shape", tensor.shape}});
  }
  ordered_json programs = ordered_json::array();
  for (const Program& program : manifest.programs) programs.push_back(split_lines(to_text(program)));
  return {
      {"format_version", manifest.format_version},
      {"tool_version", manifest.tool_version},
      {"source", manifest.source},
      {"zero_threshold", shortest(manifest.zero_threshold)},
      {"kernels", kernels},
      {"tensors", tensors},
      {"programs", programs},
  };
}

// Text that is not UTF-8 is verify()'s fault to report; printing a faulty manifest must still work.
std::string dump(const ordered_json& document) {
  constexpr int kIndent = 1;
  return document.dump(kIndent, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string_view to_string(BinaryKind kind) {
  switch (kind) {
    case BinaryKind::ptx:
      return "ptx";
    case BinaryKind::cubin:
      return "cubin";
  }
  return "";
}

std::string print_json(const Manifest& manifest, const std::vector<FileRecord>& files) {
  ordered_json document = manifest_json(manifest);
  ordered_json& list = document["files"] = ordered_json::array();
  for (const FileRecord& file : files) {
    list.push_back(ordered_json{{"path", file.path}, {"bytes", file.bytes}, {"crc32", file.crc32}});
  }
  return dump(document);
}

std::string print(const Manifest& manifest) { return dump(manifest_json(manifest)); }

}  // namespace burin
