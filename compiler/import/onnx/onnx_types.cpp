#include "compiler/import/onnx/onnx_types.h"

#include <algorithm>
#include <limits>

namespace burin {
namespace {

template <typename T>
constexpr OnnxType integer_type(int code, std::string_view name, StoredType made_as) {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto high = std::min<std::uint64_t>(static_cast<std::uint64_t>(std::numeric_limits<T>::max()), kLargest);
  return {code,
          name,
          StoredType::i64,
          static_cast<std::int64_t>(std::numeric_limits<T>::min()),
          static_cast<std::int64_t>(high),
          made_as};
}

using ::onnx::TensorProto;
constexpr OnnxType kCastTypes[] = {
    {TensorProto::FLOAT, "float", StoredType::f32},
    {TensorProto::DOUBLE, "double", StoredType::f64},
    {TensorProto::FLOAT16, "float16", StoredType::f32},
    {TensorProto::BFLOAT16, "bfloat16", StoredType::f32},
    {TensorProto::BOOL, "bool", StoredType::boolean},
    integer_type<std::int64_t>(TensorProto::INT64, "int64", StoredType::i64),
    integer_type<std::int32_t>(TensorProto::INT32, "int32", StoredType::i32),
    integer_type<std::int16_t>(TensorProto::INT16, "int16", StoredType::i16),
    integer_type<std::int8_t>(TensorProto::INT8, "int8", StoredType::i8),
    integer_type<std::uint64_t>(TensorProto::UINT64, "uint64", StoredType::u64),
    integer_type<std::uint32_t>(TensorProto::UINT32, "uint32", StoredType::u32),
    integer_type<std::uint16_t>(TensorProto::UINT16, "uint16", StoredType::u16),
    integer_type<std::uint8_t>(TensorProto::UINT8, "uint8", StoredType::u8),
};

}  // namespace

const OnnxType& read_cast_type(const Node& node) {
  const std::int64_t to = node.attributes().integer("to", 0);
  node.attributes().boolean("saturate", true);  // of 8-bit floats, which are refused
  const auto* const found = std::ranges::find(kCastTypes, to, &OnnxType::code);
  if (found != std::end(kCastTypes)) return *found;
  node.unsupported(
      "it casts to ONNX's type {}; burin casts to floating-point types of 16 bits and more, integers of 8 "
      "bits and more, and bool",
      to);
}

const OnnxType* integer_type_of(std::int64_t code) {
  const auto* const found = std::ranges::find(kCastTypes, code, &OnnxType::code);
  return found == std::end(kCastTypes) || found->type != StoredType::i64 ? nullptr : found;
}

const OnnxType* integer_type_of(StoredType made_as) {
  const auto* const found = std::ranges::find(kCastTypes, made_as, &OnnxType::made_as);
  return found == std::end(kCastTypes) || found->type != StoredType::i64 ? nullptr : found;
}

const OnnxType& widest_type(StoredType type) { return *std::ranges::find(kCastTypes, type, &OnnxType::type); }

}  // namespace burin
