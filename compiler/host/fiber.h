// Fibers: the threads of one GPU block as coroutines of one CPU thread, each with a small stack of its own.
//
// A switch costs a few nanoseconds: on x86-64 it is a dozen instructions, elsewhere ucontext. Below each stack lies a
// page that cannot be touched, so that an overflow ends the process instead of changing another fiber's data.
#pragma once

#include <cstddef>
#include <memory>

namespace burin {

class FiberPool {
 public:
  // `entry` runs on each fiber and never returns: it ends with leave(). Throws Error(internal) without memory.
  FiberPool(int fibers, std::size_t stack_bytes, void (*entry)());
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  // The scheduler calls this: the fiber will start at its entry. What it was doing before is forgotten.
  void restart(int fiber);
  // The scheduler calls this: it runs the fiber until that suspends or leaves.
  void resume(int fiber);
  // The running fiber goes back to the scheduler, and on with the next resume.
  void suspend();
  // The running fiber goes back to the scheduler for good.
  [[noreturn]] void leave();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace burin
