#include "compiler/providers/conv_dense/tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "compiler/launch_time.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/kernel.h"
#include "ir/limits.h"

namespace burin {
namespace {

constexpr int kQuad = ConvDenseTiles::kQuad;
constexpr int kMaxChunkDepth = 64;   // conv_dense.def
constexpr int kMaxRowsOfSplit = 24;  // of a chunk: they are multiplied without a loop
constexpr int kMaxTileThreads = 512;
constexpr int kMostPixelThreads = 16, kMostPixelQuads = 2;
constexpr int kMostTilePixels = kQuad * kMostPixelQuads * kMostPixelThreads;

// The terms of the cost. Estimates, but for the first two.
constexpr double kClockLoss = 1.13;            // an H200 has 1.75 GHz while all its lanes multiply
constexpr double kIntakeBytesPerClock = 30;    // of one multiprocessor, from the L2 cache: 25 to 35
constexpr double kIssueShare = 0.95;           // of what the instructions below would reach, with many warps
constexpr double kIssueLag = 0.4;              // warps of a scheduler with which half of it would be reached
constexpr double kSharedLoadClocks = 4;        // of four words for a warp: 128 bytes a clock
constexpr double kOverlapLoss = 0.25;          // of shared-memory loads beside multiply-adds, of intake beside both
constexpr double kCopyInstructions = 2;        // of a word: its address, the copy
constexpr double kPaddedCopyInstructions = 6;  // and whether it lies inside the image
constexpr double kChunkClocks = 60;            // barrier, and what is computed once in a chunk
constexpr double kLatencyClocks = 800;         // of a copy from the L2 cache, under load
constexpr double kResultInstructions = 12;     // bias, activation, store
constexpr double kPoolClocks = 250;            // of a block that pools: its windows wait for all of its results
constexpr double kUncovered = 0.25;            // LaunchWork::uncovered: several blocks cover each other
constexpr double kRegistersBesideSums = 64;    // of a thread; and fragments, an eighth of its sums

int sums_of_thread(const ConvDenseTiles& tiles) { return kQuad * tiles.output_quads * kQuad * tiles.pixel_quads; }

int resident_blocks(const ConvDenseTiles& tiles, const ArchSpec& arch) {
  constexpr int kSharedOfBlock = 1024;  // that the driver takes
  const double registers = sums_of_thread(tiles) * 9.0 / 8 + kRegistersBesideSums;
  const int by_registers = static_cast<int>(arch.registers_per_multiprocessor / (registers * tiles.threads()));
  const int by_shared = arch.max_shared_per_multiprocessor / (tiles.shared_bytes() + kSharedOfBlock);
  return std::min({by_registers, by_shared, arch.max_threads_per_multiprocessor / tiles.threads()});
}

// Tries every choice that may be a good one.
class Search {
 public:
  Search(const ConvShape& shape, int batch, int vector, const ArchSpec& arch)
      : shape_(shape), batch_(batch), arch_(arch) {
    tiles_.vector = vector;
  }

  std::vector<ConvDenseTiles> run(std::size_t count) {
    for (tiles_.output_quads = 1; tiles_.output_quads <= 4; ++tiles_.output_quads) {
      for (tiles_.pixel_quads = 1; tiles_.pixel_quads <= kMostPixelQuads; ++tiles_.pixel_quads) {
        for (const int outputs : {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 14, 16}) {
          if (is_too_much(outputs, tiles_.output_quads, shape_.outputs_per_group())) continue;
          tiles_.output_threads = outputs;
          try_pixels();
        }
      }
    }
    BURIN_CHECK(!best_.empty(), "no tiles for {}", describe(shape_));
    std::vector<Found> found;
    for (const auto& [kind, best] : best_) found.push_back(best);
    std::ranges::stable_sort(found, {}, &Found::us);
    std::vector<ConvDenseTiles> result;
    for (std::size_t i = 0; i < std::min(count, found.size()); ++i) result.push_back(found[i].tiles);
    return result;
  }

