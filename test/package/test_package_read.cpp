#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "ir/layer_data.h"
#include "ir/limits.h"
#include "ir/package/names.h"
#include "test/catch.h"
#include "test/package/samples.h"
#include "test/package/zip_maker.h"
#include "test/scratch_folder.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::entries_of;
using burin_test::error_of;
using burin_test::make_zip;
using burin_test::sample_package;
using burin_test::ZipEntry;

namespace {

std::string sample_bytes() {
  const burin_test::ScratchFolder folder;
  write_package(sample_package(), folder / "sample.burin");
  return burin_test::read_file(folder / "sample.burin");
}

std::vector<ZipEntry> sample_entries() {
  const burin_test::ScratchFolder folder;
  write_package(sample_package(), folder / "sample.burin");
  return entries_of(folder / "sample.burin");
}

ZipEntry& entry(std::vector<ZipEntry>& entries, const std::string& name) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const ZipEntry& e) { return e.name == name; });
  REQUIRE(found != entries.end());
  return *found;
}

bool same(const Package& a, const Package& b) { return a.manifest == b.manifest && a.files == b.files; }

std::string read_error(const std::string& bytes) {
  return error_of([&] { check_contents(read_package_from_memory(bytes, "x.burin")); });
}

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != text.npos);
  return text.find(part) != text.npos;
}

const std::string kCubin = "kernels/burin_3_b1.sm_90.cubin";
const std::string kPtx = "kernels/burin_3_b1.ptx";
const std::string kOtherCubin = "kernels/burin_3_b32.sm_90.cubin";
const std::string kLayer = burin_test::kSampleLayerPath;

constexpr std::size_t kEntryHeaderBytes = 30;

// Where the header of an entry begins, which its name stands behind.
std::size_t header_of(const std::string& bytes, const std::string& name) {
  std::size_t at = bytes.find(name);  // also in the manifest
  while (at != bytes.npos && (at < kEntryHeaderBytes || bytes.compare(at - kEntryHeaderBytes, 4, "PK\x03\x04") != 0)) {
    at = bytes.find(name, at + 1);
  }
  REQUIRE(at != bytes.npos);
  return at - kEntryHeaderBytes;
}

std::size_t content_of(const std::string& bytes, const std::string& name) {
  constexpr std::size_t kExtraLengthAt = 28;
  const std::size_t header = header_of(bytes, name);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes.at(header + i)); };
  return header + kEntryHeaderBytes + name.size() + byte(kExtraLengthAt) + 256U * byte(kExtraLengthAt + 1);
}

}  // namespace

TEST_CASE("package: round trip from memory, also when another tool has stored the entries, or deflated them all") {
  CHECK(same(read_package_from_memory(sample_bytes(), "x.burin"), sample_package()));
  std::vector<ZipEntry> entries = sample_entries();
  std::reverse(entries.begin(), entries.end());
  CHECK(same(read_package_from_memory(make_zip(entries), "x.burin"), sample_package()));
  for (ZipEntry& deflated : entries) deflated.compressed = true;
  CHECK(same(read_package_from_memory(make_zip(entries), "x.burin"), sample_package()));
}

TEST_CASE("package: the layer that its kernels were made of can be had from it") {
  const Package package = read_package_from_memory(sample_bytes(), "x.burin");
  for (const Kernel& kernel : package.manifest.kernels) {
    const ConvLayer layer =
        decode_layer(*package.files.at(kernel.layer->data).content(), kernel.op, kernel.layer->shape);
    CHECK(layer.name == "features.3");
    CHECK(verify(layer).empty());
    CHECK(std::ranges::count_if(layer.weights, [](float weight) { return weight != 0; }) == kernel.layer->nonzeros);
  }
}

TEST_CASE("package: a package without kernels is legal") {
  Package package;
  package.manifest.tool_version = "0.1.0";
  package.manifest.source = "none.npz";
  CHECK(verify(package).empty());
  const burin_test::ScratchFolder folder;
  write_package(package, folder / "empty.burin");
  CHECK(same(read_package(folder / "empty.burin"), package));
}

