// The texts that compilers are given of a user's function: the user's own, between its attributes and a call of it.
#pragma once

#include <string>

#include "ir/user_function.h"

namespace burin {

// `path`: of the user's file, which the compilers' messages then name with its lines.
struct FunctionText {
  std::string path, source;

  // Names the function: the same text, with the same attributes, has the same one.
  std::string hash(const UserFunction& function) const;
  // For NVRTC: a function symbol() of so many floats.
  std::string for_device(const UserFunction& function) const;
  // For a C++ compiler: what host_library.h looks for.
  std::string for_host(const UserFunction& function) const;
};

// "float Op(float, float)": what the user's text must define.
std::string wanted_signature(const UserFunction& function);

}  // namespace burin
