#include "ir/package/manifest_index.h"

#include "ir/error.h"

namespace burin {

ManifestIndex::ManifestIndex(const Manifest& manifest) {
  for (const Kernel& kernel : manifest.kernels) {
    kernels_.emplace(kernel.symbol, &kernel);
    if (!kernel.is_convolution()) continue;
    std::vector<const Kernel*>& of_same = kernels_of_[kernel.op];
    if (of_same.empty()) convolutions_.push_back(kernel.op);
    of_same.push_back(&kernel);
  }
  for (const Program& program : manifest.programs) programs_[program.name].push_back(&program);
}

const Kernel* ManifestIndex::find_kernel(std::string_view symbol) const {
  const auto found = kernels_.find(symbol);
  return found == kernels_.end() ? nullptr : found->second;
}

const Kernel& ManifestIndex::kernel(std::string_view symbol) const {
  const Kernel* const kernel = find_kernel(symbol);
  BURIN_CHECK(kernel != nullptr, "a package with a kernel '{}' that is not there was read", symbol);
  return *kernel;
}

const Kernel* ManifestIndex::kernel_for(std::string_view convolution, int images) const {
  const auto rank = [images](const Kernel& kernel) {
    return kernel.planned_batch <= images ? kernel.planned_batch : -kernel.planned_batch;
  };
  const auto found = kernels_of_.find(convolution);
  if (found == kernels_of_.end()) return nullptr;
  const Kernel* best = found->second.front();
  for (const Kernel* const kernel : found->second) {
    if (rank(*kernel) > rank(*best)) best = kernel;
  }
  return best;
}

const std::vector<const Program*>& ManifestIndex::programs(std::string_view name) const {
  static const std::vector<const Program*> kNone;
  const auto found = programs_.find(name);
  return found == programs_.end() ? kNone : found->second;
}

}  // namespace burin
