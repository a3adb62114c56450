// Reads directives of a PTX text.
#pragma once

#include <string>
#include <string_view>

namespace burin {

// The most registers per thread that functions called by the entries of `ptx` may use, so that every entry can be
// launched as its directives (.maxnreg, .maxntid, .minnctapersm) promise; 0 when they promise nothing.
//
// Given a whole program, ptxas applies the directives of an entry to what it calls. Whoever compiles each function on
// its own has to be told.
int register_cap(std::string_view ptx);

// What the text is for: "sm_90", "sm_90a"; empty where it does not say so.
std::string target_of(std::string_view ptx);

}  // namespace burin
