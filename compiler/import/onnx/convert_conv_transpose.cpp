// ConvTranspose: a convolution whose output channels are the phases of the steps, between which depth-to-space puts
// them side by side.
//
// Along an axis of step s, output o is the sum of x[i] * w[k] over i * s + k * d = o + p, where d is the dilation and p
// the padding before. With o = q * s + r, where r is the phase, i is q - t with t = (k * d - r - p) / s, for those k
// for which that is whole. So each phase is a convolution of step 1 with some of the taps: all phases are one whose
// filter reaches from the least t to the largest, in which what is no tap is zero, and so is no weight.
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/moves.h"
#include "compiler/import/onnx/window.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {
namespace {

using Extents = std::vector<std::int64_t>;

// An axis of the node.
struct TransposedAxis {
  std::int64_t in = 1, kernel = 1, stride = 1, dilation = 1, pad_before = 0, pad_after = 0, output_padding = 0;
  std::int64_t reach() const { return (kernel - 1) * dilation; }
  std::int64_t out() const { return stride * (in - 1) + output_padding + reach() + 1 - pad_before - pad_after; }
};

// The convolution along an axis. Padding below 0 cuts what is computed.
struct PhasesAxis {
  std::int64_t phases = 1, extent = 1, dilation = 1, least = 0, pad_before = 0, pad_after = 0;
  // The phase and the place in the filter of a tap.
  std::pair<std::int64_t, std::int64_t> place(const TransposedAxis& axis, std::int64_t tap) const {
    if (phases == 1) return {0, extent - 1 - tap};
    const std::int64_t at = tap * axis.dilation - axis.pad_before;
    const std::int64_t phase = (at % phases + phases) % phases, t = (at - phase) / phases;
    return {phase, (least + extent - 1) - t};  // correlation: the largest t reads the first pixel
  }
};

PhasesAxis phases_of(const TransposedAxis& axis) {
  PhasesAxis phases{.phases = axis.stride};
  if (axis.stride == 1) {  // the filter turned round; its dilation may stay
    phases.extent = axis.kernel;
    phases.dilation = axis.dilation;
    phases.pad_before = axis.reach() - axis.pad_before;
    phases.pad_after = axis.reach() - axis.pad_after + axis.output_padding;
    return phases;
  }
  const auto floored = [&](std::int64_t at) { return at >= 0 ? at / axis.stride : -ceil_div(-at, axis.stride); };
  phases.least = floored(-axis.pad_before);
  const std::int64_t largest = floored(axis.reach() - axis.pad_before);
  phases.extent = largest - phases.least + 1;
  phases.pad_before = largest;
  phases.pad_after = ceil_div(axis.out(), axis.stride) - axis.in - phases.least;
  return phases;
}

std::pair<std::int64_t, std::int64_t> pair_of(const Node& node, const std::string& attribute, bool row,
                                              std::int64_t low, std::int64_t high) {
  const auto [rows, cols] = read_extents(node, attribute, row, low).value_or(std::pair(low, low));
  return {checked_int(node, rows, low, high, attribute), checked_int(node, cols, low, high, attribute)};
}

// What output_shape and auto_pad leave over is shared out to both sides.
void share_padding(TransposedAxis& axis, std::int64_t wanted, bool more_after) {
  axis.pad_before = axis.pad_after = 0;
  const std::int64_t total = axis.out() - wanted;
  axis.pad_before = total <= 0 ? 0 : more_after ? total / 2 : total - total / 2;
  axis.pad_after = total - axis.pad_before;
}

void read_padding(const Node& node, bool row, TransposedAxis& rows, TransposedAxis& cols) {
  const Attributes& attributes = node.attributes();
  const std::string auto_pad = attributes.text("auto_pad", "NOTSET");
  const auto wanted = read_extents(node, "output_shape", row, 1);
  auto pads = attributes.integers("pads");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID") {
    node.bad_input("attribute 'auto_pad' is {}; it must be NOTSET, SAME_UPPER, SAME_LOWER or VALID",
                   in_quotes(auto_pad));
  }
  if (wanted) {
    for (const std::int64_t extent : {wanted->first, wanted->second}) {
      checked_int(node, extent, 1, kMaxSpatialExtent, "output_shape");
    }
    share_padding(rows, wanted->first, auto_pad == "SAME_UPPER");
    share_padding(cols, wanted->second, auto_pad == "SAME_UPPER");
  } else if (same) {
    share_padding(rows, rows.in * rows.stride, auto_pad == "SAME_UPPER");
    share_padding(cols, cols.in * cols.stride, auto_pad == "SAME_UPPER");
  } else if (pads && auto_pad == "NOTSET") {
    if (pads->size() != (row ? 2 : 4)) {
      node.bad_input("attribute 'pads' has {} values, {} are needed", pads->size(),
                     row ? "2" : "4 (top, left, bottom, right)");
    }
    if (row) pads = {0, pads->front(), 0, pads->back()};
    for (const std::int64_t pad : *pads) checked_int(node, pad, 0, kMaxPadding, "a value of 'pads'");
    rows.pad_before = (*pads)[0], cols.pad_before = (*pads)[1];
    rows.pad_after = (*pads)[2], cols.pad_after = (*pads)[3];
  }
}

