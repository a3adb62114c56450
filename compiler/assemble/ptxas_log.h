// Parses what ptxas and nvJitLink print in verbose mode.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace burin {

struct FunctionUsage {
  std::string name;
  int registers = -1;  // of entries alone: a function's registers are part of the entry that calls it
  int stack_bytes = -1;
  int spill_store_bytes = -1;
  int spill_load_bytes = -1;
};

struct AssemblerUsage {
  std::vector<FunctionUsage> functions;  // one for each name, in order of appearance

  int spill_bytes() const;                       // stores + loads of all functions; -1 when the log says nothing
  int stack_bytes() const;                       // the largest frame; -1 when the log says nothing
  int registers(std::string_view symbol) const;  // -1 when the log does not name it
};

// Lines that are not understood are passed over; numbers that do not fit an int count as the largest one.
AssemblerUsage parse_ptxas_log(std::string_view log);

}  // namespace burin
