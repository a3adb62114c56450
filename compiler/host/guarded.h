// LLVM ends the process when it meets what it does not expect: a damaged module in the reader, an instruction that the
// code generator cannot handle. Work on modules that may come from anyone runs under guard instead.
#pragma once

#include <functional>

namespace burin {

// Runs `work` on this thread; exceptions pass through. False when LLVM crashed or aborted: then whatever `work` was
// using is in an unknown state and must be leaked, not destroyed.
bool run_guarded(const std::function<void()>& work);

}  // namespace burin
