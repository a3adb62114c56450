// Sums, products, means and extremes along axes of constants.
#include <algorithm>
#include <cmath>

#include "compiler/import/onnx/axes.h"
#include "compiler/import/onnx/batch_arithmetic.h"
#include "compiler/import/onnx/folds.h"
#include "ir/saturate.h"

namespace burin {
namespace {

struct Reduced {
  Extents axes;            // sorted, from the front
  Extents kept, result;    // the shape with extents of 1 for those axes, and what it is in the end
  std::int64_t count = 1;  // numbers that become one
};

Reduced read_reduction(const FoldInputs& in) {
  const Node& node = in.node();
  const Attributes& attributes = node.attributes();
  const int axes_are_an_input = node.op() == "ReduceSum" ? 13 : 18;
  const auto axes = in.list("axes", 1, axes_are_an_input);
  const bool keeps_axes = attributes.boolean("keepdims", true);
  const bool none_is_none = node.opset() >= axes_are_an_input && attributes.boolean("noop_with_empty_axes", false);
  Reduced reduced;
  if (axes && !axes->empty()) {
    reduced.axes = axes_of(node, *axes, in.rank(0));
  } else if (!none_is_none) {
    for (std::int64_t axis = 0; axis < in.rank(0); ++axis) reduced.axes.push_back(axis);
  }
  reduced.kept = in[0].shape;
  for (const std::int64_t axis : reduced.axes) {
    std::int64_t& extent = reduced.kept[static_cast<std::size_t>(axis)];
    reduced.count = saturating_product({reduced.count, std::exchange(extent, 1)});
  }
  reduced.result = keeps_axes ? reduced.kept : squeezed(node, reduced.kept, reduced.axes);
  return reduced;
}

template <typename T>
BatchNumber<T> magnitude(const Node& node, const BatchNumber<T>& x) {
  const Signs signs = signs_of(x);
  if (signs.none_but(false, true, true)) return x;
  if (!signs.none_but(true, true, false)) refuse_batch(node, x);
  return subtract(node, BatchNumber<T>{}, x);
}

enum class ReductionKind { sum, mean, product, least, most, magnitudes, squares, root_of_squares };

ReductionKind kind_of(const std::string& op) {
  if (op == "ReduceMean") return ReductionKind::mean;
  if (op == "ReduceProd") return ReductionKind::product;
  if (op == "ReduceMin") return ReductionKind::least;
  if (op == "ReduceMax") return ReductionKind::most;
  if (op == "ReduceL1") return ReductionKind::magnitudes;
  if (op == "ReduceSumSquare") return ReductionKind::squares;
  return op == "ReduceL2" ? ReductionKind::root_of_squares : ReductionKind::sum;
}

// What becomes of a number before it is reduced, how two become one, and what becomes of the last one.
template <typename T>
class Reduction {
 public:
  Reduction(const Node& node, std::int64_t count) : node_(node), kind_(kind_of(node.op())), count_(count) {}

  BatchNumber<T> before(const BatchNumber<T>& x) const {
    if (kind_ == ReductionKind::magnitudes) return magnitude(node_, x);
    const bool squares = kind_ == ReductionKind::squares || kind_ == ReductionKind::root_of_squares;
    return squares ? multiply(node_, x, x) : x;
  }
  BatchNumber<T> join(const BatchNumber<T>& a, const BatchNumber<T>& b) const {
    if (kind_ == ReductionKind::most) return larger(node_, a, b);
    if (kind_ == ReductionKind::least) return smaller(node_, a, b);
    return kind_ == ReductionKind::product ? multiply(node_, a, b) : add(node_, a, b);
  }
  BatchNumber<T> after(const BatchNumber<T>& x) const {
    if (kind_ == ReductionKind::mean) return divide(node_, x, {static_cast<T>(count_), 0});
    if (kind_ != ReductionKind::root_of_squares) return x;
    if (x.depends()) refuse_batch(node_, x);
    return {static_cast<T>(std::sqrt(static_cast<double>(x.value))), 0};
  }
  // What comes of no numbers at all.
  BatchNumber<T> of_none() const {
    const bool needs_some =
        kind_ == ReductionKind::most || kind_ == ReductionKind::least || kind_ == ReductionKind::mean;
    if (needs_some) node_.bad_input("it reduces no numbers");
    return {kind_ == ReductionKind::product ? T{1} : T{0}, 0};
  }

 private:
  const Node& node_;
  ReductionKind kind_;
  std::int64_t count_;
};

template <typename T>
Numbers<T> reduce(const FoldInputs& in, const Reduced& reduced) {
  const Reduction<T> reduction(in.node(), reduced.count);
  const auto& numbers = std::get<Numbers<T>>(in[0].numbers);
  std::vector<BatchNumber<T>> sums(static_cast<std::size_t>(*checked_elements(in.checked(reduced.kept))));
  std::vector<bool> begun(sums.size(), false);
  StridedWalk walk(in[0].shape, repeated_strides(reduced.kept, in[0].shape));
  for (std::size_t i = 0; i < numbers.size(); ++i, walk.step()) {
    const auto at = static_cast<std::size_t>(walk.position());
    const BatchNumber<T> number = reduction.before(numbers[i]);
    sums[at] = begun[at] ? reduction.join(sums[at], number) : number;
    begun[at] = true;
  }
  Numbers<T> result;
  for (std::size_t i = 0; i < sums.size(); ++i)
    result.push_back(begun[i] ? reduction.after(sums[i]) : reduction.of_none());
  return result;
}

}  // namespace

std::vector<ConstantTensor> fold_reduction(const FoldInputs& in) {
  const Reduced reduced = read_reduction(in);
  if (in[0].is_real()) return {{in[0].type, reduced.result, reduce<double>(in, reduced)}};
  return {{in[0].type, reduced.result, reduce<std::int64_t>(in, reduced)}};
}

}  // namespace burin
