// Resize and Upsample.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/import/onnx/axes.h"
#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/moves.h"
#include "compiler/import/onnx/resize_rule.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

constexpr int kResizeHasAxes = 18;   // and antialias, and policies of sizes
constexpr int kResizeHasRules = 11;  // the opset from which on attributes say where pixels lie

// The axes of a resized tensor, the batch first.
struct Resizing {
  std::vector<ResizedAxis> axes;
  bool is_same(std::size_t axis) const { return axes[axis].in == axes[axis].out && axes[axis].scale == 1; }
};

template <typename Enum>
Enum named(const Node& node, const std::string& attribute, Enum absent) {
  const std::string text = node.attributes().text(attribute, std::string(to_string(absent)));
  const std::optional<Enum> found = parse_enum<Enum>(text);
  if (!found) {
    node.unsupported("attribute '{}' is {}; burin knows {}", attribute, in_quotes(text), known_names<Enum>());
  }
  return *found;
}

// A constant list of floating-point numbers; nothing where the input is left out, or holds none.
std::optional<std::vector<float>> numbers(const Node& node, GraphBuilder& graph, int input, std::string_view what) {
  if (!node.has_input(input)) return std::nullopt;
  const StoredTensor tensor = graph.constant(node, input, what);
  if (tensor.elements() == 0) return std::nullopt;
  return graph.floats(node, tensor, what);
}

std::int64_t resized(const Node& node, double extent) {
  if (!(extent >= 1 && extent <= kMaxSpatialExtent)) {
    node.unsupported("it makes an axis of {} elements; burin's limits are 1 and {}", extent, kMaxSpatialExtent);
  }
  return static_cast<std::int64_t>(extent);
}

void check_count(const Node& node, std::size_t count, std::size_t axes, std::string_view what) {
  if (count != axes) node.bad_input("it has {} {} for {} axes", count, what, axes);
}

void set_scales(const Node& node, const ResizeRule& rule, const std::vector<float>& scales,
                const std::vector<std::int64_t>& axes, Resizing& resizing) {
  check_count(node, scales.size(), axes.size(), "scales");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizedAxis& axis = resizing.axes[static_cast<std::size_t>(axes[i])];
    axis.scale = scales[i];
    if (!(axis.scale > 0)) node.bad_input("its scale is {}, it must be more than 0", axis.scale);
    const float part = rule.places == ResizePlaces::tf_crop_and_resize ? axis.end - axis.begin : 1;
    axis.out = axes[i] == 0 && axis.scale == 1
                   ? axis.in
                   : resized(node, std::floor(static_cast<float>(axis.in) * part * axis.scale));
    // The length that is not cut off is what ONNX's own cases take, and the one that is cut off what others compute.
    constexpr float kWhole = 1e-3F;
    const float length = static_cast<float>(axis.in) * axis.scale;
    if (rule.places == ResizePlaces::align_corners && std::abs(length - static_cast<float>(axis.out)) > kWhole) {
      node.unsupported(
          "it aligns the corners of {} elements, {} scaled by {}; implementations differ where that is "
          "no whole number: export it with sizes",
          length, axis.in, axis.scale);
    }
  }
}

void set_sizes(const Node& node, const std::vector<Size>& sizes, const std::vector<std::int64_t>& axes,
               Resizing& resizing) {
  check_count(node, sizes.size(), axes.size(), "sizes");
  std::vector<float> scales;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizedAxis& axis = resizing.axes[static_cast<std::size_t>(axes[i])];
    // The number of images is none that is known here: the same one, or another.
    const bool same_batch = axes[i] == 0 && (is_batch(sizes[i]) || sizes[i].value == axis.in);
    if (sizes[i].batch && axes[i] != 0) node.unsupported("it makes an axis as long as there are images");
    axis.out = same_batch ? axis.in : resized(node, static_cast<double>(sizes[i].value));
    axis.scale = static_cast<float>(axis.out) / static_cast<float>(axis.in);
    scales.push_back(axis.scale);
  }
  if (node.opset() < kResizeHasAxes) return;
  const std::string policy = node.attributes().text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller") {
    node.bad_input("attribute 'keep_aspect_ratio_policy' is {}; it must be stretch, not_larger or not_smaller",
                   in_quotes(policy));
  }
  const float scale = policy == "not_larger" ? *std::ranges::min_element(scales) : *std::ranges::max_element(scales);
  for (const std::int64_t index : axes) {
    ResizedAxis& axis = resizing.axes[static_cast<std::size_t>(index)];
    axis.scale = scale;
    axis.out = resized(node, std::floor(static_cast<double>(scale) * static_cast<double>(axis.in) + 0.5));
  }
}

