// When a signal ends the process: which case the thread was at.
#pragma once

#include <string>

namespace burin_test {

// From now on SIGSEGV, SIGFPE, SIGABRT and their like print the thread's line to stdout before they end the process.
void install_crash_report();

// The line of this thread, while the object lives.
class CrashLine {
 public:
  explicit CrashLine(std::string line);
  ~CrashLine();
  CrashLine(const CrashLine&) = delete;
  CrashLine& operator=(const CrashLine&) = delete;

 private:
  const std::string line_;
};

}  // namespace burin_test
