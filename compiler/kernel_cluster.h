// How a specialised module says that its kernel's blocks form clusters: annotations of the entry, as clang writes them
// for __cluster_dims__. PTX and the host executor both follow them.
#pragma once

#include <llvm/IR/Function.h>

namespace burin {

// Neighbours in the grid's x and y that run together; ranks count x first.
struct ClusterExtent {
  int x = 1, y = 1;
  int blocks() const { return x * y; }
};

// Says one thing of the kernel's launch: "maxntidx" and the like.
void annotate(llvm::Function& kernel, llvm::StringRef key, int value);

void set_cluster(llvm::Function& kernel, const ClusterExtent& extent);

// One block: no clusters. Throws Error(bad_input) for annotations that set_cluster() does not make.
ClusterExtent cluster_of(const llvm::Function& kernel);

}  // namespace burin
