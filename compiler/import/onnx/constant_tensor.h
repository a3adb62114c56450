// A constant of the model as a tensor of numbers, whatever it was made of: what is stored, and what follows from
// constants and shapes. Integers are exact, real numbers stay in double until they are weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/import/onnx/batch_number.h"
#include "compiler/import/onnx/stored_tensor.h"

namespace burin {

using Extents = std::vector<std::int64_t>;

struct ConstantTensor {
  StoredType type = StoredType::i64;  // f32, which stands for the halves too; f64; i64, for all integers; boolean
  Extents shape;
  std::variant<Numbers<double>, Numbers<std::int64_t>> numbers = Numbers<std::int64_t>();  // double: of f32 and f64
  StoredType made_as = StoredType::i64;  // of integers: the type of the file or of a Cast, as far as that is known

  bool is_real() const { return is_float(type); }
  std::int64_t elements() const;
  bool depends_on_batch() const;
  const Numbers<double>& reals() const { return std::get<Numbers<double>>(numbers); }
  const Numbers<std::int64_t>& integers() const { return std::get<Numbers<std::int64_t>>(numbers); }
};

using SharedConstant = std::shared_ptr<const ConstantTensor>;

// Throws Error(bad_input) for an unsigned number that 64 bits with a sign cannot hold.
ConstantTensor constant_of(const StoredTensor& stored, const std::string& path);
// The other way round, without a copy. The constant must not depend on the batch.
StoredTensor stored_of(SharedConstant constant, const std::string& name, const std::string& path);

ConstantTensor integer_constant(Extents shape, Numbers<std::int64_t> numbers);

// Walks over an array of this shape in C order, and over another one, whose axes have these strides, with it.
class StridedWalk {
 public:
  StridedWalk(const Extents& shape, Extents strides, std::int64_t offset = 0)
      : shape_(shape), strides_(std::move(strides)), index_(shape.size(), 0), position_(offset) {}

  std::int64_t position() const { return position_; }
  void step() {
    for (std::size_t axis = index_.size(); axis-- > 0;) {
      position_ += strides_[axis];
      if (++index_[axis] < shape_[axis]) return;
      position_ -= strides_[axis] * shape_[axis];
      index_[axis] = 0;
    }
  }

 private:
  const Extents& shape_;
  Extents strides_, index_;
  std::int64_t position_;
};

// Elements from one step along each axis to the next, of an array in C order; 0 where it has no elements.
Extents strides_of(const Extents& shape);
// The same for one that is repeated to the shape `wide`: axes are aligned from the last one on, those of extent 1 stand
// still.
Extents repeated_strides(const Extents& shape, const Extents& wide);

// A tensor of the shape `shape` with the numbers of `from` at the positions that `next` gives one after the other.
template <typename Next>
ConstantTensor picked(const ConstantTensor& from, Extents shape, Next next) {
  ConstantTensor result{from.type, std::move(shape), {}};
  const auto count = static_cast<std::size_t>(result.elements());
  std::visit(
      [&](const auto& numbers) {
        std::remove_cvref_t<decltype(numbers)> made;
        made.reserve(count);
        for (std::size_t i = 0; i < count; ++i) made.push_back(numbers[static_cast<std::size_t>(next())]);
        result.numbers = std::move(made);
      },
      from.numbers);
  return result;
}

// The numbers that a walk over `shape` with these strides comes by.
ConstantTensor strided(const ConstantTensor& from, Extents shape, Extents strides, std::int64_t offset = 0);

}  // namespace burin
