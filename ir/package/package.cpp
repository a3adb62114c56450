#include "ir/package/package.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "ir/error.h"
#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/package/manifest_json.h"
#include "ir/package/names.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr std::size_t kMaxFaultsInMessage = 5;

// ---- reading the zip

struct ZipError {
  zip_error_t error;
  ZipError() { zip_error_init(&error); }
  ~ZipError() { zip_error_fini(&error); }
  std::string text() { return zip_error_strerror(&error); }
};

// A zip archive in memory, open for reading. All errors are Error(bad_input) that starts with the package's name.
class ZipReader {
 public:
  ZipReader(std::string_view bytes, const std::string& name) : name_(name), total_bytes_(bytes.size()) {
    ZipError error;
    zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error.error);
    if (source == nullptr) bad(error.text());
    zip_ = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error.error);
    if (zip_ == nullptr) {
      zip_source_free(source);
      bad("not a burin package, or a damaged one: " + error.text());
    }
  }
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;
  ~ZipReader() { zip_discard(zip_); }

  // Each entry by its name. Before any content is read, everything that the directory claims is checked, so that the
  // memory taken is bounded by the size of the package itself.
  std::map<std::string, std::string> read_all() {
    const zip_int64_t entries = zip_get_num_entries(zip_, 0);
    if (entries > kMaxPackageEntries) bad(fmt::format("{} entries are over {}", entries, kMaxPackageEntries));
    std::vector<zip_stat_t> stats;
    std::uint64_t sum = 0, packed = 0;
    for (zip_int64_t i = 0; i < entries; ++i) {
      stats.push_back(check_entry(i));
      sum += stats.back().size;  // at most 100000 * 512 MiB
      packed += stats.back().comp_size;
    }
    if (packed > total_bytes_ || sum > static_cast<std::uint64_t>(kMaxPackageBytes)) {
      bad(fmt::format("its entries claim {} bytes, {} expanded; the package has {}, and at most {} are read", packed,
                      sum, total_bytes_, kMaxPackageBytes));
    }
    std::map<std::string, std::string> files;
    for (const zip_stat_t& stat : stats) {
      if (!files.emplace(stat.name, read_entry(stat)).second) {
        bad(fmt::format("the entry '{}' stands in it twice", printable(stat.name)));
      }
    }
    return files;
  }

 private:
  [[noreturn]] void bad(const std::string& text) const { fail(ErrorKind::bad_input, "{}: {}", name_, text); }

  zip_stat_t check_entry(zip_int64_t index) const {
    zip_stat_t stat;
    zip_stat_init(&stat);
    const zip_uint64_t needed =
        ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if (zip_stat_index(zip_, static_cast<zip_uint64_t>(index), ZIP_FL_ENC_RAW, &stat) != 0 ||
        (stat.valid & needed) != needed) {
      bad(fmt::format("entry {} cannot be read: {}", index, zip_strerror(zip_)));
    }
    const std::string entry = fmt::format("the entry '{}'", printable(stat.name));
    if (stat.name != kManifestPath && !is_package_path(stat.name)) {
      bad(entry + " is not a relative path of plain names without '.' or '..'");
    }
    if (stat.encryption_method != ZIP_EM_NONE) bad(entry + " is encrypted; a package is not");
    if (stat.comp_method == ZIP_CM_DEFLATE) {
      if (stat.size / kMaxExpansion > stat.comp_size) {
        bad(fmt::format("{} claims to expand from {} bytes to {}; at most {} times as many are read", entry,
                        stat.comp_size, stat.size, kMaxExpansion));
      }
    } else if (stat.comp_method != ZIP_CM_STORE || stat.comp_size != stat.size) {
      bad(entry + " is compressed in another way than by deflate");
    }
    const auto limit =
        static_cast<std::uint64_t>(stat.name == kManifestPath ? kMaxManifestBytes : kMaxPackageEntryBytes);
    if (stat.size > limit) bad(fmt::format("{} claims {} bytes; at most {} are read", entry, stat.size, limit));
    return stat;
  }

  std::string read_entry(const zip_stat_t& stat) const {
    zip_file_t* file = zip_fopen_index(zip_, stat.index, 0);
    if (file == nullptr) bad(fmt::format("the entry '{}': {}", printable(stat.name), zip_strerror(zip_)));
    std::string content(stat.size, '\0');
    std::size_t done = 0;
    zip_int64_t got = 0;
    while (done < content.size() && (got = zip_fread(file, content.data() + done, content.size() - done)) > 0) {
      done += static_cast<std::size_t>(got);
    }
    // The checksum is compared when the end has been seen.
    char beyond = 0;
    if (got >= 0) got = zip_fread(file, &beyond, 1);
    const std::string reason = got < 0 ? zip_error_strerror(zip_file_get_error(file)) : "it is cut short";
    zip_fclose(file);
    if (got != 0 || done != content.size()) {
      bad(fmt::format("the entry '{}' is damaged: {}", printable(stat.name), reason));
    }
    return content;
  }

  std::string name_;
  std::uint64_t total_bytes_;
  zip_t* zip_ = nullptr;
};

