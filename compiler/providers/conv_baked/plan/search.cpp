#include "compiler/providers/conv_baked/plan/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "compiler/providers/conv_baked/plan/tiles.h"
#include "compiler/providers/conv_baked/plan/unlike_plans.h"
#include "ir/baked_plan_pool.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kMostSplits = 8;  // beyond that the reduction costs more than idle multiprocessors
constexpr std::int64_t kMaxPartialBytes = std::int64_t{256} << 20;  // scratch that a launch may ask for
constexpr double kGoodSliceMultiplyAdds = 6000;
constexpr int kManyWarps = 8;
constexpr int kBarrierEveryManyWarps = 512;  // lockstep of many warps; measured good from 256 to 1024
constexpr int kBarrierEveryDirect = 4096;    // lockstep does not pay there: 1x1 512@14 b32 18.3 us without, 20.0 at 512
constexpr int kBarrierEveryFewWarps = 1024;  // keeps basic blocks small for the assembler
constexpr double kSliceCostUs = 0.003;       // 300 slices are worth about a microsecond of a launch
constexpr int kRegisterSlack = 24;
constexpr int kUnpackedRegisters = 4;  // of two words, one of which is being used
constexpr std::size_t kRefined = 64;   // candidates whose staging is searched in full
constexpr std::size_t kLayoutsPerTile = 3;

struct StageShape {
  int channels, buffers;
};
// Tried in this order for a first guess. 16 x 3 was best where it fits.
constexpr std::array<StageShape, 8> kFirstGuess = {{{16, 3}, {8, 3}, {8, 2}, {4, 2}, {2, 2}, {1, 2}, {64, 1}, {1, 1}}};
constexpr std::array<int, 10> kStageChannels = {1, 2, 4, 6, 8, 12, 16, 24, 32, 64};
constexpr int kMostBuffers = 4;

class Search {
 public:
  explicit Search(const SearchSpace& space) : space_(space) {}

  std::vector<PlanCandidate> run(std::size_t count) {
    look_at_tiles();
    sort_and_cut(kRefined);
    return refine_all(count);
  }

  std::vector<PlanCandidate> run_unlike(std::size_t count) {
    unlike_ = true;
    look_at_tiles();
    sort_and_cut(found_.size());
    std::vector<PlanTraits> traits;
    for (const PlanCandidate& c : found_) {
      traits.push_back(
          {c.staging, c.reduction, threads_of(c.tile), space_.options[c.option].groups, c.splits, c.cluster});
    }
    std::vector<PlanCandidate> picked;
    for (const std::size_t i : pick_unlike(traits, count)) picked.push_back(found_[i]);
    found_ = std::move(picked);
    return refine_all(count);
  }

 private:
  void look_at_tiles() {
    if (const std::optional<PixelTile>& tile = space_.constraints.tile) {
      look_at_tile(*tile);
    } else {
      for (const PixelTile& candidate : tile_candidates(space_.shape, space_.tiled_images())) look_at_tile(candidate);
    }
  }

  std::vector<PlanCandidate> refine_all(std::size_t count) {
    std::vector<PlanCandidate> coarse = std::move(found_);
    found_.clear();
    for (const PlanCandidate& candidate : coarse) refine(candidate);
    sort_and_cut(count);
    return std::move(found_);
  }

  void sort_and_cut(std::size_t count) {
    std::ranges::stable_sort(found_, {}, &PlanCandidate::score);
    if (found_.size() > count) found_.resize(count);
  }

  void look_at_tile(const PixelTile& tile) {
    if (threads_of(tile) > kMaxThreadsPerBlock || tiles_per_image(tile, space_.shape) < 1) return;
    if (bytes_of_staging(Staging::shared, tile, least_layout(tile), 1, 1) > space_.limits.shared_bytes) return;
    std::vector<LayoutCandidate>& layouts = layouts_[key(tile)];
    layouts = layout_candidates(tile, space_.shape);
    if (layouts.size() > kLayoutsPerTile) {
      // The ends of the trade and its middle.
      layouts = {layouts.front(), layouts[layouts.size() / 2], layouts.back()};
    }
    for (std::size_t option = 0; option < space_.options.size(); ++option) {
      if (space_.constraints.groups && space_.options[option].groups != *space_.constraints.groups) continue;
      for (const int splits : split_counts(tile, space_.options[option])) {
        PlanCandidate candidate{Staging::shared, tile, layouts.front(), option, splits, 1, 1, 0, 0};
        if (may_stage(Staging::shared) && guess_staging(candidate, layouts)) add_clusters(candidate);
        if (may_stage(Staging::bulk) && bulk_copies_fit(tile, space_.shape, space_.input)) {
          candidate = {Staging::bulk, tile, {}, option, splits, 1, 1, 0, 0};
          if (guess_staging(candidate, {LayoutCandidate{}})) add_clusters(candidate);
        }
        if (may_stage(Staging::direct)) {
          candidate = {Staging::direct, tile, {}, option, splits, 1, 1, 0, 0};
          candidate.stage_channels = slice_channels(candidate);
          if (evaluate(candidate)) add_clusters(candidate);
        }
      }
    }
  }

