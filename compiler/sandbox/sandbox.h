// A process of its own for work on what is not trusted. LLVM was not made for hostile modules: it crashes on some, and
// asks for any amount of time and memory for others; and whoever runs such a module runs any code. In its process it
// has neither files nor network nor other processes, and so much time and memory; an end that nobody asked for is an
// error here.
//
// The process is a fork, so it has all that this one has in memory. What it needs of this one must be at rest: no other
// thread may be at work with LLVM while it is made.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace burin {

struct SandboxLimits {
  int seconds = 600;                           // of the clock, in which all requests must be done, and of the processor
  std::int64_t bytes = std::int64_t{4} << 30;  // of memory, beside what this process has already
  bool finds_no_files = false;                 // looking for a file is no reason to end it: there are none
};

class Sandbox {
 public:
  // What the process does for each request, on its only thread. It may throw Error.
  using Service = std::function<void(std::span<std::byte> shared)>;

  // `subject`: what errors name, such as a file. `shared_bytes`: memory that both processes see at the same addresses;
  // what the other one has written there is not to be trusted. Throws Error(unsupported) where the system cannot
  // confine a process.
  Sandbox(std::string subject, std::size_t shared_bytes, const SandboxLimits& limits, const Service& service);
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  std::span<std::byte> shared() const { return shared_; }

  // Has the service run once. Errors of it about the user's input are thrown here as they are; all others, and what
  // ended the process, as Error(bad_input) that names the subject. After an error there are no more requests.
  void request();

 private:
  void start(const Service& service);
  void stop();
  void await_reply();
  [[noreturn]] void fail_ended(bool too_late);

  std::string subject_;
  SandboxLimits limits_;
  std::span<std::byte> shared_;
  int channel_ = -1;  // a message for each request and each reply
  pid_t process_ = -1;
  std::chrono::steady_clock::duration left_;  // of the time for requests
};

}  // namespace burin
