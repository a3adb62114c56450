#include "ir/package/atomic_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "ir/error.h"

namespace burin {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const std::string& path, const std::string& reason) {
  fail(ErrorKind::usage, "cannot write {}: {}", path, reason);
}

[[noreturn]] void cannot_write(const std::string& path, int error) { cannot_write(path, std::strerror(error)); }

// While it lives, signals to this thread wait, so that none ends the process between two steps that belong together;
// where there are other threads, one of them may take it.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
  ~SignalsWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// A file that is gone unless it was put in its place. Where the file system can do that it has no name until then, so
// that nothing is left of it however the process ends; elsewhere it has a temporary one.
class TemporaryFile {
 public:
  // `target` is only for messages.
  TemporaryFile(const fs::path& directory, const std::string& target) : target_(target), directory_(directory) {
    fd_ = ::open(directory.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
    if (fd_ >= 0 && ::access(descriptor().c_str(), F_OK) == 0) return;
    if (fd_ >= 0) ::close(fd_);
    fd_ = open_named();
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  void write(std::string_view bytes) {
    constexpr std::size_t kMaxWriteBytes = std::size_t{1} << 30;  // one call to write() takes less than 2 GiB
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), kMaxWriteBytes));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) cannot_write(target_, errno);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void put_at(const fs::path& path, Durability durability) {
    if (durability == Durability::forced && ::fsync(fd_) != 0) cannot_write(target_, errno);
    const SignalsWait signals_wait;
    if (path_.empty()) {
      if (link_to(path)) return;
      if (errno == EEXIST) {
        // A link replaces nothing, and a rename needs a name.
        with_new_name([&] { return link_to(path_); });
      } else {
        copy_to_named(durability);  // a system may refuse such links
      }
    }
    const int closed = ::close(fd_);
    fd_ = -1;
    if (closed != 0 || ::rename(path_.c_str(), path.c_str()) != 0) cannot_write(target_, errno);
    path_.clear();
  }

 private:
  std::string descriptor() const { return fmt::format("/proc/self/fd/{}", fd_); }
  bool link_to(const fs::path& path) const {
    return ::linkat(AT_FDCWD, descriptor().c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
  }

  // The file with a name, which path_ is then.
  int open_named() {
    int fd = -1;
    with_new_name([&] {
      fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      return fd >= 0;
    });
    return fd;
  }
  void copy_to_named(Durability durability) {
    const int without_name = std::exchange(fd_, -1);
    const auto close_it = [](const int* fd) { ::close(*fd); };
    const std::unique_ptr<const int, decltype(close_it)> closes(&without_name, close_it);
    fd_ = open_named();
    std::string buffer(1 << 20, '\0');
    ::lseek(without_name, 0, SEEK_SET);
    for (ssize_t count = 0; (count = ::read(without_name, buffer.data(), buffer.size())) != 0;) {
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) cannot_write(target_, errno);
      write({buffer.data(), static_cast<std::size_t>(count)});
    }
    if (durability == Durability::forced && ::fsync(fd_) != 0) cannot_write(target_, errno);
  }

  // Gives path_ names until `make` has made a file of it, or fails otherwise than by finding one there.
  template <typename Make>
  void with_new_name(const Make& make) {
    static std::atomic<unsigned> counter{0};
    constexpr int kAttempts = 100;  // a name may be left over from a process that was killed
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      path_ = directory_ / fmt::format(".burin-{}-{}.tmp", ::getpid(), counter++);
      if (make()) return;
      if (errno != EEXIST) break;
    }
    const int error = errno;
    path_.clear();
    cannot_write(target_, error);
  }

  std::string target_;
  fs::path directory_;
  fs::path path_;  // empty: it has no name
  int fd_ = -1;
};

// Makes the rename itself durable. The file is complete and in place by now; a file system that cannot do this is no
// reason to call the write failed.
void sync_directory(const fs::path& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

// The file that is to be replaced or made, behind symbolic links.
fs::path target_of(const std::string& path) {
  if (path.empty()) cannot_write("''", "the path is empty");
  std::error_code error;
  fs::path target = path;
  const fs::file_status status = fs::status(target, error);
  if (fs::is_directory(status) || path.ends_with('/')) cannot_write(path, "it is a folder; a file's name is needed");
  // A rename would replace a device such as /dev/null.
  if (fs::exists(status) && !fs::is_regular_file(status)) cannot_write(path, "it is not a regular file");
  if (fs::exists(status) && fs::is_symlink(fs::symlink_status(target, error))) {
    target = fs::canonical(target, error);
    if (error) cannot_write(path, error.message());
  } else if (fs::is_symlink(fs::symlink_status(target, error))) {
    cannot_write(path,
                 fmt::format("it is a link to '{}', which is not there", fs::read_symlink(target, error).string()));
  }
  return target;
}

fs::path folder_of(const fs::path& target) { return target.has_parent_path() ? target.parent_path() : fs::path("."); }

// A temporary file in the folder of `target`, which is what `path` stands for.
TemporaryFile temporary_beside(const fs::path& target, const std::string& path) {
  std::error_code error;
  const fs::path folder = folder_of(target);
  const fs::file_status status = fs::status(folder, error);
  if (status.type() == fs::file_type::not_found) {
    cannot_write(path, fmt::format("there is no folder '{}'", folder.string()));
  }
  if (fs::exists(status) && !fs::is_directory(status)) {
    cannot_write(path, fmt::format("'{}' is not a folder", folder.string()));
  }
  return {folder, path};
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view bytes, Durability durability) {
  const fs::path target = target_of(path);
  TemporaryFile file = temporary_beside(target, path);
  file.write(bytes);
  file.put_at(target, durability);
  if (durability == Durability::forced) sync_directory(folder_of(target));
}

void check_can_write(const std::string& path) { temporary_beside(target_of(path), path); }

void check_can_fill_folder(const std::string& path) {
  if (path.empty()) cannot_write("''", "the path is empty");
  std::error_code error;
  fs::path existing = fs::absolute(path, error);
  if (error) cannot_write(path, error.message());
  while (!fs::exists(fs::status(existing, error)) && existing.has_relative_path()) existing = existing.parent_path();
  if (!fs::is_directory(existing, error)) {
    cannot_write(path, fmt::format("'{}' is not a folder", existing.string()));
  }
  temporary_beside(existing / "file", path);
}

}  // namespace burin