  // The candidate with the clusters that suit it best; where unlike plans are wanted, with all.
  void add_clusters(const PlanCandidate& candidate) {
    std::optional<PlanCandidate> best;
    for (const ClusterShape& shape : cluster_shapes(candidate)) {
      PlanCandidate clustered = candidate;
      clustered.cluster = shape;
      if (!evaluate(clustered)) continue;
      if (unlike_) found_.push_back(clustered);
      if (!best || clustered.score < best->score) best = clustered;
    }
    if (best && !unlike_) found_.push_back(*best);
  }

  // Smallest first: of equal ones the first is taken.
  std::vector<ClusterShape> cluster_shapes(const PlanCandidate& candidate) const {
    const int splits = candidate.reduction == Reduction::cluster ? candidate.splits : 1;
    std::vector<ClusterShape> shapes;
    if (const std::optional<ClusterShape>& wanted = space_.constraints.cluster) {
      if (may_cluster(*wanted) && wanted->splits == splits) shapes.push_back(*wanted);
      return shapes;
    }
    for (const int tiles : {1, 2, 4}) {
      const ClusterShape shape{tiles, splits};
      if (may_cluster(shape) && (tiles == 1 || tiles <= tiles_of(candidate.tile))) shapes.push_back(shape);
    }
    return shapes;
  }

  bool may_cluster(const ClusterShape& shape) const {
    if (shape == ClusterShape{}) return true;
    return space_.limits.clusters && saturating_product({shape.tiles, shape.splits}) <= kMaxClusterBlocks;
  }

  bool may_stage(Staging staging) const {
    if (space_.constraints.staging && *space_.constraints.staging != staging) return false;
    if (staging == Staging::bulk) return space_.limits.bulk_copies;
    if (staging == Staging::shared && channels_together(space_.input) != 1) return false;
    const ConvShape& s = space_.shape;
    return staging == Staging::shared || (s.kernel_h == 1 && s.kernel_w == 1 && s.pad == Padding{});
  }

  // The layout has no padding: what does not fit so never fits.
  SharedLayout least_layout(const PixelTile& tile) const {
    const ConvShape& s = space_.shape;
    SharedLayout layout;
    layout.patch_rows = patch_extent(tile.rows, s.stride_h, s.kernel_h, s.dilation_h);
    layout.patch_cols = patch_extent(tile.cols, s.stride_w, s.kernel_w, s.dilation_w);
    layout.row_pitch = layout.patch_cols;
    layout.image_pitch = saturate_to_int(saturating_product({layout.patch_rows, layout.row_pitch}));
    layout.channel_pitch = saturate_to_int(saturating_product({tile.images, layout.image_pitch}));
    return layout;
  }

  std::vector<int> split_counts(const PixelTile& tile, const GroupOption& option) const {
    std::vector<int> counts;
    const int channels = std::max(1, static_cast<int>(option.mean.channels));
    const auto allowed = [&](int splits) {
      if (space_.constraints.splits && splits != *space_.constraints.splits) return false;
      const std::optional<ClusterShape>& cluster = space_.constraints.cluster;
      if (cluster && cluster->splits > 1 && splits != cluster->splits) return false;
      if (splits == 1) return true;
      return splits <= channels && std::int64_t{splits} * option.groups <= kMaxSlices &&
             reduction_of(tile, option, splits).has_value();
    };
    for (int splits = 1; splits <= kMostSplits; ++splits) {
      if (allowed(splits)) counts.push_back(splits);
    }
    const double needed = space_.constraints.splits.value_or(
        static_cast<int>(std::ceil(option.mean.multiply_adds / kGoodSliceMultiplyAdds)));
    if (needed > kMostSplits && needed <= channels && allowed(static_cast<int>(needed))) {
      counts.push_back(static_cast<int>(needed));
    }
    return counts;
  }

