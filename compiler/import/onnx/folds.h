// One function for each operator of ONNX that is evaluated when the model is read: of constants alone. Other operators
// on constants are evaluated by the reference of networks (fold_network.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/import/onnx/constant_tensor.h"
#include "compiler/import/onnx/node.h"

namespace burin {

// A result may have kFoldFloor numbers, and beyond that as many as were read from the file for such nodes: otherwise
// some bytes of a file could ask for any amount of memory.
inline constexpr std::int64_t kFoldFloor = std::int64_t{1} << 20;
// An axis has at most so many: more than any constant with elements has, and so few that sums of some fit 64 bits.
inline constexpr std::int64_t kMaxFoldedExtent = std::int64_t{1} << 40;

// A node whose inputs are constants, and these.
class FoldInputs {
 public:
  // `inputs`: null where one is left out. `numbers_read`: from the file, for this node and those before.
  // Throws Error(unsupported) for extents above kMaxFoldedExtent.
  FoldInputs(const Node& node, std::vector<SharedConstant> inputs, std::int64_t numbers_read);

  const Node& node() const { return node_; }
  int count() const { return static_cast<int>(inputs_.size()); }
  bool has(int i) const { return i < count() && inputs_[static_cast<std::size_t>(i)] != nullptr; }
  const ConstantTensor& operator[](int i) const { return *inputs_[static_cast<std::size_t>(i)]; }
  const SharedConstant& shared(int i) const { return inputs_[static_cast<std::size_t>(i)]; }
  std::int64_t rank(int i) const { return static_cast<std::int64_t>((*this)[i].shape.size()); }

  // Integers without the batch, of any shape.
  const std::vector<std::int64_t>& integers(int i, std::string_view what) const;
  // A list that is an attribute before opset `input_since`, and an input from there on; nothing when it is left out.
  std::optional<Extents> list(const std::string& name, int input, int input_since) const;
  const Numbers<double>& reals(int i, std::string_view what) const;

  // The shape, when a result can have it. Throws Error(bad_input) for more than kMaxTensorRank axes, and
  // Error(unsupported) for more numbers than kFoldFloor allows, and for extents above kMaxFoldedExtent.
  Extents checked(Extents shape) const;

 private:
  const Node& node_;
  std::vector<SharedConstant> inputs_;
  std::int64_t numbers_read_;
};

// The node's outputs, as many as it has.
using FoldFunction = std::vector<ConstantTensor> (*)(const FoldInputs& in);

struct Fold {
  std::string_view op;
  int fewest_inputs, most_inputs;  // as in Converter
  FoldFunction fold;
};

// A model decides by its own numbers: those of float32 are rounded to it, so that 10 * 0.7 is not below 7.
double decided(StoredType type, double x);

// Null for an operator that only networks compute.
const Fold* fold_of(std::string_view op);

#define BURIN_FOLD(op, fewest, most, fold) std::vector<ConstantTensor> fold(const FoldInputs& in);
#include "compiler/import/onnx/folds.def"
#undef BURIN_FOLD

}  // namespace burin
