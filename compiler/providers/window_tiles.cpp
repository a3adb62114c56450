#include "compiler/providers/window_tiles.h"

#include <utility>

namespace burin {

bool is_legal(const WindowTile& windows, const ConvShape& shape, int images, const WindowParts& parts,
              std::int64_t most_parts) {
  if (!shape.epilogue.pool) return windows.rows == 1 && windows.cols == 1;
  const bool exist =
      windows.rows >= 1 && windows.cols >= 1 && windows.rows <= shape.out_h() && windows.cols <= shape.out_w();
  return exist && (images == 1 || windows.has_all(shape)) && parts(windows) <= most_parts;
}

std::optional<WindowTile> choose_windows(const ConvShape& shape, int images, const WindowParts& parts,
                                         std::int64_t most_parts) {
  if (!shape.epilogue.pool) return WindowTile{};
  std::optional<WindowTile> best;
  std::pair<std::int64_t, std::int64_t> least;  // tiles of an image, parts of a tile
  const auto first = [&](int extent) { return images > 1 ? extent : 1; };
  for (int rows = first(shape.out_h()); rows <= shape.out_h(); ++rows) {
    const WindowTile narrowest{rows, first(shape.out_w())};
    if (parts(narrowest) > most_parts) break;
    for (int cols = narrowest.cols; cols <= shape.out_w(); ++cols) {
      const WindowTile tile{rows, cols};
      const std::pair needed{tile.tiles_per_image(shape), parts(tile)};
      if (needed.second > most_parts) break;
      if (best && needed >= least) continue;
      best = tile;
      least = needed;
    }
  }
  return best;
}

}  // namespace burin