  // FP32 sums, one for each image of a word.
  int sum_bytes(const PixelTile& tile, const GroupOption& option) const {
    return option.capacity * space_.word_images() * threads_of(tile) * static_cast<int>(sizeof(float));
  }

  // What the pool reads of the block's threads.
  int value_bytes(const PixelTile& tile, const GroupOption& option, const BakedPlan& arithmetic) const {
    if (!space_.shape.epilogue.pool) return 0;
    return saturate_to_int(bytes_of_values(option.capacity, arithmetic.value_pitch(), threads_of(tile)));
  }

  // Clusters where they can be: they need no scratch memory. Nothing: no reduction is possible.
  std::optional<Reduction> reduction_of(const PixelTile& tile, const GroupOption& option, int splits) const {
    if (splits == 1) return Reduction::none;
    std::optional<Reduction> wanted = space_.constraints.reduction;
    if (const std::optional<ClusterShape>& cluster = space_.constraints.cluster) {
      const Reduction implied = cluster->splits > 1 ? Reduction::cluster : Reduction::last_block;
      if (wanted && *wanted != implied) return std::nullopt;
      wanted = implied;
    }
    const int sums = sum_bytes(tile, option);
    if (space_.limits.clusters && wanted != Reduction::last_block && splits <= kMaxClusterBlocks &&
        sums <= space_.limits.shared_bytes - kSharedReserveBytes) {
      return Reduction::cluster;
    }
    const bool fits = saturating_product({tiles_of(tile), option.groups, splits, sums}) <= kMaxPartialBytes;
    if (fits && wanted != Reduction::cluster) return Reduction::last_block;
    return std::nullopt;
  }

  bool guess_staging(PlanCandidate& candidate, const std::vector<LayoutCandidate>& layouts) const {
    const std::optional<int>& stage = space_.constraints.stage_channels;
    for (const LayoutCandidate& layout : layouts) {
      candidate.shared = layout;
      for (const auto [channels, buffers] : kFirstGuess) {
        if (set_staging(candidate, stage.value_or(channels), buffers) && evaluate(candidate)) return true;
      }
      for (int buffers = 1; stage && buffers <= kMostBuffers; ++buffers) {
        if (set_staging(candidate, *stage, buffers) && evaluate(candidate)) return true;
      }
    }
    return false;
  }

  // All layouts, stages and buffers for one tile, option and number of splits.
  void refine(const PlanCandidate& coarse) {
    PlanCandidate best = coarse;
    if (coarse.staging == Staging::direct) {
      found_.push_back(best);
      return;
    }
    const std::vector<LayoutCandidate> none = {LayoutCandidate{}};
    for (const LayoutCandidate& layout : coarse.staging == Staging::bulk ? none : layouts_[key(coarse.tile)]) {
      for (int channels : kStageChannels) {
        channels = space_.constraints.stage_channels.value_or(channels);
        for (int buffers = 1; buffers <= kMostBuffers; ++buffers) {
          PlanCandidate candidate = coarse;
          candidate.shared = layout;
          if (set_staging(candidate, channels, buffers) && evaluate(candidate) && candidate.score < best.score) {
            best = candidate;
          }
        }
      }
    }
    found_.push_back(best);
  }

  // Expected input channels of a slice, rounded up.
  int slice_channels(const PlanCandidate& candidate) const {
    const GroupOption& option = space_.options[candidate.option];
    if (candidate.staging == Staging::bulk) {
      // Channels that the group does not read come along.
      const int all = space_.shape.in_channels / space_.shape.groups * option.packed;
      return bulk_channels(candidate.tile, space_.shape, space_.input,
                           static_cast<int>(ceil_div(all, candidate.splits)));
    }
    return std::max(1, static_cast<int>(std::ceil(option.mean.channels / candidate.splits - 1e-9)));
  }

