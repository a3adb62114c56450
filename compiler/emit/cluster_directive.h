// The directive that makes a kernel's blocks clusters. LLVM 19 does not write it.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

namespace burin {

// `ptx` with `.explicitcluster` and `.reqnctapercluster` in the header of each entry whose function in `module` has
// cluster_of() more than one block. Needs PTX 7.8 and sm_90.
std::string add_cluster_directives(std::string ptx, const llvm::Module& module);

}  // namespace burin
