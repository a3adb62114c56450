#include "test/gpu/crash_report.h"

#include <unistd.h>

#include <csignal>

namespace burin_test {
namespace {

thread_local const std::string* current_line = nullptr;

// Only what may be called in a signal handler.
void report_crash(int signal) {
  if (current_line != nullptr) {
    [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, current_line->data(), current_line->size());
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void install_crash_report() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(signal, report_crash);
}

CrashLine::CrashLine(std::string line) : line_(std::move(line)) { current_line = &line_; }

CrashLine::~CrashLine() { current_line = nullptr; }

}  // namespace burin_test
