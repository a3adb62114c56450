#include "compiler/providers/conv_winograd/winograd_tiles.h"

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

constexpr int kMaxTileThreads = 768;
constexpr int kMostSums = 128;       // of a thread
constexpr int kMaxSideThreads = 32;  // conv_winograd.def

// The terms of the cost, fitted to 184 plans of six layers on an H100 (docs/experiments.md).
struct WinogradCost {
  static constexpr double kClockLoss = 1.13;          // an H200 has 1.75 GHz while all its lanes multiply
  static constexpr double kIssueLag = 0.1;            // warps of a scheduler with which half of its clocks are used
  static constexpr double kSharedLoadClocks = 2.2;    // of four words for a warp, many of whose threads load the same
  static constexpr double kLoadOverlapLoss = 0.19;    // of loads from shared memory beside multiply-adds
  static constexpr double kPatchInstructions = 17;    // of a value of a patch: load, transforms, store, and waiting
  static constexpr double kSliceClocks = 750;         // the barrier, and what nothing else covers
  static constexpr double kLatencyClocks = 200;       // of a slice's loads, beside that
  static constexpr double kIntakeBytesPerClock = 34;  // of one multiprocessor, from the L2 cache
  static constexpr double kPatchIntake = 3.2;         // words that come for each one of a patch: parts of lines
  static constexpr double kFarWeightLoss = 0.5;       // of intake, for as many weights as the next line says
  static constexpr double kFarWeightBytes = 30e6;
  static constexpr double kOverlapLoss = 0.2;         // of what is not the slowest
  static constexpr double kResultInstructions = 5.7;  // of a result: bias, activation, store
  static constexpr double kSentBytesPerClock = 34;    // to other blocks of a cluster
  static constexpr double kUncovered = 0.25;          // LaunchWork::uncovered: several blocks cover each other
  // How far it is off on layers that it was not fitted to; and what launches may hide that take less than the shortest
  // that was measured, 6.9 us.
  static constexpr double kCaution = 1.08, kCautionUs = 0.5;
};
// Registers of a thread beside sums, a patch and what is multiplied: that it must have, and that the assembler takes
// where there are more.
constexpr int kRegistersNeeded = 24, kRegistersTaken = 60;

int registers_of(const WinogradTiles& tiles, int beside) {
  const int factors = WinogradTiles::kQuad * (tiles.tile_quads + tiles.output_quads);
  return tiles.sums_of_thread() + tiles.patch_points() + factors + beside;
}

int most_registers_of(const WinogradTiles& tiles, const ArchSpec& arch) {
  return std::min(arch.max_registers_per_thread,
                  most_registers(arch.registers_per_multiprocessor, tiles.threads() / kWarpSize));
}

int resident_blocks(const WinogradTiles& tiles, const ArchSpec& arch) {
  constexpr int kSharedOfBlock = 1024;  // that the driver takes
  const int registers = std::min(registers_of(tiles, kRegistersTaken), most_registers_of(tiles, arch));
  const int warps = resident_warps(arch.registers_per_multiprocessor, registers);
  return std::min({warps * kWarpSize / tiles.threads(),
                   arch.max_shared_per_multiprocessor / (tiles.shared_bytes() + kSharedOfBlock),
                   arch.max_threads_per_multiprocessor / tiles.threads()});
}

// Tries every choice that may be a good one.
class WinogradSearch {
 public:
  WinogradSearch(const ConvShape& shape, int batch, bool may_store_quads, const ArchSpec& arch)
      : shape_(shape), batch_(batch), may_store_quads_(may_store_quads), arch_(arch) {}

  std::vector<WinogradTiles> run(std::span<const int> allowed, std::size_t count) {
    for (const int tile : allowed) {
      tiles_.tile = tile;
      tiles_.vector = may_store_quads_ && tile == kVectorWords ? kVectorWords : 1;
      for (tiles_.points = 1; tiles_.points <= 4; ++tiles_.points) {
        if (tiles_.patch_points() % tiles_.points == 0) try_quads();
      }
    }
    std::vector<Found> found;
    for (const auto& [kind, best] : best_) found.push_back(best);
    std::ranges::stable_sort(found, {}, &Found::us);
    std::vector<WinogradTiles> result;
    for (std::size_t i = 0; i < std::min(count, found.size()); ++i) result.push_back(found[i].tiles);
    return result;
  }

 private:
  struct Found {
    WinogradTiles tiles;
    double us = 0;
  };

