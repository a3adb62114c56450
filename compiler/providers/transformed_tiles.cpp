#include "compiler/providers/transformed_tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "compiler/launch_time.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/kernel.h"

namespace burin {
namespace {

constexpr int kMaxTransformThreads = 768;
constexpr int kMostSums = 128;       // of a thread
constexpr int kMaxSideThreads = 32;  // transformed_tiles.def
// Points of a thread where threads have rows of patches: with four the assembler spills.
constexpr int kMaxLinePoints = 2;
constexpr int kMaxPatchRows = 4;  // conv_fft.cu

// The terms of the cost, fitted to 184 plans of conv_winograd, of six layers on an H100 (docs/experiments.md).
struct TransformedCost {
  static constexpr double kClockLoss = 1.13;          // an H200 has 1.75 GHz while all its lanes multiply
  static constexpr double kIssueLag = 0.1;            // warps of a scheduler with which half of its clocks are used
  static constexpr double kSharedLoadClocks = 2.2;    // of four words for a warp, many of whose threads load the same
  static constexpr double kLoadOverlapLoss = 0.19;    // of loads from shared memory beside multiply-adds
  static constexpr double kSliceClocks = 750;         // the barrier, and what nothing else covers
  static constexpr double kLatencyClocks = 200;       // of a slice's loads, beside that
  static constexpr double kIntakeBytesPerClock = 34;  // of one multiprocessor, from the L2 cache
  static constexpr double kPatchIntake = 3.2;         // words that come for each one of a patch: parts of lines
  static constexpr double kFarWeightLoss = 0.5;       // of intake, for as many weights as the next line says
  static constexpr double kFarWeightBytes = 30e6;
  // Patches in a rectangle of fewer tiles beside each other than kWideTiles, where the image has more, read parts of
  // lines: up to so much more is counted for them. Both were estimated from two layers of 112x112 and 224x224.
  static constexpr double kWideTiles = 8, kNarrowLoss = 1;
  static constexpr double kOverlapLoss = 0.2;       // of what is not the slowest
  static constexpr double kSentBytesPerClock = 34;  // to other blocks of a cluster
  static constexpr double kUncovered = 0.25;        // LaunchWork::uncovered: several blocks cover each other
  // How far it is off on layers that it was not fitted to; and what launches may hide that take less than the shortest
  // that was measured, 6.9 us.
  static constexpr double kCaution = 1.08, kCautionUs = 0.5;
};
// Registers of a thread beside sums, a patch and what is multiplied: that it must have, and that the assembler takes
// where there are more.
constexpr int kRegistersNeeded = 24, kRegistersTaken = 60;

int registers_of(const TransformedTiles& tiles, int beside) {
  const TileTransform& transform = tiles.transform;
  const int factors = transform.point_words * TransformedTiles::kQuad * (tiles.tile_quads + tiles.output_quads);
  if (!transform.by_lines) return tiles.sums_of_thread() + transform.words() + factors + beside;
  // A column is transformed when the next rows are not yet loaded. The assembler loads what is multiplied of all points
  // at once: without registers for that some plans spilled.
  const int rows = tiles.thread_rows() * transform.side + tiles.points * factors, column = 2 * transform.side;
  return tiles.sums_of_thread() + std::max(rows, column) + beside;
}

int most_registers_of(const TransformedTiles& tiles, const ArchSpec& arch) {
  return std::min(arch.max_registers_per_thread,
                  most_registers(arch.registers_per_multiprocessor, tiles.threads() / kWarpSize));
}

int resident_blocks(const TransformedTiles& tiles, const ConvShape& shape, const ArchSpec& arch) {
  constexpr int kSharedOfBlock = 1024;  // that the driver takes
  const int registers = std::min(registers_of(tiles, kRegistersTaken), most_registers_of(tiles, arch));
  const int warps = resident_warps(arch.registers_per_multiprocessor, registers);
  return std::min({warps * kWarpSize / tiles.threads(),
                   arch.max_shared_per_multiprocessor / (tiles.shared_bytes(shape) + kSharedOfBlock),
                   arch.max_threads_per_multiprocessor / tiles.threads()});
}

// Behind a pool patches take so many times as long.
double narrow_loss(const TransformedTiles& tiles, const ConvShape& shape) {
  using Cost = TransformedCost;
  if (!shape.epilogue.pool) return 1;
  const auto tiles_in = [&](std::int64_t cols) {
    return std::min(Cost::kWideTiles, static_cast<double>(ceil_div(cols, tiles.transform.tile_cols)));
  };
  return 1 + Cost::kNarrowLoss * std::max(0.0, 1 - tiles_in(tiles.windows().pixel_cols(*shape.epilogue.pool)) /
                                                       tiles_in(shape.conv_w()));
}

// Tries every choice that may be a good one.
class TransformedSearch {
 public:
  TransformedSearch(const ConvShape& shape, int batch, bool may_store_quads, const ArchSpec& arch)
      : shape_(shape), batch_(batch), may_store_quads_(may_store_quads), arch_(arch) {}

