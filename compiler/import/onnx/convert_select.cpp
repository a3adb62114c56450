// Parts of activations: Slice, Split and Gather.
#include <algorithm>
#include <numeric>
#include <span>

#include "compiler/import/onnx/axes.h"
#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/moves.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {
namespace {

using Extents = std::vector<std::int64_t>;

// What Slice takes of an axis, as NumPy does: what is beyond an end is at the end.
PickedAxis taken_of(const Node& node, std::int64_t extent, std::int64_t start, std::int64_t end, std::int64_t step) {
  if (step == 0) node.bad_input("its step is 0");
  // As far as any step goes.
  step = std::clamp(step, -extent, extent);
  const std::int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;
  const auto at = [&](std::int64_t index) {
    if (index < 0) index = std::max(index, -extent - 1) + extent;
    return std::clamp(index, low, high);
  };
  const std::int64_t first = at(start), last = at(end);
  const std::int64_t count = step > 0 ? ceil_div(last - first, step) : ceil_div(first - last, -step);
  if (step > 0 ? last <= first : first <= last) {
    node.unsupported("it takes nothing of an axis of {} elements, from {} to {} by {}", extent, start, end, step);
  }
  return {first, step, count};
}

// Indices that are constant, with their shape; those of lists may be computed from shapes.
struct Indices {
  Extents shape, values;
};

Indices indices_of(const Node& node, GraphBuilder& graph, std::int64_t extent) {
  if (graph.is_activation(node, 1)) node.unsupported("its indices are computed from the network's input");
  const SharedConstant constant = graph.numbers(node, 1);
  if (constant->is_real()) node.bad_input("its indices {} are no integers", in_quotes(node.input(1)));
  if (constant->depends_on_batch()) node.unsupported("its indices depend on the number of images");
  if (constant->elements() > kMaxChannels) {
    node.unsupported("it has {} indices, burin's limit is {} (kMaxChannels)", constant->elements(), kMaxChannels);
  }
  Indices indices{constant->shape, constant->integers().values};
  if (indices.values.empty()) node.bad_input("it chooses nothing");
  for (std::int64_t& index : indices.values) {
    if (index < -extent || index >= extent) {
      node.bad_input("its index is {}, its input has {} there", index, extent);
    }
    if (index < 0) index += extent;
  }
  return indices;
}

// Indices as far from each other as the first two are.
std::optional<PickedAxis> regular(const Extents& indices) {
  const std::int64_t step = indices.size() > 1 ? indices[1] - indices[0] : 1;
  for (std::size_t i = 1; i < indices.size(); ++i) {
    if (indices[i] - indices[i - 1] != step) return std::nullopt;
  }
  return PickedAxis{indices[0], step, std::ssize(indices)};
}

// Whether they are channels of an image, and a convolution that chooses them is no larger than is reasonable.
bool is_made_of_channels(const Extents& shape, std::size_t axis, const Extents& indices) {
  return axis == 0 && shape.size() == 3 && saturating_product({shape[0], std::ssize(indices)}) <= kMaxMadeWeights;
}

// Chooses what is not at regular distances: channels of an image by a convolution, of which the passes for channels
// know what it reads; of other axes by the resampling of an image whose rows they are.
int chosen_of(const Node& node, GraphBuilder& graph, int x, std::size_t axis, const Extents& indices) {
  const Extents shape = graph.shape(x);
  if (is_made_of_channels(shape, axis, indices)) {
    return graph.emit_inner(node, "chosen", graph.add_layer(node, choice_of_channels(node, shape, indices)), {x});
  }
  Extents made = shape;
  made[axis] = std::ssize(indices);
  const auto begin = shape.begin(), at = begin + static_cast<std::ptrdiff_t>(axis);
  const Extents image = {saturating_product(std::span(begin, at)), shape[axis],
                         saturating_product(std::span(at + 1, shape.end()))};
  if (image[2] > kMaxTapTable) {
    node.unsupported("it chooses of {}, {} values at once; burin's limit is {} (kMaxTapTable)", shape_text(shape),
                     image[2], kMaxTapTable);
  }
  graph.count_weights(node, 2 * (made[axis] + image[2]));
  x = graph.emit_inner(node, "rows", Reshape{image}, {x});
  x = graph.emit_inner(node, "chosen", Resample{taps_at(indices), whole_taps(image[2])}, {x});
  return graph.emit_inner(node, "as_before", Reshape{made}, {x});
}

}  // namespace

