// ptxas: NVIDIA's assembler as a program, run once for each text in a private folder that is removed afterwards.
//
// Given a whole program it compiles the functions that an entry calls together, in a time that grows faster than their
// number, and spills in functions whose address is taken. So each function is compiled on its own, as nvJitLink does
// it, and nvlink, which the toolkit keeps beside ptxas, links them. Where there is no nvlink the program stays whole.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/assemble/assembler.h"

namespace burin {

class Ptxas {
 public:
  // The first of `candidates` that runs and says its version; null, with the reason of each in `why`, if none does.
  static std::unique_ptr<Ptxas> open(const std::vector<std::string>& candidates, std::string& why);

  const std::string& path() const { return path_; }
  const std::string& version() const { return version_; }
  bool links() const { return !linker_.empty(); }

  // Thread-safe. Throws Error (see fail_assembly).
  AssemblerOutput assemble(const std::string& ptx, const std::string& arch) const;

 private:
  Ptxas() = default;
  std::string path_;
  std::string version_;
  std::string linker_;  // nvlink; empty when there is none
};

}  // namespace burin
