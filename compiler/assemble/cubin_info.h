// Reads what a cubin says of its code. A cubin is a 64-bit ELF file for machine 190; registers and frames stand in the
// section .nv.info as records (format, attribute, value) per symbol.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace burin {

struct CubinFunction {
  std::string name;
  int registers = -1;    // per thread; -1 when the cubin does not say
  int frame_bytes = -1;  // of this function alone
  bool entry = false;    // a kernel
};

struct CubinInfo {
  std::vector<CubinFunction> functions;  // in the order of their symbols
  std::int64_t code_bytes = 0;           // all sections .text.*
  int frame_bytes = -1;                  // the largest; -1 when the cubin does not say

  const CubinFunction* find(std::string_view symbol) const;
};

// Every offset and size in the file is checked before it is used. Throws Error(bad_input) that says what is wrong.
CubinInfo read_cubin(std::string_view cubin);

}  // namespace burin
