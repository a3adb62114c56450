#include "compiler/host/guarded.h"

#include <llvm/Support/CrashRecoveryContext.h>

#include <exception>
#include <mutex>

namespace burin {
namespace {

// LLVM's signal handlers are there while some thread needs them.
class SignalHandlers {
 public:
  SignalHandlers() {
    const std::lock_guard lock(mutex_);
    if (users_++ == 0) llvm::CrashRecoveryContext::Enable();
  }
  ~SignalHandlers() {
    const std::lock_guard lock(mutex_);
    if (--users_ == 0) llvm::CrashRecoveryContext::Disable();
  }
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;

 private:
  static std::mutex mutex_;
  static int users_;
};

std::mutex SignalHandlers::mutex_;
int SignalHandlers::users_ = 0;

}  // namespace

bool run_guarded(const std::function<void()>& work) {
  const SignalHandlers handlers;
  std::exception_ptr exception;
  llvm::CrashRecoveryContext context;
  const bool survived = context.RunSafely([&] {
    try {
      work();
    } catch (...) {
      exception = std::current_exception();
    }
  });
  if (exception) std::rethrow_exception(exception);
  return survived;
}

}  // namespace burin
