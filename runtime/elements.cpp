// Conversions between floats and the element types of tensors, in host memory.
#include "runtime/elements.h"

#include <cstring>

#include "ir/error.h"
#include "runtime/burin/device_memory.hpp"

namespace burin {

Element public_element(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return Element::f32;
    case ElementType::f16:
      return Element::f16;
    case ElementType::bf16:
      return Element::bf16;
  }
  fail_internal(__FILE__, __LINE__, "an element type that the runtime does not know");
}

ElementType internal_element(Element element) {
  switch (element) {
    case Element::f32:
      return ElementType::f32;
    case Element::f16:
      return ElementType::f16;
    case Element::bf16:
      return ElementType::bf16;
  }
  fail(ErrorKind::usage, "{} is not an element type", static_cast<int>(element));
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
  const ElementType type = internal_element(element);
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(bytes_of(type)));
  write_elements(type, values, bytes.data());
  return bytes;
}

std::vector<float> from_elements(Element element, std::span<const std::byte> bytes) {
  const ElementType type = internal_element(element);
  const auto size = static_cast<std::size_t>(bytes_of(type));
  if (bytes.size() % size != 0) {
    fail(ErrorKind::usage, "{} bytes are no whole values of {} ({} bytes each)", bytes.size(), to_string(type), size);
  }
  std::vector<float> values(bytes.size() / size);
  read_elements(type, bytes.data(), values);
  return values;
}

}  // namespace burin
