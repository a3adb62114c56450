#include "compiler/options.h"

#include <fmt/ranges.h>

#include <algorithm>
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

std::string template_of(std::string_view kind, const std::string& option) {
  if (kind == kAutoKind) return std::string(kind);
  const std::vector<std::string> known = kernel_kind_names();
  if (std::ranges::find(known, kind) == known.end()) {
    fail(ErrorKind::usage, "--kernels {}: '{}' is no kind of kernel; there are {}, {}", option, kind, kAutoKind,
         fmt::join(known, ", "));
  }
  return fmt::format("{}{}", kPrefix, kind);
}

bool may_be_baked(const std::string& kind) { return kind == kAutoKind || kind == kBakedProvider; }

// Whether all convolutions of `network` are to have kernels that are not baked.
bool none_is_baked(const Network& network, const KernelKinds& kinds) {
  const auto other = [&](const ConvLayer& layer) { return !may_be_baked(kinds.of(layer.name)); };
  return std::ranges::all_of(network.layers, other) && !network.layers.empty();
}

void check_kinds(const Network& network, const CompileOptions& options) {
  const KernelKinds& kinds = options.kernels;
  for (const auto& [name, kind] : kinds.of_layers) {
    if (std::ranges::find(network.layers, name, &ConvLayer::name) != network.layers.end()) continue;
    std::vector<std::string> names;
    for (const ConvLayer& layer : network.layers) names.push_back(layer.name);
    fail(ErrorKind::usage, "--kernels: {} has no convolution '{}'{}", network.source, name, did_you_mean(name, names));
  }
  if (!none_is_baked(network, kinds)) return;
  // Of the others three kinds know halves.
  const auto knows_halves = [&](const ConvLayer& layer) {
    const std::string& kind = kinds.of(layer.name);
    return kind == "conv_gathered" || kind == "conv_gathered_rows" || kind == "conv_depthwise";
  };
  const auto refuse = [](const std::string& option) {
    fail(ErrorKind::usage, "{} is for baked code alone, and --kernels asks for other kernels of all convolutions",
         option);
  };
  if (is_half(options.precision) && !std::ranges::any_of(network.layers, knows_halves)) {
    fail(ErrorKind::usage,
         "--precision {}: none of the kernels that --kernels asks for computes in it; baked, gathered and depthwise "
         "ones do",
         to_string(options.precision));
  }
  if (options.layout.value_or(TensorLayout::nchw) == TensorLayout::nchw4) refuse("--layout nchw4");
  if (options.skip_dead_tiles) refuse("--skip-dead-tiles");
}

void check_storage(const Network& network, const CompileOptions& options) {
  if (options.linear_storage == ElementType::f32) return;
  const auto is_linear = [](const Operator& op) { return std::holds_alternative<Linear>(op.kind); };
  if (std::ranges::none_of(network.operators, is_linear)) {
    fail(ErrorKind::usage, "--linear-storage: {} has no fully connected layers", network.source);
  }
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

const std::string& KernelKinds::of(const std::string& layer) const {
  const auto found = of_layers.find(layer);
  return found == of_layers.end() ? all : found->second;
}

std::vector<std::string> kernel_kind_names() {
  std::vector<std::string> names;
  for (const Provider* provider : providers()) {
    if (provider->name().starts_with(kPrefix)) names.emplace_back(provider->name().substr(kPrefix.size()));
  }
  return names;
}

KernelKinds parse_kernel_kinds(const std::string& text) {
  KernelKinds kinds;
  for (const std::string_view item : split(text, ',')) {
    const std::size_t equals = item.rfind('=');  // names of layers may have one
    if (equals == std::string_view::npos) {
      kinds.all = template_of(item, text);
    } else {
      kinds.of_layers[std::string(item.substr(0, equals))] = template_of(item.substr(equals + 1), text);
    }
  }
  return kinds;
}

void check_options(const Network& network, const CompileOptions& options) {
  BURIN_CHECK(!network.operators.empty(), "a network without operators was imported");
  check_storage(network, options);
  check_kinds(network, options);
  if (options.layout && !options.from_file && !can_ask_for(*options.layout, options.precision)) {
    fail(ErrorKind::usage, "--layout {} with --precision {}: {}", to_string(*options.layout),
         to_string(options.precision), kWhatLiesWhere);
  }
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
  const auto found = std::ranges::find_if(options.tuned, [&](const TunedKernel& kernel) {
    return !task.is_copy() && kernel.layer == task.name && kernel.batch == task.batch;
  });
  return found == options.tuned.end() ? nullptr : &*found;
}

}  // namespace burin
