// The comments around calls in LLVM's PTX ("{ // callseq 226, 0" ... "} // callseq 226") carry a number that LLVM
// counts up across all modules and threads of the process. Counted anew within each text, they are the same in every
// run.
#pragma once

#include <string>
#include <string_view>

namespace burin {

// Numbers the calls 0, 1, 2... in the order in which they appear; changes nothing else.
std::string renumber_calls(std::string_view ptx);

}  // namespace burin
