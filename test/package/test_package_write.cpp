#include <fcntl.h>
#include <seccomp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "ir/package/atomic_file.h"
#include "ir/package/names.h"
#include "test/catch.h"
#include "test/package/samples.h"
#include "test/package/zip_maker.h"
#include "test/scoped_variable.h"
#include "test/scratch_folder.h"
#include "test/skip.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::error_of;
using burin_test::read_file;
using burin_test::sample_package;
using burin_test::ScratchFolder;
using burin_test::write_file;

namespace {

std::string write_error(const std::string& path) {
  return error_of([&] { write_package(sample_package(), path); }, ErrorKind::usage);
}

// A package with such a tensor, a multiple of four bytes, is written and read; what the zip file has of it.
burin_test::ZipListing round_trip(const std::string& content) {
  const ScratchFolder folder;
  Package package;
  package.manifest.tool_version = "0.1.0";
  package.manifest.source = "tensors.npz";
  package.manifest.tensors = {
      {.name = "t", .path = "tensors/0.f32", .shape = {static_cast<std::int64_t>(content.size() / 4)}}};
  package.files["tensors/0.f32"] = content;
  write_package(package, folder / "x.burin");
  Package back;
  const std::string error = error_of([&] { back = read_package(folder / "x.burin"); });
  CHECK(error == "no error");
  if (error == "no error") {
    CHECK(back.manifest == package.manifest);
    CHECK((back.files == package.files));  // not printed
  }
  return burin_test::list_zip(folder / "x.burin").at(1);
}

// Files of this process cannot grow beyond `bytes` while it lives: the disk is full, as far as a writer can tell.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("package: round trip through a file") {
  const ScratchFolder folder;
  const Package package = sample_package();
  write_package(package, folder / "sample.burin");
  const Package back = read_package(folder / "sample.burin");
  CHECK(back.manifest == package.manifest);
  CHECK(back.files == package.files);
  CHECK(folder.entries().size() == 1);
}

TEST_CASE("package: the same package gives the same bytes") {
  const ScratchFolder folder;
  write_package(sample_package(), folder / "a.burin");
  {
    const burin_test::ScopedVariable zone("TZ", "Pacific/Kiritimati");
    ::tzset();
    write_package(read_package(folder / "a.burin"), folder / "b.burin");
  }
  ::tzset();
  CHECK(read_file(folder / "a.burin") == read_file(folder / "b.burin"));
}