  // False when the number of buffers makes no sense for the number of stages, or does not fit.
  bool set_staging(PlanCandidate& candidate, int stage_channels, int buffers) const {
    if (space_.constraints.buffers && buffers != *space_.constraints.buffers) return false;
    const int channels = slice_channels(candidate);
    if (candidate.staging == Staging::bulk)
      stage_channels = bulk_channels(candidate.tile, space_.shape, space_.input, stage_channels);
    const std::int64_t stages = ceil_div(channels, stage_channels);
    // Where both were chosen, as of a plan that exists, its fullest slice may have had a stage more.
    const bool chosen = space_.constraints.buffers && space_.constraints.stage_channels;
    if (chosen ? buffers > stages + 1 : stages == 1 ? buffers != 1 : buffers < 2 || buffers > stages) return false;
    candidate.buffers = buffers;
    if (candidate.staging == Staging::bulk) {
      candidate.stage_channels =
          bulk_channels(candidate.tile, space_.shape, space_.input, static_cast<int>(ceil_div(channels, stages)));
      candidate.shared = bulk_layout(candidate.tile, space_.shape, space_.input, candidate.stage_channels);
    } else {
      candidate.stage_channels = even_stage(channels, stage_channels, candidate.shared.layout);
    }
    return shared_bytes(candidate) <= space_.limits.shared_bytes;
  }

  static std::int64_t shared_bytes(const PlanCandidate& candidate) {
    return bytes_of_staging(candidate.staging, candidate.tile, candidate.shared.layout, candidate.stage_channels,
                            candidate.buffers);
  }

  // False when the registers do not suffice.
  bool evaluate(PlanCandidate& candidate) const {
    const GroupOption& option = space_.options[candidate.option];
    const SharedLayout& layout = candidate.shared.layout;
    LaunchFigures figures;
    figures.tiles = tiles_of(candidate.tile);
    figures.slices = option.groups * candidate.splits;
    figures.splits = candidate.splits;
    figures.threads = threads_of(candidate.tile);
    figures.group_capacity = option.capacity;
    BakedPlan arithmetic;  // what the precision makes of a channel
    arithmetic.precision = space_.precision;
    arithmetic.keeps_halves = may_keep_halves(space_.precision, space_.shape);
    if (space_.precision == Precision::fp16x2) {
      arithmetic.promote_every =
          choose_promotion(static_cast<int>(ceil_div(space_.longest_sum, candidate.splits)), space_.constraints);
    }
    figures.staging = candidate.staging;
    set_precision_figures(figures, arithmetic, space_.shape);
    figures.stage_bytes = saturate_to_int(
        bytes_of_stage(candidate.staging, candidate.tile, candidate.shared.layout, candidate.stage_channels));
    candidate.reduction = reduction_of(candidate.tile, option, candidate.splits).value_or(Reduction::none);
    figures.reduction = arithmetic.reduction = candidate.reduction;
    candidate.cluster.splits = candidate.reduction == Reduction::cluster ? candidate.splits : 1;
    figures.cluster = candidate.cluster;
    const int sums = candidate.reduction == Reduction::cluster ? sum_bytes(candidate.tile, option) : 0;
    const int exchanged = std::max(sums, value_bytes(candidate.tile, option, arithmetic)) + kSharedReserveBytes;
    if (exchanged > space_.limits.shared_bytes) return false;
    figures.shared_bytes = std::max(saturate_to_int(shared_bytes(candidate)), exchanged);
    figures.stage_channels = candidate.stage_channels;
    figures.buffers = candidate.buffers;
    figures.barrier_every = barrier_cadence(figures.threads, candidate.staging);
    set_memory_figures(figures, space_.shape, candidate.tile, layout, space_.tiled_images());
    figures.load_conflict = candidate.shared.conflict;
    figures.load_words = channels_together(space_.input);
    figures.mean = {option.mean.multiply_adds / candidate.splits, loads_of(option) / candidate.splits,
                    option.mean.channels / candidate.splits};
    figures.fullest = figures.mean;
    const bool patch = candidate.staging == Staging::shared;
    const int together = channels_together(space_.input);
    const int ahead = space_.constraints.load_ahead.value_or(load_ahead_of(candidate.staging, together));
    const int accumulators = option.capacity * arithmetic.registers_per_channel();
    candidate.registers =
        choose_registers(accumulators + registers_ahead(space_.precision, candidate.staging, ahead, together),
                         patch ? figures.patch_positions : 0, figures.threads, figures.shared_bytes,
                         figures.tiles * figures.slices, space_.limits, space_.arch);
    if (candidate.registers == 0) return false;
    figures.registers = candidate.registers;
    candidate.score = plan_score(launch_cost(figures, space_.arch).total_us,
                                 figures.mean.multiply_adds * figures.tap_instructions, figures.slices);
    return true;
  }

