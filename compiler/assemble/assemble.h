// PTX to machine code: through nvJitLink where its library is found, else ptxas where it is on PATH.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace burin {

struct AssembledKernel {
  std::string cubin;
  int registers = -1;            // per thread
  int spill_bytes = -1;          // spill stores + loads, all functions
  int stack_bytes = -1;          // largest frame
  std::int64_t code_bytes = -1;  // machine code of all functions
  std::string log;               // what the assembler said
};

// What can assemble here; found once, never throws.
struct AssemblerInfo {
  enum class Kind { none, nvjitlink, ptxas } kind = Kind::none;
  std::string path;     // the library or program
  std::string version;  // "13.0"
  std::string note;     // when there is none: what was tried and what would help
};
// BURIN_ASSEMBLER=nvjitlink|ptxas|none chooses; default: the first found in that order.
const AssemblerInfo& find_assembler();

// Assembles one PTX text for one architecture ("sm_90"). Thread-safe. Throws Error(internal) with the assembler's log
// when our PTX does not assemble, Error(unsupported) when the assembler does not know the architecture.
// `symbol`: the entry whose registers are reported.
AssembledKernel assemble(const std::string& ptx, const std::string& arch, const std::string& symbol);

}  // namespace burin