TEST_CASE("package: what is not a package is refused") {
  for (const std::string& bytes :
       {std::string(), std::string("PK"), std::string(100, 'x'), std::string(1 << 17, '\0')}) {
    contains(read_error(bytes), "x.burin: not a burin package");
  }
  CHECK(read_error(make_zip({{.name = "hello.txt", .content = "hello"}})) ==
        "x.burin: not a burin package: it is a zip file without manifest.json");
}

TEST_CASE("package: truncated at every 64th byte") {
  const std::string bytes = sample_bytes();
  for (std::size_t size = 0; size < bytes.size(); size += 64) {
    INFO(size);
    contains(read_error(bytes.substr(0, size)), "x.burin: ");
  }
  contains(read_error(bytes.substr(0, bytes.size() - 1)), "x.burin: ");
}

TEST_CASE("package: any flipped byte is detected or changes nothing that is read") {
  const std::string bytes = sample_bytes();
  const Package package = sample_package();
  int unnoticed = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    INFO("byte " << i);
    Package read;
    const std::string error = error_of([&] {
      read = read_package_from_memory(damaged, "x.burin");
      check_contents(read);
    });
    if (error == "no error") {
      CHECK(same(read, package));
      ++unnoticed;
    }
  }
  // dates, attributes and versions in the headers of the entries
  const int header_bytes = 46 + 30;
  CHECK(unnoticed < header_bytes * static_cast<int>(package.files.size() + 1));
}

TEST_CASE("package: a flipped byte in a cubin is named, whether it is stored or deflated") {
  std::string stored = make_zip(sample_entries());
  const std::size_t cubin = content_of(stored, kCubin);
  REQUIRE(stored.compare(cubin + 1, 3, "ELF") == 0);
  stored[cubin + 100] ^= 1;
  CHECK(read_error(stored) == "x.burin: the entry '" + kCubin + "' is damaged: CRC error");
  const std::string deflated = sample_bytes();
  for (std::size_t i = 0; i < 8; ++i) {
    std::string damaged = deflated;
    damaged[content_of(deflated, kCubin) + i] ^= 0x10;
    INFO(i);
    CHECK(read_error(damaged).starts_with("x.burin: the entry '" + kCubin + "' is damaged: "));
  }
}

TEST_CASE("package: a damaged file is an error when it is asked for, each time, and no other file's") {
  std::string stored = make_zip(sample_entries());
  stored[content_of(stored, kCubin) + 100] ^= 1;
  const Package package = read_package_from_memory(stored, "x.burin");
  const std::string damaged = "x.burin: the entry '" + kCubin + "' is damaged: CRC error";
  int whole = 0;
  for (int round = 0; round < 2; ++round) {
    for (const auto& [path, file] : package.files) {
      INFO(path);
      std::shared_ptr<const std::string> content;
      const std::string error = error_of([&] { content = file.content(); });
      CHECK(error == (path == kCubin ? damaged : "no error"));
      if (content == nullptr) continue;
      CHECK((*content == *sample_package().files.at(path).content()));
      ++whole;
    }
  }
  CHECK(whole == 2 * (static_cast<int>(package.files.size()) - 1));
}

TEST_CASE("package: many threads read its files at once, after it was copied and is gone") {
  std::map<std::string, PackageFile> files;
  {
    const Package package = read_package_from_memory(sample_bytes(), "x.burin");
    files = package.files;
  }
  const Package expected = sample_package();
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  constexpr int kThreads = 4, kRounds = 20;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) right += files == expected.files ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == kThreads * kRounds);
}

TEST_CASE("package: what several ask for at a time is expanded once") {
  const Package package = read_package_from_memory(sample_bytes(), "x.burin");
  const PackageFile& file = package.files.at(kCubin);
  const std::shared_ptr<const std::string> first = file.content();
  CHECK(file.content() == first);
  CHECK(Package(package).files.at(kCubin).content() == first);
}

