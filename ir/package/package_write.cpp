#include <zip.h>
#include <zlib.h>

#include <vector>

#include "ir/error.h"
#include "ir/limits.h"
#include "ir/package/atomic_file.h"
#include "ir/package/manifest_json.h"
#include "ir/package/names.h"
#include "ir/package/package.h"

namespace burin {
namespace {

// The same for every entry of every package: what is inside decides the bytes, not when and where it was written.
constexpr zip_uint16_t kDosDate = (1 << 5) | 1;  // 1980-01-01, the first day that the format knows
constexpr zip_uint16_t kDosTime = 0;
constexpr zip_uint32_t kUnixMode = 0100644U << 16;  // a regular file, rw-r--r--

constexpr std::size_t kLargeFile = std::size_t{1} << 20;

// Level 6 takes two to three times as long as 4, and what it makes of PTX and of pruned weights is a tenth smaller.
int deflate_level(std::string_view content) { return content.size() < kLargeFile ? 6 : 4; }

// How many bytes `content` deflates to, given up once they are more than `most`.
std::uint64_t deflated_bytes(std::string_view content, int level, double most) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
  std::vector<Bytef> out(std::size_t{1} << 16);
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  while (static_cast<double>(stream.total_out) <= most) {
    if (stream.avail_in == 0) {
      if (content.empty()) break;
      const std::string_view piece = content.substr(0, kPiece);
      content.remove_prefix(piece.size());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      stream.avail_in = static_cast<uInt>(piece.size());
    }
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    if (deflate(&stream, content.empty() ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_END) break;
  }
  const std::uint64_t bytes = stream.total_out;
  deflateEnd(&stream);
  return bytes;
}

// No reader takes what expands too much: zeros alone. Most files need not be deflated to their end to know.
bool can_be_deflated(std::string_view content) {
  constexpr double kMargin = 1.1;  // libzip's own deflate may pack a little tighter
  const double enough = kMargin * static_cast<double>(content.size()) / static_cast<double>(kMaxExpansion);
  return static_cast<double>(deflated_bytes(content, deflate_level(content), enough)) > enough;
}

// Dense weights shrink by a tenth, and take seconds to: samples of a large file tell.
bool is_worth_deflating(std::string_view content) {
  if (content.size() < kLargeFile) return true;
  constexpr std::size_t kSamples = 4, kSampleBytes = std::size_t{1} << 16;
  static_assert(kSamples * kSampleBytes < kLargeFile);
  constexpr double kWorthwhile = 0.85;
  double deflated = 0;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const std::string_view sample = content.substr((content.size() - kSampleBytes) / (kSamples - 1) * i, kSampleBytes);
    deflated += static_cast<double>(deflated_bytes(sample, deflate_level(content), kSampleBytes));
  }
  return deflated < kWorthwhile * static_cast<double>(kSamples * kSampleBytes);
}

// A zip archive that grows in memory. libzip's calls can fail only for want of memory here, or by our misuse.
class ZipWriter {
 public:
  ZipWriter() {
    zip_error_t error;
    zip_error_init(&error);
    source_ = zip_source_buffer_create(nullptr, 0, 0, &error);
    if (source_ != nullptr) zip_ = zip_open_from_source(source_, ZIP_TRUNCATE, &error);
    if (zip_ == nullptr) {
      if (source_ != nullptr) zip_source_free(source_);
      const std::string text = zip_error_strerror(&error);
      zip_error_fini(&error);
      fail_internal(__FILE__, __LINE__, "libzip: " + text);
    }
    zip_source_keep(source_);  // zip_close() gives up its own hold on it
  }
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;
  ~ZipWriter() {
    if (zip_ != nullptr) zip_discard(zip_);
    zip_source_free(source_);
  }

  // `content` must stay until finish().
  void add(const std::string& path, std::string_view content) {
    zip_source_t* source = zip_source_buffer(zip_, content.data(), content.size(), 0);
    check(source != nullptr, path);
    const zip_int64_t index = zip_file_add(zip_, path.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) zip_source_free(source);
    check(index >= 0, path);
    const auto entry = static_cast<zip_uint64_t>(index);
    const bool deflated = is_worth_deflating(content) && can_be_deflated(content);
    check(zip_set_file_compression(zip_, entry, deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE,
                                   deflated ? deflate_level(content) : 0) == 0,
          path);
    check(zip_file_set_dostime(zip_, entry, kDosTime, kDosDate, 0) == 0, path);
    check(zip_file_set_external_attributes(zip_, entry, 0, ZIP_OPSYS_UNIX, kUnixMode) == 0, path);
  }

