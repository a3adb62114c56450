// What a process in a sandbox cannot do, and how its end is told.
#include <fcntl.h>
#include <linux/futex.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "compiler/sandbox/sandbox.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/sandbox/small_limits.h"
#include "test/scratch_folder.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;

namespace {

constexpr std::size_t kBytes = 4096;

// The error when the sandbox does this.
std::string end_of(const std::function<void()>& work, const SandboxLimits& limits = kLittleMemory) {
  Sandbox sandbox("x.ll, layer conv", kBytes, limits, [&](std::span<std::byte>) { work(); });
  return BURIN_THROWN(bad_input, sandbox.request()).text;
}

const std::string kForbiddenCall = "x.ll, layer conv: in its sandbox it tried a system call that is forbidden there";

// Does nothing to `value`, which the compiler must now take for anything.
template <typename T>
T opaque(T value) {
  asm volatile("" : "+r"(value));
  return value;
}

}  // namespace

TEST_CASE("sandbox: both processes see the shared memory, and what the service keeps stays") {
  int requests = 0;
  Sandbox sandbox("x", kBytes, kLittleMemory, [&](std::span<std::byte> shared) {
    ++requests;
    shared[1] = static_cast<std::byte>(static_cast<int>(shared[0]) + requests);
  });
  sandbox.shared()[0] = std::byte{40};
  sandbox.request();
  CHECK(sandbox.shared()[1] == std::byte{41});
  sandbox.request();
  CHECK(sandbox.shared()[1] == std::byte{42});
  CHECK(requests == 0);  // the other process counts
}

TEST_CASE("sandbox: errors about the input pass through, others name the subject") {
  const auto error_of = [](ErrorKind kind) {
    Sandbox sandbox("x.ll", kBytes, kLittleMemory, [&](std::span<std::byte>) { throw Error(kind, "a fault"); });
    const auto thrown = thrown_by([&] { sandbox.request(); });
    REQUIRE(thrown);
    return *thrown;
  };
  for (const ErrorKind kind : {ErrorKind::verification, ErrorKind::bad_input, ErrorKind::unsupported}) {
    CHECK(error_of(kind).kind == kind);
    CHECK(error_of(kind).text == "a fault");
  }
  CHECK(error_of(ErrorKind::internal).kind == ErrorKind::bad_input);
  CHECK(error_of(ErrorKind::internal).text == "x.ll: a fault");
}

TEST_CASE("sandbox: no files, network, processes or threads") {
  const ScratchFolder folder;
  const std::string file = folder / "written";
  CHECK(end_of([&] { open(file.c_str(), O_CREAT | O_WRONLY, 0600); }) == kForbiddenCall);
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(end_of([] { open("/etc/passwd", O_RDONLY); }) == kForbiddenCall);
  CHECK(end_of([] { socket(AF_INET, SOCK_STREAM, 0); }) == kForbiddenCall);
  CHECK(end_of([] { fork(); }) == kForbiddenCall);
  CHECK(end_of([] { execl("/bin/true", "true", nullptr); }) == kForbiddenCall);
  CHECK(end_of([] { std::jthread([] {}); }) == kForbiddenCall);
  CHECK(end_of([] { kill(getppid(), SIGTERM); }) == kForbiddenCall);
  CHECK(end_of([] { unlink("/tmp/nothing"); }) == kForbiddenCall);
}

TEST_CASE("sandbox: whoever may look for files finds none") {
  const ScratchFolder folder;
  const std::string file = folder / "written";
  SandboxLimits limits = kLittleMemory;
  limits.finds_no_files = true;
  Sandbox sandbox("x", kBytes, limits, [&](std::span<std::byte> shared) {
    const int written = open(file.c_str(), O_CREAT | O_WRONLY, 0600), read = open("/etc/passwd", O_RDONLY);
    shared[0] = static_cast<std::byte>(written < 0 && read < 0 && errno == ENOENT);
  });
  sandbox.request();
  CHECK(sandbox.shared()[0] == std::byte{1});
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(end_of([] { socket(AF_INET, SOCK_STREAM, 0); }, limits) == kForbiddenCall);
  CHECK(end_of([] { unlink("/tmp/nothing"); }, limits) == kForbiddenCall);
}

TEST_CASE("sandbox: files that this process has open are out of reach") {
  const ScratchFolder folder;
  const int opened = open((folder / "kept").c_str(), O_CREAT | O_RDWR, 0600), file = fcntl(opened, F_DUPFD, 10);
  REQUIRE(file >= 10);
  const auto read_it = [&] {
    char byte = 0;
    static_cast<void>(!read(file, &byte, 1));
  };
  CHECK(end_of(read_it) == kForbiddenCall);
  close(file);
  close(opened);
}

