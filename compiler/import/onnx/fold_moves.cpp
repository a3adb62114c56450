// Operators that move, choose or repeat the numbers of constants.
#include <algorithm>
#include <limits>

#include "compiler/import/onnx/axes.h"
#include "compiler/import/onnx/folds.h"
#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {
namespace {

using Result = std::vector<ConstantTensor>;

// Sticks at the largest number where others of the extents are 0.
std::int64_t product(const Extents& shape, std::size_t begin, std::size_t end) {
  return saturating_product(std::span(shape).subspan(begin, end - begin));
}

ConstantTensor reshaped(const FoldInputs& in, Extents shape) {
  ConstantTensor result = in[0];
  result.shape = in.checked(std::move(shape));
  BURIN_CHECK(result.elements() == in[0].elements(), "a reshape to {}", extents_text(result.shape));
  return result;
}

// Elements `begin` to `begin` + `count` of an axis.
ConstantTensor cut(const ConstantTensor& from, std::size_t axis, std::int64_t begin, std::int64_t count) {
  Extents shape = from.shape;
  shape[axis] = count;
  const Extents strides = strides_of(from.shape);
  return strided(from, shape, strides, begin * strides[axis]);
}

// An index counted from the front.
std::int64_t index_of(const Node& node, std::int64_t index, std::int64_t count) {
  if (index < -count || index >= count) node.bad_input("its index is {}, its input has {} values", index, count);
  return index < 0 ? index + count : index;
}

// What a Slice takes of an axis.
struct Range {
  std::int64_t first = 0, step = 1, count = 0;
};

// As Python slices a list: what is beyond its ends is at its ends.
Range range_of(const Node& node, std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t extent) {
  if (step == 0) node.bad_input("its step is 0");
  // Steps longer than the axis are one step.
  step = std::clamp(step, -std::max<std::int64_t>(extent, 1), std::max<std::int64_t>(extent, 1));
  const auto from_front = [&](std::int64_t index, std::int64_t low, std::int64_t high) {
    return std::clamp(index < 0 ? std::max(index, -extent - 1) + extent : index, low, high);
  };
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  const std::int64_t first = from_front(start, low, high), last = from_front(end, low, high);
  const std::int64_t length = step > 0 ? last - first : first - last;
  const std::int64_t stride = step > 0 ? step : -step;
  return {first, step, length <= 0 ? 0 : (length + stride - 1) / stride};
}

}  // namespace

Result fold_reshape(const FoldInputs& in) {
  return {reshaped(in, resolve(in.node(), in.integers(1, "shape"), in[0].shape, in[0].elements()))};
}

Result fold_flatten(const FoldInputs& in) {
  const Extents& shape = in[0].shape;
  const std::int64_t axis = in.node().attributes().integer("axis", 1);
  // The axis may also be the one behind the last.
  const auto split = static_cast<std::size_t>(axis == in.rank(0) ? axis : axis_of(in.node(), axis, in.rank(0)));
  return {reshaped(in, {product(shape, 0, split), product(shape, split, shape.size())})};
}

Result fold_squeeze(const FoldInputs& in) {
  const Extents& shape = in[0].shape;
  Extents dropped;
  if (const auto axes = in.list("axes", 1, kAxesAreAnInput)) {
    dropped = axes_of(in.node(), *axes, in.rank(0));
  } else {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) dropped.push_back(static_cast<std::int64_t>(i));
    }
  }
  return {reshaped(in, squeezed(in.node(), shape, dropped))};
}

Result fold_unsqueeze(const FoldInputs& in) {
  const auto axes = in.list("axes", 1, kAxesAreAnInput);
  if (!axes) in.node().bad_input("lacks its axes");
  Extents shape = in[0].shape;
  const auto rank = static_cast<std::int64_t>(shape.size() + axes->size());
  for (const std::int64_t axis : axes_of(in.node(), *axes, rank)) shape.insert(shape.begin() + axis, 1);
  return {reshaped(in, std::move(shape))};
}