TEST_CASE("package: libzip lists manifest.json first, then the files in order, dated 1980") {
  const ScratchFolder folder;
  const Package package = sample_package();
  write_package(package, folder / "sample.burin");
  const auto listing = burin_test::list_zip(folder / "sample.burin");
  REQUIRE(listing.size() == package.files.size() + 1);
  CHECK(listing[0].name == kManifestPath);
  CHECK(
      std::is_sorted(listing.begin() + 1, listing.end(), [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const auto& entry : listing) {
    INFO(entry.name);
    CHECK(entry.stored == entry.content.empty());
    CHECK(entry.dated_1980);
    if (entry.name != kManifestPath) CHECK(*package.files.at(entry.name).content() == entry.content);
  }
}

TEST_CASE("package: machine code is deflated, like all else") {
  const ScratchFolder folder;
  const Package package = sample_package();
  write_package(package, folder / "sample.burin");
  const std::string bytes = read_file(folder / "sample.burin");
  int cubins = 0;
  for (const auto& [path, file] : package.files) {
    INFO(path);
    CHECK((file.bytes() == 0 || bytes.find(*file.content()) == bytes.npos));
    if (path.ends_with(".cubin")) ++cubins;
  }
  CHECK(cubins == 2);
}

TEST_CASE("package: what a reader would not expand is stored") {
  // A layer of pruned weights, or one that was never trained.
  for (const std::size_t values : {1U << 10, 1U << 17, 300'000U, 3'000'000U}) {
    INFO(values);
    const std::string zeros(values * 4, '\0');
    CHECK(round_trip(zeros).stored);
  }
  CHECK_FALSE(round_trip(std::string(64, '\0')).stored);
  CHECK(round_trip(std::string(1 << 22, 'x')).stored);
}

TEST_CASE("package: large files that hardly shrink are stored") {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto weights = [&](std::size_t values, bool pruned) {
    std::string bytes(values * sizeof(float), '\0');
    for (std::size_t i = 0; i < values; ++i) {
      const float value = pruned && i % 2 != 0 ? 0 : normal(random);
      std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
    }
    return bytes;
  };
  CHECK(round_trip(weights(1U << 19, false)).stored);
  CHECK_FALSE(round_trip(weights(1U << 19, true)).stored);
  CHECK_FALSE(round_trip(weights(1U << 16, false)).stored);
}

TEST_CASE("package: what is zero but for a part of it can be read back") {
  std::mt19937 random(5);
  const auto noise = [&](std::size_t bytes) {
    std::string text(bytes, '\0');
    for (char& byte : text) byte = static_cast<char>(random());
    return text;
  };
  const std::string zeros(std::size_t{16} << 20, '\0');
  for (const std::size_t bytes : {std::size_t{4} << 10, std::size_t{32} << 10, std::size_t{1} << 20}) {
    INFO(bytes);
    const std::string part = noise(bytes);
    round_trip(part + zeros);
    round_trip(zeros + part);
    round_trip(zeros + part + zeros);
  }
}

TEST_CASE("package: what repeats itself can be read back") {
  // The quickest way to deflate finds far fewer repetitions than the level that is used.
  std::mt19937 random(5);
  for (const std::size_t period : {4U, 252U, 300U, 494U, 1000U, 1173U, 4000U, 20'000U}) {
    for (const unsigned values : {2U, 4U, 256U}) {
      INFO(period << " bytes of " << values << " values");
      std::string text(period, '\0');
      for (char& byte : text) byte = static_cast<char>(random() % values);
      while (text.size() < std::size_t{2} << 20) text += text.substr(0, period);
      text.resize(std::size_t{2} << 20);
      round_trip(text);
    }
  }
}

TEST_CASE("package: writing replaces what was there") {
  const ScratchFolder folder;
  burin_test::write_file(folder / "x.burin", "old");
  write_package(sample_package(), folder / "x.burin");
  CHECK(read_package(folder / "x.burin").manifest == sample_package().manifest);
  CHECK(folder.entries().size() == 1);
}

TEST_CASE("package: a symbolic link is followed") {
  const ScratchFolder folder;
  burin_test::write_file(folder / "real.burin", "old");
  std::filesystem::create_symlink("real.burin", folder / "link.burin");
  write_package(sample_package(), folder / "link.burin");
  CHECK(std::filesystem::is_symlink(folder / "link.burin"));
  CHECK(read_package(folder / "real.burin").manifest == sample_package().manifest);
}

TEST_CASE("package: a symbolic link to nothing is refused") {
  const ScratchFolder folder;
  std::filesystem::create_symlink("nowhere.burin", folder / "link.burin");
  CHECK(write_error(folder / "link.burin") ==
        "cannot write " + (folder / "link.burin") + ": it is a link to 'nowhere.burin', which is not there");
  CHECK(std::filesystem::is_symlink(folder / "link.burin"));
  CHECK(folder.entries().size() == 1);
}

TEST_CASE("package: a process that is killed while it writes leaves whole files alone") {
  if (const int fd = ::open("/tmp", O_WRONLY | O_TMPFILE, 0600); fd >= 0) {
    ::close(fd);
  } else {
    BURIN_SKIP("the file system knows no files without a name");
  }
  const std::string content(2 << 20, 'x');
  std::mt19937 random(1);
  int written = 0;
  for (int round = 0; round < 40; ++round) {
    const ScratchFolder folder;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (int i = 0;; ++i)
        burin::write_file_atomically(folder / ("file" + std::to_string(i)), content, burin::Durability::left_to_system);
    }
    ::usleep(random() % 10000);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      ++written;
      INFO(file.path());
      CHECK(file.path().filename().string().starts_with("file"));
      CHECK(file.file_size() == content.size());
    }
  }
  CHECK(written > 0);
}

TEST_CASE("package: where files without a name get none, their content is copied") {
  const ScratchFolder folder;
  const std::string content(3 << 20, 'x');
  write_file(folder / "there", "before");
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(linkat), 0);
    if (seccomp_load(filter) != 0) ::_exit(2);
    int failed = 0;
    for (const char* name : {"new", "there"}) {
      try {
        burin::write_file_atomically(folder / name, content, burin::Durability::forced);
      } catch (...) {
        failed = 1;
      }
    }
    ::_exit(failed);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(folder.entries() == std::vector<std::string>{"new", "there"});
  CHECK(read_file(folder / "new") == content);
  CHECK(read_file(folder / "there") == content);
}

TEST_CASE("package: the file's mode follows the umask") {
  const ScratchFolder folder;
  const mode_t before = ::umask(027);
  write_package(sample_package(), folder / "x.burin");
  ::umask(before);
  struct stat status{};
  REQUIRE(::stat((folder / "x.burin").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);
}

TEST_CASE("package: the target is a directory") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "x.burin");
  CHECK(write_error(folder / "x.burin") ==
        "cannot write " + (folder / "x.burin") + ": it is a folder; a file's name is needed");
  CHECK(folder.entries().size() == 1);
}

