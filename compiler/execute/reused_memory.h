// Memory for tensors that are made and freed again and again.
#pragma once

namespace burin {

// From now on large blocks that the main thread frees stay with the process. Else a vector of a hundred megabytes is
// new memory from the system each time, page by page, which takes several times as long as filling it, and more where
// many threads ask at once. For commands that compare or measure kernels of whole batches; it cannot be undone.
void keep_freed_memory();

}  // namespace burin
