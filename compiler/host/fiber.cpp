#include "compiler/host/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ir/error.h"

#if defined(__SANITIZE_ADDRESS__)
#define BURIN_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BURIN_FIBER_ASAN 1
#endif
#endif
#ifdef BURIN_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef __x86_64__

// Saves the registers that the ABI lets a caller keep, and the stack pointer in *save; continues on `load`.
extern "C" void burin_host_switch_stack(void** save, void* load);
asm(R"(
.text
.hidden burin_host_switch_stack
.globl burin_host_switch_stack
.type burin_host_switch_stack, @function
burin_host_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
.size burin_host_switch_stack, .-burin_host_switch_stack
)");

namespace {

struct Context {
  void* stack_pointer = nullptr;

  void prepare(char* stack, std::size_t bytes, void (*entry)()) {
    constexpr int kSavedRegisters = 6;
    auto** top = reinterpret_cast<void**>(stack + bytes);
    // The stack is as a switch leaves it: six registers, then where to return to. Above is the null return address of
    // `entry`, which gives its frame the alignment that a call would have.
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(entry);
    for (int i = 0; i < kSavedRegisters; ++i) *--top = nullptr;
    stack_pointer = top;
  }
  static void change(Context& from, Context& to) { burin_host_switch_stack(&from.stack_pointer, to.stack_pointer); }
};

}  // namespace

#else

#include <ucontext.h>

namespace {

struct Context {
  ucontext_t state{};

  void prepare(char* stack, std::size_t bytes, void (*entry)()) {
    getcontext(&state);
    state.uc_stack.ss_sp = stack;
    state.uc_stack.ss_size = bytes;
    state.uc_link = nullptr;
    makecontext(&state, entry, 0);
  }
  static void change(Context& from, Context& to) { swapcontext(&from.state, &to.state); }
};

}  // namespace

#endif

namespace burin {
namespace {

// What AddressSanitizer must be told about each switch; nothing otherwise.
struct StackOwner {
#ifdef BURIN_FIBER_ASAN
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
#endif
};

void announce_switch([[maybe_unused]] StackOwner* from, [[maybe_unused]] const StackOwner& to) {
#ifdef BURIN_FIBER_ASAN
  __sanitizer_start_switch_fiber(from != nullptr ? &from->fake_stack : nullptr, to.bottom, to.bytes);
#endif
}

void finish_switch([[maybe_unused]] const StackOwner* here, [[maybe_unused]] StackOwner* came_from) {
#ifdef BURIN_FIBER_ASAN
  __sanitizer_finish_switch_fiber(here != nullptr ? here->fake_stack : nullptr,
                                  came_from != nullptr ? &came_from->bottom : nullptr,
                                  came_from != nullptr ? &came_from->bytes : nullptr);
#endif
}

struct Fiber {
  Context context;
  StackOwner owner;
};

}  // namespace

struct FiberPool::Impl {
  char* memory = nullptr;
  std::size_t page = 0, stack_bytes = 0, stride = 0, memory_bytes = 0;
  void (*entry)() = nullptr;
  Context scheduler;
  StackOwner scheduler_owner;
  std::vector<Fiber> fibers;
  int running = 0;

  char* stack(int fiber) const { return memory + static_cast<std::size_t>(fiber) * stride + page; }

  // The pool whose fiber is starting; a fiber's entry takes no arguments.
  static thread_local Impl* starting;
  static void begin() {
    Impl* impl = starting;
    finish_switch(nullptr, &impl->scheduler_owner);
    impl->entry();
  }
};

thread_local FiberPool::Impl* FiberPool::Impl::starting = nullptr;

FiberPool::FiberPool(int fibers, std::size_t stack_bytes, void (*entry)()) : impl_(std::make_unique<Impl>()) {
  Impl& impl = *impl_;
  impl.page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  impl.stack_bytes = (stack_bytes + impl.page - 1) / impl.page * impl.page;
  impl.stride = impl.stack_bytes + impl.page;
  impl.memory_bytes = impl.stride * static_cast<std::size_t>(fibers);
  impl.entry = entry;
  impl.fibers.resize(static_cast<std::size_t>(fibers));
  void* memory = mmap(nullptr, impl.memory_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    fail(ErrorKind::internal, "the host executor cannot reserve {} bytes for {} stacks: {}", impl.memory_bytes, fibers,
         std::strerror(errno));
  }
  impl.memory = static_cast<char*>(memory);
  for (int i = 0; i < fibers; ++i) {
    if (mprotect(impl.stack(i), impl.stack_bytes, PROT_READ | PROT_WRITE) != 0) {
      const int code = errno;
      munmap(impl.memory, impl.memory_bytes);
      fail(ErrorKind::internal, "the host executor cannot open stack {} of {}: {}", i, fibers, std::strerror(code));
    }
#ifdef BURIN_FIBER_ASAN
    impl.fibers[static_cast<std::size_t>(i)].owner = {nullptr, impl.stack(i), impl.stack_bytes};
#endif
  }
}

FiberPool::~FiberPool() {
#ifdef BURIN_FIBER_ASAN
  __asan_unpoison_memory_region(impl_->memory, impl_->memory_bytes);
#endif
  munmap(impl_->memory, impl_->memory_bytes);
}

void FiberPool::restart(int fiber) {
  Fiber& f = impl_->fibers[static_cast<std::size_t>(fiber)];
#ifdef BURIN_FIBER_ASAN
  // Frames that were abandoned half-way have left their red zones behind.
  __asan_unpoison_memory_region(impl_->stack(fiber), impl_->stack_bytes);
  f.owner.fake_stack = nullptr;
#endif
  f.context.prepare(impl_->stack(fiber), impl_->stack_bytes, &Impl::begin);
}

void FiberPool::resume(int fiber) {
  Impl& impl = *impl_;
  Fiber& f = impl.fibers[static_cast<std::size_t>(fiber)];
  impl.running = fiber;
  Impl::starting = &impl;
  announce_switch(&impl.scheduler_owner, f.owner);
  Context::change(impl.scheduler, f.context);
  finish_switch(&impl.scheduler_owner, nullptr);
}

void FiberPool::suspend() {
  Impl& impl = *impl_;
  Fiber& f = impl.fibers[static_cast<std::size_t>(impl.running)];
  announce_switch(&f.owner, impl.scheduler_owner);
  Context::change(f.context, impl.scheduler);
  finish_switch(&f.owner, &impl.scheduler_owner);
}

void FiberPool::leave() {
  Impl& impl = *impl_;
  announce_switch(nullptr, impl.scheduler_owner);
  Context::change(impl.fibers[static_cast<std::size_t>(impl.running)].context, impl.scheduler);
  fail_internal(__FILE__, __LINE__, "a fiber that has left was resumed");
}

}  // namespace burin
