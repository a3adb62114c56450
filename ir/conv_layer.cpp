#include "ir/conv_layer.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/saturate.h"
#include "ir/text.h"

namespace burin {
namespace {

constexpr std::array<std::pair<Activation, std::string_view>, 6> kActivations = {{
    {Activation::none, "none"},
    {Activation::relu, "relu"},
    {Activation::relu6, "relu6"},
    {Activation::leaky_relu, "leaky_relu"},
    {Activation::sigmoid, "sigmoid"},
    {Activation::silu, "silu"},
}};

int output_extent(std::int64_t in, std::int64_t pad_before, std::int64_t pad_after, std::int64_t kernel,
                  std::int64_t stride, std::int64_t dilation) {
  const std::int64_t span = in + pad_before + pad_after - dilation * (kernel - 1) - 1;
  if (span < 0 || stride < 1) return 0;
  return saturate_to_int(span / stride + 1);
}

std::string_view yes_no(bool value) { return value ? "yes" : "no"; }

std::string sides_text(const Padding& pad) {
  return fmt::format("{},{},{},{}  # top, bottom, left, right", pad.top, pad.bottom, pad.left, pad.right);
}

}  // namespace

std::string_view to_string(Activation activation) {
  for (const auto& [value, name] : kActivations) {
    if (value == activation) return name;
  }
  return "unknown";
}

std::optional<Activation> parse_activation(std::string_view text) {
  for (const auto& [value, name] : kActivations) {
    if (name == text) return value;
  }
  return std::nullopt;
}

std::string activation_names() {
  std::string names;
  for (const auto& [value, name] : kActivations) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  return names;
}

int ConvShape::conv_h() const { return output_extent(in_h, pad.top, pad.bottom, kernel_h, stride_h, dilation_h); }
int ConvShape::conv_w() const { return output_extent(in_w, pad.left, pad.right, kernel_w, stride_w, dilation_w); }
int ConvShape::out_h() const {
  return epilogue.pool ? saturate_to_int(pooled_rows(*epilogue.pool, conv_h())) : conv_h();
}
int ConvShape::out_w() const {
  return epilogue.pool ? saturate_to_int(pooled_cols(*epilogue.pool, conv_w())) : conv_w();
}

std::int64_t ConvShape::input_elements() const { return saturating_product({in_channels, in_h, in_w}); }
std::int64_t ConvShape::conv_elements() const { return saturating_product({out_channels, conv_h(), conv_w()}); }
std::int64_t ConvShape::output_elements() const { return saturating_product({out_channels, out_h(), out_w()}); }
std::int64_t ConvShape::weight_elements() const {
  if (groups < 1) return 0;
  return saturating_product({out_channels, in_channels / groups, kernel_h, kernel_w});
}

std::vector<std::string> verify(const ConvShape& shape) {
  Faults faults;
  faults.require_range("in_channels", shape.in_channels, 1, kMaxChannels, "kMaxChannels");
  faults.require_range("out_channels", shape.out_channels, 1, kMaxChannels, "kMaxChannels");
  faults.require_range("kernel_h", shape.kernel_h, 1, kMaxKernelExtent, "kMaxKernelExtent");
  faults.require_range("kernel_w", shape.kernel_w, 1, kMaxKernelExtent, "kMaxKernelExtent");
  faults.require_range("stride_h", shape.stride_h, 1, kMaxStride, "kMaxStride");
  faults.require_range("stride_w", shape.stride_w, 1, kMaxStride, "kMaxStride");
  faults.require_range("dilation_h", shape.dilation_h, 1, kMaxStride, "kMaxStride");
  faults.require_range("dilation_w", shape.dilation_w, 1, kMaxStride, "kMaxStride");
  faults.require_range("pad top", shape.pad.top, 0, kMaxPadding, "kMaxPadding");
  faults.require_range("pad bottom", shape.pad.bottom, 0, kMaxPadding, "kMaxPadding");
  faults.require_range("pad left", shape.pad.left, 0, kMaxPadding, "kMaxPadding");
  faults.require_range("pad right", shape.pad.right, 0, kMaxPadding, "kMaxPadding");
  faults.require_range("in_h", shape.in_h, 1, kMaxSpatialExtent, "kMaxSpatialExtent");
  faults.require_range("in_w", shape.in_w, 1, kMaxSpatialExtent, "kMaxSpatialExtent");
  if (shape.groups < 1) {
    faults.add(fmt::format("groups is {}, allowed is 1 or more", shape.groups));
  } else {
    if (shape.in_channels % shape.groups != 0) {
      faults.add(fmt::format("in_channels is {}, which groups {} does not divide", shape.in_channels, shape.groups));
    }
    if (shape.out_channels % shape.groups != 0) {
      faults.add(fmt::format("out_channels is {}, which groups {} does not divide", shape.out_channels, shape.groups));
    }
  }
  if (to_string(shape.epilogue.activation) == "unknown") {
    faults.add(fmt::format("activation is {}, allowed is one of {}", static_cast<int>(shape.epilogue.activation),
                           activation_names()));
  }
  if (!std::isfinite(shape.epilogue.leaky_slope)) {
    faults.add(fmt::format("leaky_slope is {}, it must be finite", shape.epilogue.leaky_slope));
  }
  // What follows is derived from the attributes; with one of them out of range it would only repeat that.
  if (!faults.empty()) return faults.take();

  if (shape.conv_h() < 1) {
    faults.add(
        fmt::format("the output has no rows: in_h {} with pad {} + {} is less than the {} rows that kernel_h {} "
                    "with dilation_h {} covers",
                    shape.in_h, shape.pad.top, shape.pad.bottom, (shape.kernel_h - 1) * shape.dilation_h + 1,
                    shape.kernel_h, shape.dilation_h));
  }
  if (shape.conv_w() < 1) {
    faults.add(
        fmt::format("the output has no columns: in_w {} with pad {} + {} is less than the {} columns that "
                    "kernel_w {} with dilation_w {} covers",
                    shape.in_w, shape.pad.left, shape.pad.right, (shape.kernel_w - 1) * shape.dilation_w + 1,
                    shape.kernel_w, shape.dilation_w));
  }
  if (shape.weight_elements() > kMaxLayerWeights) {
    faults.add(fmt::format("the layer has {} weights, allowed are {} (kMaxLayerWeights)", shape.weight_elements(),
                           kMaxLayerWeights));
  }
  constexpr std::int64_t kElementBytes = sizeof(float);
  if (const std::int64_t bytes = saturating_product({shape.input_elements(), kElementBytes}); bytes > kMaxImageBytes) {
    faults.add(
        fmt::format("one input image is {} bytes ({}x{}x{}), allowed are {} (kMaxImageBytes: offsets have 32 "
                    "bits)",
                    bytes, shape.in_channels, shape.in_h, shape.in_w, kMaxImageBytes));
  }
  if (const std::int64_t bytes = saturating_product({shape.conv_elements(), kElementBytes}); bytes > kMaxImageBytes) {
    faults.add(
        fmt::format("one output image is {} bytes ({}x{}x{}), allowed are {} (kMaxImageBytes: offsets have 32 "
                    "bits)",
                    bytes, shape.out_channels, shape.conv_h(), shape.conv_w(), kMaxImageBytes));
  }
  if (const std::optional<Pool>& pool = shape.epilogue.pool; pool && shape.conv_h() > 0 && shape.conv_w() > 0) {
    for (const std::string& fault : verify(*pool, shape.conv_h(), shape.conv_w())) faults.add("pool: " + fault);
    if (pool->dilation_h != 1 || pool->dilation_w != 1) {
      faults.add(fmt::format("pool: dilation is {}, it must be 1 where a convolution pools its outputs",
                             pair_text(pool->dilation_h, pool->dilation_w)));
    }
  }
  return faults.take();
}

std::vector<std::string> verify(const ConvLayer& layer) {
  Faults faults;
  if (layer.name.empty()) faults.add("the layer has no name");
  if (layer.name.size() > kMaxLayerNameBytes) {
    faults.add(fmt::format("the layer's name has {} bytes, allowed are {} (kMaxLayerNameBytes)", layer.name.size(),
                           kMaxLayerNameBytes));
  }
  const std::vector<std::string> shape_faults = verify(layer.shape);
  for (const std::string& fault : shape_faults) faults.add(fault);
  if (!shape_faults.empty()) return faults.take();

  const auto expected = static_cast<std::size_t>(layer.shape.weight_elements());
  if (layer.weights.size() != expected) {
    faults.add(fmt::format("there are {} weights, the shape {} has {}", layer.weights.size(), describe(layer.shape),
                           expected));
  }
  const std::size_t biases = layer.shape.epilogue.bias ? static_cast<std::size_t>(layer.shape.out_channels) : 0;
  if (layer.bias.size() != biases) {
    faults.add(fmt::format("there are {} biases, {} are needed (bias is {}, out_channels {})", layer.bias.size(),
                           biases, yes_no(layer.shape.epilogue.bias), layer.shape.out_channels));
  }
  faults.require_finite("weights", layer.weights);
  faults.require_finite("biases", layer.bias);
  return faults.take();
}

std::string describe(const ConvShape& shape) {
  std::string text = fmt::format("{}x{}x{} -> {}x{}x{}, {}x{}, stride {}, pad {}", shape.in_channels, shape.in_h,
                                 shape.in_w, shape.out_channels, shape.conv_h(), shape.conv_w(), shape.kernel_h,
                                 shape.kernel_w, pair_text(shape.stride_h, shape.stride_w), padding_text(shape.pad));
  if (shape.dilation_h != 1 || shape.dilation_w != 1) {
    text += fmt::format(", dilation {}", pair_text(shape.dilation_h, shape.dilation_w));
  }
  if (shape.groups != 1) text += fmt::format(", groups {}", shape.groups);
  if (const std::optional<Pool>& pool = shape.epilogue.pool) {
    text += fmt::format("; {} -> {}x{}x{}", describe(*pool), shape.out_channels, shape.out_h(), shape.out_w());
  }
  return text;
}

std::string print(const ConvShape& shape) {
  std::string text = fmt::format("# {}\n", describe(shape));
  text += fmt::format("channels: {} -> {}\n", shape.in_channels, shape.out_channels);
  text += fmt::format("kernel: {}x{}\n", shape.kernel_h, shape.kernel_w);
  text += fmt::format("stride: {}x{}\n", shape.stride_h, shape.stride_w);
  text += fmt::format("dilation: {}x{}\n", shape.dilation_h, shape.dilation_w);
  text += fmt::format("groups: {}\n", shape.groups);
  text += fmt::format("pad: {}\n", sides_text(shape.pad));
  text += fmt::format("input: {}x{}\n", shape.in_h, shape.in_w);
  text += fmt::format("bias: {}\n", yes_no(shape.epilogue.bias));
  text += fmt::format("residual: {}\n", yes_no(shape.epilogue.residual));
  text += fmt::format("activation: {}\n", to_string(shape.epilogue.activation));
  text += fmt::format("leaky_slope: {}\n", shape.epilogue.leaky_slope);
  if (const std::optional<Pool>& pool = shape.epilogue.pool) {
    text += fmt::format("pool: {}\n", to_string(pool->kind));
    text += fmt::format("pool_kernel: {}x{}\n", pool->kernel_h, pool->kernel_w);
    text += fmt::format("pool_stride: {}x{}\n", pool->stride_h, pool->stride_w);
    text += fmt::format("pool_pad: {}\n", sides_text(pool->pad));
    text += fmt::format("pool_round_up: {}\n", yes_no(pool->round_up));
    text += fmt::format("pool_count_padding: {}\n", yes_no(pool->count_padding));
  }
  return text;
}

ConvShape parse_conv_shape(std::string_view text) {
  KeyValueText reader(text, "convolution shape");
  ConvShape shape;

  std::tie(shape.in_channels, shape.out_channels) = reader.from_to("channels");

  const auto read_pair = [&](std::string_view key, int& h, int& w) {
    const std::vector<int> values = reader.extents(key, 2);
    h = values[0];
    w = values[1];
  };
  read_pair("kernel", shape.kernel_h, shape.kernel_w);
  read_pair("stride", shape.stride_h, shape.stride_w);
  read_pair("dilation", shape.dilation_h, shape.dilation_w);
  read_pair("input", shape.in_h, shape.in_w);
  shape.groups = reader.integer32("groups");

  const auto read_sides = [&](std::string_view key) -> Padding {
    const TextLine& pad = reader.required(key);
    const std::vector<std::string_view> sides = split(pad.value, ',');
    if (sides.size() != 4) {
      reader.fail_at(pad, "'{}' of '{}' must be four integers with commas between them", pad.value, key);
    }
    return {reader.integer32(pad, sides[0]), reader.integer32(pad, sides[1]), reader.integer32(pad, sides[2]),
            reader.integer32(pad, sides[3])};
  };
  shape.pad = read_sides("pad");

  shape.epilogue.bias = reader.boolean("bias");
  shape.epilogue.residual = reader.boolean("residual");
  const TextLine& activation = reader.required("activation");
  const std::optional<Activation> parsed = parse_activation(activation.value);
  if (!parsed) reader.fail_at(activation, "'{}' is not one of {}", activation.value, activation_names());
  shape.epilogue.activation = *parsed;
  const TextLine& slope = reader.required("leaky_slope");
  shape.epilogue.leaky_slope = reader.real32(slope, slope.value);
  if (const TextLine* kind = reader.optional("pool")) {
    Pool& pool = shape.epilogue.pool.emplace();
    const std::optional<PoolKind> known = parse_pool_kind(kind->value);
    if (!known) reader.fail_at(*kind, "'{}' is no pool; known are max and average", kind->value);
    pool.kind = *known;
    read_pair("pool_kernel", pool.kernel_h, pool.kernel_w);
    read_pair("pool_stride", pool.stride_h, pool.stride_w);
    pool.pad = read_sides("pool_pad");
    pool.round_up = reader.boolean("pool_round_up");
    pool.count_padding = reader.boolean("pool_count_padding");
  }
  reader.finish();
  return shape;
}

}  // namespace burin
