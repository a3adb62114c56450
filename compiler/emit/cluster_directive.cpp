#include "compiler/emit/cluster_directive.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Metadata.h>

#include <optional>

#include "ir/error.h"

namespace burin {
namespace {

std::optional<std::uint64_t> annotation(const llvm::Function& function, llvm::StringRef key) {
  const llvm::NamedMDNode* annotations = function.getParent()->getNamedMetadata("nvvm.annotations");
  if (annotations == nullptr) return std::nullopt;
  for (const llvm::MDNode* node : annotations->operands()) {
    if (node->getNumOperands() != 3) continue;
    const auto* name = llvm::dyn_cast_or_null<llvm::MDString>(node->getOperand(1));
    if (name == nullptr || name->getString() != key) continue;
    if (llvm::mdconst::dyn_extract_or_null<llvm::Function>(node->getOperand(0)) != &function) continue;
    if (const auto* value = llvm::mdconst::dyn_extract_or_null<llvm::ConstantInt>(node->getOperand(2))) {
      return value->getZExtValue();
    }
  }
  return std::nullopt;
}

}  // namespace

std::string add_cluster_directives(std::string ptx, const llvm::Module& module) {
  for (const llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    const auto x = annotation(function, "cluster_dim_x"), y = annotation(function, "cluster_dim_y"),
               z = annotation(function, "cluster_dim_z");
    if (!x || !y || !z) continue;
    const std::size_t entry = ptx.find(fmt::format(".entry {}(", function.getName().str()));
    const std::size_t body = entry == std::string::npos ? entry : ptx.find("\n{", entry);
    BURIN_CHECK(body != std::string::npos, "the PTX has no entry '{}'", function.getName().str());
    ptx.insert(body, fmt::format("\n.explicitcluster\n.reqnctapercluster {}, {}, {}", *x, *y, *z));
  }
  return ptx;
}

}  // namespace burin
