#include "compiler/import/onnx/constant_tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "compiler/import/faults.h"
#include "ir/printable.h"

namespace burin {
namespace {

template <typename T>
std::int64_t number_at(const StoredTensor& stored, std::size_t i, const std::string& path) {
  T value{};
  std::memcpy(&value, stored.view.bytes.data() + i * sizeof value, sizeof value);
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      bad_input(path, "tensor {}: element {} is {}; burin reads integers of up to 63 bits", in_quotes(stored.view.name),
                i, value);
    }
  }
  return static_cast<std::int64_t>(value);
}

std::int64_t integer_at(const StoredTensor& stored, std::size_t i, const std::string& path) {
  switch (stored.view.type) {
    case StoredType::boolean:
      return number_at<std::uint8_t>(stored, i, path) != 0 ? 1 : 0;
    case StoredType::i8:
      return number_at<std::int8_t>(stored, i, path);
    case StoredType::u8:
      return number_at<std::uint8_t>(stored, i, path);
    case StoredType::i16:
      return number_at<std::int16_t>(stored, i, path);
    case StoredType::u16:
      return number_at<std::uint16_t>(stored, i, path);
    case StoredType::i32:
      return number_at<std::int32_t>(stored, i, path);
    case StoredType::u32:
      return number_at<std::uint32_t>(stored, i, path);
    case StoredType::u64:
      return number_at<std::uint64_t>(stored, i, path);
    default:
      return number_at<std::int64_t>(stored, i, path);
  }
}

std::vector<double> real_values(const StoredTensor& stored) {
  if (stored.view.type == StoredType::f64) {
    std::vector<double> values(static_cast<std::size_t>(stored.elements()));
    if (!values.empty()) std::memcpy(values.data(), stored.view.bytes.data(), values.size() * sizeof(double));
    return values;
  }
  const std::vector<float> values = float_values(stored.view);
  return {values.begin(), values.end()};
}

}  // namespace

std::int64_t ConstantTensor::elements() const {
  const auto count = checked_elements(shape);
  BURIN_CHECK(count.has_value(), "a constant whose shape was not checked");
  return *count;
}

bool ConstantTensor::depends_on_batch() const {
  return std::visit([](const auto& list) { return list.depend(); }, numbers);
}

ConstantTensor constant_of(const StoredTensor& stored, const std::string& path) {
  if (stored.is_float()) {
    const StoredType type = stored.view.type == StoredType::f64 ? StoredType::f64 : StoredType::f32;
    return {type, stored.shape(), Numbers<double>(real_values(stored))};
  }
  std::vector<std::int64_t> values(static_cast<std::size_t>(stored.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = integer_at(stored, i, path);
  const StoredType type = stored.view.type == StoredType::boolean ? StoredType::boolean : StoredType::i64;
  return {type, stored.shape(), Numbers<std::int64_t>(std::move(values)), stored.view.type};
}

StoredTensor stored_of(SharedConstant constant, const std::string& name, const std::string& path) {
  BURIN_CHECK(!constant->depends_on_batch(), "constant {} depends on the batch", name);
  StoredTensor stored;
  stored.view.name = name;
  stored.view.type = constant->is_real() ? StoredType::f64 : StoredType::i64;
  stored.view.type_name = constant->is_real() ? "double" : "int64";
  stored.view.element_bytes = sizeof(double);
  stored.view.shape = constant->shape;
  stored.view.file = path;
  std::visit(
      [&](const auto& numbers) {
        stored.view.bytes = {reinterpret_cast<const char*>(numbers.values.data()),
                             numbers.values.size() * sizeof(numbers.values[0])};
      },
      constant->numbers);
  stored.owned = std::move(constant);
  return stored;
}

ConstantTensor integer_constant(Extents shape, Numbers<std::int64_t> numbers) {
  return {StoredType::i64, std::move(shape), std::move(numbers)};
}

Extents strides_of(const Extents& shape) {
  // Without elements the extents alone may be beyond 64 bits, and nobody walks.
  if (std::ranges::find(shape, 0) != shape.end()) return Extents(shape.size(), 0);
  Extents strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

Extents repeated_strides(const Extents& shape, const Extents& wide) {
  const Extents own = strides_of(shape);
  Extents strides(wide.size(), 0);
  const std::size_t missing = wide.size() - shape.size();
  for (std::size_t axis = 0; axis < shape.size(); ++axis) strides[missing + axis] = shape[axis] == 1 ? 0 : own[axis];
  return strides;
}

ConstantTensor strided(const ConstantTensor& from, Extents shape, Extents strides, std::int64_t offset) {
  StridedWalk walk(shape, std::move(strides), offset);
  return picked(from, shape, [&] {
    const std::int64_t position = walk.position();
    walk.step();
    return position;
  });
}

}  // namespace burin
