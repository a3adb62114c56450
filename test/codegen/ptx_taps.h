// The nonzeros of a slice, in the pattern and in its PTX.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "test/codegen/ptx_checks.h"

namespace burin_test {

// Whether a multiply-add is one of two halves.
bool has_pairs(const Emitted& made);

// The nonzeros of one slice, with the weights that its code has.
std::vector<burin::Tap> taps_of(const Emitted& made, const burin::Slice& slice);
std::string tap_name(const burin::Tap& tap);

std::vector<PtxInstruction> multiply_adds(const Emitted& made, const PtxFunction& function);

// The names of the multiply-adds that a slice must hold, and of those that it holds. Outputs to which it gives equal
// weights are computed once.
std::multiset<std::string> expected_taps(const Emitted& made, const burin::Slice& slice);
std::multiset<std::string> found_taps(const Emitted& made, const PtxFunction& function);
bool agree(const Emitted& made, const std::multiset<std::string>& found, const std::multiset<std::string>& expected);

}  // namespace burin_test
