// The template's open end: its pieces are cloned, its holes get bodies. What goes into them is the affair of
// specialise_baked.cpp and of the slice_*.cpp.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <utility>
#include <vector>

namespace burin {

// What fills each hole of a piece, by the hole's name.
using HoleBodies = std::vector<std::pair<llvm::StringRef, llvm::Function*>>;

// Names are without the template's prefixes burin_piece_ and burin_hole_. A name that the template does not have is an
// internal error.
class TemplateHoles {
 public:
  explicit TemplateHoles(llvm::Module& module) : module_(module) {}

  llvm::Module& module() { return module_; }
  llvm::LLVMContext& context() { return module_.getContext(); }

  llvm::Function* piece(llvm::StringRef name);

  llvm::Function* hole(llvm::StringRef name);

  // A function with the signature of hole `name`, to be filled and then bound with instantiate().
  llvm::Function* open(llvm::StringRef name);

  // A clone of piece `name` whose calls to holes go to the given bodies.
  llvm::Function* instantiate(llvm::StringRef name, const HoleBodies& bodies);

 private:
  llvm::Module& module_;
};

// The body of a hole, and the builder that writes it.
class HoleBody : public llvm::IRBuilder<> {
 public:
  HoleBody(TemplateHoles& holes, llvm::StringRef hole) : HoleBody(holes, holes.open(hole)) {}

  llvm::Function* function() const { return function_; }
  llvm::Argument* argument(unsigned number) const { return function_->getArg(number); }
  // The instructions of a piece, with its parameters replaced: a clone, and a call only where it has branches.
  llvm::Value* splice(llvm::Function* piece, llvm::ArrayRef<llvm::Value*> arguments);
  llvm::Value* splice(llvm::StringRef piece, llvm::ArrayRef<llvm::Value*> arguments) {
    return splice(holes_.piece(piece), arguments);
  }
  // Ends it here.
  llvm::Function* finish() {
    CreateRetVoid();
    return function_;
  }

 private:
  HoleBody(TemplateHoles& holes, llvm::Function* function)
      : llvm::IRBuilder<>(&function->front()), holes_(holes), function_(function) {}

  TemplateHoles& holes_;
  llvm::Function* function_;
};

}  // namespace burin
