#include "compiler/import/weights_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/import/names.h"
#include "ir/error.h"

namespace burin {
namespace {

static_assert(std::endian::native == std::endian::little, "bytes of files are read as they lie in memory");

template <typename T>
T load(const char* address, bool big_endian) {
  std::array<char, sizeof(T)> raw;
  std::memcpy(raw.data(), address, sizeof(T));
  if (big_endian) std::reverse(raw.begin(), raw.end());
  return std::bit_cast<T>(raw);
}

float half_to_float(std::uint16_t half) {
  const bool negative = (half & 0x8000U) != 0;
  const int exponent = half >> 10U & 0x1FU;
  const int fraction = half & 0x3FFU;
  float magnitude = 0;
  if (exponent == 0x1F) {
    magnitude = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
  }
  return negative ? -magnitude : magnitude;
}

float bfloat_to_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }

// Calls visit(C-order index, address) for each element.
template <typename Visit>
void for_each_element(const WeightsTensor& tensor, Visit visit) {
  const std::int64_t count = tensor.elements();
  const char* data = tensor.bytes.data();
  if (!tensor.fortran) {
    for (std::int64_t i = 0; i < count; ++i) visit(i, data + i * tensor.element_bytes);
    return;
  }
  const std::size_t rank = tensor.shape.size();
  std::vector<std::int64_t> c_stride(rank, 1);
  for (std::size_t d = rank; d-- > 1;) c_stride[d - 1] = c_stride[d] * tensor.shape[d];
  std::vector<std::int64_t> index(rank, 0);
  std::int64_t position = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    visit(position, data + i * tensor.element_bytes);
    for (std::size_t d = 0; d < rank; ++d) {
      position += c_stride[d];
      if (++index[d] < tensor.shape[d]) break;
      position -= c_stride[d] * tensor.shape[d];
      index[d] = 0;
    }
  }
}

template <typename T>
std::vector<float> converted(const WeightsTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  for_each_element(tensor, [&](std::int64_t i, const char* address) {
    values[i] = static_cast<float>(load<T>(address, tensor.big_endian));
  });
  return values;
}

template <typename Convert>
std::vector<float> converted_halves(const WeightsTensor& tensor, Convert convert) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  for_each_element(tensor, [&](std::int64_t i, const char* address) {
    values[i] = convert(load<std::uint16_t>(address, tensor.big_endian));
  });
  return values;
}

std::vector<float> converted_doubles(const WeightsTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  for_each_element(tensor, [&](std::int64_t i, const char* address) {
    const auto value = load<double>(address, tensor.big_endian);
    // Rounding may carry a value just above the largest float down to it; only what stays infinite is lost.
    values[i] = std::abs(value) < std::ldexp(1.0, std::numeric_limits<float>::max_exponent) || !std::isfinite(value)
                    ? static_cast<float>(value)
                    : std::numeric_limits<float>::infinity();
    if (std::isfinite(value) && std::isinf(values[i])) {
      fail(ErrorKind::bad_input, "{}: tensor {}: element {} is {:g}, beyond what float32 can hold", tensor.file,
           in_quotes(tensor.name), i, value);
    }
  });
  return values;
}

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

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

std::vector<float> float_values(const WeightsTensor& tensor) {
  switch (tensor.type) {
    case ElementType::f16:
      return converted_halves(tensor, half_to_float);
    case ElementType::bf16:
      return converted_halves(tensor, bfloat_to_float);
    case ElementType::f32:
      return converted<float>(tensor);
    case ElementType::f64:
      return converted_doubles(tensor);
    default:
      break;
  }
  fail(ErrorKind::bad_input,
       "{}: tensor {}: its type is {}; burin reads weights as float16, bfloat16, float32 or float64", tensor.file,
       in_quotes(tensor.name), printable(tensor.type_name));
}

std::vector<float> mask_values(const WeightsTensor& tensor) {
  switch (tensor.type) {
    case ElementType::boolean:
    case ElementType::u8:
      return converted<std::uint8_t>(tensor);
    case ElementType::i8:
      return converted<std::int8_t>(tensor);
    case ElementType::u16:
      return converted<std::uint16_t>(tensor);
    case ElementType::i16:
      return converted<std::int16_t>(tensor);
    case ElementType::u32:
      return converted<std::uint32_t>(tensor);
    case ElementType::i32:
      return converted<std::int32_t>(tensor);
    case ElementType::u64:
      return converted<std::uint64_t>(tensor);
    case ElementType::i64:
      return converted<std::int64_t>(tensor);
    default:
      return float_values(tensor);
  }
}

}  // namespace burin
