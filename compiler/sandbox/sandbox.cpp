#include "compiler/sandbox/sandbox.h"

#include <fcntl.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>
#include <poll.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "ir/error.h"

namespace burin {
namespace {

constexpr int kOutOfMemory = 86;            // the exit code that says so
constexpr std::size_t kMaxReply = 1 << 14;  // bytes of a message
constexpr char kDone = 0;                   // of a reply; else the kind of the error, from kFirstKind on, and its text
constexpr char kFirstKind = 1;

// ---- what the process may not do any more

constexpr int kSandboxChannel = 3;  // the file that a confined process may read and write
int reply_channel = -1;             // of a process that is, or is about to be, in a sandbox

void require(bool done, const char* what, int code) {
  if (done) return;
  fail(ErrorKind::unsupported, "an edited module is worked on in a sandbox alone, and this system refuses {}: {}", what,
       std::strerror(code));
}

void keep_only(int channel) {
  const int kept = fcntl(channel, F_DUPFD, kSandboxChannel + 1);
  require(kept >= 0, "another file", errno);
  reply_channel = kept;
  const int nowhere = open("/dev/null", O_RDWR);
  require(nowhere >= 0, "to open /dev/null", errno);
  for (int standard = 0; standard < kSandboxChannel; ++standard) {
    require(dup2(nowhere, standard) == standard, "to close files", errno);
  }
  require(dup2(kept, kSandboxChannel) == kSandboxChannel, "to close files", errno);
  reply_channel = kSandboxChannel;
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

void forbid_system_calls(bool finds_no_files) {
  const std::unique_ptr<void, decltype(&seccomp_release)> filter(seccomp_init(SCMP_ACT_KILL_PROCESS), &seccomp_release);
  require(filter != nullptr, "seccomp", ENOSYS);
  const auto add_rule = [&](std::uint32_t action, int call, std::initializer_list<scmp_arg_cmp> where) {
    const int code =
        seccomp_rule_add_array(filter.get(), action, call, static_cast<unsigned>(where.size()), where.begin());
    require(code == 0, "a rule of seccomp", -code);
  };
  const auto allow = [&](int call, std::initializer_list<scmp_arg_cmp> where = {}) {
    add_rule(SCMP_ACT_ALLOW, call, where);
  };
  for (const int call :
       {SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mprotect), SCMP_SYS(mremap), SCMP_SYS(brk), SCMP_SYS(futex),
        SCMP_SYS(sched_yield), SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(getpid), SCMP_SYS(gettid),
        SCMP_SYS(getrandom), SCMP_SYS(sysinfo), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack),
        SCMP_SYS(exit), SCMP_SYS(exit_group)}) {
    allow(call);
  }
  // Others take memory out of use, for all processes.
  for (const int advice : {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_FREE,
                           MADV_DONTDUMP, MADV_DODUMP, MADV_HUGEPAGE, MADV_NOHUGEPAGE}) {
    allow(SCMP_SYS(madvise), {SCMP_A2(SCMP_CMP_EQ, static_cast<scmp_datum_t>(advice), 0)});
  }
  allow(SCMP_SYS(read), {SCMP_A0(SCMP_CMP_EQ, kSandboxChannel, 0)});
  allow(SCMP_SYS(write), {SCMP_A0(SCMP_CMP_LE, kSandboxChannel, 0)});  // standard output and errors lead nowhere
  allow(SCMP_SYS(tgkill), {SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid()), 0)});  // abort()
  if (finds_no_files) {
    for (const int call : {SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(stat), SCMP_SYS(newfstatat), SCMP_SYS(access),
                           SCMP_SYS(readlink)}) {
      add_rule(SCMP_ACT_ERRNO(ENOENT), call, {});
    }
  }
#ifdef BURIN_SANITIZED
  // UBSan asks with a pipe whether memory can be read.
  for (const int call : {SCMP_SYS(pipe2), SCMP_SYS(close), SCMP_SYS(write)}) allow(call);
#endif
  const int code = seccomp_load(filter.get());
  require(code == 0, "seccomp", -code);
}

// `channel` becomes kSandboxChannel, and all other files of this process are closed. It has one thread, and from now on
// it may ask the system for memory, and end. Throws Error(unsupported) where the system does not do this.
void confine(int channel, const SandboxLimits& limits) {
  keep_only(channel);
  end_at_faults();
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever waits for it may be ended
  limit_resources(limits);
  forbid_system_calls(limits.finds_no_files);
}

// ---- in the process

void reply(std::string_view message) {
  if (write(reply_channel, message.data(), std::min(message.size(), kMaxReply)) < 0) _exit(1);
}

void reply_error(ErrorKind kind, std::string_view text) {
  reply(std::string(1, static_cast<char>(kFirstKind + static_cast<int>(kind))).append(text));
}

[[noreturn]] void end_out_of_memory() { _exit(kOutOfMemory); }

// LLVM would write to where nobody reads, and end. Its stream for that looks at its file when it is made.
void take_over_llvm() {
  llvm::errs();
  llvm::remove_fatal_error_handler();
  llvm::install_fatal_error_handler([](void*, const char* reason, bool) {
    reply_error(ErrorKind::internal, reason);
    _exit(1);
  });
  llvm::remove_bad_alloc_error_handler();
  llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { end_out_of_memory(); });
}

