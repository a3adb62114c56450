// Weights files made in memory, well-formed or not, and what the tests ask of the errors they cause.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ir/error.h"
#include "test/catch.h"
#include "test/scratch_folder.h"

namespace burin_test {

// The bytes of values as they lie in a little-endian file.
template <typename T>
std::string raw(std::initializer_list<T> values) {
  std::string bytes;
  for (const T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
  return bytes;
}
// `count` float32 values 1, 2, 3 ...
std::string ramp(int count);

// .npy with the given header text (padded as NumPy does) and data.
std::string npy(const std::string& header, const std::string& data, int version = 1);
// "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
std::string npy_header(const std::string& descr, const std::string& shape, bool fortran = false);
// A float32 array of the shape, counting up from 1.
std::string npy_ramp(const std::vector<int>& shape);

// .safetensors: the length, the header, the data.
std::string safetensors(const std::string& header, const std::string& data);
// One tensor's entry: "NAME":{"dtype":"F32","shape":[..],"data_offsets":[b,e]}
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets);
// A file of one float32 tensor counting up from 1, and metadata `geometry` unless empty.
std::string one_tensor_file(const std::string& name, const std::vector<int>& shape, const std::string& geometry = "");

// What a forged zip entry says of itself, where it differs from the truth.
struct ZipEntry {
  std::string name;
  std::string content;
  bool deflate = false;
  int method = -1;                 // compression method claimed
  std::int64_t claimed_size = -1;  // unpacked
  std::int64_t claimed_packed = -1;
  bool wrong_crc = false;
  int flags = 0;
  int cut = 0;  // bytes left out at the end of the packed content
};
std::string zip(const std::vector<ZipEntry>& entries);

// The action must throw burin::Error of the kind, and its text must hold all parts.
void expect_error(burin::ErrorKind kind, std::initializer_list<std::string_view> parts,
                  const std::function<void()>& action);
inline void expect_bad_input(std::initializer_list<std::string_view> parts, const std::function<void()>& action) {
  expect_error(burin::ErrorKind::bad_input, parts, action);
}

}  // namespace burin_test
