#include "compiler/emit/half_loads.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace burin {

void load_halves_as_halves(llvm::Module& module) {
  llvm::Type* halves = llvm::FixedVectorType::get(llvm::Type::getHalfTy(module.getContext()), 2);
  const auto is_conversion = [&](const llvm::User* user) {
    return llvm::isa<llvm::BitCastInst>(user) && user->getType() == halves;
  };
  std::vector<llvm::LoadInst*> loads;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (load != nullptr && llvm::all_of(load->users(), is_conversion)) loads.push_back(load);
    }
  }
  for (llvm::LoadInst* load : loads) {
    llvm::IRBuilder<> builder(load);
    llvm::LoadInst* loaded = builder.CreateAlignedLoad(halves, load->getPointerOperand(), load->getAlign());
    loaded->setDebugLoc(load->getDebugLoc());
    for (llvm::User* user : llvm::make_early_inc_range(load->users())) {
      user->replaceAllUsesWith(loaded);
      llvm::cast<llvm::Instruction>(user)->eraseFromParent();
    }
    load->eraseFromParent();
  }
}

}  // namespace burin
