// What the two assemblers, nvJitLink and ptxas, have in common.
#pragma once

#include <string>
#include <string_view>

#include "compiler/assemble/assemble.h"
#include "ir/error.h"

namespace burin {

struct AssemblerOutput {
  std::string cubin;
  std::string log;
};

// An assembler that was ended by a fault of its own, not for want of memory.
struct AssemblerCrash : Error {
  using Error::Error;
};

// Has what find_assembler() found assemble. Thread-safe; throws as assemble() does.
AssemblerOutput run_assembler(const std::string& ptx, const std::string& arch);

// What assemble() returns, from an assembler's output: numbers from the cubin, spills from the log.
AssembledKernel describe_assembled(AssemblerOutput output, const std::string& symbol);

// Throws what a failed assembly means, from the assembler's log: Error(unsupported) when it does not know `arch` or the
// PTX's version, or when the PTX is for a later architecture; else Error(internal), since the PTX is ours.
[[noreturn]] void fail_assembly(std::string_view assembler, std::string_view arch, std::string_view log);

// The same where it is certain that the assembler does not know `arch`. Error(unsupported).
[[noreturn]] void fail_unknown_arch(std::string_view assembler, std::string_view arch, std::string_view log);

// "sm_90", "sm_90a": a real architecture. Throws Error(unsupported) for anything else, which an assembler might take
// for an option.
void require_arch_name(std::string_view arch);

// What is true of any text that goes to an assembler. Throws Error(internal).
void require_ptx(std::string_view ptx);

}  // namespace burin
