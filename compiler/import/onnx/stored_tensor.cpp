#include "compiler/import/onnx/stored_tensor.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "compiler/import/faults.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/saturate.h"
#include "ir/text.h"

namespace burin {
namespace {

namespace fs = std::filesystem;
using ::onnx::TensorProto;

// What a stored type is called, and how wide it is. Types of versions after the library's are numbers to it.
struct TypeInfo {
  int code;
  std::string_view name;
  StoredType type;
  int bytes;
};
constexpr TypeInfo kTypes[] = {
    {1, "float", StoredType::f32, 4},
    {2, "uint8", StoredType::u8, 1},
    {3, "int8", StoredType::i8, 1},
    {4, "uint16", StoredType::u16, 2},
    {5, "int16", StoredType::i16, 2},
    {6, "int32", StoredType::i32, 4},
    {7, "int64", StoredType::i64, 8},
    {9, "bool", StoredType::boolean, 1},
    {10, "float16", StoredType::f16, 2},
    {11, "double", StoredType::f64, 8},
    {12, "uint32", StoredType::u32, 4},
    {13, "uint64", StoredType::u64, 8},
    {16, "bfloat16", StoredType::bf16, 2},
    {8, "string", StoredType::other, 0},
    {14, "complex64", StoredType::other, 0},
    {15, "complex128", StoredType::other, 0},
    {17, "float8e4m3fn", StoredType::other, 0},
    {18, "float8e4m3fnuz", StoredType::other, 0},
    {19, "float8e5m2", StoredType::other, 0},
    {20, "float8e5m2fnuz", StoredType::other, 0},
    {21, "uint4", StoredType::other, 0},
    {22, "int4", StoredType::other, 0},
};

const TypeInfo& type_info(int code, const std::string& at) {
  for (const TypeInfo& info : kTypes) {
    if (info.code != code) continue;
    if (info.type != StoredType::other) return info;
    bad_input(at, "its type is {}; burin reads float, double, float16, bfloat16 and integers", info.name);
  }
  bad_input(at, "its type has the number {}, which means nothing", code);
}

std::string_view bytes_in_memory(const void* data, std::size_t count) {
  return {static_cast<const char*>(data), count};
}

// The numbers of int32_data, each cut to the type's width, in which they stand there.
std::shared_ptr<const std::string> narrowed(const TensorProto& tensor, int width) {
  auto bytes = std::make_shared<std::string>();
  bytes->reserve(static_cast<std::size_t>(tensor.int32_data_size()) * width);
  for (const std::int32_t value : tensor.int32_data()) {
    bytes->append(reinterpret_cast<const char*>(&value), static_cast<std::size_t>(width));
  }
  return bytes;
}

// Sets the view to the values of the typed field that the type has, whatever their number is.
void view_typed_field(const TensorProto& tensor, StoredTensor& stored) {
  const auto view = [&](const auto& field) {
    stored.view.bytes = bytes_in_memory(field.data(), static_cast<std::size_t>(field.size()) * sizeof(*field.data()));
  };
  switch (stored.view.type) {
    case StoredType::f32:
      return view(tensor.float_data());
    case StoredType::f64:
      return view(tensor.double_data());
    case StoredType::i64:
      return view(tensor.int64_data());
    case StoredType::i32:
      return view(tensor.int32_data());
    case StoredType::u64:
      return view(tensor.uint64_data());
    case StoredType::u32:
      return;  // 64 bits each in their field; nothing that burin compiles needs them
    default: {
      const auto bytes = narrowed(tensor, stored.view.element_bytes);
      stored.view.bytes = *bytes;
      stored.owned = bytes;
    }
  }
}

std::string place_of(const std::string& own, const std::string& name, const TensorSource& source) {
  return fmt::format("{}: tensor {}", source.path, in_quotes(own.empty() ? name : own));
}

// Each extent and their product are in range afterwards.
std::vector<std::int64_t> checked_shape(const google::protobuf::RepeatedField<google::protobuf::int64>& dims,
                                        const std::string& at) {
  if (dims.size() > kMaxTensorRank) {
    bad_input(at, "has {} dimensions, allowed are {} (kMaxTensorRank)", dims.size(), kMaxTensorRank);
  }
  std::vector<std::int64_t> shape(dims.begin(), dims.end());
  const auto count = checked_elements(shape);
  constexpr std::int64_t kWidest = sizeof(double);
  if (!count || *count > kSaturated / kWidest) {
    bad_input(at, "its shape {} is none that a tensor can have", extents_text(shape));
  }
  return shape;
}

// A tensor without its bytes.
StoredTensor tensor_of(const TypeInfo& type, const std::string& name, std::vector<std::int64_t> shape,
                       const std::string& path) {
  StoredTensor stored;
  stored.view.name = name;
  stored.view.type = type.type;
  stored.view.type_name = type.name;
  stored.view.element_bytes = type.bytes;
  stored.view.shape = std::move(shape);
  stored.view.file = path;
  return stored;
}

template <typename Number>
StoredTensor owned_tensor(const TypeInfo& type, const std::string& name, std::vector<std::int64_t> shape,
                          const std::vector<Number>& values, const std::string& path) {
  StoredTensor stored = tensor_of(type, name, std::move(shape), path);
  const auto bytes =
      std::make_shared<const std::string>(bytes_in_memory(values.data(), values.size() * sizeof(Number)));
  stored.view.bytes = *bytes;
  stored.owned = bytes;
  return stored;
}

// Positions in the dense tensor, ascending.
std::vector<std::int64_t> sparse_positions(const StoredTensor& indices, const std::vector<std::int64_t>& shape,
                                           std::int64_t count, const std::string& at) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (indices.view.type != StoredType::i64) {
    bad_input(at, "its indices are of type {}, they must be int64", indices.view.type_name);
  }
  const bool linear = indices.shape() == std::vector<std::int64_t>{count};
  if (!linear && indices.shape() != std::vector<std::int64_t>{count, rank}) {
    bad_input(at, "holds {} values, but its indices have the shape {}; it must be [{}] or [{},{}]", count,
              extents_text(indices.shape()), count, count, rank);
  }
  const std::vector<std::int64_t> values = integer_values(indices);
  const std::int64_t elements = *checked_elements(shape);
  std::vector<std::int64_t> positions(static_cast<std::size_t>(count), 0);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (linear) {
      positions[i] = values[i];
      if (values[i] < 0 || values[i] >= elements) {
        bad_input(at, "index {} is {}, beyond its {} elements", i, values[i], elements);
      }
    } else {
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const std::int64_t coordinate = values[i * shape.size() + axis];
        if (coordinate < 0 || coordinate >= shape[axis]) {
          bad_input(at, "index {} is {} on axis {}, beyond its {} elements", i, coordinate, axis, shape[axis]);
        }
        positions[i] = positions[i] * shape[axis] + coordinate;
      }
    }
    if (i > 0 && positions[i] <= positions[i - 1]) {
      bad_input(at, "index {} does not come after the one before it; they must ascend", i);
    }
  }
  return positions;
}

