// Conversions between floats and the element types of tensors, in host memory.
#include "runtime/elements.h"

#include <cstring>

#include "ir/error.h"
#include "runtime/burin/device_memory.hpp"

namespace burin {

ElementType internal_element(int number, std::string_view noun) {
  const auto type = static_cast<ElementType>(number);
  if (!is_named(type)) fail(ErrorKind::usage, "{} is not {}", number, noun);
  return type;
}

void write_elements(ElementType type, std::span<const float> values, std::byte* target) {
  if (type == ElementType::f32) {
    if (!values.empty()) std::memcpy(target, values.data(), values.size_bytes());
    return;
  }
  for (const float value : values) {
    const std::uint16_t half = to_half(type, value);
    std::memcpy(target, &half, sizeof half);
    target += sizeof half;
  }
}

void read_elements(ElementType type, const std::byte* source, std::span<float> values) {
  if (type == ElementType::f32) {
    if (!values.empty()) std::memcpy(values.data(), source, values.size_bytes());
    return;
  }
  for (float& value : values) {
    std::uint16_t half = 0;
    std::memcpy(&half, source, sizeof half);
    value = from_half(type, half);
    source += sizeof half;
  }
}

std::vector<std::byte> to_elements(Element element, std::span<const float> values) {
  const ElementType type = internal_element(static_cast<int>(element), "an element type");
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(bytes_of(type)));
  write_elements(type, values, bytes.data());
  return bytes;
}

std::vector<float> from_elements(Element element, std::span<const std::byte> bytes) {
  const ElementType type = internal_element(static_cast<int>(element), "an element type");
  const auto size = static_cast<std::size_t>(bytes_of(type));
  if (bytes.size() % size != 0) {
    fail(ErrorKind::usage, "{} bytes are no whole values of {} ({} bytes each)", bytes.size(), to_string(type), size);
  }
  std::vector<float> values(bytes.size() / size);
  read_elements(type, bytes.data(), values);
  return values;
}

}  // namespace burin
