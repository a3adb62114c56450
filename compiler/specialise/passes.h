// The LLVM pass pipelines that more than one stage runs.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>

#include <string_view>

namespace burin {

// The usual -O2 clean-up, for small modules as clang wrote them: templates and device primitives.
void simplify(llvm::Module& module);

// Runs `passes` with analyses of their own.
void run_passes(llvm::Module& module, llvm::ModulePassManager& passes);

// A module that the build embedded (templates/embedded.h), parsed and without attributes that name one GPU.
std::unique_ptr<llvm::Module> parse_embedded(llvm::LLVMContext& context, std::string_view name);

}  // namespace burin
