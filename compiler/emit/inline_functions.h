// Users' functions in PTX: each call becomes what NVRTC made of the function, in the caller's place, so that no call
// is left, which would take the caller's registers away, and one text holds all that a kernel needs.
#pragma once

#include <llvm/IR/Module.h>

#include <cstddef>
#include <string>
#include <vector>

namespace burin {

inline constexpr std::size_t kMaxFunctionPtxBytes = std::size_t{256} << 10;

// What NVRTC's text of a function becomes.
struct InlineCode {
  std::string body;     // between braces; "$0" is the result and "$1", ... are the inputs, other "$" stand there twice
  std::string outside;  // what it uses beside itself: tables, and functions that it calls
  std::string version;  // of PTX: "9.0"
};
// Throws Error(unsupported) for PTX that is something else.
InlineCode inline_code(const std::string& ptx, const std::string& symbol);

// The PTX that all functions of a module bring along.
struct OutsideCode {
  std::vector<std::string> texts;
  std::string version;  // the newest of all; empty: there is nothing
};
// Replaces all calls of functions whose code is attached (compiler/specialise/function_code.h).
OutsideCode inline_functions(llvm::Module& module);
// `ptx` of the module with all that stands beside its functions.
std::string add_outside(std::string ptx, const OutsideCode& outside);

}  // namespace burin
