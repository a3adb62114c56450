#include "compiler/providers/linear/layer_tiles.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>

#include "compiler/launch_time.h"
#include "compiler/providers/conv_gathered/tiles.h"
#include "compiler/providers/template_provider.h"
#include "ir/error.h"
#include "ir/kernel.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kMaxLayerTileThreads = 512, kLeastLayerTileThreads = 64;
constexpr int kCopiedInputs = 8;  // of template/tiles.h: a chunk has a multiple of them
constexpr int kMaxSplitTerms = 32, kMaxSplitWarps = 16, kMaxLayerSideThreads = 64, kMaxTileBuffers = 4;

int sums_of_thread(const LayerTiles& tiles) {
  return LayerTiles::kQuad * tiles.feature_quads * LayerTiles::kQuad * tiles.image_quads;
}

int resident_of(const LayerTiles& tiles, ElementType storage, const ArchSpec& arch) {
  return resident_blocks(tiles.shared_bytes(storage), registers_of(tiles), tiles.threads(), arch);
}

bool is_power_of_two(int value) { return value >= 1 && std::has_single_bit(static_cast<unsigned>(value)); }

// Tries every choice that may be a good one.
class LayerTileSearch {
 public:
  LayerTileSearch(const Linear& op, ElementType storage, int batch, const ArchSpec& arch)
      : op_(op), storage_(storage), batch_(batch), arch_(arch) {}

  std::vector<LayerTiles> run(std::size_t count) {
    for (const int quads : {1, 2}) {
      for (const int threads : {1, 2, 4, 8, 16}) {
        tiles_.image_quads = quads;
        tiles_.image_threads = threads;
        // Half of it would do.
        const bool too_many = threads > 1 && tiles_.images() / 2 >= batch_;
        if (tiles_.images() >= 2 * LayerTiles::kQuad && !too_many) try_features();
      }
    }
    std::vector<Found> found;
    for (const auto& [kind, best] : best_) found.push_back(best);
    std::ranges::stable_sort(found, {}, &Found::us);
    std::vector<LayerTiles> result;
    for (std::size_t i = 0; i < std::min(count, found.size()); ++i) result.push_back(found[i].tiles);
    return result;
  }

 private:
  struct Found {
    LayerTiles tiles;
    double us = 0;
  };

  void try_features() {
    for (const int quads : {1, 2}) {
      for (const int threads : {2, 4, 8, 16, 32}) {
        tiles_.feature_quads = quads;
        tiles_.feature_threads = threads;
        // Half of it would do; but a split is a whole warp.
        if (tiles_.split_threads() > kWarpSize && tiles_.features() / 2 >= op_.out_features) continue;
        for (const int splits : {1, 2, 4, 8, 16}) {
          tiles_.split_warps = splits;
          if (tiles_.threads() >= kLeastLayerTileThreads && tiles_.threads() <= kMaxLayerTileThreads) try_chunks();
        }
      }
    }
  }

  void try_chunks() {
    for (const int terms : {4, 8, 16}) {
      tiles_.split_terms = terms;
      constexpr int kLeastTerms = 16, kMostTerms = 128;
      if (tiles_.chunk_terms() < kLeastTerms || tiles_.chunk_terms() > kMostTerms) continue;
      for (const int buffers : {2, 3, 4}) {
        for (const int cluster : {1, 2, 4, 8}) {
          tiles_.buffers = buffers;
          tiles_.cluster = cluster;
          consider();
        }
      }
    }
  }

  void consider() {
    const std::int64_t all_chunks = ceil_div(op_.in_features, tiles_.chunk_terms());
    if (tiles_.cluster > all_chunks || !fits(tiles_, storage_, arch_)) return;
    const double us = predict(tiles_, op_, storage_, batch_, arch_);
    const auto [place, is_new] = best_.try_emplace(
        {tiles_.feature_quads, tiles_.features(), tiles_.image_quads, tiles_.images(), tiles_.cluster});
    if (is_new || us < place->second.us) place->second = {tiles_, us};
  }

  const Linear& op_;
  ElementType storage_;
  int batch_;
  const ArchSpec& arch_;
  LayerTiles tiles_;
  std::map<std::array<int, 5>, Found> best_;  // of each kind: the tile and a thread's part of it, blocks of a cluster
};

}  // namespace

