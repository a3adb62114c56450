// What of CUDA and LLVM was found on this machine, and what a missing piece is needed for. Nothing here throws for a
// piece that is absent or broken: that is what it reports.
#pragma once

#include <string>
#include <vector>

namespace burin {

struct DoctorPiece {
  std::string name;  // "CUDA driver"
  bool found = false;
  std::string version;  // "13.0"; empty when it is not found
  std::string path;     // of the library or program
  std::string purpose;  // what it is needed for
  std::string problem;  // why it was not found, and what would help
};

struct DoctorDevice {
  int ordinal = 0;
  std::string name;
  std::string arch;    // "sm_90"
  bool known = false;  // burin generates code for the architecture
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::string problem;  // why it cannot be used; then the rest is not known
};

struct DoctorReport {
  std::string tool_version;
  std::vector<DoctorPiece> pieces;
  std::vector<DoctorDevice> devices;
  std::string assembler;                   // what `compile` assembles with: "ptxas 13.0"; empty: PTX only
  std::string assembler_note;              // why there is none
  std::vector<std::string> default_archs;  // of `compile` without --arch
  std::vector<std::string> known_archs;
};

DoctorReport examine();

// Aligned tables for people.
std::string to_text(const DoctorReport& report);
// One JSON object, keys in a fixed order.
std::string to_json(const DoctorReport& report);

}  // namespace burin