std::uint64_t number_of(const std::string& text, std::string_view what, const std::string& at) {
  const auto value = parse_number<std::uint64_t>(text);
  if (!value) bad_input(at, "the {} of its external data is {}, no number", what, in_quotes(text));
  return *value;
}

// True when `path` is `folder` or lies below it; both without links and dots.
bool lies_in(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

std::string_view external_file(const std::string& location, TensorSource& source, const std::string& at) {
  if (const auto found = source.files.find(location); found != source.files.end()) return found->second->bytes();
  const std::string where = fmt::format("{}: its external data {}", at, in_quotes(location));
  const fs::path relative(location);
  if (!is_plain_text(location)) fail(ErrorKind::bad_input, "{} is no file's name", where);
  if (relative.has_root_path()) {
    fail(ErrorKind::bad_input, "{} is an absolute path; it must lie beside the model", where);
  }
  if (std::find(relative.begin(), relative.end(), "..") != relative.end()) {
    fail(ErrorKind::bad_input, "{} leaves the model's folder by '..'; it must lie beside the model", where);
  }
  std::error_code error;
  const fs::path beside = fs::path(source.path).has_parent_path() ? fs::path(source.path).parent_path() : fs::path(".");
  const fs::path folder = fs::canonical(beside, error);
  if (error) bad_input(where, "the folder '{}' cannot be read: {}", beside.string(), error.message());
  const fs::path path = fs::canonical(folder / relative, error);
  if (error) fail(ErrorKind::bad_input, "{} cannot be opened: {}", where, error.message());
  if (!lies_in(path, folder)) {
    fail(ErrorKind::bad_input, "{} is a link out of the model's folder; it must lie beside the model", where);
  }
  auto mapped = std::make_unique<MappedFile>(path.string());
  return source.files.emplace(location, std::move(mapped)).first->second->bytes();
}

// The `needed` bytes of a tensor that lies in a file of its own, where it says that they are.
std::string_view external_bytes(const TensorProto& tensor, std::int64_t needed, TensorSource& source,
                                const std::string& at) {
  std::map<std::string, std::string> said;  // some of it, such as a checksum, is not needed
  for (const auto& entry : tensor.external_data()) said[entry.key()] = entry.value();
  const std::string& location = said["location"];
  if (location.empty()) bad_input(at, "its data are external, but it does not say in which file ('location')");
  const std::uint64_t offset = said["offset"].empty() ? 0 : number_of(said["offset"], "offset", at);
  const std::string_view content = external_file(location, source, at);
  if (offset > content.size()) {
    bad_input(at, "its external data start at byte {} of {}, which has {} bytes", offset, in_quotes(location),
              content.size());
  }
  const std::uint64_t left = content.size() - offset;
  const std::uint64_t length = said["length"].empty() ? left : number_of(said["length"], "length", at);
  if (length != static_cast<std::uint64_t>(needed)) {
    bad_input(at, "its external data are {} bytes, its shape needs {}", length, needed);
  }
  if (length > left) {
    bad_input(at, "its external data are bytes {} to {} of {}, which has {} bytes", offset, offset + length,
              in_quotes(location), content.size());
  }
  return content.substr(offset, length);
}

}  // namespace

