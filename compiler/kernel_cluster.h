// How a specialised module says that its kernel's blocks form clusters: annotations of the entry, as clang writes them
// for __cluster_dims__. PTX and the host executor both follow them.
#pragma once

#include <llvm/IR/Function.h>

namespace burin {

// Clusters of `blocks` neighbours in y.
void set_cluster_blocks(llvm::Function& kernel, int blocks);

// 1: no clusters. Throws Error(bad_input) for annotations that set_cluster_blocks() does not make.
int cluster_blocks(const llvm::Function& kernel);

}  // namespace burin
