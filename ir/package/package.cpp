#include "ir/package/package.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "ir/check_cubin.h"
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

}  // namespace

// A zip archive in memory, open for reading. All errors are Error(bad_input) that starts with the package's name.
class PackedFiles {
 public:
  struct Entry {
    std::string path;
    std::uint64_t index = 0;
    std::int64_t bytes = 0, packed_bytes = 0;
    std::uint32_t crc32 = 0;
  };

  PackedFiles(std::string bytes, const std::string& name) : bytes_(std::move(bytes)), name_(name) {
    ZipError error;
    zip_source_t* source = zip_source_buffer_create(bytes_.data(), bytes_.size(), 0, &error.error);
    if (source == nullptr) bad(error.text());
    zip_ = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error.error);
    if (zip_ == nullptr) {
      zip_source_free(source);
      bad("not a burin package, or a damaged one: " + error.text());
    }
  }
  PackedFiles(const PackedFiles&) = delete;
  PackedFiles& operator=(const PackedFiles&) = delete;
  ~PackedFiles() { zip_discard(zip_); }

  // What the directory claims, which is checked before any content is expanded, so that the memory taken is bounded by
  // the size of the package itself.
  std::vector<Entry> entries() const {
    const zip_int64_t count = zip_get_num_entries(zip_, 0);
    if (count > kMaxPackageEntries) bad(fmt::format("{} entries are over {}", count, kMaxPackageEntries));
    std::vector<Entry> entries;
    std::int64_t sum = 0, packed = 0;
    for (zip_int64_t i = 0; i < count; ++i) {
      const Entry& entry = entries.emplace_back(check_entry(i));
      sum += entry.bytes;  // at most 100000 * 512 MiB
      packed += entry.packed_bytes;
    }
    if (packed > static_cast<std::int64_t>(bytes_.size()) || sum > kMaxPackageBytes) {
      bad(fmt::format("its entries claim {} bytes, {} expanded; the package has {}, and at most {} are read", packed,
                      sum, bytes_.size(), kMaxPackageBytes));
    }
    return entries;
  }

  // What several ask for at a time is expanded once.
  std::shared_ptr<const std::string> expand(std::uint64_t index, std::int64_t bytes) const {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<const std::string>& expanded = expanded_[index];
    std::shared_ptr<const std::string> content = expanded.lock();
    if (content == nullptr) expanded = content = std::make_shared<const std::string>(read(index, bytes));
    return content;
  }

 private:
  [[noreturn]] void bad(const std::string& text) const { fail(ErrorKind::bad_input, "{}: {}", name_, text); }

  std::string read(std::uint64_t index, std::int64_t bytes) const {
    const std::string path = printable(zip_get_name(zip_, index, ZIP_FL_ENC_RAW));
    std::string content(static_cast<std::size_t>(bytes), '\0');
    zip_file_t* file = zip_fopen_index(zip_, index, 0);
    if (file == nullptr) bad(fmt::format("the entry '{}': {}", path, zip_strerror(zip_)));
    std::size_t done = 0;
    zip_int64_t got = 0;
    while (done < content.size() && (got = zip_fread(file, content.data() + done, content.size() - done)) > 0) {
      done += static_cast<std::size_t>(got);
    }
    // The checksum is compared when the end has been seen.
    char beyond = 0;
    if (got >= 0) got = zip_fread(file, &beyond, 1);
    const std::string reason = got < 0   ? zip_error_strerror(zip_file_get_error(file))
                               : got > 0 ? "it is longer than it says"
                                         : "it is cut short";
    zip_fclose(file);
    if (got != 0 || done != content.size()) bad(fmt::format("the entry '{}' is damaged: {}", path, reason));
    return content;
  }

  Entry check_entry(zip_int64_t index) const {
    zip_stat_t stat;
    zip_stat_init(&stat);
    const zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD |
                                ZIP_STAT_CRC | ZIP_STAT_ENCRYPTION_METHOD;
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
    if (stat.size == 0 && stat.crc != 0) bad(entry + " is damaged: it is empty, which its checksum is not of");
    if (stat.comp_size > bytes_.size()) {
      bad(fmt::format("{} claims {} bytes of a package that has {}", entry, stat.comp_size, bytes_.size()));
    }
    return {.path = stat.name,
            .index = static_cast<std::uint64_t>(index),
            .bytes = static_cast<std::int64_t>(stat.size),
            .packed_bytes = static_cast<std::int64_t>(stat.comp_size),
            .crc32 = stat.crc};
  }

  std::string bytes_, name_;
  zip_t* zip_ = nullptr;
  mutable std::mutex mutex_;  // libzip's archives serve one thread at a time
  mutable std::map<std::uint64_t, std::weak_ptr<const std::string>> expanded_;
};