// What is above or below a diagonal of the matrices along the last two axes; the rest is zero.
Result fold_trilu(const FoldInputs& in) {
  const Node& node = in.node();
  const bool upper = node.attributes().boolean("upper", true);
  const Extents& shape = in[0].shape;
  constexpr std::size_t kMatrixRank = 2;
  if (shape.size() < kMatrixRank)
    node.bad_input("its input has the shape {}, it must be matrices", extents_text(shape));
  std::int64_t diagonal = 0;
  if (in.has(1)) {
    const std::vector<std::int64_t>& numbers = in.integers(1, "diagonal");
    if (numbers.size() != 1) node.bad_input("its diagonal has {} numbers, it must be one", numbers.size());
    diagonal = std::clamp(numbers[0], -kMaxFoldedExtent, kMaxFoldedExtent);
  }
  const std::int64_t rows = shape[shape.size() - 2], cols = shape.back();
  ConstantTensor result = in[0];
  std::visit(
      [&](auto& numbers) {
        std::remove_cvref_t<decltype(numbers)> kept;
        kept.reserve(numbers.size());
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          const std::int64_t at = static_cast<std::int64_t>(i), distance = at % cols - at / cols % rows;
          const bool is_kept = upper ? distance >= diagonal : distance <= diagonal;
          kept.push_back(is_kept ? numbers[i] : decltype(numbers[i])());
        }
        numbers = std::move(kept);
      },
      result.numbers);
  return {std::move(result)};
}

Result fold_transpose(const FoldInputs& in) {
  const Extents strides = strides_of(in[0].shape), order = read_order(in.node(), in[0].shape.size());
  Extents shape, moved;
  for (const std::int64_t axis : order) {
    shape.push_back(in[0].shape[static_cast<std::size_t>(axis)]);
    moved.push_back(strides[static_cast<std::size_t>(axis)]);
  }
  return {strided(in[0], std::move(shape), std::move(moved))};
}

Result fold_concat(const FoldInputs& in) {
  const Node& node = in.node();
  if (!node.attributes().has("axis")) node.bad_input("lacks the attribute 'axis'");
  const auto axis = static_cast<std::size_t>(axis_of(node, node.attributes().integer("axis", 0), in.rank(0)));
  Extents shape = in[0].shape;
  for (int i = 1; i < in.count(); ++i) {
    Extents other = in[i].shape;
    if (in[i].is_real() != in[0].is_real()) node.bad_input("it joins integers and real numbers");
    const std::int64_t own = other.size() == shape.size() ? std::exchange(other[axis], shape[axis]) : 0;
    if (other != shape) {
      node.bad_input("it joins constants of the shapes {} and {} along axis {}", extents_text(in[0].shape),
                     extents_text(in[i].shape), axis);
    }
    shape[axis] += own;
  }
  in.checked(shape);
  ConstantTensor result{in[0].type, shape, {}};
  const std::int64_t outer = product(shape, 0, axis), inner = product(shape, axis + 1, shape.size());
  const auto join = [&](auto joined) {
    joined.reserve(static_cast<std::size_t>(result.elements()));
    for (std::int64_t block = 0; block < outer; ++block) {
      for (int i = 0; i < in.count(); ++i) {
        const auto& part = std::get<decltype(joined)>(in[i].numbers);
        const std::int64_t run = in[i].shape[axis] * inner;
        for (std::int64_t k = block * run; k < (block + 1) * run; ++k)
          joined.push_back(part[static_cast<std::size_t>(k)]);
      }
    }
    result.numbers = std::move(joined);
  };
  if (result.is_real()) {
    join(Numbers<double>());
  } else {
    join(Numbers<std::int64_t>());
  }
  return {std::move(result)};
}

Result fold_slice(const FoldInputs& in) {
  const Node& node = in.node();
  constexpr int kRangesAreInputs = 10;
  const auto starts = in.list("starts", 1, kRangesAreInputs), ends = in.list("ends", 2, kRangesAreInputs);
  if (!starts || !ends) node.bad_input("lacks its starts or ends");
  const auto given_axes = in.list("axes", 3, kRangesAreInputs);
  Extents axes = given_axes.value_or(Extents());
  for (std::size_t i = 0; !given_axes && i < starts->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  const bool has_steps = node.opset() >= kRangesAreInputs && in.has(4);
  const Extents steps = has_steps ? in.integers(4, "steps") : Extents(starts->size(), 1);
  if (ends->size() != starts->size() || axes.size() != starts->size() || steps.size() != starts->size()) {
    node.bad_input("it has {} starts, {} ends, {} axes and {} steps", starts->size(), ends->size(), axes.size(),
                   steps.size());
  }
  axes_of(node, axes, in.rank(0));  // each once
  Extents shape = in[0].shape, strides = strides_of(shape);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axis_of(node, axes[i], in.rank(0)));
    const Range range = range_of(node, (*starts)[i], (*ends)[i], steps[i], in[0].shape[axis]);
    shape[axis] = range.count;
    offset += range.first * strides[axis];
    strides[axis] *= range.step;
  }
  return {strided(in[0], std::move(shape), std::move(strides), offset)};
}