  // Half of it would do.
  static bool is_too_much(int threads, int quads, std::int64_t extent) {
    return threads > 1 && std::int64_t{threads} / 2 * quads * WinogradTiles::kQuad >= extent;
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

  void try_images() {
    for (const int threads : {1, 2, 4, 8}) {
      tiles_.tile_threads = threads;
      for (tiles_.block_images = 1; tiles_.block_images <= std::min(batch_, 32); tiles_.block_images *= 2) {
        const std::int64_t all = tiles_.image_tiles(shape_) * tiles_.block_images;
        if (is_too_much(threads, tiles_.tile_quads, all)) continue;
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
    if (!fits(tiles_, arch_)) return;
    const double us = predict(tiles_, shape_, batch_, arch_);
    const auto [place, is_new] = best_.try_emplace(
        {tiles_.tile, tiles_.points, tiles_.block_tiles(), tiles_.block_outputs(), tiles_.cluster_blocks});
    if (is_new || us < place->second.us) place->second = {tiles_, us};
  }

  const ConvShape& shape_;
  int batch_;
  bool may_store_quads_;
  const ArchSpec& arch_;
  WinogradTiles tiles_;
  std::map<std::array<int, 5>, Found> best_;  // of each kind: see consider()
};

}  // namespace

bool fits(const WinogradTiles& tiles, const ArchSpec& arch) {
  const bool is_tile = std::ranges::find(kWinogradTiles, tiles.tile) != std::end(kWinogradTiles);
  if (!is_tile || tiles.patch_points() % tiles.points != 0 || tiles.threads() > kMaxTileThreads) return false;
  if (tiles.tile_threads > kMaxSideThreads || tiles.output_threads > kMaxSideThreads) return false;
  if (tiles.vector != 1 && tiles.vector != tiles.tile) return false;
  const bool even = tiles.block_tiles() * tiles.block_outputs() % tiles.cluster_blocks == 0;
  return even && (tiles.cluster_blocks == 1 || arch.clusters) && tiles.sums_of_thread() <= kMostSums &&
         tiles.slice_channels * tiles.block_tiles() <= tiles.threads() &&
         registers_of(tiles, kRegistersNeeded) <= most_registers_of(tiles, arch) &&
         tiles.shared_bytes() <= arch.max_shared_per_block && resident_blocks(tiles, arch) >= 1;
}

int WinogradTiles::shared_bytes() const {
  const int items = block_tiles() * block_outputs();
  const int copied = 2 * patch_points() * slice_channels * (block_tiles() + block_outputs());
  const int summed = patch_points() * items, results = cluster_blocks == 1 ? 0 : tile * tile * items;
  const int received = results / cluster_blocks * (cluster_blocks - 1);
  return kSharedReserveBytes + (std::max(copied, summed + results) + received) * kWordBytes;
}

double predict(const WinogradTiles& tiles, const ConvShape& shape, int batch, const ArchSpec& arch) {
  using Cost = WinogradCost;
  const auto blocks = static_cast<double>(tiles.image_blocks(shape) * ceil_div(batch, tiles.block_images));
  const auto cluster = static_cast<std::size_t>(tiles.cluster_blocks);
  const int multiprocessors = cluster == 1 ? arch.multiprocessors : arch.clustered_blocks[cluster - 1];
  const double of_multiprocessor = std::ceil(blocks / multiprocessors);
  const double resident = std::min<double>(of_multiprocessor, resident_blocks(tiles, arch));
  const double warps = static_cast<double>(tiles.threads()) / kWarpSize;
  const double together = warps * resident;
  const double of_scheduler = std::ceil(together / kSchedulersPerMultiprocessor);
  const double idle_schedulers = of_scheduler * kSchedulersPerMultiprocessor / together;
  const double share = of_scheduler / (of_scheduler + Cost::kIssueLag);
  // Multiply-adds of a warp take its scheduler a clock each; loads from shared memory go one after the other.
  const double multiply = static_cast<double>(tiles.sums_of_thread()) / kSchedulersPerMultiprocessor * idle_schedulers;
  const double load = tiles.points * (tiles.output_quads + tiles.tile_quads) * Cost::kSharedLoadClocks;
  const double channel_clocks =
      (std::max(multiply, load) + Cost::kLoadOverlapLoss * std::min(multiply, load)) / share * warps;
  const double points = tiles.patch_points();
  const double patch_clocks =
      tiles.block_tiles() * points * Cost::kPatchInstructions / (kWarpSize * kSchedulersPerMultiprocessor) / share;
  const double slices = std::ceil(static_cast<double>(tiles.slices(shape)) / tiles.cluster_blocks);
  const double channels = slices * tiles.slice_channels;
  const double busy = channels * (channel_clocks + patch_clocks) + slices * Cost::kSliceClocks / resident;
  const double patch_words = tiles.block_tiles() * static_cast<double>(winograd_side(tiles.tile)) * tiles.tile;
  const double weight_bytes = static_cast<double>(tiles.panel_words(shape)) * kWordBytes;
  const double weight_loss = Cost::kFarWeightLoss * std::min(1.0, weight_bytes / Cost::kFarWeightBytes);
  const double intake_words = points * tiles.block_outputs() * (1 + weight_loss) + patch_words * Cost::kPatchIntake;
  const double intake = channels * intake_words * kWordBytes / Cost::kIntakeBytesPerClock;
  const double waiting = slices * Cost::kLatencyClocks / resident;
  const double slowest = std::max({busy, intake, waiting});
  const double items = static_cast<double>(tiles.block_outputs()) * tiles.block_tiles();
  const double results = tiles.tile * tiles.tile;  // of an item
  const double epilogue = items * (2 * points + results * Cost::kResultInstructions / kSchedulersPerMultiprocessor) /
                          kWarpSize * idle_schedulers;
  const double sent = items * results * kWordBytes * (tiles.cluster_blocks - 1) / tiles.cluster_blocks;
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

std::vector<WinogradTiles> winograd_tiles(const ConvShape& shape, int batch, std::span<const int> allowed,
                                          bool may_store_quads, const ArchSpec& arch, std::size_t count) {
  return WinogradSearch(shape, batch, may_store_quads, arch).run(allowed, count);
}

}  // namespace burin
