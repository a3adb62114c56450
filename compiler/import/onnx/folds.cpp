#include "compiler/import/onnx/folds.h"

#include <algorithm>

#include "compiler/import/onnx/converters.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

constexpr Fold kFolds[] = {
#define BURIN_FOLD(op, fewest, most, fold) {#op, fewest, most, fold},
#include "compiler/import/onnx/folds.def"
#undef BURIN_FOLD
};

void check_extents(const Node& node, const Extents& shape) {
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent > kMaxFoldedExtent; })) {
    node.unsupported("it computes with a constant of the shape {}; an axis may have {} elements (kMaxFoldedExtent)",
                     extents_text(shape), kMaxFoldedExtent);
  }
}

}  // namespace

FoldInputs::FoldInputs(const Node& node, std::vector<SharedConstant> inputs, std::int64_t numbers_read)
    : node_(node), inputs_(std::move(inputs)), numbers_read_(numbers_read) {
  for (const SharedConstant& input : inputs_) {
    if (input != nullptr) check_extents(node_, input->shape);
  }
}

const Fold* fold_of(std::string_view op) {
  const auto* const found = std::ranges::find(kFolds, op, &Fold::op);
  return found == std::end(kFolds) ? nullptr : found;
}

const std::vector<std::int64_t>& FoldInputs::integers(int i, std::string_view what) const {
  const ConstantTensor& tensor = (*this)[i];
  if (tensor.is_real()) node_.bad_input("its {} {} must be integers", what, in_quotes(node_.input(i)));
  if (tensor.depends_on_batch()) {
    node_.unsupported("its {} {} depend on the number of images", what, in_quotes(node_.input(i)));
  }
  return tensor.integers().values;
}

std::optional<Extents> FoldInputs::list(const std::string& name, int input, int input_since) const {
  if (node_.opset() < input_since) return node_.attributes().integers(name);
  if (!has(input)) return std::nullopt;
  return integers(input, name);
}

const Numbers<double>& FoldInputs::reals(int i, std::string_view what) const {
  const ConstantTensor& tensor = (*this)[i];
  if (!tensor.is_real()) node_.bad_input("its {} {} must be real numbers", what, in_quotes(node_.input(i)));
  return tensor.reals();
}

Extents FoldInputs::checked(Extents shape) const {
  if (shape.size() > static_cast<std::size_t>(kMaxTensorRank)) {
    node_.bad_input("it makes a tensor of {} axes, allowed are {} (kMaxTensorRank)", shape.size(), kMaxTensorRank);
  }
  check_extents(node_, shape);
  const auto elements = checked_elements(shape);
  if (!elements || *elements > std::max(kFoldFloor, numbers_read_)) {
    node_.unsupported(
        "it makes a constant of the shape {}; burin takes {} numbers (kFoldFloor), or as many as the file holds for "
        "such "
        "nodes, which are {} up to here",
        extents_text(shape), kFoldFloor, numbers_read_);
  }
  return shape;
}

double decided(StoredType type, double x) {
  return type == StoredType::f32 ? static_cast<double>(static_cast<float>(x)) : x;
}

}  // namespace burin
