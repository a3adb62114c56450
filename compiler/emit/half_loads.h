// Words that are multiplied as two halves are loaded as two halves.
#pragma once

#include <llvm/IR/Module.h>

namespace burin {

// LLVM joins a load and the only conversion of what it brought into one instruction, which stands where the conversion
// stood: loads would lose their place ahead of their use, and their entry in the source map.
void load_halves_as_halves(llvm::Module& module);

}  // namespace burin
