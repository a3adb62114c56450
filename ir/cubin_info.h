// Reads what a cubin says of its code. A cubin is a 64-bit ELF file for machine 190. Registers and frames stand in the
// section .nv.info as records (format, attribute, value) per symbol, a kernel's parameters in one of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace burin {

struct CubinParameter {
  int offset = 0, bytes = 0;  // in the constant bank, from its first parameter on
  bool operator==(const CubinParameter&) const = default;
};

struct CubinFunction {
  std::string name;
  int registers = -1;    // per thread; -1 when the cubin does not say
  int frame_bytes = -1;  // of this function alone
  bool entry = false;    // a kernel
  // A kernel alone has these.
  std::vector<CubinParameter> parameters;
  int parameter_bytes = 0;  // of all, as the cubin says it apart from them
  int shared_bytes = 0;     // static, with what the driver reserves for itself
};

struct CubinInfo {
  int compute = 0;                       // 90: for sm_90 and sm_90a
  std::vector<CubinFunction> functions;  // in the order of their symbols
  std::int64_t code_bytes = 0;           // all sections .text.*
  int frame_bytes = -1;                  // the largest; -1 when the cubin does not say

  const CubinFunction* find(std::string_view symbol) const;
  std::string entries() const;  // the kernels' names; for messages
};

// Every offset and size in the file is checked before it is used, in a time that is linear in its size. Throws
// Error(bad_input) that says what is wrong.
CubinInfo read_cubin(std::string_view cubin);

}  // namespace burin
