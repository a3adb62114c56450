#include "compiler/import/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "compiler/import/faults.h"

namespace burin {
namespace {

// Closes the descriptor on every way out; the mapping lives on without it.
struct FileDescriptor {
  int value = -1;
  ~FileDescriptor() {
    if (value >= 0) ::close(value);
  }
};

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must not wait for its writer; for a regular file it changes nothing.
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0) {
    if (errno == ENOENT) bad_input(path, "no such file");
    bad_input(path, "cannot be opened: {}", reason(errno));
  }
  struct stat info{};
  if (::fstat(file.value, &info) != 0) bad_input(path, "cannot be read: {}", reason(errno));
  if (S_ISDIR(info.st_mode)) {
    bad_input(path, "is a directory; name the weights file in it (for a sharded model its *.index.json)");
  }
  if (!S_ISREG(info.st_mode)) bad_input(path, "is not a regular file");
  if (info.st_size == 0) bad_input(path, "is empty");
  size_ = static_cast<std::size_t>(info.st_size);
  address_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.value, 0);
  if (address_ == MAP_FAILED) {
    address_ = nullptr;
    bad_input(path, "cannot be mapped: {}", reason(errno));
  }
}

MappedFile::~MappedFile() {
  if (address_ != nullptr) ::munmap(address_, size_);
}

}  // namespace burin
