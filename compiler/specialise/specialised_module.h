// SpecialisedModule: the LLVM module of one kernel, whichever provider made it. It is complete but for the device
// primitives (templates/device.h), which are still calls: the GPU and the host executor resolve them each in their own
// way.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>
#include <string_view>

#include "ir/error.h"

namespace burin {

struct SpecialisedModule {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  std::string symbol;  // the kernel's entry
};

std::string print(const llvm::Module& module);
inline std::string print(const SpecialisedModule& specialised) { return print(*specialised.module); }
// An edited print() from `file`. Throws Error(bad_input) with LLVM's message, or when the entry is not in it.
SpecialisedModule parse_specialised(std::string_view text, const std::string& symbol, const std::string& file);

// The package has this form, without the names of local values.
std::string to_bitcode(const SpecialisedModule& specialised);

// Throws an error of `kind` that says what of LLVM's rules `what` breaks.
void check_module(const llvm::Module& module, ErrorKind kind, const std::string& what);

}  // namespace burin