// What convolutions read as weights [K][C][R][S]: of ONNX's [C][K][R][S], in groups.
std::vector<float> phase_weights(const std::vector<float>& weights, const ConvShape& shape, const TransposedAxis& rows,
                                 const TransposedAxis& cols, const PhasesAxis& row_phases,
                                 const PhasesAxis& col_phases) {
  const std::int64_t phases = row_phases.phases * col_phases.phases;
  const std::int64_t made = shape.out_channels / phases / shape.groups, read = shape.in_channels / shape.groups;
  std::vector<float> result(static_cast<std::size_t>(shape.weight_elements()), 0.0F);
  std::size_t from = 0;
  for (std::int64_t c = 0; c < shape.in_channels; ++c) {
    for (std::int64_t m = 0; m < made; ++m) {
      const std::int64_t output = c / read * made + m;
      for (std::int64_t r = 0; r < rows.kernel; ++r) {
        for (std::int64_t s = 0; s < cols.kernel; ++s, ++from) {
          const auto [row_phase, row] = row_phases.place(rows, r);
          const auto [col_phase, col] = col_phases.place(cols, s);
          const std::int64_t k = (output * row_phases.phases + row_phase) * col_phases.phases + col_phase;
          result[static_cast<std::size_t>(((k * read + c % read) * shape.kernel_h + row) * shape.kernel_w + col)] =
              weights[from];
        }
      }
    }
  }
  return result;
}

}  // namespace

