#include <algorithm>
#include <span>

#include "ir/error.h"
#include "ir/limits.h"
#include "runtime/burin/runtime.hpp"
#include "runtime/package_state.h"

namespace burin {

std::string list_names(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 20;
  if (names.empty()) return "none";
  const std::string text = fmt::format("{}", fmt::join(std::span(names).first(std::min(names.size(), kMost)), ", "));
  return names.size() > kMost ? fmt::format("{} and {} more", text, names.size() - kMost) : text;
}

std::shared_ptr<const Package> open_package(const std::string& path) {
  return std::make_shared<const Package>(read_package(path));
}

LoadedPackage::LoadedPackage(const Device& device, std::shared_ptr<const Package> package, const std::string& name,
                             const LoadOptions& options)
    : state_(std::make_shared<PackageState>(device)) {
  if (package == nullptr) fail(ErrorKind::usage, "{}: no package was given", name);
  if (const std::vector<std::string> faults = verify(*package); !faults.empty()) {
    fail(ErrorKind::bad_input, "{}: {}", name, faults.front());
  }
  state_->package = std::move(package);
  state_->name = name;
  state_->options = options;
  const Manifest& manifest = state_->package->manifest;
  for (const Kernel& kernel : manifest.kernels) state_->kernels.emplace_back().kernel = &kernel;
  if (options.eager) {
    for (KernelSlot& slot : state_->kernels) state_->load(slot);
  }
}

LoadedPackage::LoadedPackage(const Device& device, const std::string& path, const LoadOptions& options)
    : LoadedPackage(device, open_package(path), path, options) {}

const Device& LoadedPackage::device() const { return state_->device; }
const Manifest& LoadedPackage::manifest() const { return state_->package->manifest; }

std::vector<std::string> LoadedPackage::layers() const {
  std::vector<std::string> layers;
  for (const Kernel& kernel : manifest().kernels) {
    const bool is_known = std::ranges::find(layers, kernel.op) != layers.end();
    if (kernel.is_convolution() && !is_known) layers.push_back(kernel.op);
  }
  return layers;
}

LoadedKernel LoadedPackage::kernel(std::string_view layer, int batch) const {
  if (batch < 1 || batch > kMaxBatch) {
    fail(ErrorKind::usage, "batch {} of layer {} is not within 1..{}", batch, layer, kMaxBatch);
  }
  const Kernel* best = kernel_for(manifest(), layer, batch);
  if (best == nullptr) {
    fail(ErrorKind::usage, "{} has no layer '{}'; its layers are: {}", state_->name, layer, list_names(layers()));
  }
  return kernel_by_symbol(best->symbol);
}

LoadedKernel LoadedPackage::kernel_by_symbol(std::string_view symbol) const {
  for (KernelSlot& slot : state_->kernels) {
    if (slot.kernel->symbol == symbol) return LoadedKernel(state_->load(slot));
  }
  fail(ErrorKind::usage, "{} has no kernel '{}'", state_->name, symbol);
}

}  // namespace burin
