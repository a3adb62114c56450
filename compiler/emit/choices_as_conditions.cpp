#include "compiler/emit/choices_as_conditions.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>

#include <vector>

namespace burin {
namespace {

using namespace llvm::PatternMatch;

// A value that is zero or not by a condition alone.
struct Choice {
  llvm::Value* condition = nullptr;  // null: it is none
  bool zero_if_true = false;
};

Choice choice_of(llvm::Value* value) {
  llvm::Value* condition = nullptr;
  const llvm::APInt* number = nullptr;
  if (match(value, m_ZExtOrSExt(m_Value(condition))) && condition->getType()->isIntegerTy(1)) return {condition, false};
  if (match(value, m_Select(m_Value(condition), m_APInt(number), m_Zero())) && !number->isZero()) {
    return {condition, false};
  }
  if (match(value, m_Select(m_Value(condition), m_Zero(), m_APInt(number))) && !number->isZero()) {
    return {condition, true};
  }
  return {};
}

bool joins_choices(llvm::Value* value) {
  llvm::Value *left = nullptr, *right = nullptr;
  return match(value, m_Or(m_Value(left), m_Value(right))) &&
         (choice_of(left).condition != nullptr || choice_of(right).condition != nullptr || joins_choices(left) ||
          joins_choices(right));
}

llvm::Value* is_zero(llvm::Value* value, llvm::IRBuilder<>& builder) {
  llvm::Value *left = nullptr, *right = nullptr;
  if (match(value, m_Or(m_Value(left), m_Value(right)))) {
    return builder.CreateAnd(is_zero(left, builder), is_zero(right, builder));
  }
  const Choice choice = choice_of(value);
  if (choice.condition == nullptr) return builder.CreateIsNull(value);
  return choice.zero_if_true ? choice.condition : builder.CreateNot(choice.condition);
}

}  // namespace

void compare_conditions_not_choices(llvm::Module& module) {
  std::vector<llvm::ICmpInst*> comparisons;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* comparison = llvm::dyn_cast<llvm::ICmpInst>(&instruction);
      if (comparison != nullptr && comparison->isEquality() && comparison->getType()->isIntegerTy(1) &&
          match(comparison->getOperand(1), m_Zero()) && joins_choices(comparison->getOperand(0))) {
        comparisons.push_back(comparison);
      }
    }
  }
  for (llvm::ICmpInst* comparison : comparisons) {
    llvm::IRBuilder<> builder(comparison);
    llvm::Value* zero = is_zero(comparison->getOperand(0), builder);
    const bool asks_for_zero = comparison->getPredicate() == llvm::CmpInst::ICMP_EQ;
    comparison->replaceAllUsesWith(asks_for_zero ? zero : builder.CreateNot(zero));
    comparison->eraseFromParent();
  }
}

}  // namespace burin
