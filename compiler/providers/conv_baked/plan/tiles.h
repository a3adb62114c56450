// The pixel tiles that are worth a look.
#pragma once

#include <vector>

#include "ir/baked_plan.h"
#include "ir/conv_layer.h"

namespace burin {

// Whole images where they are small, full-width rows, and rectangles; always the single output, which needs the least
// shared memory, unless a pool's window has more pixels than a block has threads. No two are equal. Every tile has at
// most kMaxThreadsPerBlock pixels.
std::vector<PixelTile> tile_candidates(const ConvShape& shape, int batch);

}  // namespace burin
