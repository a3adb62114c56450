#include "ir/package/manifest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/arch.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/operators.h"
#include "ir/package/names.h"
#include "ir/precision.h"
#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr std::size_t kMaxPlanBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxShortTextBytes = 256;  // versions, template names, hashes
constexpr int kMaxRegistersPerThread = 255;
constexpr int kMaxCodeCopies = 1024, kMaxTuningSamples = 1'000'000;

// Collects faults, each under the path of the attribute it is about: "kernels[2].planned_batch: 1048577 is over
// 1048576".
class Checker {
 public:
  template <typename... Args>
  void fault(const std::string& path, fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back(path + ": " + fmt::format(format, std::forward<Args>(args)...));
  }

  std::size_t count() const { return faults_.size(); }
  std::vector<std::string> take() { return std::move(faults_); }

  bool range(const std::string& path, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low) fault(path, "{} is under {}", value, low);
    if (value > high) fault(path, "{} is over {}", value, high);
    return value >= low && value <= high;
  }

  void finite(const std::string& path, double value) {
    if (!std::isfinite(value) || value < 0) fault(path, "{} is not a finite number from 0 up", value);
  }

  void share(const std::string& path, double value) {
    if (!(value >= 0 && value <= 1)) fault(path, "{} is not a share from 0 to 1", value);
  }

  void text(const std::string& path, const std::string& value, std::size_t limit) {
    if (value.empty()) fault(path, "is empty");
    if (value.size() > limit) return fault(path, "{} bytes are over {}", value.size(), limit);
    if (!is_plain_text(value)) fault(path, "is not printable UTF-8 text");
  }

  void arch(const std::string& path, const std::string& name) {
    if (parse_arch_name(name)) return;
    fault(path, "'{}' is not the name of an architecture, such as sm_90", printable(name));
  }

  void package_path(const std::string& path, const std::string& value) {
    if (!is_package_path(value)) {
      fault(path, "'{}' is not a relative path of plain names without '.' or '..'", printable(value));
    } else if (!seen_paths_.insert(value).second || shared_paths_.contains(value)) {
      fault(path, "'{}' is named twice", value);
    }
  }

  // Checks the path of data that several kernels may have in common; `form` is what they read it as.
  void shared_path(const std::string& path, const std::string& value, const std::string& form) {
    const auto known = shared_paths_.find(value);
    if (known == shared_paths_.end()) {
      package_path(path, value);
      shared_paths_.emplace(value, form);
    } else if (known->second != form) {
      fault(path, "'{}' is named twice", printable(value));
    }
  }

  bool symbol(const std::string& path, const std::string& value) {
    if (is_symbol(value)) return true;
    fault(path, "'{}' is not a symbol: [A-Za-z_][A-Za-z0-9_]*, at most {} bytes", printable(value), kMaxSymbolBytes);
    return false;
  }

  void unique_symbol(const std::string& path, const std::string& value) {
    if (symbol(path, value) && !seen_symbols_.insert(value).second) {
      fault(path, "'{}' is the symbol of two kernels", value);
    }
  }

 private:
  std::vector<std::string> faults_;
  std::set<std::string> seen_paths_, seen_symbols_;
  std::map<std::string, std::string> shared_paths_;  // what each is read as
};

void check_binary(Checker& check, const std::string& path, const KernelBinary& binary) {
  check.arch(path + ".arch", binary.arch);
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
  check.text(path + ".provider", candidate.provider, kMaxShortTextBytes);
  check.text(path + ".plan", candidate.plan, kMaxNameBytes);
  check.finite(path + ".predicted_us", candidate.predicted_us);
  if (!candidate.fault.empty()) {
    check.text(path + ".fault", candidate.fault, kMaxNameBytes);
    if (candidate.us != 0 || candidate.samples != 0 || candidate.error || candidate.workspace_bytes != 0 ||
        candidate.network_us != 0) {
      check.fault(path, "has a fault and figures");
    }
    return;
  }
  check.finite(path + ".us", candidate.us);
  if (candidate.error) check.finite(path + ".error", *candidate.error);
  check.range(path + ".samples", candidate.samples, 1, kMaxTuningSamples);
  check.range(path + ".workspace_bytes", candidate.workspace_bytes, 0, kMaxWorkspaceBytes);
  check.finite(path + ".network_us", candidate.network_us);
}