TEST_CASE("sandbox: what ends the process is one error") {
  CHECK_THAT(end_of([] { *opaque<volatile int*>(nullptr) = 1; }),
             Contains("x.ll, layer conv: in its sandbox it was ended by signal 11 (Segmentation fault)"));
  CHECK_THAT(end_of([] { std::abort(); }), Contains("was ended by signal 6 (Aborted)"));
  CHECK_THAT(end_of([] { _exit(3); }), Contains("ended with exit code 3"));
}

TEST_CASE("sandbox: an endless loop ends") {
  const auto loop = [] {
    while (opaque(true)) continue;
  };
  CHECK(end_of(loop, kOneSecond) == "x.ll, layer conv: in its sandbox it took more than 1 s");
}

TEST_CASE("sandbox: a process that leaves its channel and goes on is ended") {
  const auto leave_and_wait = [] {
    static_cast<void>(!write(3, "", 0));
    int word = 0;
    for (;;) syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
  };
  CHECK(end_of(leave_and_wait) == "x.ll, layer conv: in its sandbox it ended its connection to burin, and went on");
}

TEST_CASE("sandbox: memory cannot be taken out of use for others") {
  constexpr int kHwPoison = 100;
  CHECK(end_of([] {
          void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          madvise(memory, kBytes, kHwPoison);
        }) == kForbiddenCall);
}

TEST_CASE("sandbox: where it cannot be closed nothing runs in it") {
#ifdef BURIN_SANITIZED
  BURIN_SKIP("UBSan opens a pipe to look at memory, and here are no files left");
#endif
  const ScratchFolder folder;
  const std::string victim = folder / "victim";
  // Another process has fewer files: the standard ones, one of its own, and the two ends of the channel.
  const pid_t process = fork();
  if (process == 0) {
    close_range(3, ~0U, 0);
    const int file = open(victim.c_str(), O_CREAT | O_RDWR, 0600);
    static_cast<void>(!write(file, "kept", 4));
    lseek(file, 0, SEEK_SET);
    const rlimit files{6, 6};
    if (file != 3 || setrlimit(RLIMIT_NOFILE, &files) != 0) _exit(2);
    try {
      const Sandbox sandbox("x.ll", kBytes, kLittleMemory, [](std::span<std::byte>) {});
    } catch (const Error& error) {
      _exit(std::string_view(error.what()).find("this system refuses another file") != std::string_view::npos ? 0 : 3);
    }
    _exit(1);  // it went on without
  }
  int status = -1;
  REQUIRE(waitpid(process, &status, 0) == process);
  CHECK(status == 0);
  std::ifstream file(victim);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == "kept");
}

TEST_CASE("sandbox: too much memory") {
  BURIN_NEEDS_MEMORY_LIMIT();
  const std::string text = "x.ll, layer conv: in its sandbox it needed more than 512 MiB of memory";
  CHECK(end_of([] { opaque(new char[std::size_t{1} << 30]); }) == text);
  CHECK(end_of([] {
          for (std::vector<std::string> all;;) all.emplace_back(1 << 20, 'x');
        }) == text);
  CHECK(end_of([] {
          void* memory = mmap(nullptr, std::size_t{1} << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          if (memory == MAP_FAILED) fail(ErrorKind::internal, "reserving: {}", std::strerror(errno));
        }) == text);
}

TEST_CASE("sandbox: after its end there are no more requests") {
  Sandbox sandbox("x.ll", kBytes, kLittleMemory, [](std::span<std::byte>) { _exit(0); });
  CHECK(BURIN_THROWN(bad_input, sandbox.request()).text == "x.ll: in its sandbox it ended with exit code 0");
  CHECK(BURIN_THROWN(bad_input, sandbox.request()).text == "x.ll: its sandbox has ended");
}

TEST_CASE("sandbox: a system without seccomp is an error") {
  // Nobody gives rights back, so another process loses them.
  const pid_t process = fork();
  if (process == 0) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(seccomp), 0);
    seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, 22));  // PR_SET_SECCOMP
    if (seccomp_load(filter) != 0) _exit(2);
    try {
      const Sandbox sandbox("x.ll", kBytes, kLittleMemory, [](std::span<std::byte>) {});
    } catch (const Error& error) {
      const bool told = std::string_view(error.what()).find("this system refuses") != std::string_view::npos;
      _exit(error.kind() == ErrorKind::unsupported && told ? 0 : 3);
    }
    _exit(1);  // it went on without
  }
  int status = -1;
  REQUIRE(waitpid(process, &status, 0) == process);
  CHECK(status == 0);
}
