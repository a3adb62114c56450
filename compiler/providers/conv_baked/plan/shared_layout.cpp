#include "compiler/providers/conv_baked/plan/shared_layout.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kBulkWords = 4;           // bulk copies move 16 bytes at a time
constexpr int kMostChannelsPerRow = 8;  // beyond that, a row's padding of at most 31 words no longer matters

// Words of the lanes of each warp, for pitches of any size; only the words modulo the banks matter.
class LaneWords {
 public:
  LaneWords(const PixelTile& tile, const ConvShape& shape, int column_phases) {
    for (int image = 0; image < tile.images; ++image) {
      for (int row = 0; row < tile.rows; ++row) {
        for (int col = 0; col < tile.cols; ++col) {
          pixels_.push_back({image, row * shape.stride_h, col * shape.stride_w / column_phases});
        }
      }
    }
  }

  // Pitches in units of what a lane loads, of which a row of banks holds `banks`.
  double conflict(int row_pitch, int image_pitch, int banks = kSharedBanks) const {
    std::int64_t clocks = 0, warps = 0;
    for (std::size_t first = 0; first < pixels_.size(); first += banks, ++warps) {
      std::array<int, kSharedBanks> in_bank{};
      int fullest = 0;
      for (std::size_t i = first; i < std::min(first + banks, pixels_.size()); ++i) {
        const Pixel& pixel = pixels_[i];
        const std::int64_t word =
            std::int64_t{pixel.image} * image_pitch + std::int64_t{pixel.row} * row_pitch + pixel.col;
        fullest = std::max(fullest, ++in_bank[word % banks]);
      }
      clocks += fullest;
    }
    return static_cast<double>(clocks) / static_cast<double>(warps);
  }

 private:
  struct Pixel {
    int image, row, col;  // row of the input, and word in it
  };
  std::vector<Pixel> pixels_;
};

// Adds every layout with so many column phases.
void add_candidates(std::vector<LayoutCandidate>& candidates, const PixelTile& tile, const ConvShape& shape,
                    int column_phases) {
  const LaneWords lanes(tile, shape, column_phases);

  // Conflicts depend on the pitches modulo the banks alone, whatever the number of channels in a row.
  std::array<std::array<double, kSharedBanks>, kSharedBanks> conflict_of{};
  const int row_paddings = tile.rows > 1 ? kSharedBanks : 1;
  const int image_paddings = tile.images > 1 ? kSharedBanks : 1;
  const auto conflict = [&](int row_pitch, int image_pitch) {
    double& known = conflict_of[row_paddings > 1 ? row_pitch % kSharedBanks : 0]
                               [image_paddings > 1 ? image_pitch % kSharedBanks : 0];
    if (known == 0) known = lanes.conflict(row_pitch, image_pitch);
    return known;
  };

  for (int per_row = 1; per_row <= std::min(kMostChannelsPerRow, shape.in_channels); ++per_row) {
    for (int row_padding = 0; row_padding < row_paddings; ++row_padding) {
      for (int image_padding = 0; image_padding < image_paddings; ++image_padding) {
        LayoutCandidate candidate;
        SharedLayout& layout = candidate.layout;
        layout.patch_rows = patch_extent(tile.rows, shape.stride_h, shape.kernel_h, shape.dilation_h);
        layout.patch_cols = patch_extent(tile.cols, shape.stride_w, shape.kernel_w, shape.dilation_w);
        layout.channels_per_row = per_row;
        layout.column_phases = column_phases;
        layout.row_pitch = per_row * layout.row_words() + row_padding;
        layout.image_pitch = layout.patch_rows * layout.row_pitch + image_padding;
        layout.channel_pitch = tile.images * layout.image_pitch;
        candidate.conflict = conflict(layout.row_pitch, layout.image_pitch);
        candidate.words_per_channel = static_cast<double>(layout.channel_pitch) / per_row;
        candidates.push_back(candidate);
      }
    }
  }
}

}  // namespace