TEST_CASE("package: the target is a device") {
  CHECK(write_error("/dev/null") == "cannot write /dev/null: it is not a regular file");
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("package: the folder does not exist, or is a file") {
  const ScratchFolder folder;
  CHECK(write_error(folder / "none/x.burin") ==
        "cannot write " + (folder / "none/x.burin") + ": there is no folder '" + (folder / "none") + "'");
  burin_test::write_file(folder / "file", "");
  CHECK(write_error(folder / "file/x.burin") ==
        "cannot write " + (folder / "file/x.burin") + ": '" + (folder / "file") + "' is not a folder");
  CHECK(write_error("") == "cannot write '': the path is empty");
  CHECK(folder.entries().size() == 1);
}

TEST_CASE("package: the folder cannot be written") {
  const ScratchFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0555) == 0);
  // The superuser may write everywhere: become nobody for the call.
  constexpr uid_t kNobody = 65534;
  const uid_t before = ::geteuid();
  if (before == 0 && ::seteuid(kNobody) != 0) BURIN_SKIP("the superuser cannot become another user here");
  const std::string error = write_error(folder / "x.burin");
  REQUIRE(::seteuid(before) == 0);
  CHECK(error == "cannot write " + (folder / "x.burin") + ": Permission denied");
  CHECK(folder.entries().empty());
}

TEST_CASE("package: a write that fails half-way leaves the old file and nothing else") {
  const ScratchFolder folder;
  burin_test::write_file(folder / "x.burin", "old");
  std::string error;
  {
    const FileSizeLimit limit(1000);
    error = write_error(folder / "x.burin");
  }
  CHECK(error == "cannot write " + (folder / "x.burin") + ": File too large");
  CHECK(read_file(folder / "x.burin") == "old");
  CHECK(folder.entries().size() == 1);
}

TEST_CASE("package: several threads write the same file") {
  const ScratchFolder folder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 8; ++i) write_package(sample_package(), folder / "x.burin");
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(read_package(folder / "x.burin").manifest == sample_package().manifest);
  CHECK(folder.entries().size() == 1);
}

TEST_CASE("package: an unsound package is our error and is not written") {
  const ScratchFolder folder;
  Package package = sample_package();
  package.files.erase("tensors/0.f32");
  const std::string error = error_of([&] { write_package(package, folder / "x.burin"); }, ErrorKind::internal);
  CHECK(error.find("the file 'tensors/0.f32' is missing") != error.npos);
  CHECK(folder.entries().empty());
}

TEST_CASE("package: names that cannot be shown are the user's to change") {
  const ScratchFolder folder;
  Package package = sample_package();
  package.manifest.tensors[0].name = "evil\x1b[2J";
  CHECK(error_of([&] { write_package(package, folder / "x.burin"); }, ErrorKind::unsupported) ==
        (folder / "x.burin") +
            ": the tensor name 'evil\\x1b[2J' must have 1 to 4096 bytes of UTF-8 without control "
            "characters to be put into a package; rename it");
  package = sample_package();
  package.manifest.source = "\xff.npz";
  CHECK(error_of([&] { write_package(package, folder / "x.burin"); }, ErrorKind::unsupported) ==
        (folder / "x.burin") +
            ": the weights file's name '\\xff.npz' must have 1 to 4096 bytes of UTF-8 without "
            "control characters to be put into a package; rename it");
  CHECK(folder.entries().empty());
}

TEST_CASE("package: whether a file can be written is said without writing it") {
  const ScratchFolder folder;
  burin_test::write_file(folder / "old.burin", "old");
  check_can_write(folder / "old.burin");
  check_can_write(folder / "new.burin");
  check_can_fill_folder(folder.path().string());
  check_can_fill_folder(folder / "new/folder");
  CHECK(folder.entries() == std::vector<std::string>{"old.burin"});
  CHECK(burin_test::read_file(folder / "old.burin") == "old");
  const auto refused = [](const auto& check, const std::string& path) {
    return error_of([&] { check(path); }, ErrorKind::usage);
  };
  CHECK(refused(check_can_write, folder / "none/x") ==
        "cannot write " + (folder / "none/x") + ": there is no folder '" + (folder / "none") + "'");
  CHECK(refused(check_can_fill_folder, folder / "old.burin/x") ==
        "cannot write " + (folder / "old.burin/x") + ": '" + (folder / "old.burin") + "' is not a folder");
  CHECK(refused(check_can_fill_folder, "") == "cannot write '': the path is empty");
}
