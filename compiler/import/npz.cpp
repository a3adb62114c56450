#include "compiler/import/npz.h"

#include <zip.h>

#include <algorithm>
#include <memory>
#include <set>

#include "compiler/import/faults.h"
#include "compiler/import/names.h"
#include "compiler/import/npy.h"

namespace burin {
namespace {

// Deflate codes at most 258 bytes in two bits: no honest entry claims more than this factor (and a little for headers).
constexpr std::uint64_t kMaxDeflateRatio = 1032;
constexpr std::uint64_t kDeflateSlackBytes = 1024;
constexpr std::size_t kChunkBytes = kMaxNpyHeaderBytes + 16;  // the first chunk holds the whole .npy header

struct ZipCloser {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, ZipCloser>;
using ArchiveFile = std::unique_ptr<zip_file_t, ZipCloser>;

Archive open_archive(std::string_view bytes, const std::string& path) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), /*freep=*/0, &error);
  zip_t* archive = source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, &error);
  if (archive == nullptr) {
    const std::string reason = zip_error_strerror(&error);
    zip_source_free(source);
    zip_error_fini(&error);
    bad_input(path, "not a readable zip archive: {}", reason);
  }
  zip_error_fini(&error);
  return Archive(archive);
}

struct Entry {
  zip_uint64_t index = 0;
  std::string name;
  std::uint64_t size = 0, packed = 0;
  bool deflated = false;
};

std::string at_entry(const std::string& path, const std::string& name) { return path + ": " + in_quotes(name); }

// The archive's directory, checked: what it claims is possible for a file of this size.
std::vector<Entry> read_directory(zip_t* archive, std::uint64_t file_bytes, const std::string& path) {
  std::vector<Entry> entries;
  std::set<std::string> names;
  std::uint64_t packed_total = 0, total = 0;
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    constexpr zip_uint64_t kNeeded =
        ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if (zip_stat_index(archive, i, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded) {
      bad_input(path, "entry {} of the zip directory cannot be read: {}", i, zip_strerror(archive));
    }
    Entry entry{stat.index, stat.name, stat.size, stat.comp_size, stat.comp_method == ZIP_CM_DEFLATE};
    const std::string where = at_entry(path, entry.name);
    if (!names.insert(entry.name).second) bad_input(where, "appears twice in the archive");
    if (entry.name.ends_with('/')) continue;  // a folder
    if (stat.encryption_method != ZIP_EM_NONE) bad_input(where, "is encrypted");
    if (!entry.deflated && stat.comp_method != ZIP_CM_STORE) {
      bad_input(where, "is packed with zip method {}; burin reads stored and deflated entries", stat.comp_method);
    }
    if (entry.packed > file_bytes - packed_total) {
      bad_input(where, "the entries claim more packed bytes than the file's {}", file_bytes);
    }
    packed_total += entry.packed;
    if (!entry.deflated && entry.size != entry.packed) {
      bad_input(where, "is stored, yet claims {} bytes from {}", entry.size, entry.packed);
    }
    if (entry.deflated && entry.size > entry.packed * kMaxDeflateRatio + kDeflateSlackBytes) {
      bad_input(where, "claims to unpack {} bytes from {}, more than deflate can", entry.size, entry.packed);
    }
    if (entry.size > kMaxNpzArrayBytes || entry.size > kMaxNpzBytes - total) {
      unsupported(where, "unpacks to {} bytes; burin unpacks at most {} of one array and {} of a file", entry.size,
                  kMaxNpzArrayBytes, kMaxNpzBytes);
    }
    total += entry.size;
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Reads until `content` has `wanted` bytes or the entry ends.
void read_up_to(zip_file_t* file, std::string& content, std::size_t wanted, const std::string& where) {
  while (content.size() < wanted) {
    const std::size_t have = content.size();
    // Grows with what has arrived, not with what was claimed.
    content.resize(std::min(wanted, have + std::max(kChunkBytes, have)));
    const zip_int64_t got = zip_fread(file, content.data() + have, content.size() - have);
    if (got < 0) bad_input(where, "cannot be unpacked: {}", zip_error_strerror(zip_file_get_error(file)));
    content.resize(have + static_cast<std::size_t>(got));
    if (got == 0) return;
  }
}

// The whole entry, its size and checksum verified. `check_start` sees the first chunk before the rest is unpacked.
template <typename CheckStart>
std::string read_entry(zip_t* archive, const Entry& entry, const std::string& where, CheckStart check_start) {
  const ArchiveFile file(zip_fopen_index(archive, entry.index, 0));
  if (!file) bad_input(where, "cannot be opened: {}", zip_strerror(archive));
  std::string content;
  read_up_to(file.get(), content, std::min<std::size_t>(entry.size, kChunkBytes), where);
  check_start(content);
  // One byte beyond the claim: libzip compares the checksum only when it sees the end.
  read_up_to(file.get(), content, entry.size + 1, where);
  if (content.size() != entry.size) {
    bad_input(where, "unpacks to {} than the {} bytes that the archive says",
              content.size() > entry.size ? "more" : "fewer", entry.size);
  }
  return content;
}

[[noreturn]] void fail_without_arrays(const std::vector<Entry>& entries, const std::string& path) {
  const auto has = [&](std::string_view ending) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const Entry& entry) { return entry.name.ends_with(ending); });
  };
  if (has("data.pkl")) {
    bad_input(path,
              "is a PyTorch checkpoint, which holds code; save the weights with safetensors.torch.save_file instead");
  }
  if (has("manifest.json")) bad_input(path, "is a compiled package, not a weights file");
  bad_input(path, "is a zip archive without any .npy array");
}

}  // namespace

WeightsFile parse_npz(std::string_view bytes, const std::string& path) {
  const Archive archive = open_archive(bytes, path);
  const std::vector<Entry> entries = read_directory(archive.get(), bytes.size(), path);
  WeightsFile result;
  result.path = path;
  std::vector<std::string> ignored;
  constexpr std::string_view kEnding = ".npy";
  for (const Entry& entry : entries) {
    if (!entry.name.ends_with(kEnding) || entry.name.size() == kEnding.size()) {
      ignored.push_back(entry.name);
      continue;
    }
    const std::string where = at_entry(path, entry.name);
    NpyHeader header;
    auto content = std::make_shared<std::string>(read_entry(archive.get(), entry, where, [&](std::string_view start) {
      header = parse_npy_header(start, where);
      if (header.data_bytes != entry.size - header.data_offset) {
        bad_input(where, "the shape {} of {} needs {} bytes, but the array has {}", extents_text(header.tensor.shape),
                  in_quotes(header.tensor.type_name), header.data_bytes, entry.size - header.data_offset);
      }
    }));
    const std::string_view data = std::string_view(*content).substr(header.data_offset);
    const std::string name = entry.name.substr(0, entry.name.size() - kEnding.size());
    if (name == "geometry" && header.text) {
      result.geometry.push_back({npy_string(header, data, where), where});
      continue;
    }
    header.tensor.name = name;
    header.tensor.file = path;
    header.tensor.bytes = data;
    result.tensors.push_back(std::move(header.tensor));
    result.owners.push_back(std::move(content));
  }
  if (result.tensors.empty()) fail_without_arrays(entries, path);
  if (!ignored.empty()) {
    result.notes.push_back(fmt::format("{}: entries that are not .npy arrays are ignored: {}", path, listed(ignored)));
  }
  return result;
}

}  // namespace burin
