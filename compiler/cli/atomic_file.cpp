#include "compiler/cli/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "ir/error.h"

namespace burin {
namespace {

bool write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view content) {
  const std::string temporary = fmt::format("{}.tmp{}", path, getpid());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(ErrorKind::bad_input, "{}: cannot write: {}", path, std::strerror(errno));
  const bool written = write_all(descriptor, content);
  const int write_error = errno;
  const bool closed = ::close(descriptor) == 0;
  if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int error = written ? errno : write_error;
  ::unlink(temporary.c_str());
  fail(ErrorKind::bad_input, "{}: cannot write: {}", path, std::strerror(error));
}

}  // namespace burin
