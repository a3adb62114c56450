#include "test/cli/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

extern char** environ;

namespace burin_test {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> merged = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "=") + 1);
    const bool replaced =
        std::any_of(changes.begin(), changes.end(), [&](const std::string& c) { return c.starts_with(name); });
    if (!replaced) merged.emplace_back(*entry);
  }
  return merged;
}

}  // namespace

Outcome run_program(const std::vector<std::string>& command_line, const std::vector<std::string>& environment,
                    const std::filesystem::path& folder) {
  // Files take any amount of output from both streams, where two pipes could block each other.
  const ScratchFolder scratch;
  const std::string out = scratch / "out", err = scratch / "err";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  const std::vector<std::string> variables = merged_environment(environment);
  pid_t child = 0;
  const int error = posix_spawnp(&child, command_line.front().c_str(), &actions, nullptr, pointers(command_line).data(),
                                 pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(command_line.front() + ": " + std::strerror(error));
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = read_file(out);
  outcome.err = read_file(err);
  return outcome;
}

Outcome run_burin(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                  const std::filesystem::path& folder) {
  std::vector<std::string> command_line = {BURIN_PROGRAM};
  command_line.insert(command_line.end(), arguments.begin(), arguments.end());
  return run_program(command_line, environment, folder);
}

Outcome run_burin_without_gpu(const std::vector<std::string>& arguments) {
  return run_burin(arguments, {"CUDA_VISIBLE_DEVICES="});
}

}  // namespace burin_test