  // Says how many loads a group has. A load that brings several channels is needed when any of them is.
  double loads_of(const GroupOption& option) const {
    const ConvShape& s = space_.shape;
    const int together = channels_together(space_.input);
    if (together == 1) return option.mean.loads;
    const double columns = static_cast<double>(s.in_channels) / s.groups * option.packed * s.kernel_h * s.kernel_w;
    return columns / together * (1 - std::pow(1 - std::min(1.0, option.mean.loads / columns), together));
  }

  std::int64_t tiles_of(const PixelTile& tile) const {
    return ceil_div(space_.tiled_images(), tile.images) * tiles_per_image(tile, space_.shape);
  }

  static std::tuple<int, int, int> key(const PixelTile& tile) { return {tile.images, tile.rows, tile.cols}; }

  const SearchSpace& space_;
  std::map<std::tuple<int, int, int>, std::vector<LayoutCandidate>> layouts_;
  std::vector<PlanCandidate> found_;
  bool unlike_ = false;
};

}  // namespace

std::vector<PlanCandidate> search_plans(const SearchSpace& space, std::size_t count) {
  return Search(space).run(count);
}

std::vector<PlanCandidate> search_unlike_plans(const SearchSpace& space, std::size_t count) {
  return Search(space).run_unlike(count);
}

double plan_score(double predicted_us, double largest_slice_multiply_adds, double slices) {
  return predicted_us * std::max(1.0, largest_slice_multiply_adds / kMaxSliceMultiplyAdds) + kSliceCostUs * slices;
}

int threads_of(const PixelTile& tile) { return static_cast<int>(ceil_div(tile.pixels(), kWarpSize)) * kWarpSize; }

int choose_promotion(int terms, const PlanConstraints& constraints) {
  if (constraints.promote_every) return *constraints.promote_every;
  return terms <= kDefaultPromoteEvery ? 0 : kDefaultPromoteEvery;
}

int load_ahead_of(Staging staging, int together) {
  if (staging == Staging::direct) return kDirectLoadAhead / together;
  return together == 1 ? kLoadAhead : kLoadAheadOfFour;
}

int registers_ahead(Precision precision, Staging staging, int load_ahead, int together) {
  const int words = load_ahead * together;
  const bool unpacks = precision == Precision::fp16 || precision == Precision::bf16;
  return (staging == Staging::direct ? words : std::max(0, words - kLoadAhead)) + (unpacks ? kUnpackedRegisters : 0);
}

int barrier_cadence(int threads, Staging staging) {
  if (staging == Staging::direct) return kBarrierEveryDirect;
  return threads > kManyWarps * kWarpSize ? kBarrierEveryManyWarps : kBarrierEveryFewWarps;
}

int bulk_channels(const PixelTile& tile, const ConvShape& shape, TensorLayout input, int channels) {
  const int multiple = bulk_channel_multiple(tile, shape, input);
  return static_cast<int>(std::min<std::int64_t>(shape.in_channels, ceil_div(channels, multiple) * multiple));
}

int even_stage(int channels, int stage_channels, const SharedLayout& layout) {
  const std::int64_t stages = std::max<std::int64_t>(1, ceil_div(channels, stage_channels));
  const std::int64_t even = std::max<std::int64_t>(1, ceil_div(channels, stages));
  if (stages == 1) return static_cast<int>(even);
  const int row = layout.channels_per_row;
  return static_cast<int>(ceil_div(even, row) * row);
}

int choose_registers(int group_capacity, std::int64_t patch_positions, int threads, int shared_bytes,
                     std::int64_t blocks, const PlanLimits& limits, const ArchSpec& arch) {
  const auto round_down = [](int registers) { return registers / kRegisterGranularity * kRegisterGranularity; };
  const std::int64_t warps = ceil_div(threads, kWarpSize);
  const int most = std::min(limits.registers_per_thread, most_registers(limits.registers_per_multiprocessor, warps));
  const int needed = needed_registers(group_capacity, patch_positions, threads);
  const int rounded = round_down(needed + kRegisterGranularity - 1);
  if (rounded > most) return 0;
  const auto useful = static_cast<int>(std::min<std::int64_t>(ceil_div(blocks, arch.multiprocessors),
                                                              resident_blocks(threads, rounded, shared_bytes, arch)));
  const int same_residency = most_registers(limits.registers_per_multiprocessor, warps * std::max(1, useful));
  return std::max(rounded, std::min({most, same_residency, rounded + kRegisterSlack}));
}

}  // namespace burin
