#include "compiler/cli/npy_tensor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "compiler/import/mapped_file.h"
#include "compiler/import/npy.h"
#include "compiler/task.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/package/atomic_file.h"
#include "ir/printable.h"
#include "runtime/elements.h"

namespace burin {

namespace {

// "int64", as NumPy calls a type that is no floating-point one.
std::string numpy_name(const WeightsTensor& tensor) {
  if (tensor.type == StoredType::boolean) return "bool";
  if (tensor.type == StoredType::other) return in_quotes(tensor.type_name);
  return fmt::format("{}int{}", tensor.type_name[1] == 'u' ? "u" : "", 8 * tensor.element_bytes);
}

// Where an array of `shape` becomes `image`, or images, when its axes are put into another order: how. Rows, columns
// and channels in NHWC order first, since that is what most programs that read pictures give.
std::string permutation_text(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& image) {
  if (shape.size() < image.size() || shape.size() > image.size() + 1) return "";
  const std::size_t first = shape.size() - image.size();  // the images, which stay where they are
  std::vector<std::size_t> axes(image.size());
  std::iota(axes.begin(), axes.end(), first);
  std::vector<std::vector<std::size_t>> orders = {axes};
  while (std::next_permutation(axes.begin(), axes.end())) orders.push_back(axes);
  std::ranges::rotate(axes, axes.end() - 1);  // next_permutation() has sorted them again
  orders.insert(orders.begin(), axes);
  for (const std::vector<std::size_t>& order : orders) {
    if (!std::ranges::equal(order, image, {}, [&](std::size_t axis) { return shape[axis]; })) continue;
    std::vector<std::size_t> all(first);
    std::iota(all.begin(), all.end(), std::size_t{0});
    all.insert(all.end(), order.begin(), order.end());
    const bool channels_last = order == axes && image.size() == 3;
    return fmt::format("; its axes are in another order{}: in Python, numpy.transpose(x, ({})) gives the shape [{}{}]",
                       channels_last ? ", with the channels last" : "", fmt::join(all, ", "),
                       first > 0 ? fmt::format("{},", shape[0]) : "", fmt::join(image, ","));
  }
  return "";
}

}  // namespace

NpyTensor read_npy(const std::string& path, ElementType element) {
  const MappedFile file(path);
  WeightsTensor tensor = parse_npy(file.bytes(), path, path);
  if (element == ElementType::bf16 && tensor.type == StoredType::u16) tensor.type = StoredType::bf16;
  if (!is_float(tensor.type)) {
    fail(ErrorKind::bad_input,
         "{}: holds {}, and floating-point numbers are wanted; in Python, numpy.save(\"floats.npy\", "
         "numpy.load(\"{}\").astype(\"float32\")) converts it (scale it as the model was trained)",
         path, numpy_name(tensor), path);
  }
  return {tensor.shape, float_values(tensor)};
}

int images_of(const NpyTensor& tensor, const std::string& path, const std::string& what,
              const std::vector<std::int64_t>& image) {
  const std::vector<std::int64_t>& shape = tensor.shape;
  const bool batched = shape.size() == image.size() + 1;
  const bool fits =
      (batched || shape.size() == image.size()) && std::equal(image.rbegin(), image.rend(), shape.rbegin());
  if (!fits || (batched && (shape[0] < 1 || shape[0] > kMaxBatch))) {
    fail(ErrorKind::bad_input, "{}: has shape [{}], but {} is [N,{}] or [{}]{}", path, numbers_text(shape), what,
         fmt::join(image, ","), fmt::join(image, ","), fits ? "" : permutation_text(shape, image));
  }
  return batched ? static_cast<int>(shape[0]) : 1;
}

std::vector<float> repeated(const std::vector<float>& values, std::int64_t count) {
  std::vector<float> result;
  if (values.empty()) return result;
  const auto wanted = static_cast<std::size_t>(count);
  result.reserve(wanted);
  for (std::size_t i = 0; i < wanted; ++i) result.push_back(values[i % values.size()]);
  return result;
}

std::string_view npy_type_text(ElementType element) {
  return element == ElementType::f32   ? "float32"
         : element == ElementType::f16 ? "float16"
                                       : "uint16, the bits of bfloat16,";
}

void write_npy(const std::string& path, const std::vector<std::int64_t>& shape, std::span<const float> values,
               ElementType element) {
  static_assert(std::endian::native == std::endian::little, "the values are written as they lie in memory");
  BURIN_CHECK(values_of(shape) == static_cast<std::int64_t>(values.size()), "a shape of {} elements for {} values",
              values_of(shape), values.size());

  std::string extents;
  for (const std::int64_t extent : shape) extents += fmt::format("{}, ", extent);
  if (shape.size() > 1) extents.erase(extents.size() - 2);  // a tuple of one keeps its comma
  const std::string_view type = element == ElementType::f32 ? "<f4" : element == ElementType::f16 ? "<f2" : "<u2";
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, extents);
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
  content.resize(at + values.size() * static_cast<std::size_t>(bytes_of(element)));
  write_elements(element, values, std::as_writable_bytes(std::span(content)).data() + at);
  write_file_atomically(path, content);
}

}  // namespace burin
