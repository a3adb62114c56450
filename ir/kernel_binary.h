// One file of a package that holds a kernel's code.
#pragma once

#include <cstdint>
#include <string>

#include "ir/named_enum.h"

namespace burin {

enum class BinaryKind { ptx, cubin };
constexpr EnumNames<2> names_of(BinaryKind) { return {"a kind of code", {"ptx", "cubin"}}; }

// One file of the package that holds a kernel's code, with the assembler's report where there is one.
struct KernelBinary {
  BinaryKind kind = BinaryKind::ptx;
  std::string arch;  // cubin: the architecture it runs on; ptx: the lowest it can be compiled for
  std::string path;  // inside the package
  std::int64_t bytes = 0;
  // cubin only; -1: not reported
  int registers = -1;
  int spill_bytes = -1;
  int stack_bytes = -1;
  std::int64_t code_bytes = -1;  // machine code
  bool operator==(const KernelBinary&) const = default;
};

}  // namespace burin
