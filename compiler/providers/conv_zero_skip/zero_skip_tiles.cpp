#include "compiler/providers/conv_zero_skip/zero_skip_tiles.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

#include "compiler/launch_time.h"
#include "compiler/providers/template_provider.h"
#include "ir/error.h"
#include "ir/kernel.h"
#include "ir/limits.h"

namespace burin {
namespace {

constexpr int kSkipQuad = 4;
constexpr int kTriedWarps = 16, kPossibleWarps = 32;  // of a block: that are proposed, and that it can have

// The terms of the cost, fitted to 1,900 plans of five layers on an H100, those near the best most of all.
constexpr double kLookInstructions = 4.3;   // of a run of columns: where they lie, the vote, the list
constexpr double kValueInstructions = 5.9;  // of a value that is looked at: whether it is inside, its load
constexpr double kQuadInstructions = 50;    // of four that are loaded at once
constexpr double kLookClocks = 38;          // of a load of a run, whose columns are channels each
constexpr double kLeastLookClocks = 2;
constexpr double kQuadClocks = 55;           // the same of four values
constexpr double kEntryInstructions = 3.2;   // of an entry of a list beside loads and products
constexpr double kBranchInstructions = 6.2;  // of a pixel that may be left out
constexpr double kWeightClocks = 1.1;        // of a load of four words by all lanes
constexpr double kSkipIssueShare = 0.56;
constexpr double kInstructionOverlap = 0.06;
constexpr double kListLatencyClocks = 970;   // until a list can be made
constexpr double kStepLatencyClocks = 424;   // until weights have come
constexpr double kBranchLatencyClocks = 21;  // of a pixel that may be left out
constexpr double kInstructionLatencyClocks = 2.2;
constexpr double kSkipOverlapLoss = 0.1;  // of what is not the slowest
constexpr double kWideLoadGain = 2;       // of loads of 16 bytes, over ArchSpec::l2_bytes_per_clock
constexpr double kSumInstructions = 47;   // of a sum at the end
constexpr double kClusterUs = 1.9, kClusterDoublingUs = 0.15;
constexpr double kSkipUncovered = 0.25;
constexpr double kStoredLineBytes = 64;  // that are stored at once where neighbours are there
// What was measured over what the above gives, in the mean over 14 layers, nine of which it was not fitted to.
constexpr double kCaution = 1.25;
constexpr int kRegistersBeside = 44;

int pixels_of_window(const ConvShape& shape) { return shape.epilogue.pool->kernel_h * shape.epilogue.pool->kernel_w; }

int pitch_of(const ZeroSkipTiles& tiles) {
  return tiles.pixels <= 2 ? tiles.pixels : static_cast<int>(round_up(tiles.pixels, kSkipQuad));
}
int sums_of_thread(const ZeroSkipTiles& tiles) { return tiles.pixels * kSkipQuad * tiles.output_quads; }

// Sets of pixels that warps have.
std::int64_t sets_of(const ZeroSkipTiles& tiles, const ConvShape& shape) {
  const std::int64_t plane = std::int64_t{shape.conv_h()} * shape.conv_w();
  return shape.epilogue.pool ? std::int64_t{shape.out_h()} * shape.out_w() : ceil_div(plane, tiles.pixels);
}

int resident_blocks(const ZeroSkipTiles& tiles, const ArchSpec& arch) {
  constexpr int kSharedOfBlock = 1024;  // that the driver takes
  const int entry = kSkipQuad * tiles.output_quads + tiles.pixels;
  const int registers = sums_of_thread(tiles) + tiles.at_once * entry + tiles.runs * tiles.pixels + kRegistersBeside;
  if (registers > arch.max_registers_per_thread) return 0;
  const int threads = tiles.warps() * kWarpSize;
  const auto rounded = static_cast<int>(round_up(registers, kRegisterGranularity));
  return std::min<int>({arch.registers_per_multiprocessor / (rounded * threads),
                        arch.max_shared_per_multiprocessor / (tiles.shared_bytes() + kSharedOfBlock),
                        arch.max_threads_per_multiprocessor / threads});
}

class Search {
 public:
  Search(const ConvShape& shape, const ActivationZeros& zeros, int batch, bool quad_loads, const ArchSpec& arch)
      : shape_(shape), zeros_(zeros), batch_(batch), quad_loads_(quad_loads), arch_(arch) {}

  std::vector<ZeroSkipTiles> run(std::size_t count) {
    for (const int pixels : {1, 2, 4, 8}) {
      tiles_.pixels = shape_.epilogue.pool ? pixels_of_window(shape_) : pixels;
      tiles_.quad_loads = quad_loads_ && tiles_.pixels == kSkipQuad && !shape_.epilogue.pool;
      for (const int quads : {1, 2, 4}) try_outputs(quads);
      if (shape_.epilogue.pool) break;
    }
    std::vector<Found> found;
    for (const auto& [kind, best] : best_) found.push_back(best);
    std::ranges::stable_sort(found, {}, &Found::us);
    std::vector<ZeroSkipTiles> result;
    for (std::size_t i = 0; i < std::min(count, found.size()); ++i) result.push_back(found[i].tiles);
    return result;
  }

