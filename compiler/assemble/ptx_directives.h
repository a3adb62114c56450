// Reads the performance directives of the entries in a PTX text.
#pragma once

#include <string_view>

namespace burin {

// The most registers per thread that functions called by the entries of `ptx` may use, so that every entry can be
// launched as its directives (.maxnreg, .maxntid, .minnctapersm) promise; 0 when they promise nothing.
//
// Given a whole program, ptxas applies the directives of an entry to what it calls. Whoever compiles each function on
// its own has to be told.
int register_cap(std::string_view ptx);

}  // namespace burin