namespace {

// The entries against what the manifest says of them.
std::vector<std::string> verify_files(const std::map<std::string, PackedFiles::Entry>& entries,
                                      const ParsedManifest& parsed) {
  Faults faults;
  if (!parsed.files) return {fmt::format("{}: the key \"files\" is missing", kManifestPath)};
  std::set<std::string> listed;
  for (const FileRecord& file : *parsed.files) {
    listed.insert(file.path);
    const auto found = entries.find(file.path);
    if (found == entries.end()) continue;  // verify(Package) says what it is for
    if (found->second.bytes != file.bytes || found->second.crc32 != file.crc32) {
      faults.add("'{}' is not the file that {} was written with", printable(file.path), kManifestPath);
    }
  }
  for (const auto& [path, entry] : entries) {
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
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};  // a pipe would wait for a writer
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
  enum class Use { code, layer, weights, function, tensor };
  std::map<std::string, Use> uses;
  const auto check = [&](const std::string& record, const std::string& path, Use use,
                         std::optional<std::int64_t> bytes) {
    // Kernels have layers, weights and functions in common, nothing else.
    const auto [at, first] = uses.emplace(path, use);
    if (!first && (at->second != use || use == Use::code || use == Use::tensor)) {
      faults.add("{}: {}: the file '{}' has another use", kManifestPath, record, printable(path));
    }
    const auto found = package.files.find(path);
    if (found == package.files.end()) {
      faults.add("{}: {}: the file '{}' is missing", kManifestPath, record, printable(path));
    } else if (bytes && *bytes != found->second.bytes()) {
      faults.add("{}: {}: the file '{}' has {} bytes, expected {}", kManifestPath, record, printable(path),
                 found->second.bytes(), *bytes);
    }
  };
  for (std::size_t k = 0; k < package.manifest.kernels.size(); ++k) {
    const Kernel& kernel = package.manifest.kernels[k];
    const std::string record = fmt::format("kernels[{}]", k);
    for (std::size_t b = 0; b < kernel.binaries.size(); ++b) {
      check(fmt::format("{}.binaries[{}]", record, b), kernel.binaries[b].path, Use::code, kernel.binaries[b].bytes);
    }
    if (kernel.layer && !kernel.layer->data.empty()) {
      check(record + ".layer.data", kernel.layer->data, Use::layer, std::nullopt);
    }
    if (kernel.called) check(record + ".called.data", kernel.called->data, Use::layer, std::nullopt);
    for (std::size_t f = 0; f < kernel.functions.size(); ++f) {
      check(fmt::format("{}.functions[{}]", record, f), kernel.functions[f].path, Use::function, std::nullopt);
    }
    if (kernel.weights.empty()) continue;
    const KernelTensor* weights = kernel.form.find(TensorRole::weights);
    check(record + ".weights", kernel.weights, Use::weights, weights == nullptr ? 0 : weights->run_words * kWordBytes);
  }
  for (std::size_t t = 0; t < package.manifest.tensors.size(); ++t) {
    const TensorRecord& tensor = package.manifest.tensors[t];
    check(fmt::format("tensors[{}]", t), tensor.path, Use::tensor, tensor_bytes(tensor));
  }
  for (const auto& [path, content] : package.files) {
    if (!uses.contains(path)) faults.add("the file '{}' belongs to nothing", printable(path));
  }
  return faults.take();
}

PackageFile::PackageFile(std::string content)
    : content_(std::make_shared<const std::string>(std::move(content))),
      bytes_(static_cast<std::int64_t>(content_->size())) {}

std::shared_ptr<const std::string> PackageFile::content() const {
  if (content_ != nullptr) return content_;
  return packed_->expand(index_, bytes_);
}

void check_contents(const Package& package) {
  for (const auto& [path, file] : package.files) static_cast<void>(file.content());
  for (const Kernel& kernel : package.manifest.kernels) {
    for (const KernelBinary& binary : kernel.binaries) {
      if (binary.kind == BinaryKind::cubin) check_cubin(kernel, binary, *package.files.at(binary.path).content());
    }
  }
}

Package read_package_from_memory(std::string bytes, const std::string& name) {
  const auto packed = std::make_shared<const PackedFiles>(std::move(bytes), name);
  std::map<std::string, PackedFiles::Entry> entries;
  for (PackedFiles::Entry& entry : packed->entries()) {
    if (!entries.emplace(entry.path, entry).second) {
      fail(ErrorKind::bad_input, "{}: the entry '{}' stands in it twice", name, printable(entry.path));
    }
  }
  const auto manifest = entries.find(std::string(kManifestPath));
  if (manifest == entries.end()) {
    fail(ErrorKind::bad_input, "{}: not a burin package: it is a zip file without {}", name, kManifestPath);
  }
  ParsedManifest parsed;
  const std::shared_ptr<const std::string> text = packed->expand(manifest->second.index, manifest->second.bytes);
  try {
    parsed = parse_json(*text);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", name, error.what());
  }
  entries.erase(manifest);
  Package package;
  for (const auto& [path, entry] : entries) package.files.try_emplace(path, packed, entry.index, entry.bytes);
  package.manifest = std::move(parsed.manifest);
  Faults faults;
  faults.add_all(verify(package));
  faults.add_all(verify_files(entries, parsed));
  if (!faults.empty()) fail(ErrorKind::bad_input, "{}: {}", name, first_faults(faults.list()));
  return package;
}

Package read_package(const std::string& path) { return read_package_from_memory(read_file(path), path); }

}  // namespace burin