StoredTensor read_tensor(const TensorProto& tensor, const std::string& name, TensorSource& source) {
  const std::string at = place_of(tensor.name(), name, source);
  if (tensor.has_segment()) unsupported(at, "is in segments, which burin does not read");
  const TypeInfo& type = type_info(tensor.data_type(), at);
  StoredTensor stored =
      tensor_of(type, tensor.name().empty() ? name : tensor.name(), checked_shape(tensor.dims(), at), source.path);
  const std::int64_t needed = stored.elements() * type.bytes;
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    stored.view.bytes = external_bytes(tensor, needed, source, at);
    return stored;
  }
  view_typed_field(tensor, stored);
  if (tensor.has_raw_data() && !tensor.raw_data().empty()) {
    if (!stored.view.bytes.empty()) bad_input(at, "its values stand in it twice, as bytes and as numbers");
    stored.view.bytes = tensor.raw_data();
  }
  if (static_cast<std::int64_t>(stored.view.bytes.size()) != needed) {
    bad_input(at, "holds {} bytes of {}, its shape {} needs {}", stored.view.bytes.size(), type.name,
              extents_text(stored.shape()), needed);
  }
  return stored;
}

StoredTensor read_sparse_tensor(const ::onnx::SparseTensorProto& tensor, const std::string& name,
                                TensorSource& source) {
  const std::string at = place_of(tensor.values().name(), name, source);
  const StoredTensor values = read_tensor(tensor.values(), name, source);
  if (values.shape().size() != 1) {
    bad_input(at, "the values of a sparse tensor have the shape {}, they must be a list", extents_text(values.shape()));
  }
  const std::int64_t count = values.elements();
  std::vector<std::int64_t> shape = checked_shape(tensor.dims(), at);
  const std::int64_t elements = *checked_elements(shape);
  if (count > elements) bad_input(at, "holds {} values, but its shape {} has {}", count, extents_text(shape), elements);
  if ((elements - kSparseFloor) / kSparseExpansion > count) {
    unsupported(at,
                "holds {} values for a shape of {}; burin takes {} (kSparseFloor) and {} for each value "
                "(kSparseExpansion)",
                count, extents_text(shape), kSparseFloor, kSparseExpansion);
  }
  const std::vector<std::int64_t> positions =
      sparse_positions(read_tensor(tensor.indices(), name, source), shape, count, at);
  const std::vector<float> given = float_values(values.view);
  std::vector<float> dense(static_cast<std::size_t>(elements), 0.0F);
  for (std::size_t i = 0; i < positions.size(); ++i) dense[static_cast<std::size_t>(positions[i])] = given[i];
  return float_tensor(values.view.name, std::move(shape), dense, source.path);
}

StoredTensor float_tensor(const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& values,
                          const std::string& path) {
  return owned_tensor(kTypes[0], name, std::move(shape), values, path);
}

StoredTensor integer_tensor(const std::string& name, std::vector<std::int64_t> shape,
                            const std::vector<std::int64_t>& values, const std::string& path) {
  constexpr const TypeInfo& kInt64 = kTypes[6];
  static_assert(kInt64.type == StoredType::i64);
  return owned_tensor(kInt64, name, std::move(shape), values, path);
}

std::vector<std::int64_t> integer_values(const StoredTensor& tensor) {
  BURIN_CHECK(tensor.is_integer(), "integers of a tensor of type {}", tensor.view.type_name);
  std::vector<std::int64_t> values(static_cast<std::size_t>(tensor.elements()));
  const char* address = tensor.view.bytes.data();
  for (std::int64_t& value : values) {
    if (tensor.view.type == StoredType::i64) {
      std::memcpy(&value, address, sizeof value);
    } else {
      std::int32_t narrow = 0;
      std::memcpy(&narrow, address, sizeof narrow);
      value = narrow;
    }
    address += tensor.view.element_bytes;
  }
  return values;
}

}  // namespace burin
