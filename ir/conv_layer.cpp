#include "ir/conv_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/saturate.h"
#include "ir/text_lines.h"

namespace burin {
namespace {

// Adds the faults of the windows along one axis.
void check_windows(Faults& faults, std::string_view axis, std::int64_t in, std::int64_t out, int before, int after,
                   int kernel, int stride, int dilation) {
  if (out < 1) {
    faults.add("the output has no {}s: {} with pad {} + {} are less than the {} that the window covers", axis, in,
               before, after, (kernel - 1) * dilation + 1);
  }
  for (std::int64_t i = 0; i < out; ++i) {
    const std::int64_t begin = i * stride - before;
    const std::int64_t skipped = begin < 0 ? ceil_div(-begin, dilation) : 0;  // window positions before the image
    if (skipped < kernel && begin + skipped * dilation < in) continue;
    faults.add("the window of output {} {} lies in the padding alone: {} {}s, pad {} + {}, kernel {}, dilation {}",
               axis, i, in, axis, before, after, kernel, dilation);
    break;
  }
}

}  // namespace

std::string pair_text(int h, int w) { return h == w ? fmt::format("{}", h) : fmt::format("{}x{}", h, w); }

std::string padding_text(const Padding& pad) {
  if (pad.top == pad.bottom && pad.left == pad.right) return pair_text(pad.top, pad.left);
  return fmt::format("{},{},{},{}", pad.top, pad.bottom, pad.left, pad.right);
}

std::int64_t window_count(std::int64_t in, std::int64_t pad_before, std::int64_t pad_after, std::int64_t kernel,
                          std::int64_t stride, std::int64_t dilation, bool round_up) {
  const std::int64_t span = in + pad_before + pad_after - dilation * (kernel - 1) - 1;
  if (span < 0 || stride < 1) return 0;
  std::int64_t out = (span + (round_up ? stride - 1 : 0)) / stride + 1;
  if (round_up && (out - 1) * stride >= in + pad_before) --out;
  return std::max<std::int64_t>(out, 0);
}

std::int64_t pooled_rows(const Pool& pool, std::int64_t in_h) {
  return window_count(in_h, pool.pad.top, pool.pad.bottom, pool.kernel_h, pool.stride_h, pool.dilation_h,
                      pool.round_up);
}

std::int64_t pooled_cols(const Pool& pool, std::int64_t in_w) {
  return window_count(in_w, pool.pad.left, pool.pad.right, pool.kernel_w, pool.stride_w, pool.dilation_w,
                      pool.round_up);
}

std::vector<std::string> verify(const Pool& pool, std::int64_t in_h, std::int64_t in_w) {
  Faults faults;
  if (!is_named(pool.kind)) {
    faults.add("kind is {}, which is none", static_cast<int>(pool.kind));
    return faults.take();
  }
  faults.require_window(pool, {kMaxPoolExtent, "kMaxPoolExtent"}, {kMaxPoolExtent, "kMaxPoolExtent"});
  if (!faults.empty()) return faults.take();
  check_windows(faults, "row", in_h, pooled_rows(pool, in_h), pool.pad.top, pool.pad.bottom, pool.kernel_h,
                pool.stride_h, pool.dilation_h);
  check_windows(faults, "column", in_w, pooled_cols(pool, in_w), pool.pad.left, pool.pad.right, pool.kernel_w,
                pool.stride_w, pool.dilation_w);
  return faults.take();
}

bool averages_whole(const Pool& pool, std::int64_t in_h, std::int64_t in_w) {
  return pool.kind == PoolKind::average && pool.kernel_h == in_h && pool.kernel_w == in_w && pool.dilation_h == 1 &&
         pool.dilation_w == 1 && pool.pad == Padding{};
}

int summed_values(const Pool& pool) { return pool.kind == PoolKind::max ? 0 : pool.kernel_h * pool.kernel_w; }

std::string describe(const Pool& pool) {
  std::string text = fmt::format("{} {}x{}, stride {}, pad {}", to_string(pool.kind), pool.kernel_h, pool.kernel_w,
                                 pair_text(pool.stride_h, pool.stride_w), padding_text(pool.pad));
  if (pool.dilation_h != 1 || pool.dilation_w != 1) {
    text += fmt::format(", dilation {}", pair_text(pool.dilation_h, pool.dilation_w));
  }
  if (pool.round_up) text += ", rounded up";
  if (pool.count_padding) text += ", padding counts";
  return text;
}

int ConvShape::conv_h() const {
  return saturate_to_int(window_count(in_h, pad.top, pad.bottom, kernel_h, stride_h, dilation_h));
}
int ConvShape::conv_w() const {
  return saturate_to_int(window_count(in_w, pad.left, pad.right, kernel_w, stride_w, dilation_w));
}
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

ConvShape fully_connected_shape(int in_features, int out_features, bool bias,
                                const std::optional<Elementwise>& function) {
  ConvShape shape;
  shape.in_channels = in_features;
  shape.out_channels = out_features;
  shape.epilogue.bias = bias;
  shape.epilogue.function = function;
  return shape;
}

std::vector<std::string> verify(const ConvShape& shape) {
  Faults faults;
  faults.require_range("in_channels", shape.in_channels, 1, kMaxChannels, "kMaxChannels");
  faults.require_range("out_channels", shape.out_channels, 1, kMaxChannels, "kMaxChannels");
  faults.require_window(shape, {kMaxKernelExtent, "kMaxKernelExtent"}, {kMaxStride, "kMaxStride"});
  faults.require_range("in_h", shape.in_h, 1, kMaxSpatialExtent, "kMaxSpatialExtent");
  faults.require_range("in_w", shape.in_w, 1, kMaxSpatialExtent, "kMaxSpatialExtent");
  if (shape.groups < 1) {
    faults.add("groups is {}, allowed is 1 or more", shape.groups);
  } else {
    if (shape.in_channels % shape.groups != 0) {
      faults.add("in_channels is {}, which groups {} does not divide", shape.in_channels, shape.groups);
    }
    if (shape.out_channels % shape.groups != 0) {
      faults.add("out_channels is {}, which groups {} does not divide", shape.out_channels, shape.groups);
    }
  }
  for (const std::string& fault : verify_function(shape.epilogue.function)) faults.add("{}", fault);
  const Epilogue& epilogue = shape.epilogue;
  for (const std::string& fault : verify_function(epilogue.then)) faults.add("then: {}", fault);
  if (epilogue.then && !epilogue.filters()) faults.add("there is a function behind a pool that does not filter");
  if (epilogue.then && epilogue.then->is_user()) faults.add("then: a user's function cannot be behind a pool");
  if (epilogue.filters() && (epilogue.pool->round_up || epilogue.pool->count_padding)) {
    faults.add("pool: a filter neither rounds up nor counts padding");
  }
  if (epilogue.residual_last && (!epilogue.residual || !epilogue.function || epilogue.pool)) {
    faults.add("residual_last is yes, which takes a residual and a function, and no pool");
  }
  // What follows is derived from the attributes; with one of them out of range it would only repeat that.
  if (!faults.empty()) return faults.take();

  const auto check_axis = [&](std::string_view lines, char axis, int out, int in, int before, int after, int kernel,
                              int dilation) {
    if (out >= 1) return;
    faults.add(
        "the output has no {0}: in_{1} {2} with pad {3} + {4} is less than the {5} {0} that kernel_{1} {6} with "
        "dilation_{1} {7} covers",
        lines, axis, in, before, after, (kernel - 1) * dilation + 1, kernel, dilation);
  };
  check_axis("rows", 'h', shape.conv_h(), shape.in_h, shape.pad.top, shape.pad.bottom, shape.kernel_h,
             shape.dilation_h);
  check_axis("columns", 'w', shape.conv_w(), shape.in_w, shape.pad.left, shape.pad.right, shape.kernel_w,
             shape.dilation_w);
  if (shape.weight_elements() > kMaxLayerWeights) {
    faults.add("the layer has {} weights, allowed are {} (kMaxLayerWeights)", shape.weight_elements(),
               kMaxLayerWeights);
  }
  const auto check_image = [&](std::string_view which, int channels, int rows, int cols) {
    const std::int64_t bytes = saturating_product({channels, rows, cols, sizeof(float)});
    if (bytes <= kMaxImageBytes) return;
    faults.add("one {} image is {} bytes ({}x{}x{}), allowed are {} (kMaxImageBytes: offsets have 32 bits)", which,
               bytes, channels, rows, cols, kMaxImageBytes);
  };
  check_image("input", shape.in_channels, shape.in_h, shape.in_w);
  check_image("output", shape.out_channels, shape.conv_h(), shape.conv_w());
  if (const std::optional<Pool>& pool = shape.epilogue.pool; pool && shape.conv_h() > 0 && shape.conv_w() > 0) {
    faults.add_all(verify(*pool, shape.conv_h(), shape.conv_w()), "pool: ");
    if (pool->dilation_h != 1 || pool->dilation_w != 1) {
      faults.add("pool: dilation is {}, it must be 1 where a convolution pools its outputs",
                 pair_text(pool->dilation_h, pool->dilation_w));
    }
  }
  return faults.take();
}

std::vector<std::string> verify(const ConvLayer& layer) {
  Faults faults;
  if (layer.name.empty()) faults.add("the layer has no name");
  if (layer.name.size() > kMaxLayerNameBytes) {
    faults.add("the layer's name has {} bytes, allowed are {} (kMaxLayerNameBytes)", layer.name.size(),
               kMaxLayerNameBytes);
  }
  if (faults.add_all(verify(layer.shape))) return faults.take();

  const auto expected = static_cast<std::size_t>(layer.shape.weight_elements());
  if (layer.weights.size() != expected) {
    faults.add("there are {} weights, the shape {} has {}", layer.weights.size(), describe(layer.shape), expected);
  }
  const std::size_t biases = layer.shape.epilogue.bias ? static_cast<std::size_t>(layer.shape.out_channels) : 0;
  if (layer.bias.size() != biases) {
    faults.add("there are {} biases, {} are needed (bias is {}, out_channels {})", layer.bias.size(), biases,
               layer.shape.epilogue.bias ? "yes" : "no", layer.shape.out_channels);
  }
  faults.require_finite("weights", layer.weights);
  faults.require_finite("biases", layer.bias);
  const bool has_filters = layer.shape.epilogue.filters();
  const auto channels = has_filters ? static_cast<std::size_t>(layer.shape.out_channels) : 0;
  const std::size_t filters =
      has_filters ? channels * static_cast<std::size_t>(summed_values(*layer.shape.epilogue.pool)) : 0;
  if (layer.filters.size() != filters || layer.filter_bias.size() != channels) {
    faults.add("there are {} weights and {} biases of the pool's filters, {} and {} are needed", layer.filters.size(),
               layer.filter_bias.size(), filters, channels);
  }
  faults.require_finite("weights of the pool's filters", layer.filters);
  faults.require_finite("biases of the pool's filters", layer.filter_bias);
  return faults.take();
}

std::string window_text(const ConvShape& shape) {
  std::string text = fmt::format("{}x{}, stride {}, pad {}", shape.kernel_h, shape.kernel_w,
                                 pair_text(shape.stride_h, shape.stride_w), padding_text(shape.pad));
  if (shape.dilation_h != 1 || shape.dilation_w != 1) {
    text += fmt::format(", dilation {}", pair_text(shape.dilation_h, shape.dilation_w));
  }
  if (shape.groups != 1) text += fmt::format(", groups {}", shape.groups);
  return text;
}

std::string describe(const ConvShape& shape) {
  std::string text = fmt::format("{}x{}x{} -> {}x{}x{}, {}", shape.in_channels, shape.in_h, shape.in_w,
                                 shape.out_channels, shape.conv_h(), shape.conv_w(), window_text(shape));
  if (const std::optional<Pool>& pool = shape.epilogue.pool) {
    text += fmt::format("; {} -> {}x{}x{}", describe(*pool), shape.out_channels, shape.out_h(), shape.out_w());
  }
  return text;
}

std::string print(const ConvShape& shape) {
  LinePrinter lines;
  const auto sides = [&](std::string_view key, const Padding& pad) {
    lines.line(key, fmt::format("{},{},{},{}", pad.top, pad.bottom, pad.left, pad.right), "top, bottom, left, right");
  };
  lines.text = fmt::format("# {}\n", describe(shape));
  lines.line("channels", fmt::format("{} -> {}", shape.in_channels, shape.out_channels));
  lines.line("kernel", std::tie(shape.kernel_h, shape.kernel_w));
  lines.line("stride", std::tie(shape.stride_h, shape.stride_w));
  lines.line("dilation", std::tie(shape.dilation_h, shape.dilation_w));
  lines.line("groups", shape.groups);
  sides("pad", shape.pad);
  lines.line("input", std::tie(shape.in_h, shape.in_w));
  lines.line("bias", shape.epilogue.bias);
  lines.line("residual", shape.epilogue.residual);
  if (shape.epilogue.residual_last) lines.line("residual_last", true, "added to the function's values");
  const std::optional<Elementwise>& function = shape.epilogue.function;
  lines.line("function", function ? describe(*function) : "none");
  if (const std::optional<Pool>& pool = shape.epilogue.pool) {
    lines.line("pool", pool->kind);
    lines.line("pool_kernel", std::tie(pool->kernel_h, pool->kernel_w));
    lines.line("pool_stride", std::tie(pool->stride_h, pool->stride_w));
    sides("pool_pad", pool->pad);
    lines.line("pool_round_up", pool->round_up);
    lines.line("pool_count_padding", pool->count_padding);
    if (pool->kind == PoolKind::filter) {
      lines.line("then", shape.epilogue.then ? describe(*shape.epilogue.then) : "none", "of what the pool makes");
    }
  }
  return lines.text;
}

}  // namespace burin