void convert_conv_transpose(const Node& node, GraphBuilder& graph) {
  constexpr int kBiasInput = 2;
  const StoredTensor weight = graph.constant(node, 1, "weight");
  const Extents& extents = weight.shape();
  const bool row = graph.shape(graph.activation(node, 0)).size() == 2;
  if (extents.size() != (row ? 3 : 4)) {
    node.unsupported("its weights have the shape {}; burin compiles those of images, [C,K,R,S], and of rows, [C,K,S]",
                     extents_text(extents));
  }
  if (std::ranges::any_of(extents, [](std::int64_t extent) { return extent < 1; })) {
    node.bad_input("its weights have the shape {}; no extent may be 0", extents_text(extents));
  }
  const AsImage input = image_of(node, graph, graph.activation(node, 0));
  const Extents& image = input.shape;
  const int groups = checked_int(node, node.attributes().integer("group", 1), 1, kMaxChannels, "attribute 'group'");
  if (extents[0] != image[0] || image[0] % groups != 0) {
    node.bad_input("its input has {} channels, but its weights {} in {} groups take {}", image[0],
                   extents_text(extents), groups, extents[0]);
  }
  if (const auto kernel = node.attributes().integers("kernel_shape");
      kernel && *kernel != Extents(extents.begin() + 2, extents.end())) {
    node.bad_input("attribute 'kernel_shape' is [{}], but its weights have the shape {}", numbers_text(*kernel),
                   extents_text(extents));
  }
  TransposedAxis rows{.in = image[1], .kernel = row ? 1 : extents[2]}, cols{.in = image[2], .kernel = extents.back()};
  for (const std::int64_t kernel : {rows.kernel, cols.kernel}) {
    checked_int(node, kernel, 1, kMaxSpatialExtent, "an extent of its kernel");
  }
  std::tie(rows.stride, cols.stride) = pair_of(node, "strides", row, 1, kMaxStride);
  std::tie(rows.dilation, cols.dilation) = pair_of(node, "dilations", row, 1, kMaxStride);
  std::tie(rows.output_padding, cols.output_padding) = pair_of(node, "output_padding", row, 0, kMaxStride);
  read_padding(node, row, rows, cols);
  if (rows.out() < 1 || cols.out() < 1) {
    node.bad_input("its padding leaves {} x {} pixels of its output", rows.out(), cols.out());
  }
  const PhasesAxis row_phases = phases_of(rows), col_phases = phases_of(cols);
  const std::int64_t phases = row_phases.phases * col_phases.phases, outputs = extents[1] * groups;

  ConvLayer layer;
  ConvShape& shape = layer.shape;
  shape.groups = groups;
  shape.in_channels = checked_int(node, image[0], 1, kMaxChannels, "the number of its input's channels");
  shape.out_channels = checked_int(node, saturating_product({outputs, phases}), 1, kMaxChannels,
                                   "the number of output channels, times the phases of its strides,");
  shape.in_h = checked_int(node, image[1], 1, kMaxSpatialExtent, "the rows of its input");
  shape.in_w = checked_int(node, image[2], 1, kMaxSpatialExtent, "the columns of its input");
  shape.kernel_h = checked_int(node, row_phases.extent, 1, kMaxKernelExtent, "rows of the filter of a phase");
  shape.kernel_w = checked_int(node, col_phases.extent, 1, kMaxKernelExtent, "columns of the filter of a phase");
  shape.dilation_h = static_cast<int>(row_phases.dilation), shape.dilation_w = static_cast<int>(col_phases.dilation);
  const auto padding = [&](std::int64_t pad) {
    return checked_int(node, std::max<std::int64_t>(pad, 0), 0, kMaxPadding, "the padding of its phases");
  };
  shape.pad = {padding(row_phases.pad_before), padding(row_phases.pad_after), padding(col_phases.pad_before),
               padding(col_phases.pad_after)};
  // With filters that are as large as its steps there are hardly more than there were.
  constexpr std::int64_t kMostForEach = 3;
  if (shape.weight_elements() > std::max(kMaxMadeWeights, kMostForEach * weight.elements()) ||
      shape.weight_elements() > kMaxLayerWeights) {
    node.unsupported(
        "its {} weights make {} of its phases; burin's limits are {} times as many, or {} (kMaxMadeWeights), "
        "and {} (kMaxLayerWeights)",
        weight.elements(), shape.weight_elements(), kMostForEach, kMaxMadeWeights, kMaxLayerWeights);
  }
  std::vector<float> weights = graph.floats(node, weight, "weight");
  graph.apply_zero_threshold(weights);
  layer.weights = phase_weights(weights, shape, rows, cols, row_phases, col_phases);
  if (node.has_input(kBiasInput)) {
    const StoredTensor bias = graph.constant(node, kBiasInput, "bias");
    if (bias.elements() != outputs) {
      node.bad_input("its bias {} has the shape {}, but there are {} outputs", in_quotes(bias.view.name),
                     extents_text(bias.shape()), outputs);
    }
    shape.epilogue.bias = true;
    for (const float value : graph.floats(node, bias, "bias")) {
      layer.bias.insert(layer.bias.end(), static_cast<std::size_t>(phases), value);
    }
  }

  const bool steps = phases > 1;
  const std::int64_t cut_rows = std::max<std::int64_t>(-row_phases.pad_before, 0) * rows.stride;
  const std::int64_t cut_cols = std::max<std::int64_t>(-col_phases.pad_before, 0) * cols.stride;
  const Convolution convolution = graph.add_layer(node, std::move(layer));
  const ConvShape& made = graph.network().layers.back().shape;
  const bool whole = made.conv_h() * rows.stride == rows.out() && made.conv_w() * cols.stride == cols.out();
  if (!steps && whole) return emit_of_image(node, graph, input, convolution);
  int x = graph.emit_named(node, convolution, {input.tensor});
  if (steps) x = emit_depth_to_space(node, graph, x, rows.stride, cols.stride, false);
  x = emit_inner_pick(node, graph, x, {whole_axis(outputs), {cut_rows, 1, rows.out()}, {cut_cols, 1, cols.out()}});
  if (!row) return graph.emit(node, Identity{}, {x});
  graph.emit(node, Reshape{{outputs, cols.out()}}, {x});
}

}  // namespace burin
