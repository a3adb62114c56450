#include "compiler/host/local_extent.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Operator.h>

#include <algorithm>

namespace burin {

using llvm::dyn_cast;

std::optional<Extent> LocalExtents::of(const llvm::Value* pointer) {
  const auto known = known_.find(pointer);
  if (known != known_.end()) return known->second;
  known_[pointer] = std::nullopt;  // what is met again on the way round a loop
  const std::optional<Extent> extent = find(pointer);
  known_[pointer] = extent;
  return extent;
}

std::int64_t LocalExtents::bytes(llvm::Type* type) const {
  return static_cast<std::int64_t>(layout_.getTypeAllocSize(type).getFixedValue());
}

std::optional<Extent> LocalExtents::find(const llvm::Value* pointer) {
  if (const auto* local = dyn_cast<llvm::AllocaInst>(pointer)) return Extent{0, bytes(local->getAllocatedType()), true};
  if (const auto* table = dyn_cast<llvm::GlobalVariable>(pointer)) {
    return Extent{0, bytes(table->getValueType()), false};
  }
  if (const auto* step = dyn_cast<llvm::GEPOperator>(pointer)) {
    if (step->getType()->isVectorTy()) return std::nullopt;
    llvm::APInt offset(layout_.getIndexTypeSizeInBits(step->getType()), 0);
    if (!step->accumulateConstantOffset(layout_, offset)) return std::nullopt;
    const auto extent = of(step->getPointerOperand());
    const std::int64_t distance = offset.getSExtValue();
    if (!extent || distance < extent->low || distance > extent->high) return std::nullopt;
    return Extent{extent->low - distance, extent->high - distance, extent->writable};
  }
  if (const auto* freeze = dyn_cast<llvm::FreezeInst>(pointer)) return of(freeze->getOperand(0));
  if (const auto* choice = dyn_cast<llvm::SelectInst>(pointer)) {
    return common({choice->getTrueValue(), choice->getFalseValue()});
  }
  if (const auto* phi = dyn_cast<llvm::PHINode>(pointer)) {
    return common({phi->incoming_values().begin(), phi->incoming_values().end()});
  }
  if (const auto* parameter = dyn_cast<llvm::Argument>(pointer)) return of_parameter(*parameter);
  return std::nullopt;
}

std::optional<Extent> LocalExtents::of_parameter(const llvm::Argument& parameter) {
  const llvm::Function* function = parameter.getParent();
  if (parameter.hasByValAttr()) return Extent{0, bytes(parameter.getParamByValType()), true};
  std::vector<const llvm::Value*> passed;
  for (const llvm::User* user : function->users()) {
    const auto* call = dyn_cast<llvm::CallInst>(user);
    if (call == nullptr || call->getCalledFunction() != function) return std::nullopt;
    passed.push_back(call->getArgOperand(parameter.getArgNo()));
  }
  return common(passed);
}

// What all of them leave; nothing when there is none.
std::optional<Extent> LocalExtents::common(const std::vector<const llvm::Value*>& pointers) {
  std::optional<Extent> all;
  for (const llvm::Value* pointer : pointers) {
    const auto one = of(pointer);
    if (!one) return std::nullopt;
    if (!all) all = one;
    all = Extent{std::max(all->low, one->low), std::min(all->high, one->high), all->writable && one->writable};
  }
  return all;
}

}  // namespace burin
