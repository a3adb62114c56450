#include "compiler/cli/npy_writer.h"

#include <unistd.h>

#include <bit>
#include <cstring>

#include "ir/error.h"
#include "ir/package/atomic_file.h"

namespace burin {

void write_npy(const std::string& path, const std::vector<std::int64_t>& shape, std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little, "the values are written as they lie in memory");
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  BURIN_CHECK(elements == static_cast<std::int64_t>(values.size()), "a shape of {} elements for {} values", elements,
              values.size());

  std::string extents;
  for (const std::int64_t extent : shape) extents += fmt::format("{}, ", extent);
  if (shape.size() > 1) extents.erase(extents.size() - 2);  // a tuple of one keeps its comma
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", extents);
  // The format wants the data at a multiple of 64 bytes and a newline at the header's end.
  constexpr std::size_t kPreamble = 10, kAlignment = 64;
  const std::size_t unpadded = kPreamble + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header += '\n';

  std::string content("\x93NUMPY\x01\x00", 8);
  content += static_cast<char>(header.size() & 0xFFU);
  content += static_cast<char>(header.size() >> 8U);
  content += header;
  const std::size_t at = content.size();
  content.resize(at + values.size_bytes());
  if (!values.empty()) std::memcpy(content.data() + at, values.data(), values.size_bytes());
  write_file_atomically(path, content);
}

}  // namespace burin
