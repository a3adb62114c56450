#include "compiler/assemble/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ir/error.h"

extern char** environ;

namespace burin {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOutputFile = "output.txt";

class SpawnActions {
 public:
  SpawnActions() {
    if (const int error = ::posix_spawn_file_actions_init(&actions_); error != 0) fail_with("init", error);
  }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  // Relative names keep the folder's random name out of what the program writes.
  void enter(const std::string& folder) {
    if (const int error = ::posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str()); error != 0) {
      fail_with("addchdir", error);
    }
  }
  void open(int descriptor, const char* path, int flags) {
    if (const int error = ::posix_spawn_file_actions_addopen(&actions_, descriptor, path, flags, 0600); error != 0) {
      fail_with("addopen", error);
    }
  }
  void duplicate(int from, int to) {
    if (const int error = ::posix_spawn_file_actions_adddup2(&actions_, from, to); error != 0) {
      fail_with("adddup2", error);
    }
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  [[noreturn]] static void fail_with(const char* step, int error) {
    fail(ErrorKind::device, "cannot prepare a program's start ({}): {}", step, std::strerror(error));
  }
  posix_spawn_file_actions_t actions_;
};

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  const fs::path base = fs::temp_directory_path(error);
  if (error) fail(ErrorKind::device, "no folder for temporary files: {}; set TMPDIR", error.message());
  path_ = (base / "burin-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) {
    fail(ErrorKind::device, "cannot make a temporary folder in {}: {}; set TMPDIR", base.string(),
         std::strerror(errno));
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

ProgramResult run_program(const std::string& program, const std::vector<std::string>& arguments,
                          const TemporaryFolder& folder) {
  // The child changes its folder before it starts the program, so a relative path has to become absolute.
  std::error_code ignored;
  const fs::path absolute = fs::absolute(program, ignored);
  const std::string path = ignored ? program : absolute.string();

  SpawnActions actions;
  actions.enter(folder.path());
  actions.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  actions.open(STDOUT_FILENO, kOutputFile, O_WRONLY | O_CREAT | O_TRUNC);
  actions.duplicate(STDOUT_FILENO, STDERR_FILENO);

  std::vector<char*> argv = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  pid_t child = 0;
  if (const int error = ::posix_spawn(&child, path.c_str(), actions.get(), nullptr, argv.data(), environ); error != 0) {
    fail(ErrorKind::device, "cannot start {}: {}", path, std::strerror(error));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail(ErrorKind::device, "cannot wait for {}: {}", path, std::strerror(errno));
  }

  ProgramResult result;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  std::ifstream file(fs::path(folder.path()) / kOutputFile, std::ios::binary);
  result.output.assign(std::istreambuf_iterator<char>(file), {});
  return result;
}

}  // namespace burin
