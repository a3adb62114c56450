// A template's bitcode, made specific to one plan: constants filled in, pieces simplified, holes still open.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>

#include "ir/baked_plan.h"
#include "ir/conv_layer.h"

namespace burin {

// The template of `plan.template_name`. Throws Error(unsupported) when there is none of that name.
std::unique_ptr<llvm::Module> load_template(llvm::LLVMContext& context, const BakedPlan& plan, const ConvShape& shape);

}  // namespace burin