template <typename Work>
void reply_to(const Work& work) {
  try {
    work();
    reply({&kDone, 1});
  } catch (const Error& error) {
    // Where memory is asked of the system itself, that it gave none is in the text alone.
    const std::string_view text = error.what();
    if (error.kind() == ErrorKind::internal && text.find(std::strerror(ENOMEM)) != text.npos) end_out_of_memory();
    reply_error(error.kind(), text);
  } catch (const std::exception& error) {
    reply_error(ErrorKind::internal, error.what());
  }
}

[[noreturn]] void serve(int channel, const SandboxLimits& limits, std::span<std::byte> shared,
                        const Sandbox::Service& service) {
  std::set_new_handler(end_out_of_memory);
  take_over_llvm();
  reply_channel = channel;
  bool confined = false;
  reply_to([&] {
    confine(channel, limits);
    confined = true;
  });
  if (!confined) _exit(1);
  char request = 0;
  while (read(kSandboxChannel, &request, 1) == 1) reply_to([&] { service(shared); });
  _exit(0);
}

// ---- beside it

// How it ended, of which `limits` were what it had.
std::string end_text(int status, const SandboxLimits& limits) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kOutOfMemory) {
    return fmt::format("needed more than {} MiB of memory", limits.bytes >> 20);
  }
  if (WIFEXITED(status)) return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  if (signal == SIGXCPU) return fmt::format("took more than {} s", limits.seconds);
  if (signal == SIGSYS) return "tried a system call that is forbidden there";
  return fmt::format("was ended by signal {} ({})", signal, strsignal(signal));
}

// A process that is ending closes its files before it has ended.
bool ends_soon(pid_t process) {
  constexpr int kMilliseconds = 2000;
  const int file = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (file < 0) return false;
  pollfd ended{file, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&ended, 1, kMilliseconds);
  } while (ready < 0 && errno == EINTR);
  close(file);
  return ready > 0;
}

}  // namespace

Sandbox::Sandbox(std::string subject, std::size_t shared_bytes, const SandboxLimits& limits, const Service& service)
    : subject_(std::move(subject)), limits_(limits), left_(std::chrono::seconds(limits.seconds)) {
  void* memory = mmap(nullptr, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    fail(ErrorKind::unsupported, "{}: there is no memory to share with its sandbox: {}", subject_,
         std::strerror(errno));
  }
  shared_ = {static_cast<std::byte*>(memory), shared_bytes};
  try {
    start(service);
  } catch (...) {
    stop();
    throw;
  }
}

Sandbox::~Sandbox() { stop(); }

void Sandbox::start(const Service& service) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0) {
    channel_ = ends[0];
    process_ = fork();
    if (process_ == 0) serve(ends[1], limits_, shared_, service);
    close(ends[1]);
  }
  if (process_ < 0) fail(ErrorKind::unsupported, "{}: its sandbox cannot be made: {}", subject_, std::strerror(errno));
  await_reply();
}

void Sandbox::stop() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  if (channel_ >= 0) close(std::exchange(channel_, -1));
  if (!shared_.empty()) munmap(shared_.data(), shared_.size());
  shared_ = {};
}

void Sandbox::request() {
  if (process_ < 0) fail(ErrorKind::bad_input, "{}: its sandbox has ended", subject_);
  const char request = 0;
  send(channel_, &request, 1, MSG_NOSIGNAL);  // where nobody reads it, there is no reply either
  await_reply();
}

void Sandbox::await_reply() {
  using std::chrono::steady_clock, std::chrono::milliseconds;
  const auto end = steady_clock::now() + left_;
  pollfd wanted{channel_, POLLIN, 0};
  int ready = 0;
  do {
    left_ = std::max(end - steady_clock::now(), steady_clock::duration::zero());
    ready = poll(&wanted, 1, static_cast<int>(std::chrono::ceil<milliseconds>(left_).count()));
  } while (ready < 0 && errno == EINTR);
  left_ = std::max(end - steady_clock::now(), steady_clock::duration::zero());
  std::array<char, kMaxReply> message{};
  const ssize_t bytes = ready > 0 ? recv(channel_, message.data(), message.size(), 0) : 0;
  if (bytes <= 0) fail_ended(ready == 0);
  if (message[0] == kDone) return;
  const auto kind = static_cast<ErrorKind>(message[0] - kFirstKind);
  std::string text(message.data() + 1, static_cast<std::size_t>(bytes) - 1);
  std::ranges::replace_if(text, [](unsigned char c) { return (c < ' ' && c != '\n') || c == 0x7f; }, '?');
  while (text.ends_with('\n')) text.pop_back();
  const bool passes = kind == ErrorKind::verification || kind == ErrorKind::bad_input || kind == ErrorKind::unsupported;
  if (passes) throw Error(kind, text);
  fail(ErrorKind::bad_input, "{}: {}", subject_, text);
}

void Sandbox::fail_ended(bool too_late) {
  // It may go on where it has said nothing, or closed its channel.
  const bool ended = !too_late && ends_soon(process_);
  if (!ended) kill(process_, SIGKILL);
  int status = 0;
  waitpid(std::exchange(process_, -1), &status, 0);
  fail(ErrorKind::bad_input, "{}: in its sandbox it {}", subject_,
       too_late ? fmt::format("took more than {} s", limits_.seconds)
       : ended  ? end_text(status, limits_)
                : "ended its connection to burin, and went on");
}

}  // namespace burin
