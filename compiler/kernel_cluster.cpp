#include "compiler/kernel_cluster.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/Module.h>

#include <array>
#include <cstdint>

#include "ir/error.h"
#include "ir/limits.h"

namespace burin {
namespace {

constexpr const char* kAnnotations = "nvvm.annotations";
constexpr std::array<const char*, 3> kKeys = {"cluster_dim_x", "cluster_dim_y", "cluster_dim_z"};

// 1 when there is none.
std::uint64_t annotation(const llvm::Function& function, llvm::StringRef key) {
  const llvm::NamedMDNode* annotations = function.getParent()->getNamedMetadata(kAnnotations);
  if (annotations == nullptr) return 1;
  for (const llvm::MDNode* node : annotations->operands()) {
    if (node->getNumOperands() != 3) continue;
    const auto* name = llvm::dyn_cast_or_null<llvm::MDString>(node->getOperand(1));
    if (name == nullptr || name->getString() != key) continue;
    if (llvm::mdconst::dyn_extract_or_null<llvm::Function>(node->getOperand(0)) != &function) continue;
    const auto* value = llvm::mdconst::dyn_extract_or_null<llvm::ConstantInt>(node->getOperand(2));
    return value == nullptr ? 0 : value->getLimitedValue();
  }
  return 1;
}

}  // namespace

void annotate(llvm::Function& kernel, llvm::StringRef key, int value) {
  llvm::LLVMContext& context = kernel.getContext();
  kernel.getParent()
      ->getOrInsertNamedMetadata(kAnnotations)
      ->addOperand(llvm::MDNode::get(
          context, {llvm::ValueAsMetadata::get(&kernel), llvm::MDString::get(context, key),
                    llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value))}));
}

void set_cluster(llvm::Function& kernel, const ClusterExtent& extent) {
  annotate(kernel, kKeys[0], extent.x);
  annotate(kernel, kKeys[1], extent.y);
  annotate(kernel, kKeys[2], 1);
}

ClusterExtent cluster_of(const llvm::Function& kernel) {
  const std::uint64_t x = annotation(kernel, kKeys[0]), y = annotation(kernel, kKeys[1]),
                      z = annotation(kernel, kKeys[2]);
  const auto allowed = [](std::uint64_t extent) { return extent >= 1 && extent <= kMaxClusterBlocks; };
  if (!allowed(x) || !allowed(y) || z != 1 || x * y > kMaxClusterBlocks) {
    fail(ErrorKind::bad_input, "kernel '{}' has clusters of {}x{}x{} blocks; allowed are up to {} in x and y",
         kernel.getName().str(), x, y, z, kMaxClusterBlocks);
  }
  return {static_cast<int>(x), static_cast<int>(y)};
}

}  // namespace burin