  std::string finish() {
    check(zip_close(zip_) == 0, "the archive");
    zip_ = nullptr;
    zip_stat_t stat;
    zip_stat_init(&stat);
    BURIN_CHECK(zip_source_stat(source_, &stat) == 0 && (stat.valid & ZIP_STAT_SIZE) != 0, "libzip: no size");
    BURIN_CHECK(zip_source_open(source_) == 0, "libzip: {}", zip_error_strerror(zip_source_error(source_)));
    std::string bytes(stat.size, '\0');
    const zip_int64_t got = zip_source_read(source_, bytes.data(), bytes.size());
    zip_source_close(source_);
    BURIN_CHECK(got == static_cast<zip_int64_t>(bytes.size()), "libzip: {} of {} bytes", got, bytes.size());
    return bytes;
  }

 private:
  void check(bool good, const std::string& path) {
    if (!good) fail_internal(__FILE__, __LINE__, fmt::format("libzip: {}: {}", path, zip_strerror(zip_)));
  }

  zip_source_t* source_ = nullptr;
  zip_t* zip_ = nullptr;
};

// Names come from the user's files, where they may be anything. In a package they are text that can be shown.
void check_names(const Manifest& manifest, const std::string& target) {
  const auto check = [&](const char* what, const std::string& name) {
    if (name.empty() || name.size() > kMaxNameBytes || !is_plain_text(name)) {
      fail(
          ErrorKind::unsupported,
          "{}: {} '{}' must have 1 to {} bytes of UTF-8 without control characters to be put into a package; rename it",
          target, what, printable(name), kMaxNameBytes);
    }
  };
  check("the weights file's name", manifest.source);
  for (const TensorRecord& tensor : manifest.tensors) check("the tensor name", tensor.name);
  for (const Kernel& kernel : manifest.kernels) check("the operator name", kernel.op);
  for (const Program& program : manifest.programs) {
    check("the program name", program.name);
    for (const Buffer* input : program.inputs()) check("the input name", input->tensor);
    for (const Buffer* output : program.outputs()) check("the output name", output->tensor);
  }
}

// What a package cannot hold is the user's business: a network that is too big. Other faults are ours.
void check_limits(const Package& package, const std::string& target) {
  std::int64_t sum = 0;
  for (const auto& [path, file] : package.files) {
    const std::int64_t bytes = file.bytes();
    if (bytes > kMaxPackageEntryBytes) {
      fail(ErrorKind::unsupported, "{}: its file '{}' would have {} bytes; a package's file has at most {}", target,
           printable(path), bytes, kMaxPackageEntryBytes);
    }
    sum += bytes;
  }
  if (sum > kMaxPackageBytes - kMaxManifestBytes || package.files.size() >= std::size_t{kMaxPackageEntries}) {
    fail(
        ErrorKind::unsupported,
        "{}: {} files of {} bytes together are more than a package holds ({} files, {} bytes); select fewer layers for "
        "each package",
        target, package.files.size(), sum, kMaxPackageEntries - 1, kMaxPackageBytes - kMaxManifestBytes);
  }
}

}  // namespace

std::uint32_t checksum(std::string_view bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

void write_package(const Package& package, const std::string& path) {
  check_names(package.manifest, path);
  check_limits(package, path);
  const std::vector<std::string> faults = verify(package);
  BURIN_CHECK(faults.empty(), "the package for {} is not sound: {} ({} faults)", path, faults.front(), faults.size());

  std::vector<std::shared_ptr<const std::string>> contents;
  std::vector<FileRecord> records;
  for (const auto& [name, file] : package.files) {
    contents.push_back(file.content());
    records.push_back({name, file.bytes(), checksum(*contents.back())});
  }
  const std::string manifest = print_json(package.manifest, records);
  if (static_cast<std::int64_t>(manifest.size()) > kMaxManifestBytes) {
    fail(ErrorKind::unsupported,
         "{}: its manifest would have {} bytes; at most {} are read. Select fewer layers for each "
         "package",
         path, manifest.size(), kMaxManifestBytes);
  }
  std::string bytes;
  {
    ZipWriter zip;
    zip.add(std::string(kManifestPath), manifest);
    for (std::size_t i = 0; i < records.size(); ++i) zip.add(records[i].path, *contents[i]);
    bytes = zip.finish();
  }
  write_file_atomically(path, bytes);
}

}  // namespace burin
