// TensorLayout: how an activation lies in memory. What a kernel reads and writes is part of its plan.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace burin {

enum class TensorLayout {
  nchw,   // image, channel, row, column
  nchw4,  // image, channel / 4, row, column, channel % 4: one load brings four channels of a pixel; the last four are
          // filled up with channels whose values mean nothing
};

inline constexpr std::array kTensorLayouts = {TensorLayout::nchw, TensorLayout::nchw4};

constexpr std::string_view to_string(TensorLayout layout) { return layout == TensorLayout::nchw ? "nchw" : "nchw4"; }
constexpr std::optional<TensorLayout> parse_tensor_layout(std::string_view text) {
  for (const TensorLayout layout : kTensorLayouts) {
    if (text == to_string(layout)) return layout;
  }
  return std::nullopt;
}

// "nchw, nchw4": what messages say is known.
std::string tensor_layout_names();

// Channels that lie side by side.
constexpr int channels_together(TensorLayout layout) { return layout == TensorLayout::nchw4 ? 4 : 1; }

// Of one image, filling included.
std::int64_t image_elements(TensorLayout layout, std::int64_t channels, std::int64_t rows, std::int64_t cols);

// Where an element of a tensor lies; from `channels` on, the channel is a filling one.
struct TensorPlace {
  std::int64_t image = 0, channel = 0, row = 0, col = 0;
  bool operator==(const TensorPlace&) const = default;
};
TensorPlace place_of(TensorLayout layout, std::int64_t channels, std::int64_t rows, std::int64_t cols,
                     std::int64_t element);

// Whole tensors from and to nchw. Filling channels get the value `filling` and are left out again.
std::vector<float> from_nchw(TensorLayout layout, std::span<const float> nchw, int channels, int rows, int cols,
                             float filling = 0);
std::vector<float> to_nchw(TensorLayout layout, std::span<const float> values, int channels, int rows, int cols);

}  // namespace burin
