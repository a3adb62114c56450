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
                             const LoadOptions& options) {
  if (package == nullptr) fail(ErrorKind::usage, "{}: no package was given", name);
  if (const std::vector<std::string> faults = verify(*package); !faults.empty()) {
    fail(ErrorKind::bad_input, "{}: {}", name, faults.front());
  }
  state_ = std::make_shared<PackageState>(device, std::move(package));
  state_->name = name;
  state_->options = options;
  if (!options.eager) return;
  for (const Kernel& kernel : manifest().kernels) state_->load(state_->slots.at(kernel.symbol));
}

LoadedPackage::LoadedPackage(const Device& device, const std::string& path, const LoadOptions& options)
    : LoadedPackage(device, open_package(path), path, options) {}

const Device& LoadedPackage::device() const { return state_->device; }
const Manifest& LoadedPackage::manifest() const { return state_->package->manifest; }

std::vector<std::string> LoadedPackage::notes() const { return state_->notes->all(); }

std::vector<std::string> LoadedPackage::layers() const { return state_->index.convolutions(); }

LoadedKernel LoadedPackage::kernel(std::string_view layer, int batch) const {
  if (batch < 1 || batch > kMaxBatch) {
    fail(ErrorKind::usage, "batch {} of layer {} is not within 1..{}", batch, layer, kMaxBatch);
  }
  const Kernel* best = state_->index.kernel_for(layer, batch);
  if (best == nullptr) {
    fail(ErrorKind::usage, "{} has no layer '{}'; its layers are: {}", state_->name, layer, list_names(layers()));
  }
  return kernel_by_symbol(best->symbol);
}

LoadedKernel LoadedPackage::kernel_by_symbol(std::string_view symbol) const {
  const auto found = state_->slots.find(symbol);
  if (found != state_->slots.end()) return LoadedKernel(state_->load(found->second));
  fail(ErrorKind::usage, "{} has no kernel '{}'", state_->name, symbol);
}

}  // namespace burin
