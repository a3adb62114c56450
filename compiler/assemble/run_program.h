// Runs a program to its end.
#pragma once

#include <string>
#include <vector>

namespace burin {

struct ProgramResult {
  int exit_code = -1;  // of a program that ended by itself
  int signal = 0;      // that ended it
  std::string output;  // stdout and stderr, as written
};

// A folder of our own below the system's folder for temporary files; it goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();  // throws Error(device) when none can be made
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Starts `program` (a path) with `arguments` in `folder`, its output going to a file there, and waits for it. Throws
// Error(device) when it cannot be started.
ProgramResult run_program(const std::string& program, const std::vector<std::string>& arguments,
                          const TemporaryFolder& folder);

}  // namespace burin
