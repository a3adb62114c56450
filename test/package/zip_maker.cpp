#include "test/package/zip_maker.h"

#include <zip.h>

#include <ctime>
#include <stdexcept>

namespace burin_test {
namespace {

void require(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("libzip: ") + what);
}

}  // namespace

std::string make_zip(const std::vector<ZipEntry>& entries) {
  zip_source_t* memory = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  require(memory != nullptr, "buffer");
  zip_t* zip = zip_open_from_source(memory, ZIP_TRUNCATE, nullptr);
  require(zip != nullptr, "open");
  zip_source_keep(memory);
  for (const ZipEntry& entry : entries) {
    zip_source_t* source = zip_source_buffer(zip, entry.content.data(), entry.content.size(), 0);
    const zip_int64_t added = zip_file_add(zip, entry.name.c_str(), source, ZIP_FL_ENC_UTF_8);
    require(added >= 0, "add");
    const auto index = static_cast<zip_uint64_t>(added);
    const zip_int32_t method = entry.compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
    require(zip_set_file_compression(zip, index, method, 0) == 0, "compression");
    if (entry.encrypted) require(zip_file_set_encryption(zip, index, ZIP_EM_AES_128, "secret") == 0, "encryption");
  }
  require(zip_close(zip) == 0, "close");
  zip_stat_t stat;
  zip_stat_init(&stat);
  require(zip_source_stat(memory, &stat) == 0 && zip_source_open(memory) == 0, "reopen");
  std::string bytes(stat.size, '\0');
  require(zip_source_read(memory, bytes.data(), bytes.size()) == static_cast<zip_int64_t>(bytes.size()), "read");
  zip_source_close(memory);
  zip_source_free(memory);
  return bytes;
}

std::vector<ZipListing> list_zip(const std::string& path) {
  zip_t* zip = zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, nullptr);
  require(zip != nullptr, "open for listing");
  std::vector<ZipListing> listing;
  for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); ++i) {
    zip_stat_t stat;
    require(zip_stat_index(zip, static_cast<zip_uint64_t>(i), 0, &stat) == 0, "stat");
    zip_file_t* file = zip_fopen_index(zip, static_cast<zip_uint64_t>(i), 0);
    require(file != nullptr, "open entry");
    ZipListing entry{.name = stat.name, .content = std::string(stat.size, '\0')};
    require(zip_fread(file, entry.content.data(), stat.size) == static_cast<zip_int64_t>(stat.size), "read entry");
    zip_fclose(file);
    entry.stored = stat.comp_method == ZIP_CM_STORE;
    std::tm date{};
    localtime_r(&stat.mtime, &date);  // zip has local time
    entry.dated_1980 = date.tm_year == 80 && date.tm_mon == 0 && date.tm_mday == 1;
    listing.push_back(std::move(entry));
  }
  zip_discard(zip);
  return listing;
}

std::vector<ZipEntry> entries_of(const std::string& path) {
  std::vector<ZipEntry> entries;
  for (const ZipListing& entry : list_zip(path)) entries.push_back({.name = entry.name, .content = entry.content});
  return entries;
}

}  // namespace burin_test
