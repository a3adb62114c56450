// TensorLayout: how an activation lies in memory. What a kernel reads and writes is part of its plan.
#pragma once

#include <optional>
#include <string_view>

namespace burin {

enum class TensorLayout { nchw };

constexpr std::string_view to_string(TensorLayout) { return "nchw"; }
constexpr std::optional<TensorLayout> parse_tensor_layout(std::string_view text) {
  if (text == "nchw") return TensorLayout::nchw;
  return std::nullopt;
}

}  // namespace burin