int patch_extent(int tile, int stride, int kernel, int dilation) {
  return (tile - 1) * stride + (kernel - 1) * dilation + 1;
}

double load_conflict(const PixelTile& tile, const SharedLayout& layout, const ConvShape& shape, TensorLayout input) {
  const int together = channels_together(input);
  return LaneWords(tile, shape, layout.column_phases)
      .conflict(layout.row_pitch / together, layout.image_pitch / together, kSharedBanks / together);
}

std::vector<LayoutCandidate> layout_candidates(const PixelTile& tile, const ConvShape& shape) {
  std::vector<LayoutCandidate> candidates;
  add_candidates(candidates, tile, shape, 1);
  if (shape.stride_w > 1 && tile.cols > 1) add_candidates(candidates, tile, shape, shape.stride_w);
  std::ranges::stable_sort(candidates, {}, [](const LayoutCandidate& candidate) {
    return std::pair(candidate.conflict, candidate.words_per_channel);
  });
  std::vector<LayoutCandidate> best;
  for (const LayoutCandidate& candidate : candidates) {
    if (best.empty() || candidate.words_per_channel < best.back().words_per_channel) best.push_back(candidate);
  }
  return best;
}

LayoutCandidate bulk_layout(const PixelTile& tile, const ConvShape& shape, TensorLayout input, int stage_channels) {
  const bool planes = tile.rows == shape.conv_h();
  const int together = channels_together(input);
  LayoutCandidate candidate;
  SharedLayout& layout = candidate.layout;
  layout.patch_rows = planes ? shape.in_h : patch_extent(tile.rows, shape.stride_h, shape.kernel_h, shape.dilation_h);
  layout.patch_cols = shape.in_w;
  layout.row_pitch = shape.in_w * together;
  layout.channel_pitch = saturate_to_int(saturating_product({layout.patch_rows, layout.row_pitch}));
  const Padding& pad = shape.pad;
  const std::int64_t margin =
      std::max(std::int64_t{pad.top} * shape.in_w + pad.left, std::int64_t{pad.bottom} * shape.in_w + pad.right) *
      together;
  layout.margin = saturate_to_int(ceil_div(margin, kSharedBanks) * kSharedBanks);
  const std::int64_t least = saturating_product({ceil_div(stage_channels, together), layout.channel_pitch});
  const int least_pitch = saturate_to_int(ceil_div(least, kBulkWords) * kBulkWords);
  for (int padding = 0; padding < (tile.images > 1 ? kSharedBanks : 1); padding += kBulkWords) {
    SharedLayout padded = layout;
    padded.image_pitch = least_pitch + padding;
    const double conflict = load_conflict(tile, padded, shape, input);
    if (padding > 0 && conflict >= candidate.conflict) continue;
    candidate.conflict = conflict;
    layout.image_pitch = padded.image_pitch;
  }
  candidate.words_per_channel = static_cast<double>(tile.images) * layout.channel_pitch / together;
  return candidate;
}

int bulk_channel_multiple(const PixelTile& tile, const ConvShape& shape, TensorLayout input) {
  const int together = channels_together(input);
  if (tile.rows != shape.conv_h()) return together;
  const std::int64_t plane = std::int64_t{shape.in_h} * shape.in_w;
  return static_cast<int>(std::max<std::int64_t>(together, kBulkWords / std::gcd(plane, std::int64_t{kBulkWords})));
}

bool bulk_copies_fit(const PixelTile& tile, const ConvShape& shape, TensorLayout input) {
  if (tile.cols != shape.conv_w()) return false;
  if (tile.rows != shape.conv_h()) {
    return tile.images == 1 && shape.in_w * channels_together(input) % kBulkWords == 0;
  }
  return channels_together(input) > 1 || shape.in_channels % bulk_channel_multiple(tile, shape, input) == 0;
}

}  // namespace burin
