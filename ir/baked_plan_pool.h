// Tiles of a layer that pools its outputs (Epilogue::pool).
//
// A block's threads compute pixels of the convolution as ever, and their values stay in shared memory; then the same
// threads make outputs of them. So a tile is the union of the windows of a rectangle of outputs: windows that overlap
// are computed by both of the tiles that they lie between. Along an axis a tile has either as many pixels as the
// windows of some outputs cover, where those beyond the image are nobody's, or all pixels of the image.
//
// Without a pool an output is a pixel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/baked_plan.h"

namespace burin {

// What a tile of pixels stores; 0 rows or columns where it holds no whole window, or parts of one.
OutputTile output_tile(const PixelTile& tile, const ConvShape& shape);
// The pixels that so many outputs need; the images of `tile`.
PixelTile pixel_tile(const OutputTile& outputs, int images, const ConvShape& shape);

std::int64_t tiles_per_image(const PixelTile& tile, const ConvShape& shape);

// Along one axis the first tile begins with pixel `first` (0, or before the image), and tiles are `step` pixels apart.
struct TileSteps {
  int first = 0, step = 1;
};
TileSteps row_steps(const PixelTile& tile, const ConvShape& shape);
TileSteps col_steps(const PixelTile& tile, const ConvShape& shape);

// Whether some window of the output reaches beyond the convolution's rows or columns.
bool windows_leave_rows(const ConvShape& shape);
bool windows_leave_cols(const ConvShape& shape);

// Values that all threads of a block have of so many channels, `words` from one channel to the next
// (BakedPlan::value_pitch()), and the numbers of these channels; in bytes, saturated.
std::int64_t bytes_of_values(int channels, int words, int threads);

// Whether a plan may have keeps_halves.
bool may_keep_halves(Precision precision, const ConvShape& shape);

// Threads that share a window, neighbours in a warp: 1, or a power of two where windows are large and few. `windows`:
// that a block of so many threads has.
int window_lanes(std::int64_t positions, std::int64_t windows, int threads);
int window_lanes(const BakedPlan& plan, const ConvShape& shape);

std::vector<std::string> pool_faults(const BakedPlan& plan, const ConvShape& shape);

}  // namespace burin