Result fold_split(const FoldInputs& in) {
  const Node& node = in.node();
  constexpr int kSizesAreAnInput = 13, kCountOpset = 18;
  const auto axis = static_cast<std::size_t>(axis_of(node, node.attributes().integer("axis", 0), in.rank(0)));
  const std::int64_t extent = in[0].shape[axis], parts = node.outputs();
  std::optional<Extents> sizes = in.list("split", 1, kSizesAreAnInput);
  if (node.opset() >= kCountOpset && node.attributes().integer("num_outputs", parts) != parts) {
    node.bad_input("attribute 'num_outputs' is not the number of its outputs, {}", parts);
  }
  if (!sizes) {
    const std::int64_t even = (extent + parts - 1) / parts;
    sizes = Extents(static_cast<std::size_t>(parts), even);
    sizes->back() = extent - even * (parts - 1);
  }
  std::int64_t begin = 0;
  Result result;
  for (const std::int64_t size : *sizes) {
    if (size < 0 || size > extent - begin) node.bad_input("its parts are none of {} elements", extent);
    result.push_back(cut(in[0], axis, begin, size));
    begin += size;
  }
  if (begin != extent || static_cast<std::int64_t>(sizes->size()) != parts) {
    node.bad_input("it has {} outputs; its {} parts have {} of {} elements", parts, sizes->size(), begin, extent);
  }
  return result;
}

Result fold_gather(const FoldInputs& in) {
  const Node& node = in.node();
  const auto axis = static_cast<std::size_t>(axis_of(node, node.attributes().integer("axis", 0), in.rank(0)));
  const Extents& from = in[0].shape;
  Extents indices = in.integers(1, "indices");
  for (std::int64_t& index : indices) index = index_of(node, index, from[axis]);
  Extents shape(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), in[1].shape.begin(), in[1].shape.end());
  shape.insert(shape.end(), from.begin() + static_cast<std::ptrdiff_t>(axis) + 1, from.end());
  const std::int64_t inner = product(from, axis + 1, from.size()), chosen = static_cast<std::int64_t>(indices.size());
  std::int64_t i = 0;
  return {picked(in[0], in.checked(std::move(shape)), [&] {
    const std::int64_t outer = i / inner / chosen, index = indices[static_cast<std::size_t>(i / inner % chosen)];
    return (outer * from[axis] + index) * inner + i++ % inner;
  })};
}

Result fold_gather_elements(const FoldInputs& in) {
  const Node& node = in.node();
  const auto axis = static_cast<std::size_t>(axis_of(node, node.attributes().integer("axis", 0), in.rank(0)));
  const Extents &from = in[0].shape, &shape = in[1].shape, &indices = in.integers(1, "indices");
  bool fits = shape.size() == from.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) fits = i == axis || shape[i] <= from[i];
  if (!fits) {
    node.bad_input("its indices have the shape {}, its input {}", extents_text(shape), extents_text(from));
  }
  Extents strides = strides_of(from);
  const std::int64_t pitch = std::exchange(strides[axis], 0);
  StridedWalk walk(shape, strides);
  std::size_t i = 0;
  return {picked(in[0], in.checked(shape), [&] {
    const std::int64_t position = walk.position() + index_of(node, indices[i++], from[axis]) * pitch;
    walk.step();
    return position;
  })};
}

