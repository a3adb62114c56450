#include "compiler/import/weights_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/import/faults.h"
#include "compiler/import/names.h"

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

// The values of an array whose first index runs fastest, in C order.
std::vector<float> to_c_order(const std::vector<float>& fortran, const std::vector<std::int64_t>& shape) {
  const std::size_t rank = shape.size();
  std::vector<std::int64_t> stride(rank, 1);
  for (std::size_t d = rank; d-- > 1;) stride[d - 1] = stride[d] * shape[d];
  std::vector<std::int64_t> index(rank, 0);
  std::vector<float> values(fortran.size());
  std::int64_t position = 0;
  for (const float value : fortran) {
    values[position] = value;
    for (std::size_t d = 0; d < rank; ++d) {
      position += stride[d];
      if (++index[d] < shape[d]) break;
      position -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
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

std::string extents_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

std::vector<float> float_values(const WeightsTensor& tensor) {
  switch (tensor.type) {
    case StoredType::f16:
      return converted<std::uint16_t>(tensor, half_to_float);
    case StoredType::bf16:
      return converted<std::uint16_t>(tensor, bfloat_to_float);
    case StoredType::f32:
      return converted<float>(tensor);
    case StoredType::f64:
      return converted_doubles(tensor);
    default:
      break;
  }
  bad_input(tensor.file, "tensor {}: its type is {}; burin reads weights as float16, bfloat16, float32 or float64",
            in_quotes(tensor.name), in_quotes(tensor.type_name));
}

std::vector<float> mask_values(const WeightsTensor& tensor) {
  switch (tensor.type) {
    case StoredType::boolean:
    case StoredType::u8:
      return converted<std::uint8_t>(tensor);
    case StoredType::i8:
      return converted<std::int8_t>(tensor);
    case StoredType::u16:
      return converted<std::uint16_t>(tensor);
    case StoredType::i16:
      return converted<std::int16_t>(tensor);
    case StoredType::u32:
      return converted<std::uint32_t>(tensor);
    case StoredType::i32:
      return converted<std::int32_t>(tensor);
    case StoredType::u64:
      return converted<std::uint64_t>(tensor);
    case StoredType::i64:
      return converted<std::int64_t>(tensor);
    default:
      return float_values(tensor);
  }
}

}  // namespace burin