TEST_CASE("package: an empty file has the checksum of nothing") {
  std::string bytes = make_zip(sample_entries());
  const std::string path = "tensors/1.f32";
  constexpr std::size_t kCrcInHeader = 14, kCrcInDirectory = 16, kDirectoryHeaderBytes = 46;
  const std::size_t listed = bytes.rfind(path) - kDirectoryHeaderBytes;
  REQUIRE(bytes.compare(listed, 4, "PK\x01\x02") == 0);
  bytes[header_of(bytes, path) + kCrcInHeader] = 1;
  bytes[listed + kCrcInDirectory] = 1;
  CHECK(read_error(bytes) ==
        "x.burin: the entry 'tensors/1.f32' is damaged: it is empty, which its checksum is not of");
}

TEST_CASE("package: an entry exchanged for another of the same size is detected") {
  std::vector<ZipEntry> entries = sample_entries();
  std::swap(entry(entries, kCubin).content, entry(entries, kOtherCubin).content);
  const std::string error = read_error(make_zip(entries));
  contains(error, "'" + kCubin + "' is not the file that manifest.json was written with");
  contains(error, "'" + kOtherCubin + "' is not the file that manifest.json was written with");
}

TEST_CASE("package: a missing file") {
  std::vector<ZipEntry> entries = sample_entries();
  std::erase_if(entries, [](const ZipEntry& e) { return e.name == kCubin; });
  CHECK(read_error(make_zip(entries)) ==
        "x.burin: manifest.json: kernels[0].binaries[1]: the file '" + kCubin + "' is missing");
}

TEST_CASE("package: the data that two kernels share is missing, or named by neither") {
  std::vector<ZipEntry> entries = sample_entries();
  std::erase_if(entries, [](const ZipEntry& e) { return e.name == kLayer; });
  CHECK(read_error(make_zip(entries)) == "x.burin: manifest.json: kernels[0].layer.data: the file '" + kLayer +
                                             "' is missing; manifest.json: kernels[1].layer.data: the file '" + kLayer +
                                             "' is missing");
  // One that names it is enough.
  const auto unnamed = [](std::size_t kernels) {
    Package package = sample_package();
    for (std::size_t i = 0; i < kernels; ++i) package.manifest.kernels[i].layer->data = "";
    return verify(package);
  };
  CHECK(unnamed(0) == std::vector<std::string>{});
  CHECK(unnamed(1) == std::vector<std::string>{});
  CHECK(unnamed(2) == std::vector<std::string>{"the file '" + kLayer + "' belongs to nothing"});
}

TEST_CASE("package: data that was exchanged for another layer's is detected") {
  std::vector<ZipEntry> entries = sample_entries();
  entry(entries, kLayer).content.back() ^= 1;
  CHECK(read_error(make_zip(entries)) ==
        "x.burin: '" + kLayer + "' is not the file that manifest.json was written with");
}

TEST_CASE("package: a file of another size") {
  std::vector<ZipEntry> entries = sample_entries();
  entry(entries, "tensors/0.f32").content += "more";
  contains(read_error(make_zip(entries)),
           "x.burin: manifest.json: tensors[0]: the file 'tensors/0.f32' has 28 bytes, expected 24");
}