Result fold_expand(const FoldInputs& in) {
  const Node& node = in.node();
  Extents shape = in.integers(1, "shape");
  if (shape.size() < in[0].shape.size()) shape.insert(shape.begin(), in[0].shape.size() - shape.size(), 1);
  const std::size_t missing = shape.size() - in[0].shape.size();
  for (std::size_t i = 0; i < in[0].shape.size(); ++i) {
    std::int64_t& extent = shape[missing + i];
    if (extent == 1) extent = in[0].shape[i];
    if (in[0].shape[i] != 1 && in[0].shape[i] != extent) {
      node.bad_input("it repeats a constant of the shape {} to {}", extents_text(in[0].shape), extents_text(shape));
    }
  }
  in.checked(shape);
  return {strided(in[0], shape, repeated_strides(in[0].shape, shape))};
}

Result fold_tile(const FoldInputs& in) {
  const Extents& repeats = in.integers(1, "repeats");
  if (repeats.size() != in[0].shape.size()) {
    in.node().bad_input("it has {} repeats for {} axes", repeats.size(), in[0].shape.size());
  }
  // Each axis twice: how often it is repeated, and itself.
  const Extents own = strides_of(in[0].shape);
  Extents shape, pairs, strides;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (!checked_elements({repeats[i], in[0].shape[i]}))
      in.node().bad_input("it repeats axis {} {} times", i, repeats[i]);
    shape.push_back(repeats[i] * in[0].shape[i]);
    pairs.insert(pairs.end(), {repeats[i], in[0].shape[i]});
    strides.insert(strides.end(), {0, own[i]});
  }
  // Without elements the other axes may be so long that their product is beyond all numbers.
  if (*checked_elements(in.checked(shape)) == 0) pairs = strides = {0};
  ConstantTensor result = strided(in[0], std::move(pairs), std::move(strides));
  result.shape = std::move(shape);
  return {std::move(result)};
}

Result fold_pad(const FoldInputs& in) {
  const Node& node = in.node();
  constexpr int kPadsAreAnInput = 11, kValueInput = 2, kAxesInput = 3;
  if (const std::string mode = node.attributes().text("mode", "constant"); mode != "constant") {
    node.unsupported("attribute 'mode' is {}; burin pads constants with a constant", in_quotes(mode));
  }
  const auto pads = in.list("pads", 1, kPadsAreAnInput);
  if (!pads) node.bad_input("lacks its padding");
  ConstantTensor value = in[0];
  value.shape = {1};
  if (value.is_real()) {
    value.numbers = Numbers<double>({node.opset() < kPadsAreAnInput ? node.attributes().number("value", 0) : 0.0});
  } else {
    value.numbers = Numbers<std::int64_t>({0});
  }
  if (in.has(kValueInput)) value = in[kValueInput];
  if (value.elements() != 1 || value.is_real() != in[0].is_real()) node.bad_input("its value is no such number");
  Extents axes;
  for (std::int64_t axis = 0; axis < in.rank(0); ++axis) axes.push_back(axis);
  if (in.has(kAxesInput)) axes = in.integers(kAxesInput, "axes");
  axes_of(node, axes, in.rank(0));  // each once
  if (pads->size() != 2 * axes.size()) {
    node.bad_input("its padding has {} values for {} axes; it needs two for each", pads->size(), axes.size());
  }
  Extents shape = in[0].shape, before(shape.size(), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axis_of(node, axes[i], in.rank(0)));
    before[axis] = (*pads)[i];
    const std::int64_t after = (*pads)[axes.size() + i];
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (before[axis] < 0 || after < 0) node.unsupported("its padding is negative; burin does not crop constants");
    if (before[axis] > kMost || after > kMost || shape[axis] > kMost) node.unsupported("its padding is too large");
    shape[axis] += before[axis] + after;
  }
  in.checked(shape);
  // The value stands behind all numbers, and what is padded is taken from there.
  ConstantTensor with_value = in[0];
  std::visit(
      [&](auto& numbers) { numbers.push_back(std::get<std::remove_cvref_t<decltype(numbers)>>(value.numbers)[0]); },
      with_value.numbers);
  const Extents own = strides_of(in[0].shape), strides = strides_of(shape);
  std::int64_t i = 0;
  return {picked(with_value, shape, [&] {
    std::int64_t position = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const std::int64_t index = i / strides[axis] % shape[axis] - before[axis];
      if (index < 0 || index >= in[0].shape[axis]) {
        position = in[0].elements();
        break;
      }
      position += index * own[axis];
    }
    ++i;
    return position;
  })};
}

}  // namespace burin
