#include "compiler/reentry.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/limits.h"

namespace burin {
namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) fail(ErrorKind::bad_input, "cannot read '{}', or it is empty", path.string());
  if (text.str().find('\0') != std::string::npos) fail(ErrorKind::bad_input, "'{}' is not a text", path.string());
  return text.str();
}

KernelPlan read_plan(const std::filesystem::path& path) {
  try {
    return parse_kernel_plan(read_text(path));
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", path.string(), error.what());
  }
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

}  // namespace

Reentry read_reentry(const std::string& path) {
  const std::filesystem::path file = path;
  Reentry reentry{.path = path};
  if (file.extension() == ".txt") {
    reentry.plan = read_plan(file);
    return reentry;
  }
  if (file.extension() == ".ll") {
    reentry.module_text = read_text(file);
  } else if (file.extension() == ".ptx") {
    reentry.ptx = read_text(file);
  } else {
    fail(ErrorKind::usage, "--from '{}': its name ends in neither .txt (a plan), .ll nor .ptx", path);
  }
  const std::filesystem::path plan = file.parent_path() / "30-plan.txt";
  if (std::filesystem::exists(plan)) reentry.plan = read_plan(plan);
  return reentry;
}

void check_layout(const KernelPlan& plan, const ConvLayer& layer, const Reentry& reentry,
                  std::optional<TensorLayout> asked) {
  if (!asked || (plan.input_layout == *asked && plan.output_layout == *asked)) return;
  if (reentry.plan) {
    fail(ErrorKind::usage,
         "--layout {}: the plan for '{}' reads {} and writes {}; leave --layout out, or edit input_layout and "
         "output_layout of the plan",
         to_string(*asked), reentry.path, to_string(plan.input_layout), to_string(plan.output_layout));
  }
  fail(ErrorKind::unsupported, "layer '{}': there is no plan that reads and writes {}", layer.name, to_string(*asked));
}

void check_precision(const KernelPlan& plan, const Reentry& reentry, const std::string& asked) {
  if (!reentry.plan || asked == to_string(Precision::fp32) || asked == to_string(plan.precision)) return;
  fail(ErrorKind::usage, "--precision {}: the plan for '{}' computes in {}; leave --precision out, or make a new plan",
       asked, reentry.path, to_string(plan.precision));
}

namespace {

void check_weights(const KernelPlan& plan, const ConvLayer& layer, const SparsePattern& pattern) {
  if (plan.precision != Precision::fp16x2) return;
  for (const Tap& tap : pattern.taps) {
    if (std::isfinite(rounded(ElementType::f16, tap.value))) continue;
    fail(ErrorKind::unsupported,
         "layer '{}': the weight of output {}, channel {}, tap ({}, {}) is {}, with fp16x2 the largest is {}: weights "
         "are rounded to FP16; with fp16 they are not",
         layer.name, tap.k, tap.c, tap.r, tap.s, tap.value, largest_of(ElementType::f16));
  }
}

}  // namespace

void check_activity(const KernelPlan& plan, const Reentry& reentry, bool asked) {
  if (!asked || plan.uses_activity()) return;
  fail(ErrorKind::usage,
       "--skip-dead-tiles asks for activity maps, and the plan of --from {} has none; lines 'skips: 1x{}x{}' and "
       "'marks: yes' give it some",
       reentry.path, plan.tile.rows, plan.tile.cols);
}

void check_plan(const KernelPlan& plan, const ConvLayer& layer, const SparsePattern& pattern,
                const std::vector<std::string>& archs) {
  std::vector<std::string> faults = verify(plan, layer.shape, pattern);
  for (std::size_t i = 0; faults.empty() && i < archs.size(); ++i) {
    KernelPlan on_arch = plan;
    on_arch.arch = archs[i];
    faults = verify(on_arch, layer.shape);
  }
  if (!faults.empty())
    fail(ErrorKind::unsupported, "layer '{}': this plan cannot be used: {}", layer.name, join(faults));
  check_weights(plan, layer, pattern);
}

std::string edited_ptx(const Reentry& reentry, const std::string& symbol) {
  const std::size_t entry = reentry.ptx.find(".entry " + symbol + "(");
  if (!reentry.ptx.empty() && entry == std::string::npos) {
    fail(ErrorKind::bad_input, "{}: there is no entry '{}' in it; its name says which plan it was made for",
         reentry.path, symbol);
  }
  return reentry.ptx;
}