 private:
  struct Found {
    ConvDenseTiles tiles;
    double us = 0;
  };

  // Half of it would do.
  static bool is_too_much(int threads, int quads, std::int64_t extent) {
    return threads > 1 && std::int64_t{threads} / 2 * quads * kQuad >= extent;
  }

  // Where there are warps to choose from, a quarter of the last is worth a thought, no more.
  bool is_idle() const {
    const int used = tiles_.splits * tiles_.output_threads * tiles_.pixel_threads;
    return used > kWarpSize && tiles_.threads() - used > kWarpSize / 4;
  }

  // What all windows of an image read: with padding that may be more than there is.
  std::int64_t pixels() const { return ConvDenseTiles().pixels_of(WindowTile::all_of(shape_), shape_); }

  // The windows of a tile; whether there are any.
  bool choose_windows() {
    const auto pixels = [&](const WindowTile& windows) { return tiles_.pixels_of(windows, shape_); };
    return tiles_.take(burin::choose_windows(shape_, tiles_.block_images, pixels, tiles_.tile_pixels()));
  }

  void try_pixels() {
    for (const int threads : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, kMostPixelThreads}) {
      tiles_.pixel_threads = threads;
      for (tiles_.block_images = 1; tiles_.block_images <= std::min(batch_, 32); tiles_.block_images *= 2) {
        const std::int64_t pixels_of_block = pixels() * tiles_.block_images;
        if (is_too_much(threads, tiles_.pixel_quads, pixels_of_block) || !choose_windows()) continue;
        for (const int splits : {1, 2, 3, 4, 6, 8, 11, 12, 16}) {
          tiles_.splits = splits;
          if (tiles_.threads() <= kMaxTileThreads && !is_idle()) try_chunks();
        }
        // More images only help to fill the last tile.
        if (pixels_of_block >= 16 * tiles_.tile_pixels()) break;
      }
    }
  }

  void try_chunks() {
    const int channels = shape_.channels_per_group();
    std::set<int> wanted = {std::min(channels, kMaxChunkDepth)};
    for (const int some : {2, 4, 8, 16, 32}) {
      if (some < channels) wanted.insert(some);
    }
    for (const int cols : std::set<int>{1, std::min(shape_.kernel_w, kMaxChunkDepth)}) {
      for (const int some : wanted) {
        tiles_.chunk_cols = cols;
        tiles_.chunk_channels = some;
        if (tiles_.chunk_depth() > kMaxChunkDepth) continue;
        for (tiles_.buffers = 2; tiles_.buffers <= 4; ++tiles_.buffers) consider();
      }
    }
  }

  void consider() {
    if (!fits(tiles_, shape_, arch_)) return;
    const double us = predict(tiles_, shape_, batch_, arch_);
    const auto [place, is_new] = best_.try_emplace({tiles_.output_quads, tiles_.pixel_quads, tiles_.splits});
    if (is_new || us < place->second.us) place->second = {tiles_, us};
  }

  const ConvShape& shape_;
  int batch_;
  const ArchSpec& arch_;
  ConvDenseTiles tiles_;
  std::map<std::array<int, 3>, Found> best_;  // of each kind: quads of outputs and pixels, splits
};

}  // namespace

bool can_have_windows(const ConvShape& shape) {
  const Epilogue& epilogue = shape.epilogue;
  return !epilogue.pool || (!epilogue.filters() && ConvDenseTiles().pixels_of({}, shape) <= kMostTilePixels);
}

bool fits(const ConvDenseTiles& tiles, const ConvShape& shape, const ArchSpec& arch) {
  const int threads = tiles.threads();
  const auto pixels = [&](const WindowTile& windows) { return tiles.pixels_of(windows, shape); };
  if (!is_legal(tiles.windows(), shape, tiles.block_images, pixels, tiles.tile_pixels())) return false;
  return threads <= kMaxTileThreads && tiles.tile_pixels() <= threads && tiles.chunk_depth() <= kMaxChunkDepth &&
         tiles.chunk_depth() / tiles.splits <= kMaxRowsOfSplit && tiles.shared_bytes() <= arch.max_shared_per_block &&
         resident_blocks(tiles, arch) >= 1;
}