void check_tuning(Checker& check, const std::string& path, const TuningRecord& tuning) {
  check.text(path + ".device", tuning.device, kMaxShortTextBytes);
  check.arch(path + ".arch", tuning.arch);
  check.range(path + ".driver_version", tuning.driver_version, 0, std::numeric_limits<int>::max());
  check.range(path + ".code_copies", tuning.code_copies, 1, kMaxCodeCopies);
  if (!tuning.libraries.empty()) check.text(path + ".libraries", tuning.libraries, kMaxShortTextBytes);
  const auto count = static_cast<std::int64_t>(tuning.candidates.size());
  if (count > kMaxTuningCandidates) {
    return check.fault(path + ".candidates", "{} are over {}", count, kMaxTuningCandidates);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    check_candidate(check, fmt::format("{}.candidates[{}]", path, i), tuning.candidates[static_cast<std::size_t>(i)]);
  }
  if (tuning.chosen < 0 || tuning.chosen >= count) {
    check.fault(path + ".chosen", "{} is none of the {} candidates", tuning.chosen, count);
  } else if (!tuning.candidates[static_cast<std::size_t>(tuning.chosen)].fault.empty()) {
    check.fault(path + ".chosen", "candidate {} has a fault", tuning.chosen);
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

void check_layer(Checker& check, const std::string& path, const KernelLayer& layer) {
  const std::vector<std::string> faults = verify(layer.shape);
  for (const std::string& fault : faults) check.fault(path + ".shape", "{}", fault);
  if (!faults.empty()) return;
  check.range(path + ".nonzeros", layer.nonzeros, 0, layer.shape.weight_elements());
  check.range(path + ".dead_inputs", layer.dead_inputs, 0, layer.shape.in_channels);
  check.range(path + ".dead_outputs", layer.dead_outputs, 0, layer.shape.out_channels);
  if (layer.zeros) {
    check.share(path + ".zeros.share", layer.zeros->share);
    if (layer.zeros->pays_from && !layer.zeros->compared) {
      check.fault(path + ".zeros.pays_from", "nothing was compared");
    }
    if (layer.zeros->pays_from) check.share(path + ".zeros.pays_from", *layer.zeros->pays_from);
  }
  if (!layer.multiplied) return;
  constexpr std::int64_t kMostSlots = 64 * 512;  // of a weight: rows of a group by channels of a chunk
  const auto& [columns, live, slots] = *layer.multiplied;
  check.range(path + ".multiplied.columns", columns, 1, layer.shape.weight_elements());
  check.range(path + ".multiplied.live", live, 0, columns);
  check.range(path + ".multiplied.slots", slots, layer.nonzeros, kMostSlots * kMaxLayerWeights);
}

void check_linear(Checker& check, const std::string& path, const Kernel& kernel) {
  const auto& [rows, columns, nonzeros] = *kernel.linear;
  if (kernel.kind != kind_name(Linear())) check.fault(path, "the kernel is of no fully connected layer");
  const bool rows_fit = check.range(path + ".rows", rows, 1, kMaxLayerWeights);
  if (rows_fit && check.range(path + ".columns", columns, 1, kMaxLayerWeights / rows)) {
    check.range(path + ".nonzeros", nonzeros, 0, rows * columns);
  }
}

void check_weight_zeros(Checker& check, const std::string& path, const Kernel& kernel) {
  if (!kernel.layer && !kernel.linear)
    return check.fault(path, "the kernel is of no convolution or fully connected layer");
  int last = 0;
  for (std::size_t i = 0; i < kernel.weight_zeros.size(); ++i) {
    const auto& [batch, pays_from] = kernel.weight_zeros[i];
    const std::string entry = fmt::format("{}[{}]", path, i);
    if (check.range(entry + ".batch", batch, 1, kMaxBatch) && batch <= last) {
      check.fault(entry + ".batch", "{} does not come after {}", batch, last);
    }
    last = batch;
    if (pays_from) check.share(entry + ".pays_from", *pays_from);
  }
}

// The plan, and that the rest of the kernel is what it implies.
void check_plan(Checker& check, const std::string& path, const Kernel& kernel) {
  if (kernel.plan.size() > kMaxPlanBytes) {
    return check.fault(path, "{} bytes are over {}", kernel.plan.size(), kMaxPlanBytes);
  }
  if (!is_utf8(kernel.plan)) return check.fault(path, "is not UTF-8 text");
  Kernel implied = kernel;
  try {
    derive_form(implied);
  } catch (const Error& error) {
    return check.fault(path, "{}", error.what());
  }
  if (implied != kernel) check.fault(path, "implies another form of the kernel than the one it has");
}

// Tensors of the layer that the form speaks of.
void check_layer_tensors(Checker& check, const std::string& path, const Kernel& kernel) {
  const ConvShape& shape = kernel.layer->shape;
  const auto require = [&](TensorRole role, std::int64_t channels, std::int64_t rows, std::int64_t cols) {
    const KernelTensor* tensor = kernel.form.find(role);
    const std::int64_t has = tensor == nullptr ? 0 : tensor->words();
    const TensorFormat format = tensor == nullptr ? TensorFormat() : tensor->format();
    const std::int64_t wanted = channels == 0 ? 0 : image_words(format, {channels, rows, cols});
    if (has != wanted) {
      check.fault(path, "the kernel's {} has {} words of an image, the layer's {}", to_string(role), has, wanted);
    }
  };
  require(TensorRole::input, shape.in_channels, shape.in_h, shape.in_w);
  require(TensorRole::output, shape.out_channels, shape.out_h(), shape.out_w());
  require(TensorRole::residual, shape.epilogue.residual ? shape.out_channels : 0, shape.conv_h(), shape.conv_w());
}

// What a plan calls are functions of the kernel, with as many values as they take.
void check_functions(Checker& check, const std::string& path, const Kernel& kernel) {
  std::map<std::string, int> inputs;  // of each, by its symbol
  for (const KernelFunction& packed : kernel.functions) {
    if (!inputs.emplace(packed.function.symbol(), packed.function.inputs).second) {
      check.fault(path + ".functions", "two have the symbol {}", packed.function.symbol());
    }
  }
  const auto require = [&](const std::string& symbol, int wanted) {
    const auto found = inputs.find(symbol);
    if (found == inputs.end()) {
      check.fault(path + ".plan", "it calls {}, which is none of the kernel's functions", symbol);
    } else if (found->second != wanted) {
      check.fault(path + ".plan", "it calls {} with {} values; it takes {}", symbol, wanted, found->second);
    }
  };
  if (kernel.own_provider() == kBakedProvider) {
    const std::optional<Elementwise>& function = kernel.layer->shape.epilogue.function;
    if (function && function->user != nullptr) require(function->user->symbol(), 1);
    return;
  }
  for (const auto& [name, symbol] : parse_template_plan(kernel.own_plan()).calls) {
    require(symbol, name == "combine" ? 2 : 1);
  }
}

void check_kernel(Checker& check, const std::string& path, const Kernel& kernel) {
  check.unique_symbol(path + ".symbol", kernel.symbol);
  if (!kernel.entry.empty()) check.symbol(path + ".entry", kernel.entry);
  check.text(path + ".operator", kernel.op, kMaxNameBytes);
  check.text(path + ".kind", kernel.kind, kMaxShortTextBytes);
  check.text(path + ".provider", kernel.provider, kMaxShortTextBytes);
  const std::size_t before = check.count();
  if (!parse_enum<Precision>(kernel.precision)) {
    check.fault(path + ".precision", "'{}' is not a precision this burin knows ({})", printable(kernel.precision),
                known_names<Precision>());
  }
  if (!kernel.kept_in_fp32.empty()) {
    check.text(path + ".kept_in_fp32", kernel.kept_in_fp32, kMaxShortTextBytes);
    const bool is_layer = kernel.layer || kernel.kind == kind_name(Linear());
    if (!is_layer || kernel.precision != to_string(Precision::fp32)) {
      check.fault(path + ".kept_in_fp32", "only a convolution or fully connected layer in fp32 is kept in it");
    }
  }
  if (kernel.layer) check_layer(check, path + ".layer", *kernel.layer);
  if (kernel.linear) check_linear(check, path + ".linear", kernel);
  if (!kernel.weight_zeros.empty()) check_weight_zeros(check, path + ".weight_zeros", kernel);
  check.range(path + ".planned_batch", kernel.planned_batch, 0, kMaxBatch);
  check.finite(path + ".predicted_us", kernel.predicted_us);
  if (kernel.tuning) check_tuning(check, path + ".tuning", *kernel.tuning);
  check.text(path + ".source_hash", kernel.source_hash, kMaxShortTextBytes);
  check_binaries(check, path + ".binaries", kernel.binaries);
  if (!kernel.weights.empty()) check.shared_path(path + ".weights", kernel.weights, "weights");
  for (std::size_t i = 0; i < kernel.functions.size(); ++i) {
    const std::string at = fmt::format("{}.functions[{}]", path, i);
    for (const std::string& fault : verify(kernel.functions[i].function)) check.fault(at, "{}", fault);
    check.text(at + ".name", kernel.functions[i].function.name, kMaxShortTextBytes);
    check.shared_path(at + ".ptx", kernel.functions[i].path, "function");
  }
  if (kernel.layer && !kernel.layer->data.empty()) check.shared_path(path + ".layer.data", kernel.layer->data, "layer");
  if (kernel.called) check.shared_path(path + ".called.data", kernel.called->data, "layer");
  if (kernel.called && kernel.provider != kLinearCublasProvider) {
    check.fault(path + ".called", "the plan of a kernel of {} calls no library for a fully connected layer",
                printable(kernel.provider));
  }
  if (check.count() != before) return;  // the plan is of the layer, which is not legal
  check_plan(check, path + ".plan", kernel);
  if (check.count() != before) return;
  check_functions(check, path, kernel);
  if (kernel.layer) check_layer_tensors(check, path + ".layer", kernel);
  if (kernel.call && kernel.layer_data().empty()) {
    check.fault(path + ".layer.data", "the plan has a library's call, which reads the layer's weights");
  }
  if (kernel.weights.empty() == kernel.form.has(TensorRole::weights)) {
    check.fault(path + ".weights", "the plan has {}", kernel.weights.empty() ? "some" : "none");
  }
}

void check_tensor(Checker& check, const std::string& path, const TensorRecord& tensor) {
  check.text(path + ".name", tensor.name, kMaxNameBytes);
  check.package_path(path + ".path", tensor.path);
  if (!tensor_bytes(tensor)) {
    check.fault(path + ".shape", "[{}] is not at most {} extents from 0 up whose values fit into {} bytes",
                numbers_text(tensor.shape, ", "), kMaxTensorRank, kMaxPackageEntryBytes);
  }
}

// What is said of each batch size is of the program that runs it.
void check_batches(Checker& check, const Manifest& manifest) {
  if (manifest.batches.size() > std::size_t{kMaxBatchSizes}) {
    return check.fault("batches", "{} are over {}", manifest.batches.size(), kMaxBatchSizes);
  }
  std::set<int> programs;
  for (const Program& program : manifest.programs) programs.insert(program.batch);
  int before = 0;
  for (std::size_t i = 0; i < manifest.batches.size(); ++i) {
    const BatchEstimate& batch = manifest.batches[i];
    const std::string path = fmt::format("batches[{}]", i);
    check.range(path + ".images", batch.images, before + 1, kMaxBatch);
    before = std::clamp(batch.images, before, kMaxBatch);
    const auto runs_it = programs.lower_bound(batch.images);
    if (runs_it == programs.end() || *runs_it != batch.program) {
      check.fault(path + ".program", "{} images are not run by a program for {}", batch.images, batch.program);
    }
    check.finite(path + ".us", batch.us);
    check.finite(path + ".own_us", batch.own_us);
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

std::vector<std::string> program_names(const Manifest& manifest) {
  std::vector<std::string> names;
  for (const Program& program : manifest.programs) {
    // Programs of one name stand together.
    if (names.empty() || names.back() != program.name) names.push_back(program.name);
  }
  return names;
}

bool holds_layers(const Manifest& manifest) {
  return std::ranges::all_of(manifest.programs, [](const Program& program) {
    if (program.steps.size() != 1 || program.steps.front().name != program.name) return false;
    // A model's operator may be called like its programs.
    return program.name != kNetworkName || program.steps.front().tensor == fmt::format("{}.output", kNetworkName);
  });
}

std::vector<std::string> verify(const Manifest& manifest) {
  Checker check;
  if (manifest.format_version != kPackageFormatVersion) {
    check.fault("format_version", "{} is not one this burin knows ({})", manifest.format_version,
                kPackageFormatVersion);
    return check.take();  // what the rest means is not known
  }
  check.text("tool_version", manifest.tool_version, kMaxShortTextBytes);
  check.text("source", manifest.source, kMaxNameBytes);
  check.finite("zero_threshold", manifest.zero_threshold);
  if (manifest.memory_limit) check.range("memory_limit", *manifest.memory_limit, 1, kMaxMemoryLimit);
  for (std::size_t i = 0; i < manifest.kernels.size(); ++i) {
    check_kernel(check, fmt::format("kernels[{}]", i), manifest.kernels[i]);
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
    const std::string path = fmt::format("tensors[{}]", i);
    check_tensor(check, path, manifest.tensors[i]);
    if (!names.insert(manifest.tensors[i].name).second) {
      check.fault(path + ".name", "'{}' is the name of two tensors", printable(manifest.tensors[i].name));
    }
  }
  check_batches(check, manifest);
  std::vector<std::string> faults = check.take();
  check_programs(manifest, faults);
  return faults;
}

}  // namespace burin
