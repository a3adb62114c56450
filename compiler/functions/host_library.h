// A user's function as machine code of this CPU: a shared library that defines
//   extern "C" float burin_value(float)              as kernels compute it; of two inputs (float, float)
//   extern "C" double burin_reference(const double*) what it should be, of an array of the inputs
//   extern "C" int burin_in_double()                 whether the latter computes in float64; without it, it does
// It is compiled of the function's text, or given by the user. Its code runs in this process.
#pragma once

#include <string>

#include "ir/user_function.h"

namespace burin {

// A program that compiles C++: BURIN_HOST_COMPILER, else the first of clang++-19, clang++ and g++ that is found. Throws
// Error(unsupported) where there is none.
std::string host_compiler();

// Fills in what `function` has of the host. `include_folder`: of the user's file. Throws Error(bad_input) with the
// compiler's messages.
void compile_for_host(UserFunction& function, const std::string& text, const std::string& include_folder);
// The same of a library that is there. Throws Error(bad_input) where it cannot be opened, or lacks a function.
void load_for_host(UserFunction& function, const std::string& path);

}  // namespace burin
