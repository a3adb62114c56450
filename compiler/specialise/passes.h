// The LLVM pass pipelines that more than one stage runs.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>

namespace burin {

// The usual -O2 clean-up, for small modules as clang wrote them: templates and device primitives.
void simplify(llvm::Module& module);

// Inlines what is marked so, drops what nobody calls any more, and runs `clean` over each function.
void inline_marked(llvm::Module& module, llvm::FunctionPassManager clean);

}  // namespace burin
