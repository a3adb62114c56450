// The weights of conv_warpgroup.cu: panels of 64 output channels and a chunk of input channels.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/providers/conv_gathered/tiles.h"
#include "compiler/providers/conv_warpgroup/tiles.h"
#include "ir/conv_layer.h"
#include "ir/element_type.h"
#include "ir/kernel.h"

namespace burin {

inline constexpr int kGroupRows = 64, kGroupWarps = 4, kWarpRows = 16;  // of a warpgroup, of a warp
inline constexpr int kLineBytes = kOctetChannels * kOctetBytes;         // eight channels of a pixel of eight images
inline constexpr int kStepBytes = 2048, kStoredColumns = 16;            // of a step, of each of its rows
inline constexpr int kRestColumns = 16, kRestStepBytes = 576;

// A nonzero of a panel.
struct PanelWeight {
  int row = 0;       // of 64
  int channel = 0;   // of the chunk
  int position = 0;  // of its part of the filter
  float value = 0;
};

// A row stores two at most of its nonzeros in four channels side by side at a position of the filter, and where they
// are; the others are the rest.
struct SplitPanel {
  struct Four {
    std::array<int, 2> places = {0, 1};  // ascending
    std::array<float, 2> values = {};
  };
  std::vector<Four> fours;  // [position][channel / 4][row]
  // For each warp, for each of its steps, the columns (channel * positions + position), and all weights.
  struct Rest {
    std::vector<int> columns;
    std::vector<PanelWeight> weights;
    int steps() const;  // of 16 columns
  };
  std::array<Rest, kGroupWarps> rest;

  // The most that a warp has.
  int rest_steps() const;
};
SplitPanel split_two_of_four(const std::vector<PanelWeight>& weights, int channels, int positions);

// The nonzeros of a panel: those of 64 rows from `first_row` on (of the group of the convolution), and a chunk.
std::vector<PanelWeight> panel_weights(const ConvLayer& layer, const ConvShape& shape, const WarpgroupTiles& tiles,
                                       int group, int first_row, int chunk);

// The most steps of the rest of any panel; 0 where all weights are multiplied.
int rest_limit(const ConvLayer& layer, const ConvShape& shape, const WarpgroupTiles& tiles);

// All columns are multiplied, in groups of 64 rows.
MultipliedColumns count_columns(const ConvLayer& layer, const ConvShape& shape, const WarpgroupTiles& tiles);

// All words that the kernel reads, as it describes them.
std::int64_t packed_words(const ConvShape& shape, const WarpgroupTiles& tiles, int rest_limit);
std::vector<std::uint32_t> pack_warpgroup(const ConvLayer& layer, const ConvShape& shape, const WarpgroupTiles& tiles,
                                          int rest_limit, ElementType element);

}  // namespace burin