AssembledKernel assemble_edited(const Reentry& reentry, const std::string& arch, const std::string& symbol) {
  try {
    return assemble(reentry.ptx, arch, symbol);
  } catch (const Error& error) {
    fail(error.kind() == ErrorKind::internal ? ErrorKind::bad_input : error.kind(), "{}: {}", reentry.path,
         error.what());
  }
}

namespace {

// What kernels of layers can do and whole networks cannot, yet.
void check_graph_options(const CompileOptions& options) {
  const auto refuse = [](const std::string& option) {
    fail(
        ErrorKind::unsupported,
        "{}: a whole network is compiled in FP32, with nchw between its layers; --layer '*' compiles its convolutions, "
        "each by itself",
        option);
  };
  if (options.precision != to_string(Precision::fp32)) refuse("--precision " + options.precision);
  if (options.layout && *options.layout != TensorLayout::nchw) {
    refuse(fmt::format("--layout {}", to_string(*options.layout)));
  }
  if (options.skip_dead_tiles) refuse("--skip-dead-tiles");
  if (options.from_file) refuse("--from " + *options.from_file);
}

// Without a graph nobody says where a layer's tensors lie, and its kernel is one that programs launch by itself.
void check_kinds_of_layers(const KernelKinds& kinds) {
  const auto check = [](const std::string& kind) {
    if (kind == kAutoKind || kind == kBakedTemplate) return;
    fail(ErrorKind::usage, "--kernels: layers that are no network are baked, whatever their density");
  };
  check(kinds.all);
  for (const auto& [layer, kind] : kinds.of_layers) check(kind);
}

void check_kinds_of_network(const Network& network, const KernelKinds& kinds) {
  for (const auto& [name, kind] : kinds.of_layers) {
    if (std::ranges::find(network.layers, name, &ConvLayer::name) != network.layers.end()) continue;
    fail(ErrorKind::usage, "--kernels: the network has no convolution '{}'", name);
  }
}

}  // namespace

void check_options(const Network& network, const CompileOptions& options) {
  BURIN_CHECK(!network.layers.empty() || network.has_graph(), "a network without layers was imported");
  if (network.has_graph()) {
    check_graph_options(options);
    check_kinds_of_network(network, options.kernels);
  } else {
    check_kinds_of_layers(options.kernels);
    if (options.linear_storage != ElementType::f32) {
      fail(ErrorKind::usage, "--linear-storage: only whole networks have fully connected layers");
    }
  }
  const std::optional<Precision> precision = parse_precision(options.precision);
  if (!precision) {
    fail(ErrorKind::unsupported, "--precision {}: known are {}", options.precision, precision_names());
  }
  if (options.layout && !options.from_file && is_half(*precision) != (images_together(*options.layout) == 2)) {
    fail(ErrorKind::usage, "--layout {} with --precision {}: n2chw holds pairs of halves, the others hold FP32",
         to_string(*options.layout), options.precision);
  }
  if (options.archs.empty()) fail(ErrorKind::usage, "--arch names no architecture");
  for (const std::string& arch : options.archs) (void)arch_by_name(arch);
  if (options.batches.empty()) fail(ErrorKind::usage, "--batch names no batch size");
  for (const int batch : options.batches) {
    if (batch < 1 || batch > kMaxBatch) {
      fail(ErrorKind::usage, "--batch {}: a batch is 1 to {} images", batch, kMaxBatch);
    }
  }
  if (options.stop_after &&
      std::find(std::begin(kStageNames), std::end(kStageNames), *options.stop_after) == std::end(kStageNames)) {
    std::string names;
    for (const char* name : kStageNames) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    fail(ErrorKind::usage, "--stop-after {}: the stages are {}", *options.stop_after, names);
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
  if (options.from_file && (network.layers.size() != 1 || options.batches.size() != 1)) {
    fail(ErrorKind::usage,
         "--from takes a file of one kernel, but {} layers and {} batch sizes are selected; choose with --layer and "
         "--batch",
         network.layers.size(), options.batches.size());
  }
}

}  // namespace burin