// The tensor as an image, of which rows and columns alone become other ones.
void emit_resized(const Node& node, GraphBuilder& graph, const ResizeRule& rule, const Resizing& resizing,
                  float outside) {
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t>& shape = graph.shape(x);
  if (!resizing.is_same(0) || !resizing.is_same(1)) {
    node.unsupported("it resizes the {}; burin resizes rows and columns", resizing.is_same(0) ? "channels" : "batch");
  }
  Resample resample{.rows = whole_taps(1), .cols = taps_of(rule, resizing.axes.back()), .outside = outside};
  if (shape.size() == 3) resample.rows = taps_of(rule, resizing.axes[2]);
  if (resample.rows.indices.empty() || resample.cols.indices.empty()) {
    node.unsupported(
        "it makes one row or column of more than {} others, or all of more than {} (kMaxTaps, kMaxTapTable)", kMaxTaps,
        kMaxTapTable);
  }
  graph.count_weights(node, std::ssize(resample.rows.weights) + std::ssize(resample.cols.weights));
  emit_of_image(node, graph, image_of(node, graph, x), std::move(resample));
}

Resizing resizing_of(const Node& node, GraphBuilder& graph) {
  const std::vector<std::int64_t>& shape = graph.shape(graph.activation(node, 0));
  if (shape.size() != 2 && shape.size() != 3) {
    node.unsupported("its input is {} for each image; burin resizes channels x rows x columns and channels x columns",
                     shape_text(shape));
  }
  const std::int64_t batch = graph.fixed_batch.value_or(1);
  Resizing resizing{{{batch, batch}}};
  for (const std::int64_t extent : shape) resizing.axes.push_back({extent, extent});
  return resizing;
}

std::vector<std::int64_t> resized_axes(const Node& node, std::size_t rank) {
  std::vector<std::int64_t> axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::int64_t>(i);
  if (node.opset() < kResizeHasAxes) return axes;
  const auto given = node.attributes().integers("axes");
  if (!given) return axes;
  axes = *given;
  for (std::int64_t& axis : axes) axis = axis_of(node, axis, static_cast<std::int64_t>(rank));
  return axes;
}

}  // namespace

void convert_upsample(const Node& node, GraphBuilder& graph) {
  constexpr int kScalesAreAnInput = 9;
  ResizeRule rule{.places = ResizePlaces::asymmetric, .nearest = NearestPixel::by_direction};
  rule.mode = named(node, "mode", rule.mode);
  Resizing resizing = resizing_of(node, graph);
  const auto scales =
      node.opset() < kScalesAreAnInput ? node.attributes().numbers("scales") : numbers(node, graph, 1, "scales");
  if (!scales) node.bad_input("lacks its scales");
  set_scales(node, rule, *scales, resized_axes(node, resizing.axes.size()), resizing);
  emit_resized(node, graph, rule, resizing, 0);
}

void convert_resize(const Node& node, GraphBuilder& graph) {
  if (node.opset() < kResizeHasRules) return convert_upsample(node, graph);
  constexpr int kRegion = 1, kScales = 2, kSizes = 3;
  const Attributes& attributes = node.attributes();
  ResizeRule rule;
  rule.mode = named(node, "mode", rule.mode);
  rule.places = named(node, "coordinate_transformation_mode", rule.places);
  rule.nearest = named(node, "nearest_mode", rule.nearest);
  rule.cubic_a = attributes.number("cubic_coeff_a", rule.cubic_a);
  rule.exclude_outside = attributes.boolean("exclude_outside", false);
  if (node.opset() >= kResizeHasAxes) rule.antialias = attributes.boolean("antialias", false);
  const float outside = attributes.number("extrapolation_value", 0);
  Resizing resizing = resizing_of(node, graph);
  const std::vector<std::int64_t> axes = resized_axes(node, resizing.axes.size());
  if (rule.places == ResizePlaces::tf_crop_and_resize) {
    const auto region = numbers(node, graph, kRegion, "region");
    if (!region) node.bad_input("lacks its region (roi)");
    check_count(node, region->size(), 2 * axes.size(), "numbers of its region");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      ResizedAxis& axis = resizing.axes[static_cast<std::size_t>(axes[i])];
      axis.begin = (*region)[i];
      axis.end = (*region)[axes.size() + i];
    }
    for (const std::size_t axis : {std::size_t{0}, std::size_t{1}}) {
      if (resizing.axes[axis].begin != 0 || resizing.axes[axis].end != 1) {
        node.unsupported("its region cuts the {}; burin cuts rows and columns", axis == 0 ? "batch" : "channels");
      }
    }
  }
  const auto scales = numbers(node, graph, kScales, "scales");
  const bool has_sizes = node.has_input(kSizes);
  if (scales.has_value() == has_sizes) {
    node.bad_input("it has {} scales {} sizes; it must have one of them", has_sizes ? "both" : "neither",
                   has_sizes ? "and" : "nor");
  }
  if (scales) {
    set_scales(node, rule, *scales, axes, resizing);
    if (node.opset() >= kResizeHasAxes) attributes.text("keep_aspect_ratio_policy", "");  // of sizes
  } else {
    const std::optional<Sizes> sizes = graph.is_activation(node, kSizes) ? std::nullopt : graph.sizes(node, kSizes);
    if (!sizes) node.unsupported("its sizes {} are no constant list", in_quotes(node.input(kSizes)));
    set_sizes(node, sizes->values, axes, resizing);
  }
  emit_resized(node, graph, rule, resizing, outside);
}

}  // namespace burin
