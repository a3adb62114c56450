#include "compiler/verify/code_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "compiler/import/names.h"
#include "compiler/make_kernel.h"
#include "ir/error.h"
#include "ir/parallel_for.h"

namespace burin {
namespace {

std::vector<const Kernel*> kernels_of(const Manifest& manifest, const std::optional<std::string>& layer) {
  const bool layers = holds_layers(manifest);
  std::set<std::string_view> symbols;
  for (const Program& program : manifest.programs) {
    for (const Step& step : program.steps) {
      if (matches(layer, layers ? program.name : step.name)) symbols.insert(step.kernel);
    }
  }
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : manifest.kernels) {
    if (symbols.contains(kernel.symbol)) kernels.push_back(&kernel);
  }
  return kernels;
}

const KernelBinary* ptx_of(const Kernel& kernel) {
  const auto found = std::ranges::find(kernel.binaries, BinaryKind::ptx, &KernelBinary::kind);
  return found == kernel.binaries.end() ? nullptr : &*found;
}

// Empty: the PTX is what was expected.
std::string fault_of_code(const Package& package, const Kernel& kernel, const KernelBinary& ptx) {
  try {
    if (rebuild_ptx(package, kernel, ptx.arch) == *package.files.at(ptx.path).content()) return {};
    return fmt::format("{}: {} is not what its plan and its weights make", kernel.owner(), ptx.path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input && error.kind() != ErrorKind::unsupported) throw;
    return error.what();
  }
}

}  // namespace

CodeComparison compare_code(const Package& package, const std::optional<std::string>& layer, int jobs,
                            const std::function<void(int done, int all, const std::string& what)>& progress) {
  CodeComparison comparison;
  if (package.manifest.tool_version != tool_version()) {
    comparison.other_version = package.manifest.tool_version;
    return comparison;
  }
  const std::vector<const Kernel*> kernels = kernels_of(package.manifest, layer);
  std::vector<std::string> faults(kernels.size());
  std::mutex mutex;
  int done = 0;
  for_each_parallel(kernels.size(), jobs, [&](std::size_t i) {
    const Kernel& kernel = *kernels[i];
    const KernelBinary* ptx = kernel.edited ? nullptr : ptx_of(kernel);
    if (ptx != nullptr) faults[i] = fault_of_code(package, kernel, *ptx);
    const std::lock_guard lock(mutex);
    ++done;
    if (kernel.edited) {
      ++comparison.edited;
    } else if (ptx == nullptr) {
      ++comparison.without_ptx;
    } else if (faults[i].empty()) {
      ++comparison.same;
    }
    if (progress) progress(done, static_cast<int>(kernels.size()), "code of " + kernel.op);
  });
  std::erase(faults, "");
  comparison.different = std::move(faults);
  return comparison;
}

}  // namespace burin
