// Where the activations of a tile lie in shared memory, and what bank conflicts that costs.
#pragma once

#include <vector>

#include "ir/conv_layer.h"
#include "ir/kernel_plan.h"

namespace burin {

// Shared memory has this many banks of one word each.
inline constexpr int kSharedBanks = 32;

// Clocks per activation load, 1 without conflicts: the words of the fullest bank, averaged over the warps of the tile.
// Lanes are consecutive pixels: column fastest, then row, then image. Every filter position costs the same, because it
// shifts all lanes alike.
double load_conflict(const PixelTile& tile, const SharedLayout& layout, const ConvShape& shape);

struct LayoutCandidate {
  SharedLayout layout;
  double conflict = 1;
  double words_per_channel = 0;  // padding included
};

// Layouts of which none is worse than another in both conflicts and words; fewest conflicts first. Never empty.
std::vector<LayoutCandidate> layout_candidates(const PixelTile& tile, const ConvShape& shape);

// Rows or columns of input that `tile` outputs read.
int patch_extent(int tile, int stride, int kernel, int dilation);

}  // namespace burin