// The files against what the manifest says of them.
std::vector<std::string> verify_files(const Package& package, const ParsedManifest& parsed) {
  Faults faults;
  if (!parsed.files) return {fmt::format("{}: the key \"files\" is missing", kManifestPath)};
  std::set<std::string> listed;
  for (const FileRecord& file : *parsed.files) {
    listed.insert(file.path);
    const auto found = package.files.find(file.path);
    if (found == package.files.end()) continue;  // verify(Package) says what it is for
    if (static_cast<std::int64_t>(found->second.size()) != file.bytes || checksum(found->second) != file.crc32) {
      faults.add("'{}' is not the file that {} was written with", printable(file.path), kManifestPath);
    }
  }
  for (const auto& [path, content] : package.files) {
    if (!listed.contains(path)) faults.add("'{}' is not in the list of files", printable(path));
  }
  return faults.take();
}

std::string first_faults(const std::vector<std::string>& faults) {
  const std::size_t shown = std::min(faults.size(), kMaxFaultsInMessage);
  std::string text = fmt::format("{}", fmt::join(faults.begin(), faults.begin() + static_cast<long>(shown), "; "));
  if (shown < faults.size()) text += fmt::format("; and {} more", faults.size() - shown);
  return text;
}

// ---- reading the file

struct FileDescriptor {
  int fd = -1;
  ~FileDescriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::string read_file(const std::string& path) {
  const auto bad = [&](const std::string& reason) { fail(ErrorKind::bad_input, "{}: {}", path, reason); };
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status{};
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0) bad(std::string("cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) bad("is not a regular file");
  // What zip adds to the files: headers and names.
  constexpr std::int64_t kMaxOverheadBytes = std::int64_t{kMaxPackageEntries} * (2 * kMaxPackagePathBytes + 256);
  if (status.st_size > kMaxPackageBytes + kMaxOverheadBytes) {
    bad(fmt::format("{} bytes are more than a package has", status.st_size));
  }
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file.fd, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) bad(std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) bad("was cut short while it was read");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace

std::vector<std::string> verify(const Package& package) {
  Faults faults;
  faults.add_all(verify(package.manifest), fmt::format("{}: ", kManifestPath));
  std::set<std::string> named;
  const auto check = [&](const std::string& record, const std::string& path, std::optional<std::int64_t> bytes) {
    named.insert(path);
    const auto found = package.files.find(path);
    if (found == package.files.end()) {
      faults.add("{}: {}: the file '{}' is missing", kManifestPath, record, printable(path));
    } else if (bytes && *bytes != static_cast<std::int64_t>(found->second.size())) {
      faults.add("{}: {}: the file '{}' has {} bytes, expected {}", kManifestPath, record, printable(path),
                 found->second.size(), *bytes);
    }
  };
  for (std::size_t k = 0; k < package.manifest.kernels.size(); ++k) {
    const Kernel& kernel = package.manifest.kernels[k];
    const std::string record = fmt::format("kernels[{}]", k);
    for (std::size_t b = 0; b < kernel.binaries.size(); ++b) {
      check(fmt::format("{}.binaries[{}]", record, b), kernel.binaries[b].path, kernel.binaries[b].bytes);
    }
    if (kernel.layer && !kernel.layer->data.empty()) check(record + ".layer.data", kernel.layer->data, std::nullopt);
    if (kernel.weights.empty()) continue;
    const KernelTensor* weights = kernel.form.find(TensorRole::weights);
    check(record + ".weights", kernel.weights, weights == nullptr ? 0 : weights->run_words * kWordBytes);
  }
  for (std::size_t t = 0; t < package.manifest.tensors.size(); ++t) {
    const TensorRecord& tensor = package.manifest.tensors[t];
    check(fmt::format("tensors[{}]", t), tensor.path, tensor_bytes(tensor));
  }
  for (const auto& [path, content] : package.files) {
    if (!named.contains(path)) faults.add("the file '{}' belongs to nothing", printable(path));
  }
  return faults.take();
}

Package read_package_from_memory(std::string_view bytes, const std::string& name) {
  Package package;
  package.files = ZipReader(bytes, name).read_all();
  const auto manifest = package.files.find(std::string(kManifestPath));
  if (manifest == package.files.end()) {
    fail(ErrorKind::bad_input, "{}: not a burin package: it is a zip file without {}", name, kManifestPath);
  }
  ParsedManifest parsed;
  try {
    parsed = parse_json(manifest->second);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", name, error.what());
  }
  package.files.erase(manifest);
  package.manifest = std::move(parsed.manifest);
  Faults faults;
  faults.add_all(verify(package));
  faults.add_all(verify_files(package, parsed));
  if (!faults.empty()) fail(ErrorKind::bad_input, "{}: {}", name, first_faults(faults.list()));
  return package;
}

Package read_package(const std::string& path) { return read_package_from_memory(read_file(path), path); }

}  // namespace burin