TEST_CASE("package: a file has one use") {
  const auto faults_where = [](const std::function<void(Manifest&)>& change) {
    Package package = sample_package();
    change(package.manifest);
    std::string text;
    for (const std::string& fault : verify(package)) text += fault + "\n";
    return text;
  };
  CHECK(faults_where([](Manifest&) {}) == "");
  const std::string tensor = sample_package().manifest.tensors.at(0).path;
  const auto named = [&](const std::string& record) { return record + ": the file '" + tensor + "' has another use"; };
  contains(faults_where([&](Manifest& m) { m.kernels[0].layer->data = tensor; }), named("tensors[0]"));
  contains(faults_where([&](Manifest& m) { m.kernels[0].binaries[0].path = tensor; }), named("tensors[0]"));
  contains(
      faults_where([&](Manifest& m) { m.kernels[1].binaries[0].path = m.kernels[0].binaries[0].path; }),
      "kernels[1].binaries[0]: the file '" + sample_package().manifest.kernels[0].binaries[0].path + "' has another");
  contains(faults_where([&](Manifest& m) { m.tensors.push_back(m.tensors[0]); }), "has another use");
}

TEST_CASE("package: a file that belongs to nothing") {
  std::vector<ZipEntry> entries = sample_entries();
  entries.push_back({.name = "extra.txt", .content = "?"});
  contains(read_error(make_zip(entries)), "the file 'extra.txt' belongs to nothing");
}

TEST_CASE("package: entries that would expand beyond measure are refused before they do") {
  for (const std::string& name : {kCubin, kPtx, kLayer, std::string("tensors/0.f32"), std::string("manifest.json")}) {
    std::vector<ZipEntry> entries = sample_entries();
    entry(entries, name) = {.name = name, .content = std::string(50'000'000, ' '), .compressed = true};
    const std::string error = read_error(make_zip(entries));
    CHECK(error.starts_with("x.burin: the entry '" + name + "' claims to expand from "));
    CHECK(error.ends_with(" bytes to 50000000; at most 100 times as many are read"));
  }
}

TEST_CASE("package: entries that are compressed in other ways than by deflate are refused") {
  std::string bytes = make_zip(sample_entries());
  // The method stands in the header of the entry, and in the directory, which is the last to name it.
  constexpr char kBzip2 = 12;
  constexpr std::size_t kMethodInHeader = 8, kMethodInDirectory = 10, kDirectoryHeaderBytes = 46;
  const std::size_t listed = bytes.rfind(kCubin) - kDirectoryHeaderBytes;
  REQUIRE(bytes.compare(listed, 4, "PK\x01\x02") == 0);
  bytes[header_of(bytes, kCubin) + kMethodInHeader] = kBzip2;
  bytes[listed + kMethodInDirectory] = kBzip2;
  CHECK(read_error(bytes) == "x.burin: the entry '" + kCubin + "' is compressed in another way than by deflate");
}

TEST_CASE("package: encrypted entries are refused") {
  std::vector<ZipEntry> entries = sample_entries();
  entry(entries, kCubin).encrypted = true;
  CHECK(read_error(make_zip(entries)) == "x.burin: the entry '" + kCubin + "' is encrypted; a package is not");
}

TEST_CASE("package: path traversal is refused") {
  for (const std::string name : {"../evil", "/etc/passwd", "a/../../evil", "folder/", "back\\slash"}) {
    std::vector<ZipEntry> entries = sample_entries();
    entries.push_back({.name = name, .content = ""});
    CHECK(read_error(make_zip(entries)) ==
          "x.burin: the entry '" + name + "' is not a relative path of plain names without '.' or '..'");
  }
}

TEST_CASE("package: an entry that stands in it twice") {
  std::vector<ZipEntry> entries = sample_entries();
  entries.push_back({.name = "twice_a", .content = "1"});
  entries.push_back({.name = "twice_b", .content = "2"});
  std::string bytes = make_zip(entries);
  for (std::size_t at = bytes.find("twice_b"); at != bytes.npos; at = bytes.find("twice_b")) bytes[at + 6] = 'a';
  contains(read_error(bytes), "x.burin: ");
}

TEST_CASE("package: entries that claim more than the file has are refused") {
  // Two directory entries that share one file's data would read it twice: here the directory itself is made to lie.
  std::string bytes = sample_bytes();
  const std::size_t directory = bytes.find("PK\x01\x02");
  REQUIRE(directory != bytes.npos);
  for (const std::size_t field : {20U, 24U}) {  // compressed and uncompressed size
    for (const std::size_t byte : {0U, 1U, 2U}) bytes[directory + field + byte] = '\xff';
  }
  contains(read_error(bytes), "x.burin: ");
}

