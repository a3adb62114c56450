// The rules of a template's plan.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/arch.h"
#include "ir/faults.h"
#include "ir/kernel.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/template_plan.h"

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
}

}  // namespace

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
  return faults.take();
}

}  // namespace burin