// A thread holds sums, what it multiplies next, and others.
int registers_of(const LayerTiles& tiles) {
  constexpr int kOthers = 32;
  return sums_of_thread(tiles) + 2 * LayerTiles::kQuad * (tiles.feature_quads + tiles.image_quads) + kOthers;
}

std::int64_t LayerTiles::chunks(const Linear& op) const {
  return ceil_div(ceil_div(op.in_features, chunk_terms()), cluster);
}
std::int64_t LayerTiles::sets(const Linear& op) const { return ceil_div(op.out_features, features()); }

std::int64_t LayerTiles::weight_words(const Linear& op, ElementType storage) const {
  const std::int64_t biases = op.bias.empty() ? 0 : sets(op) * features();
  return blocks(op) * chunks(op) * chunk_terms() * row_words(storage) + biases;
}

int LayerTiles::shared_bytes(ElementType storage) const {
  const int copied = buffers * chunk_terms() * (row_words(storage) + images() + kQuad);
  const int part = features() * images();
  return kSharedReserveBytes +
         (std::max(copied, split_warps * part) + part / cluster * (cluster - 1)) * static_cast<int>(kWordBytes);
}

bool fits(const LayerTiles& tiles, ElementType storage, const ArchSpec& arch) {
  for (const int threads : {tiles.feature_threads, tiles.image_threads}) {
    if (!is_power_of_two(threads) || threads > kMaxLayerSideThreads) return false;
  }
  const bool whole_warps = tiles.split_threads() % kWarpSize == 0 && tiles.threads() <= kMaxLayerTileThreads;
  const bool has_splits = is_power_of_two(tiles.split_warps) && tiles.split_warps <= kMaxSplitWarps &&
                          tiles.split_terms <= kMaxSplitTerms && tiles.chunk_terms() % kCopiedInputs == 0;
  // Halves come by fours of words, and inputs are copied for whole groups of images.
  const bool has_rows = storage == ElementType::f32 || tiles.feature_quads == 2;
  return whole_warps && has_splits && has_rows && tiles.images() >= 2 * LayerTiles::kQuad && tiles.buffers >= 2 &&
         tiles.buffers <= kMaxTileBuffers && can_share_sums(tiles.cluster, arch) &&
         tiles.shared_bytes(storage) <= arch.max_shared_per_block && resident_of(tiles, storage, arch) >= 1;
}

