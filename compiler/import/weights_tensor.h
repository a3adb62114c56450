// A tensor as it lies in a weights file: checked, not yet converted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace burin {

// `other` is a type whose size is known but whose values burin has no use for.
enum class StoredType { f16, bf16, f32, f64, boolean, i8, u8, i16, u16, i32, u32, i64, u64, other };
constexpr bool is_float(StoredType type) { return type <= StoredType::f64; }

struct WeightsTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::string type_name;  // as the file spells it
  int element_bytes = 4;
  bool big_endian = false;
  bool fortran = false;  // the first index runs fastest
  std::vector<std::int64_t> shape;
  std::string_view bytes;  // exactly elements() * element_bytes, not aligned
  std::string file;        // for messages

  std::int64_t elements() const;
};

// What a weights file holds. The views stay valid as long as `owners` do.
struct WeightsFile {
  std::string path;
  std::vector<WeightsTensor> tensors;  // in the order of the file; names are unique
  struct Geometry {
    std::string json;
    std::string where;  // "net.safetensors: metadata key 'geometry'"
  };
  std::vector<Geometry> geometry;  // at most one per file; several when sharded
  bool bare_array = false;         // a .npy file: its one tensor is named after the file
  std::vector<std::string> notes;
  std::vector<std::shared_ptr<const void>> owners;
};

// Elements of a shape; nothing when the product leaves 63 bits or an extent is negative.
std::optional<std::int64_t> checked_elements(const std::vector<std::int64_t>& shape);

// visit(position in an array of this shape in C order) for each element of the array whose axis i is axis order[i] of
// that one, in C order. `order` names each axis once.
template <typename Visit>
void visit_permuted(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& order, Visit visit) {
  const std::size_t rank = shape.size();
  std::vector<std::int64_t> stride(rank, 1), index(rank, 0);
  std::int64_t count = 1, position = 0;
  for (std::size_t d = rank; d-- > 0; count *= shape[d]) stride[d] = count;
  for (std::int64_t i = 0; i < count; ++i) {
    visit(position);
    for (std::size_t d = rank; d-- > 0;) {
      const auto axis = static_cast<std::size_t>(order[d]);
      position += stride[axis];
      if (++index[d] < shape[axis]) break;
      position -= stride[axis] * shape[axis];
      index[d] = 0;
    }
  }
}

// "[64,3,3,3]"
std::string extents_text(const std::vector<std::int64_t>& shape);

// All values as float32 in C order. Only floating-point types. Throws Error(bad_input) for float64 values that float32
// cannot hold.
std::vector<float> float_values(const WeightsTensor& tensor);

// The same, and integers and booleans too: what a pruning mask may be made of.
std::vector<float> mask_values(const WeightsTensor& tensor);

}  // namespace burin
