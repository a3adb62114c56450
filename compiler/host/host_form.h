// The host form of a specialised module: the same computation, written so that LLVM's unoptimising code generator turns
// it into machine code in time and stack linear in its length.
//
// Generated functions are straight lines of up to hundreds of thousands of multiply-adds. Taken as they are, each
// constant would be looked for among all others, and each value would get a place of its own on the stack. So constants
// move to a table, values that live long share slots, and long blocks are cut. No arithmetic is changed or reordered.
//
// Also: notes go, every attribute goes, and what would end the process (unreachable code, division by zero) becomes a
// call that reports a fault.
#pragma once

#include <llvm/IR/Module.h>

namespace burin {

inline constexpr const char* kHostEntryName = "burin_host_entry";

// `kernel` is the module's. A function of the name above, `void(ptr addresses, i32 batch)`, calls the kernel with the
// addresses of its tensors and boxes and the batch, and alone stays visible to the linker.
void to_host_form(llvm::Module& module, llvm::Function& kernel);

}  // namespace burin
