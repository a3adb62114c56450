#include "compiler/import/weights_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "compiler/import/faults.h"
#include "compiler/import/names.h"
#include "ir/element_type.h"
#include "ir/printable.h"

namespace burin {
namespace {

static_assert(std::endian::native == std::endian::little, "bytes of files are read as they lie in memory");
static_assert(std::numeric_limits<float>::is_iec559, "float64 beyond float32 becomes infinite");

template <typename T>
T load(const char* address, bool big_endian) {
  std::array<char, sizeof(T)> raw;
  std::memcpy(raw.data(), address, sizeof(T));
  if (big_endian) std::reverse(raw.begin(), raw.end());
  return std::bit_cast<T>(raw);
}

// The values of an array whose first index runs fastest, in C order: backwards its axes are those of such an array.
std::vector<float> to_c_order(const std::vector<float>& fortran, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> order(shape.size());
  std::iota(order.rbegin(), order.rend(), 0);
  std::vector<float> values;
  values.reserve(fortran.size());
  visit_permuted({shape.rbegin(), shape.rend()}, order,
                 [&](std::int64_t position) { values.push_back(fortran[static_cast<std::size_t>(position)]); });
  return values;
}

// All elements, loaded as T and converted, in C order.
template <typename T, typename Convert>
std::vector<float> converted(const WeightsTensor& tensor, Convert convert) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  const char* address = tensor.bytes.data();
  for (float& value : values) {
    value = convert(load<T>(address, tensor.big_endian));
    address += sizeof(T);
  }
  return tensor.fortran ? to_c_order(values, tensor.shape) : values;
}

template <typename T>
std::vector<float> converted(const WeightsTensor& tensor) {
  return converted<T>(tensor, [](T value) { return static_cast<float>(value); });
}

template <ElementType type>
std::vector<float> converted_halves(const WeightsTensor& tensor) {
  return converted<std::uint16_t>(tensor, [](std::uint16_t bits) { return from_half(type, bits); });
}

std::vector<float> converted_doubles(const WeightsTensor& tensor) {
  std::int64_t index = -1;  // in the order of the file
  return converted<double>(tensor, [&](double value) {
    ++index;
    // Rounding may carry a value just above the largest float down to it; only what becomes infinite is lost.
    const auto rounded = static_cast<float>(value);
    if (std::isinf(rounded) && std::isfinite(value)) {
      bad_input(tensor.file, "tensor {}: element {} is {:g}, beyond what float32 can hold", in_quotes(tensor.name),
                index, value);
    }
    return rounded;
  });
}

struct Conversion {
  StoredType type;
  std::vector<float> (*convert)(const WeightsTensor& tensor);
};
constexpr Conversion kConversions[] = {
    {StoredType::f16, converted_halves<ElementType::f16>},
    {StoredType::bf16, converted_halves<ElementType::bf16>},
    {StoredType::f32, converted<float>},
    {StoredType::f64, converted_doubles},
    {StoredType::boolean, converted<std::uint8_t>},
    {StoredType::u8, converted<std::uint8_t>},
    {StoredType::i8, converted<std::int8_t>},
    {StoredType::u16, converted<std::uint16_t>},
    {StoredType::i16, converted<std::int16_t>},
    {StoredType::u32, converted<std::uint32_t>},
    {StoredType::i32, converted<std::int32_t>},
    {StoredType::u64, converted<std::uint64_t>},
    {StoredType::i64, converted<std::int64_t>},
};

}  // namespace

std::int64_t WeightsTensor::elements() const {
  const auto count = checked_elements(shape);
  BURIN_CHECK(count.has_value(), "a tensor whose shape was not checked");
  return *count;
}

std::optional<std::int64_t> checked_elements(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

std::string extents_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", numbers_text(shape)); }

std::vector<float> float_values(const WeightsTensor& tensor) {
  if (is_float(tensor.type)) return mask_values(tensor);
  bad_input(tensor.file, "tensor {}: its type is {}; burin reads weights as float16, bfloat16, float32 or float64",
            in_quotes(tensor.name), in_quotes(tensor.type_name));
}

std::vector<float> mask_values(const WeightsTensor& tensor) {
  const auto* const found = std::ranges::find(kConversions, tensor.type, &Conversion::type);
  return found == std::end(kConversions) ? float_values(tensor) : found->convert(tensor);
}

}  // namespace burin
