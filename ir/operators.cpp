#include "ir/operators.h"

#include <array>

namespace burin {
namespace {

// In the order of OperatorKind.
constexpr std::array<std::string_view, std::variant_size_v<OperatorKind>> kKindNames = {
    "convolution",         "linear",   "channel_affine", "elementwise", "combine", "pool",
    "global_average_pool", "lrn",      "softmax",        "concat",      "pad",     "reshape",
    "transpose",           "identity", "convert"};

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

std::string_view kind_name(const OperatorKind& kind) { return kKindNames[kind.index()]; }

}  // namespace burin
