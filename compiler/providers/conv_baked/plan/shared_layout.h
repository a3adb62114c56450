// Where the activations of a tile lie in shared memory, and what bank conflicts that costs.
#pragma once

#include <vector>

#include "ir/baked_plan.h"
#include "ir/conv_layer.h"

namespace burin {

// Shared memory has this many banks of one word each.
inline constexpr int kSharedBanks = 32;

// Clocks per activation load over those of a load without conflicts: the words of the fullest bank, averaged over the
// warps of the tile; where four words are loaded at once, over the quarters of warps that the hardware serves in turn.
// Lanes are consecutive pixels: column fastest, then row, then image. Every filter position costs the same, because it
// shifts all lanes alike.
double load_conflict(const PixelTile& tile, const SharedLayout& layout, const ConvShape& shape, TensorLayout input);

struct LayoutCandidate {
  SharedLayout layout;
  double conflict = 1;
  double words_per_channel = 0;  // padding included
};

// Layouts of which none is worse than another in both conflicts and words; fewest conflicts first. Never empty.
std::vector<LayoutCandidate> layout_candidates(const PixelTile& tile, const ConvShape& shape);

// Rows or columns of input that `tile` outputs read.
int patch_extent(int tile, int stride, int kernel, int dilation);

// The layout of Staging::bulk, whose image pitch depends on the channels of a stage.
LayoutCandidate bulk_layout(const PixelTile& tile, const ConvShape& shape, TensorLayout input, int stage_channels);
// Whether bulk copies can bring the tile's rows at all: whole rows, and runs of multiples of 16 bytes.
bool bulk_copies_fit(const PixelTile& tile, const ConvShape& shape, TensorLayout input);
// Stages and splits begin at multiples of so many channels, because bulk copies begin at multiples of 16 bytes.
int bulk_channel_multiple(const PixelTile& tile, const ConvShape& shape, TensorLayout input);

}  // namespace burin
