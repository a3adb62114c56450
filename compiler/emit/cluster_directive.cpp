#include "compiler/emit/cluster_directive.h"

#include "compiler/kernel_cluster.h"
#include "ir/error.h"

namespace burin {

std::string add_cluster_directives(std::string ptx, const llvm::Module& module) {
  for (const llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    const ClusterExtent cluster = cluster_of(function);
    if (cluster.blocks() == 1) continue;
    const std::size_t entry = ptx.find(fmt::format(".entry {}(", function.getName().str()));
    const std::size_t body = entry == std::string::npos ? entry : ptx.find("\n{", entry);
    BURIN_CHECK(body != std::string::npos, "the PTX has no entry '{}'", function.getName().str());
    ptx.insert(body, fmt::format("\n.explicitcluster\n.reqnctapercluster {}, {}, 1", cluster.x, cluster.y));
  }
  return ptx;
}

}  // namespace burin
