#include "ir/operators.h"

#include <algorithm>
#include <array>

namespace burin {
namespace {

// In the order of OperatorKind.
constexpr std::array<std::string_view, std::variant_size_v<OperatorKind>> kKindNames = {
    "convolution", "linear",  "channel_affine", "elementwise", "combine", "pool",      "global_average_pool",
    "lrn",         "softmax", "concat",         "pad",         "reshape", "transpose", "identity"};

}  // namespace

std::string_view to_string(ElementFunction function) {
  switch (function) {
    case ElementFunction::relu:
      return "relu";
    case ElementFunction::leaky_relu:
      return "leaky_relu";
    case ElementFunction::sigmoid:
      return "sigmoid";
    case ElementFunction::hard_sigmoid:
      return "hard_sigmoid";
    case ElementFunction::hard_swish:
      return "hard_swish";
    case ElementFunction::silu:
      return "silu";
    case ElementFunction::clip:
      return "clip";
  }
  return "unknown";
}

std::string_view to_string(Combination combination) {
  switch (combination) {
    case Combination::add:
      return "add";
    case Combination::multiply:
      return "multiply";
  }
  return "unknown";
}

std::string_view to_string(PoolKind kind) {
  switch (kind) {
    case PoolKind::max:
      return "max";
    case PoolKind::average:
      return "average";
  }
  return "unknown";
}

std::int64_t pooled_extent(std::int64_t in, std::int64_t pad_before, std::int64_t pad_after, std::int64_t kernel,
                           std::int64_t stride, std::int64_t dilation, bool round_up) {
  const std::int64_t span = in + pad_before + pad_after - dilation * (kernel - 1) - 1;
  if (span < 0 || stride < 1) return 0;
  std::int64_t out = (span + (round_up ? stride - 1 : 0)) / stride + 1;
  if (round_up && (out - 1) * stride >= in + pad_before) --out;
  return std::max<std::int64_t>(out, 0);
}

std::string_view kind_name(const OperatorKind& kind) { return kKindNames[kind.index()]; }

}  // namespace burin