  std::vector<TransformedTiles> run(std::span<const SizedTransform> allowed, std::size_t count) {
    for (const SizedTransform& sized : allowed) {
      tiles_.size = sized.size;
      tiles_.transform = sized.transform;
      tiles_.vector = may_store_quads_ && has_whole_quads(sized.transform) ? kVectorWords : 1;
      for (tiles_.points = 1; tiles_.points <= 4; ++tiles_.points) {
        if (sized.transform.points() % tiles_.points == 0) try_quads();
      }
    }
    std::vector<Found> found;
    for (const auto& [kind, best] : best_) found.push_back(best);
    std::ranges::stable_sort(found, {}, &Found::us);
    std::vector<TransformedTiles> result;
    for (std::size_t i = 0; i < std::min(count, found.size()); ++i) result.push_back(found[i].tiles);
    return result;
  }

 private:
  struct Found {
    TransformedTiles tiles;
    double us = 0;
  };

  // Half of it would do.
  static bool is_too_much(int threads, int quads, std::int64_t extent) {
    return threads > 1 && std::int64_t{threads} / 2 * quads * TransformedTiles::kQuad >= extent;
  }

  void try_quads() {
    for (tiles_.tile_quads = 1; tiles_.tile_quads <= 2; ++tiles_.tile_quads) {
      for (const int quads : {1, 2, 4}) {
        tiles_.output_quads = quads;
        if (tiles_.sums_of_thread() > kMostSums) continue;
        for (const int outputs : {1, 2, 4, 8, 16}) {
          tiles_.output_threads = outputs;
          if (!is_too_much(outputs, tiles_.output_quads, shape_.out_channels)) try_images();
        }
      }
    }
  }

  // The windows of a block; whether there are any.
  bool choose_windows() {
    const auto tiles = [&](const WindowTile& windows) { return tiles_.tiles_of(windows, shape_); };
    return tiles_.take(burin::choose_windows(shape_, tiles_.block_images, tiles, tiles_.block_tiles()));
  }

  void try_images() {
    for (const int threads : {1, 2, 4, 8}) {
      tiles_.tile_threads = threads;
      for (tiles_.block_images = 1; tiles_.block_images <= std::min(batch_, 32); tiles_.block_images *= 2) {
        const std::int64_t all = tiles_.tiles_of(WindowTile::all_of(shape_), shape_);
        if (is_too_much(threads, tiles_.tile_quads, all) || !choose_windows()) continue;
        try_slices();
        // More images only help to fill the last block.
        if (all >= 16 * tiles_.block_tiles()) break;
      }
    }
  }

  void try_slices() {
    for (const int channels : {2, 4, 8, 16}) {
      tiles_.slice_channels = channels;
      for (tiles_.cluster_blocks = 1; tiles_.cluster_blocks <= kMaxClusterBlocks; tiles_.cluster_blocks *= 2) {
        if (tiles_.cluster_blocks > 1 && tiles_.cluster_blocks > tiles_.slices(shape_)) break;
        consider();
      }
      if (channels >= shape_.in_channels) break;
    }
  }

