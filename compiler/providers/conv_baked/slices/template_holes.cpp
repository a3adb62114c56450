#include "compiler/providers/conv_baked/slices/template_holes.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>

#include "ir/error.h"

namespace burin {

using llvm::Function;
using llvm::Value;

Function* TemplateHoles::piece(llvm::StringRef name) {
  Function* function = module_.getFunction(("burin_piece_" + name).str());
  BURIN_CHECK(function != nullptr && !function->isDeclaration(), "the template has no piece '{}'", name.str());
  return function;
}

Function* TemplateHoles::hole(llvm::StringRef name) {
  Function* function = module_.getFunction(("burin_hole_" + name).str());
  BURIN_CHECK(function != nullptr, "the template has no hole '{}'", name.str());
  return function;
}

Function* TemplateHoles::open(llvm::StringRef name) {
  Function* body = Function::Create(hole(name)->getFunctionType(), llvm::GlobalValue::InternalLinkage, name, module_);
  body->addFnAttr(llvm::Attribute::AlwaysInline);
  body->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::BasicBlock::Create(context(), "", body);
  return body;
}

Function* TemplateHoles::instantiate(llvm::StringRef name, const HoleBodies& bodies) {
  llvm::ValueToValueMapTy map;
  Function* clone = llvm::CloneFunction(piece(name), map);
  clone->setName(name);
  clone->setLinkage(llvm::GlobalValue::InternalLinkage);
  clone->addFnAttr(llvm::Attribute::AlwaysInline);
  for (llvm::BasicBlock& block : *clone) {
    for (llvm::Instruction& instruction : block) {
      auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      if (call == nullptr || call->getCalledFunction() == nullptr) continue;
      llvm::StringRef hole = call->getCalledFunction()->getName();
      if (!hole.consume_front("burin_hole_")) continue;
      const auto found = std::find_if(bodies.begin(), bodies.end(), [&](const auto& b) { return b.first == hole; });
      BURIN_CHECK(found != bodies.end(), "hole '{}' of piece '{}' stays open", hole.str(), name.str());
      call->setCalledFunction(found->second);
    }
  }
  return clone;
}

Value* HoleBody::splice(Function* piece, llvm::ArrayRef<Value*> arguments) {
  if (piece->size() != 1) {
    piece->addFnAttr(llvm::Attribute::AlwaysInline);
    return CreateCall(piece, arguments);
  }
  // A piece has a handful of values, so a list is searched faster than a map is made.
  llvm::SmallVector<std::pair<const Value*, Value*>, 16> replaced;
  for (std::size_t i = 0; i < arguments.size(); ++i) replaced.emplace_back(piece->getArg(i), arguments[i]);
  const auto replacement = [&](const Value* value) {
    for (const auto& [from, to] : replaced) {
      if (from == value) return to;
    }
    return const_cast<Value*>(value);
  };
  for (const llvm::Instruction& instruction : piece->front()) {
    if (const auto* ret = llvm::dyn_cast<llvm::ReturnInst>(&instruction)) {
      return ret->getReturnValue() == nullptr ? nullptr : replacement(ret->getReturnValue());
    }
    llvm::Instruction* clone = instruction.clone();
    for (llvm::Use& operand : clone->operands()) operand.set(replacement(operand.get()));
    Insert(clone);
    clone->setDebugLoc(getCurrentDebugLocation());
    replaced.emplace_back(&instruction, clone);
  }
  llvm_unreachable("a piece ends in a return");
}

}  // namespace burin