void pick_slice(const Node& node, GraphBuilder& graph) {
  constexpr int kRangesAreInputs = 10, kStepsInput = 4;
  const int x = graph.activation_by_any_batch(node, 0);
  const std::int64_t batch = graph.batch_axis(node, 0);
  const Extents shape = graph.shape(x);
  const auto rank = static_cast<std::int64_t>(shape.size()) + 1;
  const auto starts = graph.list(node, "starts", 1, kRangesAreInputs);
  const auto ends = graph.list(node, "ends", 2, kRangesAreInputs);
  if (!starts || !ends) node.bad_input("lacks its starts or ends");
  Extents axes(starts->size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = graph.list(node, "axes", 3, kRangesAreInputs).value_or(axes);
  Extents steps(starts->size(), 1);
  if (node.opset() >= kRangesAreInputs && node.has_input(kStepsInput)) {
    steps = graph.integers(node, kStepsInput, "steps");
  }
  if (ends->size() != starts->size() || axes.size() != starts->size() || steps.size() != starts->size()) {
    node.bad_input("it has {} starts, {} ends, {} axes and {} steps; there must be as many of each", starts->size(),
                   ends->size(), axes.size(), steps.size());
  }
  std::vector<PickedAxis> taken = whole_axes(shape);
  std::vector<bool> seen(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(with_batch_first(axis_of(node, axes[i], rank), batch));
    if (seen[axis]) node.bad_input("it names axis {} twice", axis_of(node, axes[i], rank));
    seen[axis] = true;
    if (axis > 0) {
      taken[axis - 1] = taken_of(node, shape[axis - 1], (*starts)[i], (*ends)[i], steps[i]);
      continue;
    }
    constexpr std::int64_t kNoEnd = std::numeric_limits<std::int32_t>::max();
    const bool all = (*starts)[i] == 0 && steps[i] == 1 &&
                     ((*ends)[i] >= kNoEnd || (graph.fixed_batch && (*ends)[i] >= *graph.fixed_batch));
    if (!all) node.unsupported("it cuts the batch (axis {}); burin cuts what belongs to one image", batch);
  }
  emit_pick(node, graph, x, std::move(taken));
  graph.mark_batch_axis(node.output(), batch);
}

void convert_split(const Node& node, GraphBuilder& graph) {
  constexpr int kPartsAreAnInput = 13;
  const int x = graph.activation_by_any_batch(node, 0);
  const std::int64_t batch = graph.batch_axis(node, 0);
  const Extents shape = graph.shape(x);
  const auto rank = static_cast<std::int64_t>(shape.size()) + 1;
  const std::int64_t axis = with_batch_first(axis_of(node, node.attributes().integer("axis", 0), rank), batch);
  if (axis == 0) node.unsupported("it splits the batch (axis {}); burin splits what belongs to one image", batch);
  const std::int64_t extent = shape[static_cast<std::size_t>(axis - 1)], count = node.outputs();
  if (count > kMaxOperatorInputs) {
    node.unsupported("it has {} outputs, burin's limit is {} (kMaxOperatorInputs)", count, kMaxOperatorInputs);
  }
  auto parts = graph.list(node, "split", 1, kPartsAreAnInput);
  const std::int64_t asked = node.attributes().integer("num_outputs", count);
  if (asked != count) node.bad_input("attribute 'num_outputs' is {}, it has {} outputs", asked, count);
  if (!parts) {
    const bool uneven = node.attributes().has("num_outputs");
    if (!uneven && extent % count != 0) node.bad_input("{} elements cannot be split into {} parts", extent, count);
    const std::int64_t part = ceil_div(extent, count);
    parts = Extents(static_cast<std::size_t>(count), part);
    parts->back() = extent - part * (count - 1);
  }
  if (std::ssize(*parts) != count) node.bad_input("it has {} outputs, and {} sizes for them", count, parts->size());
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parts->size(); ++i) {
    const std::int64_t part = (*parts)[i];
    if (part < 1 || part > extent - begin) {
      if (part == 0) node.unsupported("its part {} has no elements", i);
      node.bad_input("its part {} has {} of {} elements that are left", i, part, extent - begin);
    }
    std::vector<PickedAxis> axes = whole_axes(shape);
    axes[static_cast<std::size_t>(axis - 1)] = {begin, 1, part};
    const std::string& name = node.output(static_cast<int>(i));
    if (!name.empty() && (i == 0 || graph.is_read(name))) {
      emit_pick(node, graph, x, std::move(axes), static_cast<int>(i));
      graph.mark_batch_axis(name, batch);
    }
    begin += part;
  }
  if (begin != extent) node.bad_input("its parts have {} elements, its input has {}", begin, extent);
}

void pick_gather(const Node& node, GraphBuilder& graph) {
  int x = graph.activation_by_any_batch(node, 0);
  const std::int64_t batch = graph.batch_axis(node, 0);
  const Extents shape = graph.shape(x);
  const auto rank = static_cast<std::int64_t>(shape.size()) + 1;
  const std::int64_t given = axis_of(node, node.attributes().integer("axis", 0), rank);
  if (given == batch) {
    node.unsupported("it chooses along the batch (axis {}); burin chooses of what is one image's", batch);
  }
  const auto axis = static_cast<std::size_t>(with_batch_first(given, batch) - 1);
  const Indices indices = indices_of(node, graph, shape[axis]);
  const std::optional<PickedAxis> run = regular(indices.values);
  std::vector<PickedAxis> taken = whole_axes(shape);
  // A list takes the place of the axis; indices of another shape put their axes there, or none.
  Extents made = shape;
  made.erase(made.begin() + static_cast<std::ptrdiff_t>(axis));
  made.insert(made.begin() + static_cast<std::ptrdiff_t>(axis), indices.shape.begin(), indices.shape.end());
  if (made.empty()) made = {1};
  const bool list = indices.shape.size() == 1;
  if (run && list) {
    taken[axis] = *run;
    emit_pick(node, graph, x, std::move(taken));
  } else if (!run && list && is_made_of_channels(shape, axis, indices.values)) {
    graph.emit(node, graph.add_layer(node, choice_of_channels(node, shape, indices.values)), {x});
  } else {
    if (!run) {
      x = chosen_of(node, graph, x, axis, indices.values);
    } else if (axis == 0 && (run->step == 1 || run->extent == 1)) {
      const ChannelView view{static_cast<int>(run->begin), static_cast<int>(run->extent)};
      x = graph.emit_inner(node, "part", view, {x});
    } else {
      taken[axis] = *run;
      x = emit_inner_pick(node, graph, x, std::move(taken));
    }
    graph.emit(node, Reshape{std::move(made)}, {x});
  }
  const std::int64_t more_axes = std::ssize(indices.shape) - 1;
  graph.mark_batch_axis(node.output(), given < batch ? batch + more_axes : batch);
}

}  // namespace burin
