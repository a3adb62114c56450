#include "test/import/files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <functional>
#include <numeric>
#include <optional>

#include "test/thrown.h"

namespace burin_test {
namespace {

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

int product(const std::vector<int>& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
}

std::string deflated(const std::string& content) {
  z_stream stream{};
  constexpr int kRawDeflate = -15;
  REQUIRE(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kRawDeflate, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

std::string ramp(int count) {
  std::string bytes;
  for (int i = 1; i <= count; ++i) append(bytes, static_cast<float>(i));
  return bytes;
}

std::string npy(const std::string& header, const std::string& data, int version) {
  std::string bytes("\x93NUMPY", 6);
  append(bytes, static_cast<std::uint8_t>(version));
  append(bytes, std::uint8_t{0});
  std::string padded = header;
  const std::size_t prefix = version == 1 ? 10 : 12;
  while ((prefix + padded.size() + 1) % 64 != 0) padded += ' ';
  padded += '\n';
  if (version == 1) {
    append(bytes, static_cast<std::uint16_t>(padded.size()));
  } else {
    append(bytes, static_cast<std::uint32_t>(padded.size()));
  }
  return bytes + padded + data;
}

std::string npy_header(const std::string& descr, const std::string& shape, bool fortran) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran ? "True" : "False", shape);
}

std::string npy_ramp(const std::vector<int>& shape) {
  return npy(npy_header("<f4", fmt::format("({},)", fmt::join(shape, ", "))), ramp(product(shape)));
}

std::string safetensors(const std::string& header, const std::string& data) {
  std::string bytes;
  append(bytes, static_cast<std::uint64_t>(header.size()));
  return bytes + header + data;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}

std::string one_tensor_file(const std::string& name, const std::vector<int>& shape, const std::string& geometry) {
  std::string metadata;
  if (!geometry.empty()) {
    std::string escaped;
    for (const char ch : geometry) escaped += ch == '"' ? std::string("\\\"") : std::string(1, ch);
    metadata = R"("__metadata__":{"geometry":")" + escaped + "\"},";
  }
  const int count = product(shape);
  return safetensors(
      "{" + metadata +
          entry(name, "F32", fmt::format("[{}]", fmt::join(shape, ",")), fmt::format("[0,{}]", 4 * count)) + "}",
      ramp(count));
}

std::string zip(const std::vector<ZipEntry>& entries) {
  std::string bytes, directory;
  for (const ZipEntry& entry : entries) {
    std::string packed = entry.deflate ? deflated(entry.content) : entry.content;
    packed.resize(packed.size() - static_cast<std::size_t>(entry.cut));
    const auto offset = static_cast<std::uint32_t>(bytes.size());
    const auto crc = static_cast<std::uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(entry.content.data()), static_cast<uInt>(entry.content.size())));
    std::string common;  // what the local header and the directory both hold
    append(common, static_cast<std::uint16_t>(20));
    append(common, static_cast<std::uint16_t>(entry.flags));
    append(common, static_cast<std::uint16_t>(entry.method >= 0 ? entry.method : entry.deflate ? 8 : 0));
    append(common, std::uint32_t{0x00210000});  // 1980-01-01
    append(common, crc ^ (entry.wrong_crc ? 1U : 0U));
    append(common, static_cast<std::uint32_t>(entry.claimed_packed >= 0 ? entry.claimed_packed
                                                                        : static_cast<std::int64_t>(packed.size())));
    append(common, static_cast<std::uint32_t>(
                       entry.claimed_size >= 0 ? entry.claimed_size : static_cast<std::int64_t>(entry.content.size())));
    append(common, static_cast<std::uint16_t>(entry.name.size()));
    append(common, std::uint16_t{0});
    bytes += std::string("PK\x03\x04") + common + entry.name + packed;
    directory += "PK\x01\x02";
    append(directory, static_cast<std::uint16_t>(20));
    directory += common;
    directory.append(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
    append(directory, offset);
    directory += entry.name;
  }
  const auto start = static_cast<std::uint32_t>(bytes.size());
  bytes += directory + std::string("PK\x05\x06");
  bytes.append(4, '\0');
  append(bytes, static_cast<std::uint16_t>(entries.size()));
  append(bytes, static_cast<std::uint16_t>(entries.size()));
  append(bytes, static_cast<std::uint32_t>(directory.size()));
  append(bytes, start);
  append(bytes, std::uint16_t{0});
  return bytes;
}

void expect_error(burin::ErrorKind kind, std::initializer_list<std::string_view> parts,
                  const std::function<void()>& action) {
  const std::optional<Thrown> thrown = thrown_by(action);
  REQUIRE(thrown);
  INFO("the error says: " << thrown->text);
  CHECK(burin::exit_code(thrown->kind) == burin::exit_code(kind));
  for (const std::string_view part : parts) {
    INFO("it should say: " << part);
    CHECK(thrown->has(std::string(part)));
  }
}

}  // namespace burin_test
