#include "compiler/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/import/names.h"
#include "ir/arch.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/text.h"

namespace burin {
namespace {

constexpr std::string_view kPrefix = "conv_";

// "fp16,conv1=fp32": what stands alone is for all.
template <typename Choices, typename Read>
Choices parse_choices(const std::string& text, Choices choices, Read read) {
  for (const std::string_view item : split(text, ',')) {
    const std::size_t equals = item.rfind('=');  // names of layers may have one
    if (equals == std::string_view::npos) {
      choices.all = read(item);
    } else {
      choices.of_layers[std::string(item.substr(0, equals))] = read(item.substr(equals + 1));
    }
  }
  return choices;
}

bool is_linear_kind(std::string_view kind) {
  const std::vector<std::string> known = linear_kind_names();
  return std::ranges::find(known, kind) != known.end();
}

std::string template_of(std::string_view kind, const std::string& option) {
  if (kind == kAutoKind || is_linear_kind(kind)) return std::string(kind);
  const std::vector<std::string> known = kernel_kind_names();
  if (std::ranges::find(known, kind) == known.end()) {
    fail(ErrorKind::usage,
         "--kernels {}: '{}' is no kind of kernel; there are {}, {}, and of fully connected layers {}", option, kind,
         kAutoKind, fmt::join(known, ", "), fmt::join(linear_kind_names(), ", "));
  }
  return fmt::format("{}{}", kPrefix, kind);
}

bool may_be_baked(const std::string& kind) { return kind == kAutoKind || kind == kBakedProvider; }

// Whether all convolutions of `network` are to have kernels that are not baked.
bool none_is_baked(const Network& network, const KernelKinds& kinds) {
  const auto other = [&](const ConvLayer& layer) { return !may_be_baked(kinds.of(layer.name)); };
  return std::ranges::all_of(network.layers, other) && !network.layers.empty();
}

// A choice of a single layer needs that layer, a convolution or a fully connected one.
template <typename Choice>
void check_names(const std::string& option, const Network& network, const LayerChoices<Choice>& choices) {
  std::vector<std::string> names;
  for (const ConvLayer& layer : network.layers) names.push_back(layer.name);
  for (const Operator& op : network.operators) {
    if (std::holds_alternative<Linear>(op.kind)) names.push_back(op.name);
  }
  for (const auto& [name, choice] : choices.of_layers) {
    if (std::ranges::find(names, name) != names.end()) continue;
    fail(ErrorKind::usage, "{}: {} has no convolution or fully connected layer '{}'{}", option, network.source, name,
         did_you_mean(name, names));
  }
}

// A kind of the layers that it is chosen for.
void check_kinds_of_layers(const Network& network, const KernelKinds& kinds) {
  for (const auto& [name, kind] : kinds.of_layers) {
    if (kind == kAutoKind) continue;
    const bool is_convolution = std::ranges::find(network.layers, name, &ConvLayer::name) != network.layers.end();
    if (is_convolution != is_linear_kind(kind)) continue;
    fail(ErrorKind::usage, "--kernels {}: it is a {} layer, whose kinds are {}, {}", name,
         is_convolution ? "convolution" : "fully connected", kAutoKind,
         fmt::join(is_convolution ? kernel_kind_names() : linear_kind_names(), ", "));
  }
}

void check_kinds(const Network& network, const CompileOptions& options) {
  const KernelKinds& kinds = options.kernels;
  std::optional<Library> asked;
  (void)kinds.any([&](const std::string& kind) { return (asked = library_of(kind)).has_value(); });
  if (!options.libraries && asked) {
    fail(ErrorKind::usage, "--kernels asks for calls of {}, and --no-libraries for none", title_of(*asked));
  }
  check_kinds_of_layers(network, kinds);
  if (!none_is_baked(network, kinds)) return;
  constexpr std::array<std::string_view, 5> kHalfKinds = {"conv_gathered", "conv_gathered_rows", "conv_warpgroup",
                                                          "conv_warpgroup_rows", "conv_depthwise"};  // of the others
  const auto knows_halves = [&](const ConvLayer& layer) {
    const std::string& kind = kinds.of(layer.name);
    return library_of(kind) || std::ranges::find(kHalfKinds, kind) != kHalfKinds.end();
  };
  const auto refuse = [](const std::string& option) {
    fail(ErrorKind::usage, "{} is for baked code alone, and --kernels asks for other kernels of all convolutions",
         option);
  };
  const auto in_halves = [&](const ConvLayer& layer) { return is_half(options.precisions.of(layer.name)); };
  const auto half = std::ranges::find_if(network.layers, in_halves);
  if (half != network.layers.end() && !std::ranges::any_of(network.layers, knows_halves)) {
    fail(
        ErrorKind::usage,
        "--precision {}: none of the kernels that --kernels asks for computes in it; baked, gathered, "
        "gathered_rows, warpgroup, warpgroup_rows and depthwise ones do, and with --layout nhwc8 cudnn and cublas ones",
        to_string(options.precisions.of(half->name)));
  }
  if (options.layout.value_or(TensorLayout::nchw) == TensorLayout::nchw4) refuse("--layout nchw4");
  if (options.skip_dead_tiles) refuse("--skip-dead-tiles");
}

// TF32 is what kernels of one kind may round to.
void check_tf32(const Network& network, const CompileOptions& options) {
  const auto in_tf32 = [&](const ConvLayer& layer) { return options.precisions.of(layer.name) == Precision::tf32; };
  const bool in_fours = options.layout == TensorLayout::nchw4;
  const auto may_round = [&](const ConvLayer& layer) {
    const std::string& kind = options.kernels.of(layer.name);
    const bool has_kind = kind == "conv_gathered_rows" || kind == "conv_warpgroup_rows" ||
                          kind == "conv_warpgroup_tf32" || library_of(kind) ||
                          (kind == kAutoKind && options.plan.empty());
    return in_tf32(layer) && has_kind && !in_fours && !options.skip_dead_tiles;
  };
  if (std::ranges::none_of(network.layers, in_tf32) || std::ranges::any_of(network.layers, may_round)) return;
  const bool asks_for_kinds = options.kernels.any([](const std::string& kind) { return kind != kAutoKind; });
  fail(ErrorKind::usage,
       "--precision tf32: none of the kernels that {} asks for rounds to it; gathered_rows, warpgroup_rows, "
       "warpgroup_tf32, cudnn and cublas ones do",
       in_fours                  ? "--layout nchw4"
       : options.skip_dead_tiles ? "--skip-dead-tiles"
       : asks_for_kinds          ? "--kernels"
                                 : "--plan");
}

void check_storage(const Network& network, const CompileOptions& options) {
  if (options.linear_storage == ElementType::f32) return;
  const auto is_linear = [](const Operator& op) { return std::holds_alternative<Linear>(op.kind); };
  if (std::ranges::none_of(network.operators, is_linear)) {
    fail(ErrorKind::usage, "--linear-storage: {} has no fully connected layers", network.source);
  }
}

void check_memory(const Network& network, const CompileOptions& options) {
  if (!options.chooses_together()) return;
  const std::string_view option = options.memory_limit ? "--memory-limit" : "--objective memory";
  if (network.separate) {
    fail(ErrorKind::usage, "{}: {} is compiled layer by layer, and only a network has memory of its own", option,
         network.source);
  }
  if (options.memory_limit && (*options.memory_limit < 1 || *options.memory_limit > kMaxMemoryLimit)) {
    fail(ErrorKind::usage, "--memory-limit of {} bytes: it must be 1 to {} (kMaxMemoryLimit)", *options.memory_limit,
         kMaxMemoryLimit);
  }
}

void check_ranges(const Network& network, const CompileOptions& options) {
  if (options.batch_ranges.empty()) return;
  if (network.separate) {
    fail(ErrorKind::usage, "--batch: ranges are for networks, and {} is compiled layer by layer; name the batch sizes",
         network.source);
  }
  std::int64_t sizes = 0;
  for (const BatchRange& range : options.batch_ranges) {
    if (range.first < 1 || range.last > kMaxBatch || range.first > range.last) {
      fail(ErrorKind::usage, "--batch {}..{}: a range goes from a batch size up, within 1 to {}", range.first,
           range.last, kMaxBatch);
    }
    sizes += std::int64_t{range.last} - range.first + 1;
  }
  if (sizes + std::ssize(options.batches) > kMaxBatchSizes) {
    fail(ErrorKind::usage, "--batch: {} batch sizes are asked for, at most {} can be planned for (kMaxBatchSizes)",
         sizes + std::ssize(options.batches), kMaxBatchSizes);
  }
}

void check_io(const Network& network, const CompileOptions& options) {
  if (options.io == ElementType::f32 || !network.separate) return;
  fail(
      ErrorKind::usage,
      "--io {}: {} is compiled layer by layer, and a layer's tensors are what it computes in: --precision and --layout "
      "say that",
      to_string(precision_of(options.io)), network.source);
}

// What is fed back is of one kernel.
void check_reentry(const Network& network, const CompileOptions& options) {
  if (options.from_op.empty() && network.operators.size() != 1) {
    fail(ErrorKind::usage, "--from {}: it is of one kernel, and {} has {} {}; say which: --from NAME=FILE",
         *options.from_file, network.source, network.operators.size(), network.separate ? "layers" : "operators");
  }
  if (options.batches.size() != 1) {
    fail(ErrorKind::usage, "--from {}: it is of one kernel, and {} batch sizes are asked for; choose with --batch",
         *options.from_file, options.batches.size());
  }
}

}  // namespace

std::vector<std::string> linear_kind_names() {
  std::vector<std::string> names;
  for (const Provider* provider : providers()) {
    if (provider->name().starts_with("linear")) names.emplace_back(provider->name());
  }
  return names;
}

std::vector<std::string> kernel_kind_names() {
  std::vector<std::string> names;
  for (const Provider* provider : providers()) {
    if (provider->name().starts_with(kPrefix)) names.emplace_back(provider->name().substr(kPrefix.size()));
  }
  return names;
}

std::vector<std::string> parse_providers(const std::string& text, const std::vector<std::string>& known) {
  std::vector<std::string> names;
  if (text.empty()) return names;
  for (const std::string_view item : split(text, ',')) {
    if (std::ranges::find(known, item) == known.end()) {
      fail(ErrorKind::usage, "--providers '{}': there is no '{}' among {}{}", text, item, fmt::join(known, ", "),
           did_you_mean(item, known));
    }
    names.push_back(is_linear_kind(item) ? std::string(item) : fmt::format("{}{}", kPrefix, item));
  }
  return names;
}

KernelKinds parse_kernel_kinds(const std::string& text) {
  KernelKinds kinds =
      parse_choices(text, KernelKinds(), [&](std::string_view kind) { return template_of(kind, text); });
  if (is_linear_kind(kinds.all)) {
    fail(ErrorKind::usage, "--kernels {}: '{}' is for fully connected layers, which are chosen by name: NAME={}", text,
         kinds.all, kinds.all);
  }
  return kinds;
}

AskedPrecisions parse_precisions(const std::string& text) {
  const auto read = [&](std::string_view name) -> std::optional<Precision> {
    if (name == kAutoPrecision) return std::nullopt;
    const std::optional<Precision> known = parse_enum<Precision>(name);
    if (!known) {
      fail(ErrorKind::unsupported, "--precision {}: known are {}, {}", text, known_names<Precision>(), kAutoPrecision);
    }
    return known;
  };
  return parse_choices(text, AskedPrecisions{Precision::fp32}, read);
}

bool leaves_open(const AskedPrecisions& asked) {
  return asked.any([](const std::optional<Precision>& precision) { return !precision; });
}

LayerPrecisions unmeasured(const AskedPrecisions& asked) {
  LayerPrecisions precisions{asked.all.value_or(Precision::fp16)};
  for (const auto& [layer, precision] : asked.of_layers) {
    precisions.of_layers[layer] = precision.value_or(Precision::fp16);
  }
  return precisions;
}

void check_layout(const CompileOptions& options) {
  if (!options.layout || options.from_file) return;
  const auto fits = [&](Precision precision) { return can_ask_for(*options.layout, precision); };
  if (options.precisions.any(fits)) return;
  fail(ErrorKind::usage, "--layout {} with --precision {}: {}", to_string(*options.layout),
       to_string(options.precisions.all), kWhatIsComputedIn);
}

void check_options(const Network& network, const CompileOptions& options) {
  BURIN_CHECK(!network.operators.empty(), "a network without operators was imported");
  check_storage(network, options);
  check_io(network, options);
  check_memory(network, options);
  check_ranges(network, options);
  check_names("--kernels", network, options.kernels);
  check_names("--precision", network, options.precisions);
  check_kinds(network, options);
  check_tf32(network, options);
  check_layout(options);
  if (options.archs.empty()) fail(ErrorKind::usage, "--arch names no architecture");
  for (const std::string& arch : options.archs) (void)arch_by_name(arch);
  if (options.batches.empty()) fail(ErrorKind::usage, "--batch names no batch size");
  for (const int batch : options.batches) {
    if (batch < 1 || batch > kMaxBatch) {
      fail(ErrorKind::usage, "--batch {}: a batch is 1 to {} images", batch, kMaxBatch);
    }
  }
  if (options.stop_after && std::ranges::find(kStageNames, *options.stop_after) == std::end(kStageNames)) {
    fail(ErrorKind::usage, "--stop-after {}: the stages are {}", *options.stop_after, fmt::join(kStageNames, ", "));
  }
  const auto has_repeats = [](auto values) {
    std::sort(values.begin(), values.end());
    return std::adjacent_find(values.begin(), values.end()) != values.end();
  };
  if (has_repeats(options.archs)) fail(ErrorKind::usage, "--arch names an architecture twice");
  if (has_repeats(options.batches)) fail(ErrorKind::usage, "--batch names a batch size twice");
  if (options.from_file && options.from_file->ends_with(".ptx") && options.stop_after == "specialised") {
    fail(ErrorKind::usage, "--stop-after specialised: PTX that is fed back with --from comes after that stage");
  }
  if (options.from_file) check_reentry(network, options);
}

const TunedKernel* find_tuned(const CompileOptions& options, const Task& task) {
  if (task.is_copy()) return nullptr;
  const OperatorFormats formats = task.formats();
  const auto found = std::ranges::find_if(
      options.tuned, [&](const TunedKernel& kernel) { return kernel.is_of(task.name, task.batch, formats); });
  return found == options.tuned.end() ? nullptr : &*found;
}

}  // namespace burin
