#include "compiler/specialise/entry.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Metadata.h>

#include "ir/error.h"

namespace burin {
namespace {

llvm::Function* name_entry(llvm::Module& module, const std::string& symbol) {
  llvm::Function* kernel = module.getFunction("burin_kernel");
  BURIN_CHECK(kernel != nullptr, "the template has no entry");
  kernel->setName(symbol);
  module.getOrInsertNamedMetadata("nvvm.annotations")->clearOperands();
  return kernel;
}

void annotate(llvm::Function* kernel, const char* key, int value) {
  llvm::LLVMContext& context = kernel->getContext();
  kernel->getParent()
      ->getOrInsertNamedMetadata("nvvm.annotations")
      ->addOperand(llvm::MDNode::get(
          context, {llvm::ValueAsMetadata::get(kernel), llvm::MDString::get(context, key),
                    llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value))}));
}

}  // namespace

void set_entry(llvm::Module& module, const std::string& symbol, int threads, int max_registers) {
  llvm::Function* kernel = name_entry(module, symbol);
  annotate(kernel, "kernel", 1);
  annotate(kernel, "maxntidx", threads);
  if (max_registers < kAllRegisters) annotate(kernel, "maxnreg", max_registers);
}

}  // namespace burin