  void consider() {
    if (!fits(tiles_, shape_, arch_)) return;
    const double us = predict(tiles_, shape_, batch_, arch_);
    const auto [place, is_new] = best_.try_emplace(
        {tiles_.size, tiles_.points, tiles_.block_tiles(), tiles_.block_outputs(), tiles_.cluster_blocks});
    if (is_new || us < place->second.us) place->second = {tiles_, us};
  }

  const ConvShape& shape_;
  int batch_;
  bool may_store_quads_;
  const ArchSpec& arch_;
  TransformedTiles tiles_;
  std::map<std::array<int, 5>, Found> best_;  // of each kind: see consider()
};

}  // namespace

bool has_whole_quads(const TileTransform& transform) { return transform.tile_cols % kVectorWords == 0; }

bool fits(const TransformedTiles& tiles, const ConvShape& shape, const ArchSpec& arch) {
  const TileTransform& transform = tiles.transform;
  if (transform.points() % tiles.points != 0 || tiles.threads() > kMaxTransformThreads) return false;
  if (tiles.tile_threads > kMaxSideThreads || tiles.output_threads > kMaxSideThreads) return false;
  if (transform.by_lines && tiles.points > kMaxLinePoints) return false;
  if (tiles.vector != 1 && (tiles.vector != kVectorWords || !has_whole_quads(transform))) return false;
  const auto needed = [&](const WindowTile& windows) { return tiles.tiles_of(windows, shape); };
  if (!is_legal(tiles.windows(), shape, tiles.block_images, needed, tiles.block_tiles())) return false;
  // Behind a pool each block of a cluster has all of some outputs.
  const int shared = shape.epilogue.pool ? tiles.block_outputs() : tiles.block_tiles() * tiles.block_outputs();
  const bool even = shared % tiles.cluster_blocks == 0;
  return even && (tiles.cluster_blocks == 1 || arch.clusters) && tiles.sums_of_thread() <= kMostSums &&
         tiles.slice_patches() <= tiles.threads() && (!transform.by_lines || tiles.thread_rows() <= kMaxPatchRows) &&
         registers_of(tiles, kRegistersNeeded) <= most_registers_of(tiles, arch) &&
         tiles.shared_bytes(shape) <= arch.max_shared_per_block && resident_blocks(tiles, shape, arch) >= 1;
}

int TransformedTiles::shared_bytes(const ConvShape& shape) const {
  const int items = block_tiles() * block_outputs();
  const int copied = 2 * transform.words() * slice_channels * (block_tiles() + block_outputs());
  const int summed = transform.words() * items;
  const bool are_kept = cluster_blocks > 1 || shape.epilogue.pool;
  const int results = are_kept ? transform.tile_rows * transform.result_pitch * items : 0;
  const int received = results / cluster_blocks * (cluster_blocks - 1);
  return kSharedReserveBytes + (std::max(copied, summed + results) + received) * kWordBytes;
}

double predict(const TransformedTiles& tiles, const ConvShape& shape, int batch, const ArchSpec& arch) {
  using Cost = TransformedCost;
  const auto blocks = static_cast<double>(tiles.image_blocks(shape) * ceil_div(batch, tiles.block_images));
  const auto cluster = static_cast<std::size_t>(tiles.cluster_blocks);
  const int multiprocessors = cluster == 1 ? arch.multiprocessors : arch.clustered_blocks[cluster - 1];
  const double of_multiprocessor = std::ceil(blocks / multiprocessors);
  const double resident = std::min<double>(of_multiprocessor, resident_blocks(tiles, shape, arch));
  const double warps = static_cast<double>(tiles.threads()) / kWarpSize;
  const double together = warps * resident;
  const double of_scheduler = std::ceil(together / kSchedulersPerMultiprocessor);
  const double idle_schedulers = of_scheduler * kSchedulersPerMultiprocessor / together;
  const double share = of_scheduler / (of_scheduler + Cost::kIssueLag);
  // Multiply-adds of a warp take its scheduler a clock each; loads from shared memory go one after the other. Of a
  // point's words each is multiplied by each.
  const TileTransform& transform = tiles.transform;
  const double multiply = static_cast<double>(tiles.sums_of_thread() * transform.point_words) /
                          kSchedulersPerMultiprocessor * idle_schedulers;
  const double load =
      tiles.points * transform.point_words * (tiles.output_quads + tiles.tile_quads) * Cost::kSharedLoadClocks;
  const double channel_clocks =
      (std::max(multiply, load) + Cost::kLoadOverlapLoss * std::min(multiply, load)) / share * warps;
  const double words = transform.words();
  const double patch_clocks = narrow_loss(tiles, shape) * tiles.block_tiles() * words * transform.patch_cost /
                              (kWarpSize * kSchedulersPerMultiprocessor) / share;
  const double slices = std::ceil(static_cast<double>(tiles.slices(shape)) / tiles.cluster_blocks);
  const double channels = slices * tiles.slice_channels;
  const double barriers = transform.by_lines ? 2 : 1;
  const double busy = channels * (channel_clocks + patch_clocks) + slices * barriers * Cost::kSliceClocks / resident;
  const double patch_words = tiles.block_tiles() * static_cast<double>(transform.side) * transform.tile_cols;
  const double weight_bytes = static_cast<double>(tiles.panel_words(shape)) * kWordBytes;
  const double weight_loss = Cost::kFarWeightLoss * std::min(1.0, weight_bytes / Cost::kFarWeightBytes);
  const double intake_words = words * tiles.block_outputs() * (1 + weight_loss) + patch_words * Cost::kPatchIntake;
  const double intake = channels * intake_words * kWordBytes / Cost::kIntakeBytesPerClock;
  const double waiting = slices * Cost::kLatencyClocks / resident;
  const double slowest = std::max({busy, intake, waiting});
  const double items = static_cast<double>(tiles.block_outputs()) * tiles.block_tiles();
  const double results = transform.tile_rows * transform.tile_cols;  // of an item
  const double accesses = transform.by_lines ? 4 : 2;                // of a word of an item's sums
  double epilogue = items * (accesses * words + results * transform.result_cost / kSchedulersPerMultiprocessor) /
                    kWarpSize * idle_schedulers;
  if (const std::optional<Pool>& pool = shape.epilogue.pool) {
    epilogue += tiles.windows().instructions(*pool) * tiles.block_outputs() * tiles.block_images /
                (kWarpSize * kSchedulersPerMultiprocessor * tiles.cluster_blocks) * idle_schedulers;
  }
  const double sent = items * transform.tile_rows * transform.result_pitch * kWordBytes * (tiles.cluster_blocks - 1) /
                      tiles.cluster_blocks;
  const double block_clocks =
      slowest + Cost::kOverlapLoss * (busy + intake + waiting - slowest) + epilogue + sent / Cost::kSentBytesPerClock;
  const double meeting = tiles.cluster_blocks == 1 ? 0 : arch.cluster_reduction_us;
  const double work = Cost::kCaution * clocks_us(of_multiprocessor * block_clocks * Cost::kClockLoss, arch);
  return launch_time_us({.busy_us = work + meeting + Cost::kCautionUs,
                         .blocks = of_multiprocessor,
                         .resident = resident,
                         .waits = kConvolutionWaits,
                         .activation_bytes = activation_bytes(shape, batch),
                         .uncovered = Cost::kUncovered},
                        arch);
}

std::vector<TransformedTiles> transformed_tiles(const ConvShape& shape, int batch,
                                                std::span<const SizedTransform> allowed, bool may_store_quads,
                                                const ArchSpec& arch, std::size_t count) {
  return TransformedSearch(shape, batch, may_store_quads, arch).run(allowed, count);
}

}  // namespace burin