TEST_CASE("package: too many entries") {
  std::vector<ZipEntry> entries;
  for (int i = 0; i <= kMaxPackageEntries; ++i) entries.push_back({.name = std::to_string(i), .content = ""});
  CHECK(read_error(make_zip(entries)) == "x.burin: 100001 entries are over 100000");
}

TEST_CASE("package: a wrong version names the file and what this burin reads") {
  const std::string error = read_error(make_zip({{.name = "manifest.json", .content = "{\"format_version\": 10}"}}));
  contains(error, "x.burin: manifest.json: format_version: 10 is not one this burin");
  contains(error, "it reads 9");
}

TEST_CASE("package: one of format 4 gives one clear error that says how to compile it anew") {
  std::vector<ZipEntry> entries = sample_entries();
  std::string& manifest = entry(entries, "manifest.json").content;
  const std::string version = "\"format_version\": 9";
  manifest.replace(manifest.find(version), version.size(), "\"format_version\": 4");
  CHECK(read_error(make_zip(entries)) ==
        "x.burin: manifest.json: format_version: 4 is not one this burin (" BURIN_VERSION
        ") reads: it reads 9. Compile it again from its weights or model: 'burin compile'");
}

TEST_CASE("package: hostile numbers in the manifest are refused") {
  const auto read_with = [](const std::string& text, const std::string& instead) {
    std::vector<ZipEntry> entries = sample_entries();
    std::string& manifest = entry(entries, "manifest.json").content;
    manifest.replace(manifest.find(text), text.size(), instead);
    return read_error(make_zip(entries));
  };
  CHECK(read_with("\"dead_inputs\": 1", "\"dead_inputs\": 9") ==
        "x.burin: manifest.json: kernels[0].layer.dead_inputs: 9 is over 8");
  contains(read_with("\"threads: 224\"", "\"threads: 1056\""),
           "x.burin: manifest.json: kernels[0].plan: threads is 1056, allowed is 32 to 1024");
}

TEST_CASE("package: a manifest without its list of files is refused") {
  std::vector<ZipEntry> entries = sample_entries();
  entry(entries, "manifest.json").content = print(sample_package().manifest);
  CHECK(read_error(make_zip(entries)) == "x.burin: manifest.json: the key \"files\" is missing");
}

TEST_CASE("package: many faults are counted, the first are told") {
  std::vector<ZipEntry> entries = sample_entries();
  for (int i = 0; i < 20; ++i) entries.push_back({.name = "extra" + std::to_string(i), .content = "?"});
  contains(read_error(make_zip(entries)), "; and 35 more");  // each belongs to nothing and is not in the list
}

TEST_CASE("package: reading a path") {
  const burin_test::ScratchFolder folder;
  CHECK(error_of([&] { read_package(folder / "none.burin"); }) ==
        (folder / "none.burin") + ": cannot be read: No such file or directory");
  CHECK(error_of([&] { read_package(folder.path().string()); }) == folder.path().string() + ": is not a regular file");
  CHECK(error_of([&] { read_package("/dev/zero"); }) == "/dev/zero: is not a regular file");
  REQUIRE(::mkfifo((folder / "pipe.burin").c_str(), 0600) == 0);
  CHECK(error_of([&] { read_package(folder / "pipe.burin"); }) == (folder / "pipe.burin") + ": is not a regular file");
  burin_test::write_file(folder / "huge.burin", "x");
  std::filesystem::resize_file(folder / "huge.burin", std::uintmax_t{1} << 40);  // sparse: takes no room
  CHECK(error_of([&] { read_package(folder / "huge.burin"); }) ==
        (folder / "huge.burin") + ": 1099511627776 bytes are more than a package has");
}
