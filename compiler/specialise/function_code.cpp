#include "compiler/specialise/function_code.h"

#include <llvm/IR/Metadata.h>

#include "ir/user_function.h"

namespace burin {
namespace {
constexpr const char* kFunctionMetadata = "burin.functions";  // !{!"symbol", !"PTX"} each
}

void attach_functions(llvm::Module& module, const FunctionCode& code) {
  llvm::LLVMContext& context = module.getContext();
  for (const auto& [symbol, ptx] : code) {
    module.getOrInsertNamedMetadata(kFunctionMetadata)
        ->addOperand(
            llvm::MDNode::get(context, {llvm::MDString::get(context, symbol), llvm::MDString::get(context, ptx)}));
  }
}

FunctionCode attached_functions(const llvm::Module& module) {
  FunctionCode code;
  const llvm::NamedMDNode* list = module.getNamedMetadata(kFunctionMetadata);
  if (list == nullptr) return code;
  for (const llvm::MDNode* node : list->operands()) {
    if (node->getNumOperands() != 2) continue;
    const auto* symbol = llvm::dyn_cast_or_null<llvm::MDString>(node->getOperand(0).get());
    const auto* ptx = llvm::dyn_cast_or_null<llvm::MDString>(node->getOperand(1).get());
    const bool sound = symbol != nullptr && ptx != nullptr && is_user_symbol(std::string_view(symbol->getString()));
    if (sound) code[symbol->getString().str()] = ptx->getString().str();
  }
  return code;
}

}  // namespace burin
