// LLVM's bitcode reader takes the position of a parameter that has attributes on trust: a damaged one makes it ask for
// gigabytes of memory or work for hours. So the positions are looked at first.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/Error.h>

namespace burin {

// An error for what is no bitcode, or bitcode whose attributes belong to parameters that no function here has.
llvm::Error scan_attributes(llvm::StringRef bitcode);

}  // namespace burin