int ConvDenseTiles::shared_bytes() const {
  const int copied = buffers * chunk_depth() * (tile_outputs() + tile_pixels());
  const int exchanged = splits * tile_outputs() * tile_pixels();
  return kSharedReserveBytes + std::max(copied, exchanged) * kWordBytes;
}

double predict(const ConvDenseTiles& tiles, const ConvShape& shape, int batch, const ArchSpec& arch) {
  const auto blocks = static_cast<double>(tiles.image_blocks(shape) * ceil_div(batch, tiles.block_images));
  const double of_multiprocessor = std::ceil(blocks / arch.multiprocessors);
  const double resident = std::min<double>(of_multiprocessor, resident_blocks(tiles, arch));
  const double warps = static_cast<double>(tiles.threads()) / kWarpSize;
  const double together = warps * resident;
  // Multiply-adds of a warp take its scheduler a clock each; loads from shared memory go one after the other.
  const double of_scheduler = std::ceil(together / kSchedulersPerMultiprocessor);
  const double idle_schedulers = of_scheduler * kSchedulersPerMultiprocessor / together;
  const double multiply = static_cast<double>(sums_of_thread(tiles)) / kSchedulersPerMultiprocessor * idle_schedulers;
  const double load = (tiles.output_quads + tiles.pixel_quads) * kSharedLoadClocks;
  const double rows = static_cast<double>(tiles.chunks(shape)) * tiles.chunk_depth();
  const double share = kIssueShare * of_scheduler / (of_scheduler + kIssueLag);
  const double row_clocks = (std::max(multiply, load) + kOverlapLoss * std::min(multiply, load)) / share;
  const double words = rows * tiles.tile_pixels() / tiles.vector;
  const double of_copy = shape.pad == Padding{} ? kCopyInstructions : kPaddedCopyInstructions;
  const double copying = words / kWarpSize * of_copy / kSchedulersPerMultiprocessor;
  const double busy = row_clocks * rows * warps / tiles.splits + copying +
                      static_cast<double>(tiles.chunks(shape)) * kChunkClocks / resident;
  const double intake = rows * (tiles.tile_outputs() + tiles.tile_pixels()) * kWordBytes / kIntakeBytesPerClock;
  const double under_way = (tiles.buffers - 1) * resident;  // chunks
  const double waiting = static_cast<double>(tiles.chunks(shape)) * kLatencyClocks / under_way;
  const double results = static_cast<double>(tiles.tile_outputs()) * tiles.tile_pixels();
  double epilogue =
      results * (2.0 * tiles.splits + kResultInstructions / kSchedulersPerMultiprocessor) / kWarpSize * idle_schedulers;
  if (const std::optional<Pool>& pool = shape.epilogue.pool) {
    epilogue += tiles.windows().instructions(*pool) * tiles.tile_outputs() * tiles.block_images /
                (kWarpSize * kSchedulersPerMultiprocessor) * idle_schedulers;
    epilogue += kPoolClocks;
  }
  const double slowest = std::max({busy, intake, waiting});
  const double block_clocks = slowest + kOverlapLoss * (busy + intake + waiting - slowest) + epilogue;
  return launch_time_us({.busy_us = clocks_us(of_multiprocessor * block_clocks * kClockLoss, arch),
                         .blocks = of_multiprocessor,
                         .resident = resident,
                         .waits = kConvolutionWaits,
                         .activation_bytes = activation_bytes(shape, batch),
                         .uncovered = kUncovered},
                        arch);
}

std::vector<ConvDenseTiles> choose_tiles(const ConvShape& shape, int batch, int vector, const ArchSpec& arch,
                                         std::size_t count) {
  return Search(shape, batch, vector, arch).run(count);
}

}  // namespace burin
