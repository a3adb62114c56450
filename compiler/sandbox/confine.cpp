#include "compiler/sandbox/confine.h"

#include <fcntl.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <memory>

#include "ir/error.h"

namespace burin {
namespace {

void require(bool done, const char* what, int code) {
  if (done) return;
  fail(ErrorKind::unsupported, "an edited module is worked on in a sandbox alone, and this system refuses {}: {}", what,
       std::strerror(code));
}

void keep_only(int channel) {
  const int kept = fcntl(channel, F_DUPFD, kSandboxChannel + 1), nowhere = open("/dev/null", O_RDWR);
  require(kept >= 0 && nowhere >= 0, "to open /dev/null", errno);
  for (int standard = 0; standard < kSandboxChannel; ++standard) dup2(nowhere, standard);
  dup2(kept, kSandboxChannel);
  require(close_range(kSandboxChannel + 1, ~0U, 0) == 0, "to close files", errno);
}

// Handlers of this program and its libraries would do more than end the process.
void end_at_faults() {
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGXCPU}) signal(fault, SIG_DFL);
}

rlim_t memory_now() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  require(static_cast<bool>(file >> pages), "to read /proc/self/statm", ENOENT);
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

void limit(decltype(RLIMIT_AS) resource, rlim_t soft, rlim_t hard) {
  rlimit now{};
  require(getrlimit(resource, &now) == 0, "getrlimit", errno);
  now = {std::min(soft, now.rlim_max), std::min(hard, now.rlim_max)};
  require(setrlimit(resource, &now) == 0, "setrlimit", errno);
}

void limit_resources(const SandboxLimits& limits) {
  const rlim_t memory = memory_now() + static_cast<rlim_t>(limits.bytes);
  const auto seconds = static_cast<rlim_t>(limits.seconds);
  limit(RLIMIT_AS, memory, memory);
  limit(RLIMIT_CPU, seconds, seconds + 1);  // the first is a signal that tells it apart
  limit(RLIMIT_CORE, 0, 0);
}

void forbid_system_calls() {
  const std::unique_ptr<void, decltype(&seccomp_release)> filter(seccomp_init(SCMP_ACT_KILL_PROCESS), &seccomp_release);
  require(filter != nullptr, "seccomp", ENOSYS);
  const auto allow = [&](int call, std::initializer_list<scmp_arg_cmp> where = {}) {
    const int code =
        seccomp_rule_add_array(filter.get(), SCMP_ACT_ALLOW, call, static_cast<unsigned>(where.size()), where.begin());
    require(code == 0, "a rule of seccomp", -code);
  };
  for (const int call :
       {SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mprotect), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk),
        SCMP_SYS(futex), SCMP_SYS(sched_yield), SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(getpid),
        SCMP_SYS(gettid), SCMP_SYS(getrandom), SCMP_SYS(sysinfo), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
        SCMP_SYS(sigaltstack), SCMP_SYS(exit), SCMP_SYS(exit_group)}) {
    allow(call);
  }
  allow(SCMP_SYS(read), {SCMP_A0(SCMP_CMP_EQ, kSandboxChannel, 0)});
  allow(SCMP_SYS(write), {SCMP_A0(SCMP_CMP_LE, kSandboxChannel, 0)});  // standard output and errors lead nowhere
  allow(SCMP_SYS(tgkill), {SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid()), 0)});  // abort()
#ifdef BURIN_SANITIZED
  // UBSan asks with a pipe whether memory can be read.
  for (const int call : {SCMP_SYS(pipe2), SCMP_SYS(close), SCMP_SYS(write)}) allow(call);
#endif
  const int code = seccomp_load(filter.get());
  require(code == 0, "seccomp", -code);
}

}  // namespace

void confine(int channel, const SandboxLimits& limits) {
  keep_only(channel);
  end_at_faults();
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever waits for it may be ended
  limit_resources(limits);
  forbid_system_calls();
}

}  // namespace burin