double predict(const LayerTiles& tiles, const Linear& op, ElementType storage, int batch, const ArchSpec& arch) {
  // Clocks of a multiprocessor, fitted to 47 kernels of three layers for 8, 32 and 128 images on an H100: 6 % off (root
  // mean square), with the rate of that chip's memory.
  constexpr double kClockLoss = 1.13;          // an H200 has 1.75 GHz while all its lanes multiply
  constexpr double kIntakeBytesPerClock = 41;  // from the L2 cache
  constexpr double kIssueShare = 1.1;          // of what the instructions below would reach, with very many warps
  constexpr double kIssueLag = 0.4;           // warps of a scheduler with which half of it would be reached: not fitted
  constexpr double kSharedLoadClocks = 3;     // of four words for a warp
  constexpr double kCopyClocks = 4.5;         // of inputs for a warp, word by word
  constexpr double kLatencyClocks = 500;      // of a copy
  constexpr double kEndClocks = 700;          // of a block: bias, function, and what the blocks of a cluster send
  constexpr double kBlockOverlapLoss = 0.17;  // of what a block does beside the slowest
  constexpr double kMemoryOverlapLoss = 0.18;  // of arithmetic beside memory, or the other way round
  constexpr double kConversion = 2;            // of four halves, in multiply-adds for each of them

  const auto image_blocks = static_cast<double>(ceil_div(batch, tiles.images()));
  const double blocks = static_cast<double>(tiles.blocks(op)) * image_blocks;
  // What clusters leave free is lost where several blocks run on a multiprocessor, too.
  const int multiprocessors =
      tiles.cluster == 1 ? arch.multiprocessors : arch.clustered_blocks.at(static_cast<std::size_t>(tiles.cluster) - 1);
  const double of_multiprocessor = std::ceil(blocks / multiprocessors);
  const double resident = std::min<double>(of_multiprocessor, resident_of(tiles, storage, arch));
  const double together = static_cast<double>(tiles.threads()) / kWarpSize * resident;
  // Warps of few blocks leave schedulers idle.
  const double of_scheduler = std::ceil(together / kSchedulersPerMultiprocessor);
  const double idle = of_scheduler * kSchedulersPerMultiprocessor / together;
  const double share = kIssueShare * of_scheduler / (of_scheduler + kIssueLag);
  const bool halves = storage != ElementType::f32;
  const double multiply_adds = sums_of_thread(tiles) + (halves ? kConversion * LayerTiles::kQuad : 0);
  const double multiply = multiply_adds * kWarpSize / arch.fma_lanes_per_clock * idle;
  const double load = ((halves ? 1 : tiles.feature_quads) + tiles.image_quads) * kSharedLoadClocks;
  const auto chunks = static_cast<double>(tiles.chunks(op));
  const double terms = chunks * tiles.chunk_terms();
  const double term_warps = static_cast<double>(tiles.split_threads()) / kWarpSize;
  const double busy =
      terms * (std::max(multiply, load) / share * term_warps + tiles.images() * kCopyClocks / kWarpSize);
  const double intake = terms * (tiles.row_words(storage) + tiles.images()) * kWordBytes / kIntakeBytesPerClock;
  const double waiting = chunks * kLatencyClocks / ((tiles.buffers - 1) * resident);
  const double slowest = std::max({busy, intake, waiting});
  const double results = static_cast<double>(tiles.features()) * tiles.images();
  const double end = results * 2 * (tiles.split_warps + 2) / kWarpSize * idle + kEndClocks;
  const double block_clocks = slowest + kBlockOverlapLoss * (busy + intake + waiting - slowest) + end;
  const double work = of_multiprocessor * block_clocks * kClockLoss;
  // Weights that the cache cannot keep are read anew for the next images.
  const double bytes = static_cast<double>(tiles.weight_words(op, storage)) * kWordBytes;
  const double memory = (bytes > arch.l2_kept_bytes ? bytes * image_blocks : bytes) / arch.device_bytes_per_clock;
  const double clocks = std::max(work, memory) + kMemoryOverlapLoss * std::min(work, memory);
  return launch_time_us({.busy_us = clocks_us(clocks, arch) + (tiles.cluster > 1 ? arch.cluster_reduction_us : 0),
                         .blocks = of_multiprocessor,
                         .resident = resident,
                         .waits = 2},  // for the first weights, and for the inputs
                        arch);
}

std::vector<LayerTiles> choose_layer_tiles(const Linear& op, ElementType storage, int batch, const ArchSpec& arch,
                                           std::size_t count) {
  return LayerTileSearch(op, storage, batch, arch).run(count);
}

std::vector<std::uint32_t> pack_tiles(const LayerTiles& tiles, const Linear& op, ElementType storage) {
  const std::int64_t row = tiles.row_words(storage),
                     rows_of_set = tiles.cluster * tiles.chunks(op) * tiles.chunk_terms();
  std::vector<std::uint32_t> words(static_cast<std::size_t>(tiles.weight_words(op, storage)));
  const auto weight = [&](std::int64_t feature, std::int64_t term) {
    return feature < op.out_features ? op.weights[static_cast<std::size_t>(feature * op.in_features + term)] : 0;
  };
  for (std::int64_t set = 0; set < tiles.sets(op); ++set) {
    for (std::int64_t term = 0; term < op.in_features; ++term) {
      std::uint32_t* to = words.data() + (set * rows_of_set + term) * row;
      const std::int64_t first = set * tiles.features();
      if (storage == ElementType::f32) {
        for (int i = 0; i < tiles.features(); ++i) to[i] = std::bit_cast<std::uint32_t>(weight(first + i, term));
        continue;
      }
      // Four words of a thread: of its first quad of outputs, then of its second.
      for (int word = 0; word < row; ++word) {
        constexpr int kThreadWords = 4, kQuadPairs = 2;
        const int thread = word / kThreadWords, quad = word % kThreadWords / kQuadPairs, pair = word % kQuadPairs;
        const std::int64_t feature =
            first + (std::int64_t{quad} * tiles.feature_threads + thread) * LayerTiles::kQuad + 2 * pair;
        to[word] = half_word(storage, weight(feature, term), weight(feature + 1, term));
      }
    }
  }
  std::ranges::transform(op.bias, words.begin() + static_cast<std::ptrdiff_t>(tiles.sets(op) * rows_of_set * row),
                         [](float bias) { return std::bit_cast<std::uint32_t>(bias); });
  return words;
}

}  // namespace burin
