// Padding in all its modes, negative padding too, which cuts.
#include <algorithm>
#include <numeric>

#include "compiler/import/onnx/axes.h"
#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/moves.h"
#include "compiler/import/onnx/window.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

enum class PadMode { constant, reflect, edge, wrap };
constexpr EnumNames<4> names_of(PadMode) { return {"a mode of Pad", {"constant", "reflect", "edge", "wrap"}}; }

struct PadSides {
  std::int64_t before = 0, after = 0;
  bool any() const { return before != 0 || after != 0; }
};

// The element that a place beyond an axis repeats.
std::int64_t repeated(PadMode mode, std::int64_t place, std::int64_t extent) {
  const auto modulo = [&](std::int64_t period) { return (place % period + period) % period; };
  if (mode == PadMode::edge || extent == 1) return std::clamp<std::int64_t>(place, 0, extent - 1);
  if (mode == PadMode::wrap) return modulo(extent);
  const std::int64_t period = 2 * (extent - 1), at = modulo(period);
  return at < extent ? at : period - at;
}

Taps padded_taps(PadMode mode, const PadSides& sides, std::int64_t extent) {
  std::vector<std::int64_t> indices;
  for (std::int64_t place = -sides.before; place < extent + sides.after; ++place) {
    indices.push_back(repeated(mode, place, extent));
  }
  return taps_at(indices);
}

// The attributes and inputs, of each axis, the batch first.
std::vector<PadSides> read_sides(const Node& node, GraphBuilder& graph, std::int64_t rank) {
  constexpr int kPadsAreAnInput = 11, kAxesInput = 3;
  std::vector<std::int64_t> pads, axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (node.opset() >= kPadsAreAnInput) {
    if (!node.has_input(1)) node.bad_input("lacks its second input, the padding");
    pads = graph.integers(node, 1, "padding");
  } else {
    pads = node.attributes().integers("pads").value_or(std::vector<std::int64_t>{});
  }
  if (node.has_input(kAxesInput)) axes = graph.integers(node, kAxesInput, "axes");
  if (pads.size() != 2 * axes.size()) {
    node.bad_input("its padding has {} values for {} axes; it needs two for each", pads.size(), axes.size());
  }
  std::vector<PadSides> sides(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axis_of(node, axes[i], rank);
    for (const std::int64_t side : {pads[i], pads[axes.size() + i]}) {
      if (side > kMaxPadding) node.unsupported("its padding is {}, burin's limit is {}", side, kMaxPadding);
    }
    sides[static_cast<std::size_t>(axis)] = {pads[i], pads[axes.size() + i]};
  }
  return sides;
}

// Cuts off what negative padding takes away, and leaves the other sides.
int cut(const Node& node, GraphBuilder& graph, int x, std::vector<PadSides>& sides) {
  const std::vector<std::int64_t> shape = graph.shape(x);
  std::vector<PickedAxis> kept = whole_axes(shape);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    auto& [before, after] = sides[i + 1];
    const std::int64_t front = std::max<std::int64_t>(-before, 0), back = std::max<std::int64_t>(-after, 0);
    if (front >= shape[i] || back >= shape[i] - front) {
      node.unsupported("its padding of {} and {} leaves nothing of an axis of {}", before, after, shape[i]);
    }
    kept[i] = {front, 1, shape[i] - front - back};
    before = std::max<std::int64_t>(before, 0);
    after = std::max<std::int64_t>(after, 0);
  }
  return emit_inner_pick(node, graph, x, std::move(kept));
}

// Channels that were not there, as filters without a nonzero.
int with_channels(const Node& node, GraphBuilder& graph, int x, const PadSides& sides, float value) {
  const std::vector<std::int64_t> image = graph.image_shape(node, x);
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(image[0] + sides.before + sides.after), -1);
  std::iota(chosen.begin() + sides.before, chosen.end() - sides.after, 0);
  const Convolution choice = graph.add_layer(node, choice_of_channels(node, image, chosen, value));
  return graph.emit_inner(node, "channels", choice, {x});
}

}  // namespace

void convert_pad(const Node& node, GraphBuilder& graph) {
  constexpr int kValueIsAnInput = 11;
  const Attributes& attributes = node.attributes();
  const std::string text = attributes.text("mode", "constant");
  const std::optional<PadMode> mode = parse_enum<PadMode>(text);
  if (!mode) node.unsupported("attribute 'mode' is {}; burin knows {}", in_quotes(text), known_names<PadMode>());
  int x = graph.activation(node, 0);
  const std::size_t rank = graph.shape(x).size();
  if (rank != 2 && rank != 3) {
    node.unsupported("its input is {} for each image; burin pads channels x rows x columns and channels x columns",
                     shape_text(graph.shape(x)));
  }
  std::vector<PadSides> sides = read_sides(node, graph, static_cast<std::int64_t>(rank) + 1);
  float value = 0;
  if (node.opset() < kValueIsAnInput) {
    value = attributes.number("value", 0);
  } else if (node.has_input(2)) {
    value = graph.number(node, 2, "value");
  }
  if (sides[0].any()) node.unsupported("it pads the batch; burin pads what belongs to one image");
  x = cut(node, graph, x, sides);
  // Rows and columns are the first axes where channels are the last one.
  const bool turned = rank == 3 && sides[1].any() && sides[2].any() && !sides[3].any();
  if (turned) {
    x = graph.emit_inner(node, "channels_first", Transpose{{2, 0, 1}}, {x});
    std::rotate(sides.begin() + 1, sides.begin() + 3, sides.end());
  }
  const auto emit_padded = [&](OperatorKind kind) {
    if (!turned) return emit_of_image(node, graph, image_of(node, graph, x), std::move(kind));
    graph.emit(node, Transpose{{1, 2, 0}}, {graph.emit_named(node, std::move(kind), {x})});
  };
  if (sides[1].any()) {
    if (*mode != PadMode::constant || rank != 3) {
      node.unsupported("it pads the channels of {} in the mode {}; burin pads those of images with a constant",
                       shape_text(graph.shape(x)), text);
    }
    x = with_channels(node, graph, x, sides[1], value);
  }
  const PadSides cols = sides.back(), rows = rank == 3 ? sides[2] : PadSides{};
  if (*mode == PadMode::constant) {
    const auto side = [&](std::int64_t padding) { return static_cast<int>(padding); };
    return emit_padded(Pad{{side(rows.before), side(rows.after), side(cols.before), side(cols.after)}, value});
  }
  const std::vector<std::int64_t> shape = graph.shape(x);
  for (std::size_t axis = 1; axis < shape.size(); ++axis) {
    checked_int(node, shape[axis], 1, kMaxSpatialExtent, "an extent of its input");
  }
  Resample resample{padded_taps(*mode, rows, rank == 3 ? shape[1] : 1), padded_taps(*mode, cols, shape.back())};
  graph.count_weights(node, std::ssize(resample.rows.weights) + std::ssize(resample.cols.weights));
  emit_padded(std::move(resample));
}

}  // namespace burin