 private:
  struct Found {
    ZeroSkipTiles tiles;
    double us = 0;
  };

  // As few lanes as hold all outputs, the others divide the columns.
  void try_outputs(int quads) {
    tiles_.output_quads = quads;
    if (sums_of_thread(tiles_) > ZeroSkipTiles::kMaxSumsOfThread) return;
    const auto wanted = static_cast<unsigned>(ceil_div(shape_.outputs_per_group(), kSkipQuad * quads));
    const int out_lanes = static_cast<int>(std::min<unsigned>(std::bit_ceil(wanted), kWarpSize));
    tiles_.column_lanes = kWarpSize / out_lanes;
    for (tiles_.pixel_warps = 1; tiles_.pixel_warps <= kTriedWarps; tiles_.pixel_warps *= 2) {
      if (tiles_.pixel_warps > 1 && tiles_.pixel_warps / 2 >= sets_of(tiles_, shape_)) break;
      for (tiles_.split_warps = 1; tiles_.warps() <= kTriedWarps; tiles_.split_warps *= 2) try_clusters();
    }
  }

  void try_clusters() {
    const std::int64_t runs = ceil_div(columns_of(shape_), kWarpSize);
    for (const int cluster : {1, 2, 4, 8}) {
      tiles_.cluster_blocks = cluster;
      if (cluster > 1 && !arch_.clusters) break;
      if (tiles_.splits() > 1 && tiles_.splits() > runs) break;
      for (const int some : {1, 2, 4}) {
        tiles_.runs = some;
        if (some > 1 && some / 2 >= ceil_div(runs, tiles_.splits())) break;
        for (const int at_once : {1, 2, 4, 8}) {
          tiles_.at_once = at_once;
          for (tiles_.exact = 0; tiles_.exact <= (tiles_.pixels > 1 && tiles_.column_lanes == 1); ++tiles_.exact) {
            consider();
          }
        }
      }
    }
  }

  void consider() {
    if (!fits(tiles_, shape_, arch_) || (tiles_.at_once == 1 && tiles_.column_lanes <= 4)) return;
    const double us = predict(tiles_, shape_, zeros_, batch_, arch_);
    const auto [place, is_new] = best_.try_emplace(
        {tiles_.pixels, tiles_.output_quads, tiles_.split_warps, tiles_.cluster_blocks, tiles_.exact});
    if (is_new || us < place->second.us) place->second = {tiles_, us};
  }

