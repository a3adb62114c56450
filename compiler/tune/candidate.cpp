#include "compiler/tune/candidate.h"

#include "compiler/assemble/assemble.h"
#include "compiler/emit/ptx.h"
#include "compiler/packaged_kernel.h"
#include "compiler/reentry.h"
#include "compiler/source_hash.h"
#include "compiler/specialise/specialise.h"

namespace burin {

Package compile_candidate(const ConvLayer& layer, const SparsePattern& pattern, const KernelPlan& plan,
                          const std::vector<std::string>& archs, const std::string& arch) {
  check_plan(plan, layer, pattern, archs);
  const std::string symbol = kernel_symbol(layer.name, plan);
  PackagedKernel kernel{describe_kernel(layer, pattern, plan, symbol), {}};
  kernel.record.source_hash = source_hash(layer, plan, "");
  const std::string ptx = emit_ptx(specialise(layer, pattern, plan, symbol), lowest_arch(archs));
  add_cubin(kernel, arch, assemble(ptx, arch, symbol));
  Package package;
  package.manifest.tool_version = BURIN_VERSION;
  package.manifest.source = symbol;
  add_kernel(package, std::move(kernel));
  return package;
}

}  // namespace burin
