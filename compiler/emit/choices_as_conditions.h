// A way around a fault of CUDA's assembler.
#pragma once

#include <llvm/IR/Module.h>

namespace burin {

// Where numbers that are zero or not by a condition are joined and compared with zero, the conditions are joined
// instead: ((p ? 2 : 0) | (q ? 1 : 0)) == 0 becomes !p & !q. The assembler of CUDA 13.0 makes p & q of the former in
// some kernels.
void compare_conditions_not_choices(llvm::Module& module);

}  // namespace burin