  const ConvShape& shape_;
  const ActivationZeros& zeros_;
  int batch_;
  bool quad_loads_;
  const ArchSpec& arch_;
  ZeroSkipTiles tiles_;
  std::map<std::array<int, 5>, Found> best_;  // of each kind: see consider()
};

}  // namespace

int ZeroSkipTiles::shared_bytes() const {
  const int list = (runs * kWarpSize + kWarpSize) * (pitch_of(*this) + 1);
  const int sums = pixel_warps * (pixels * tile_outputs() + kSkipQuad);
  return kSharedReserveBytes + (warps() * list + split_warps * sums) * kWordBytes;
}

std::int64_t ZeroSkipTiles::image_blocks(const ConvShape& shape) const {
  return shape.groups * output_tiles(shape) * ceil_div(sets_of(*this, shape), pixel_warps) * cluster_blocks;
}

std::int64_t ZeroSkipTiles::panel_words(const ConvShape& shape) const {
  return shape.groups * output_tiles(shape) * columns_of(shape) * tile_outputs();
}

std::int64_t columns_of(const ConvShape& shape) {
  return std::int64_t{shape.channels_per_group()} * shape.kernel_h * shape.kernel_w;
}

bool can_skip_zeros(const ConvShape& shape) {
  const bool depthwise = shape.groups > 1 && shape.channels_per_group() == 1;  // a column is a pixel or two
  return !depthwise && (!shape.epilogue.pool || pixels_of_window(shape) <= ZeroSkipTiles::kMaxPixels);
}

bool fits(const ZeroSkipTiles& tiles, const ConvShape& shape, const ArchSpec& arch) {
  return sums_of_thread(tiles) <= ZeroSkipTiles::kMaxSumsOfThread && tiles.warps() <= kPossibleWarps &&
         tiles.at_once * tiles.column_lanes <= kWarpSize && tiles.shared_bytes() <= arch.max_shared_per_block &&
         resident_blocks(tiles, arch) >= 1 &&
         tiles.panel_words(shape) <= std::numeric_limits<std::int32_t>::max() / kWordBytes;
}

double predict(const ZeroSkipTiles& tiles, const ConvShape& shape, const ActivationZeros& zeros, int batch,
               const ArchSpec& arch) {
  const double live = 1 - zeros.dead_runs(tiles.pixels);
  const auto blocks = static_cast<double>(tiles.image_blocks(shape) * batch);
  const double of_multiprocessor = std::ceil(blocks / arch.multiprocessors);
  const double resident = std::min<double>(of_multiprocessor, resident_blocks(tiles, arch));
  const double runs = std::ceil(static_cast<double>(ceil_div(columns_of(shape), kWarpSize)) / tiles.splits());
  const double lists = std::ceil(runs / tiles.runs);
  // What one warp has the multiprocessor do: its instructions, and what its loads take.
  const double taps = shape.kernel_h * shape.kernel_w;
  const double looks = tiles.quad_loads != 0 ? kQuadInstructions : kValueInstructions * tiles.pixels;
  const double lines =
      tiles.quad_loads != 0 ? kQuadClocks : std::max(kLeastLookClocks, kLookClocks / taps) * tiles.pixels;
  const double step = tiles.at_once * tiles.column_lanes;
  // A list is filled up to a multiple of its steps.
  const double steps = lists * std::max(live > 0 ? 0.5 : 0.0, (tiles.runs * kWarpSize * live + step / 2) / step);
  const double entries = steps * tiles.at_once;  // of each lane
  const double value_loads = tiles.pixels <= 2 ? tiles.pixels : ceil_div(tiles.pixels, kSkipQuad);
  const double multiplied = tiles.exact == 0 || live <= 0 ? 1 : (1 - zeros.share()) / live;  // of an entry's pixels
  const double products = sums_of_thread(tiles) * multiplied;
  const double branches = tiles.exact * kBranchInstructions * tiles.pixels;
  const double instructions = runs * (kLookInstructions + looks) +
                              entries * (products + branches + tiles.output_quads + value_loads + kEntryInstructions);
  const double loading = runs * lines + entries * (kWeightClocks * tiles.output_quads + value_loads + 1);
  const double warps = tiles.warps();
  const double schedulers = std::min<double>(kSchedulersPerMultiprocessor, warps * resident);
  const double issuing = instructions / schedulers / kSkipIssueShare;
  const double results =
      static_cast<double>(sums_of_thread(tiles)) * (kSumInstructions + 2 * std::log2(tiles.column_lanes)) / schedulers;
  const double busy = warps * (std::max(issuing, loading) + kInstructionOverlap * std::min(issuing, loading) + results);
  // A warp waits for what it looks at and for the weights of each step; others of the multiprocessor go on meanwhile.
  const double of_step =
      kStepLatencyClocks + tiles.at_once * (tiles.exact * tiles.pixels * kBranchLatencyClocks +
                                            (products + tiles.output_quads) * kInstructionLatencyClocks);
  const double waiting = (lists * kListLatencyClocks + steps * of_step) / resident;
  const double touched = 1 - std::pow(1 - live, tiles.pixel_warps);  // of the columns, by some warp
  const double weight_bytes = touched * static_cast<double>(columns_of(shape)) / tiles.splits() * tiles.split_warps *
                              tiles.tile_outputs() * kWordBytes;
  const double intake = weight_bytes / (kWideLoadGain * arch.l2_bytes_per_clock / arch.multiprocessors);
  const double slowest = std::max({busy, waiting, intake});
  const double block_clocks = slowest + kSkipOverlapLoss * (busy + waiting + intake - slowest);
  const double cluster =
      tiles.cluster_blocks == 1 ? 0 : kClusterUs + kClusterDoublingUs * std::log2(tiles.cluster_blocks);
  // A channel of a block is so many bytes side by side.
  const double run_bytes = (shape.epilogue.pool ? 1 : tiles.pixels) * tiles.pixel_warps * kWordBytes;
  const double stored = static_cast<double>(shape.output_elements()) * batch * kWordBytes;
  const double scattered = stored * (std::max(1.0, kStoredLineBytes / run_bytes) - 1) / arch.device_bytes_per_clock;
  return launch_time_us(
      {.busy_us = kCaution * (clocks_us(of_multiprocessor * block_clocks + scattered, arch) + cluster),
       .blocks = of_multiprocessor,
       .resident = resident,
       .waits = kConvolutionWaits,
       .activation_bytes = activation_bytes(shape, batch),
       .uncovered = kSkipUncovered},
      arch);
}

std::vector<ZeroSkipTiles> zero_skip_tiles(const ConvShape& shape, const ActivationZeros& zeros, int batch,
                                           bool quad_loads, const ArchSpec& arch, std::size_t count) {
  return Search(shape, zeros, batch, quad_loads, arch).run(count);
}

}  // namespace burin
