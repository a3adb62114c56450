#include "ir/template_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/arch.h"
#include "ir/error.h"
#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/text_lines.h"
#include "ir/user_function.h"

namespace burin {
namespace {

constexpr int kMaxTileImages = 1024;

// The roles that every template's kernel has, in the order of its parameters.
bool has_roles(const TemplatePlan& plan) {
  constexpr std::array kRoles = {TensorRole::input, TensorRole::output, TensorRole::residual, TensorRole::weights};
  const std::vector<KernelTensor>& tensors = plan.form.tensors;
  const auto is_role = [](const KernelTensor& tensor, TensorRole role) { return tensor.role == role; };
  return std::ranges::equal(tensors, kRoles, is_role) && plan.input().exists() && plan.output().exists();
}

void check_cluster(Faults& faults, const TemplatePlan& plan, const ArchSpec& arch) {
  const LaunchGeometry& launch = plan.launch();
  if (launch.cluster_tiles == 1) return;
  if (!arch.clusters) {
    faults.add("cluster_tiles is {}, but {} has no clusters", launch.cluster_tiles, plan.arch);
  }
  if (launch.tiles_per_image % launch.cluster_tiles != 0) {
    faults.add("tiles_per_image is {}, which clusters of {} blocks do not divide", launch.tiles_per_image,
               launch.cluster_tiles);
  }
}

void check_arch(Faults& faults, const TemplatePlan& plan) {
  const ArchSpec* arch = find_arch(plan.arch);
  if (arch == nullptr) return faults.add("arch is {}, which is not known", in_quotes(plan.arch));
  faults.require_range("shared_bytes", plan.launch().shared_bytes, 0, arch->max_shared_per_block,
                       "of a block of " + plan.arch);
  check_cluster(faults, plan, *arch);
  if (!plan.form.boxes.empty() && arch->compute < kBulkCopyCompute) {
    faults.add("it copies boxes, which {} cannot", plan.arch);
  }
}

// Reads a constant that a template may have.
FactorType factors_in(const TemplatePlan& plan, const std::string& constant) {
  const auto found = plan.integers.find(constant);
  if (found == plan.integers.end() || found->second < 0) return FactorType::f32;
  const auto type = static_cast<FactorType>(found->second);
  return is_named(type) ? type : FactorType::f32;
}

}  // namespace

FactorType stored_weights(const TemplatePlan& plan) {
  const FactorType factors = multiplied_inputs(plan);
  return factors == FactorType::f32 ? factors_in(plan, "half_values") : factors;
}

FactorType multiplied_inputs(const TemplatePlan& plan) { return factors_in(plan, "factors"); }

std::string describe(const TemplatePlan& plan) {
  const LaunchGeometry& launch = plan.launch();
  const std::string images = launch.tile_images == 1 ? "an image" : fmt::format("{} images", launch.tile_images);
  // That weights are what tensors are goes without saying.
  const FactorType weights = stored_weights(plan);
  const bool differ = weights != FactorType::f32 && weights != factors_of(plan.input().element);
  const std::string_view rounded_to = differ ? to_string(weights) : "";
  return fmt::format("{}{}{}, {} block{} of {} for {}", plan.template_name, rounded_to.empty() ? "" : " ", rounded_to,
                     launch.tiles_per_image, launch.tiles_per_image == 1 ? "" : "s", launch.threads, images) +
         (launch.cluster_tiles == 1 ? "" : fmt::format(", clusters of {}", launch.cluster_tiles));
}

std::string kernel_symbol(const std::string& name, const TemplatePlan& plan) {
  return symbol_of(name) + "_" + plan.template_name;
}

std::vector<std::string> verify(const TemplatePlan& plan) {
  Faults faults;
  if (!has_roles(plan)) {
    faults.add("its tensors are not an input, an output, a residual and weights, in this order");
    return faults.take();
  }
  if (faults.add_all(verify(plan.form))) return faults.take();
  check_arch(faults, plan);
  const LaunchGeometry& launch = plan.launch();
  if (launch.threads % kWarpSize != 0) {
    faults.add("threads is {}, whole warps of {} are needed", launch.threads, kWarpSize);
  }
  if (launch.shared_bytes % kWideAccessBytes != 0 ||
      (launch.shared_bytes != 0 && launch.shared_bytes <= kSharedReserveBytes)) {
    faults.add("shared_bytes is {}: 0, or a multiple of {} above the {} that are reserved", launch.shared_bytes,
               kWideAccessBytes, kSharedReserveBytes);
  }
  faults.require_range("tile_images", launch.tile_images, 1, kMaxTileImages);
  if (launch.slices != 1) faults.add("slices is {}; a template's blocks are all of one slice", launch.slices);
  for (const auto& [name, symbol] : plan.calls) {
    if (is_user_symbol(symbol)) continue;
    faults.add("it calls {}, which is no symbol of a user's function: {}...", in_quotes(symbol), kUserSymbolPrefix);
  }
  // A launch takes time for each block, also for one that finds nothing to do.
  const std::int64_t words = plan.output().words();
  if (launch.tiles_per_image > kMaxClusterBlocks * words) {
    faults.add("tiles_per_image is {}: more than {} blocks for each of the {} words of an image that are written",
               launch.tiles_per_image, kMaxClusterBlocks, words);
  }
  return faults.take();
}

std::string print(const TemplatePlan& plan) {
  LinePrinter lines;
  lines.text = fmt::format("# {}\n", describe(plan));
  lines.line("template", plan.template_name);
  lines.line("arch", plan.arch);
  lines.text += print(plan.form);
  for (const auto& [name, value] : plan.integers) lines.line("integer " + name, value);
  for (const auto& [name, value] : plan.reals) lines.line("real " + name, value);
  for (const auto& [name, symbol] : plan.calls) lines.line("call " + name, symbol);
  return lines.text;
}

TemplatePlan parse_template_plan(std::string_view source) {
  LineReader text(source, "plan");
  TemplatePlan plan;
  text.line("template", plan.template_name);
  text.line("arch", plan.arch);
  plan.form = parse_kernel_form(text);
  const auto read_constants = [&](std::string_view kind, auto& known) {
    for (const TextLine* line : text.with_first_word(kind)) {
      const auto key = words(line->key);
      if (key.size() != 2) text.fail_at(*line, "'{}' is not a kind of constant and its name", line->key);
      const auto [constant, is_new] = known.try_emplace(std::string(key[1]));
      if (!is_new) text.fail_at(*line, "'{}' stands there twice", line->key);
      text.read(*line, constant->second);
    }
  };
  read_constants("integer", plan.integers);
  read_constants("real", plan.reals);
  read_constants("call", plan.calls);
  text.finish();
  return plan;
}

}  // namespace burin
