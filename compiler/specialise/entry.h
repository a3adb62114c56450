// The finished kernel's entry.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

namespace burin {

inline constexpr int kAllRegisters = 255;  // of a thread

// Names the entry, and says what the assembler must know of the launch: the threads of a block, and a cap on each
// thread's registers where it is less than all of them.
void set_entry(llvm::Module& module, const std::string& symbol, int threads, int max_registers = kAllRegisters);

}  // namespace burin
