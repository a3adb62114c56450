// The code of a user's functions in a module: PTX as metadata, which goes wherever the module goes, a dump's text
// included, until the module becomes PTX itself.
#pragma once

#include <llvm/IR/Module.h>

#include <map>
#include <string>
#include <string_view>

namespace burin {

// The PTX of those that the module calls, by their symbols.
using FunctionCode = std::map<std::string, std::string, std::less<>>;

void attach_functions(llvm::Module& module, const FunctionCode& code);
// What was attached; metadata that a person has damaged is passed over.
FunctionCode attached_functions(const llvm::Module& module);

}  // namespace burin
