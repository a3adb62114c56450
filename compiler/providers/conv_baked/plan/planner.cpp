#include "compiler/providers/conv_baked/plan/planner.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/providers/conv_baked/plan/cost_model.h"
#include "compiler/providers/conv_baked/plan/grouping.h"
#include "compiler/providers/conv_baked/plan/search.h"
#include "compiler/providers/conv_baked/plan/shared_layout.h"
#include "compiler/providers/conv_baked/plan/unlike_plans.h"
#include "ir/baked_plan_activity.h"
#include "ir/baked_plan_pool.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// Finalists are dealt exactly; dealing reads every nonzero, so large layers get fewer.
constexpr std::int64_t kDealtNonzeros = 8'000'000;
constexpr int kBulkChannels = 4;  // so many channels of any image are a multiple of 16 bytes, and none is left out
constexpr std::int64_t kFewestFinalists = 3, kMostFinalists = 12;
constexpr double kHopeless = 3;           // the model is at times wrong by a factor of two, not by more
constexpr std::size_t kLooksPerPlan = 3;  // plans that are dealt for one that make_plans() returns

struct Dealt {
  std::vector<std::vector<int>> groups;
  std::vector<std::vector<ChannelWork>> work;  // per group
};

struct ScoredPlan {
  BakedPlan plan;
  double score = 0;  // plan_score()
};

class Planner {
 public:
  Planner(const ConvLayer& layer, const SparsePattern& pattern, const PlanRequest& request)
      : layer_(layer), shape_(layer.shape), pattern_(pattern), request_(request) {
    if (is_half(request_.precision)) request_.input_layout = request_.output_layout = TensorLayout::n2chw;
    check_request();
    limits_.shared_bytes = saturate_to_int(kSaturated);
    limits_.registers_per_multiprocessor = limits_.registers_per_thread = limits_.shared_bytes;
    limits_.bulk_copies = request_.aligned_input;
    for (const std::string& name : request.archs) {
      const ArchSpec& arch = arch_by_name(name);
      limits_.shared_bytes = std::min(limits_.shared_bytes, arch.max_shared_per_block);
      limits_.registers_per_multiprocessor =
          std::min(limits_.registers_per_multiprocessor, arch.registers_per_multiprocessor);
      limits_.registers_per_thread = std::min(limits_.registers_per_thread, arch.max_registers_per_thread);
      limits_.bulk_copies = limits_.bulk_copies && arch.compute >= kBulkCopyCompute;
      limits_.clusters = limits_.clusters && arch.clusters;
    }
    if (request_.skip_dead_tiles) limits_.shared_bytes -= most_activity_bytes(shape_);
  }

  std::vector<BakedPlan> run(std::size_t count) {
    const ArchSpec& arch = arch_by_name(request_.archs.front());
    options_ = group_options(shape_, pattern_);
    const std::int64_t nonzeros = std::max<std::int64_t>(1, pattern_.statistics.nonzeros);
    const std::int64_t finalists = std::clamp(kDealtNonzeros / nonzeros, kFewestFinalists, kMostFinalists);
    const SearchSpace space{shape_,
                            options_,
                            request_.batch,
                            limits_,
                            arch,
                            request_.constraints,
                            request_.input_layout,
                            request_.precision,
                            std::ranges::max(pattern_.statistics.per_row)};
    std::vector<ScoredPlan> found = finish(search_plans(space, static_cast<std::size_t>(finalists)), arch);
    if (found.empty() && request_.constraints.any()) {
      fail(ErrorKind::usage, "layer '{}', batch {}: no plan keeps --plan {}; leave something of it to the planner",
           layer_.name, request_.batch, print(request_.constraints));
    }
    if (found.empty()) fail_no_room();
    if (count > 1) add_others(found, finish(search_unlike_plans(space, kLooksPerPlan * count), arch), count);
    found.resize(std::min(found.size(), count));
    std::vector<BakedPlan> plans;
    for (ScoredPlan& scored : found) {
      check_plan(scored.plan);
      plans.push_back(std::move(scored.plan));
    }
    return plans;
  }

 private:
  void check_request() const {
    if (request_.archs.empty()) fail(ErrorKind::usage, "no architecture to plan for; name one, e.g. sm_90");
    const std::vector<std::string> faults = verify(shape_);
    if (!faults.empty()) fail(ErrorKind::bad_input, "layer '{}': {}", layer_.name, faults.front());
    if (request_.batch < 1 || request_.batch > kMaxBatch) {
      fail(ErrorKind::unsupported,
           "layer '{}': batch is {}, allowed is 1 to {} (kMaxBatch); launch larger ones in parts", layer_.name,
           request_.batch, kMaxBatch);
    }
    if (request_.constraints.promote_every && request_.precision != Precision::fp16x2) {
      fail(ErrorKind::usage, "layer '{}': --plan promote={} is for fp16x2 alone; sums of {} are FP32 from the start",
           layer_.name, *request_.constraints.promote_every, to_string(request_.precision));
    }
    if (const std::optional<PixelTile>& tile = request_.constraints.tile) check_tile(*tile);
    if (const std::optional<Pool>& pool = shape_.epilogue.pool) check_pool(*pool);
    BURIN_CHECK(pattern_.in_channels == shape_.in_channels && pattern_.out_channels == shape_.out_channels &&
                    pattern_.kernel_h == shape_.kernel_h && pattern_.kernel_w == shape_.kernel_w,
                "the pattern is not of layer '{}'", layer_.name);
    if (pattern_.statistics.nonzeros > kMaxLayerNonzeros) {
      fail(ErrorKind::unsupported,
           "layer '{}': the weights have {} nonzeros, allowed are {} (kMaxLayerNonzeros), because each becomes an "
           "instruction; pruning further, or a larger zero threshold where many weights are tiny, helps",
           layer_.name, pattern_.statistics.nonzeros, kMaxLayerNonzeros);
    }
  }

  // Before anything is laid out for it.
  void check_tile(const PixelTile& tile) const {
    if (tile.images <= kMaxThreadsPerBlock && tile.rows <= shape_.conv_h() && tile.cols <= shape_.conv_w()) return;
    fail(ErrorKind::usage,
         "layer '{}': --plan tile={}x{}x{}: its output has {} rows and {} columns, and a tile at most {} images",
         layer_.name, tile.images, tile.rows, tile.cols, shape_.conv_h(), shape_.conv_w(), kMaxThreadsPerBlock);
  }

  void check_pool(const Pool& pool) const {
    const auto refuse = [&](std::string_view why) {
      fail(ErrorKind::unsupported, "layer '{}': it pools its outputs ({}), {}", layer_.name, describe(pool), why);
    };
    if (request_.skip_dead_tiles) refuse("and --skip-dead-tiles is for layers that do not");
    if (const int pixels = pixel_tile({1, 1}, 1, shape_).pixels(); pixels > kMaxThreadsPerBlock) {
      refuse(fmt::format("of {} pixels each, more than the {} threads of a block; a pool of its own has no such limit",
                         pixels, kMaxThreadsPerBlock));
    }
  }

  // Plans with their exact costs, best first.
  std::vector<ScoredPlan> finish(const std::vector<PlanCandidate>& candidates, const ArchSpec& arch) {
    std::vector<ScoredPlan> found;
    for (const PlanCandidate& candidate : candidates) {
      std::optional<BakedPlan> plan = build(candidate, arch);
      if (!plan) continue;
      const std::vector<SliceWork> work = slice_work(*plan, dealt(candidate.option).work, shape_.in_channels);
      plan->predicted_us = launch_cost(figures_of(*plan, shape_, work), arch).total_us;
      double largest = 0;
      for (const SliceWork& slice : work) largest = std::max(largest, slice.multiply_adds);
      const double score = plan_score(plan->predicted_us, largest, static_cast<double>(work.size()));
      found.push_back({*std::move(plan), score});
    }
    std::ranges::stable_sort(found, {}, &ScoredPlan::score);
    return found;
  }

  // Makes `found` up to `count` plans that are unlike each other; the first stays where it is.
  static void add_others(std::vector<ScoredPlan>& found, std::vector<ScoredPlan> others, std::size_t count) {
    for (ScoredPlan& other : others) {
      if (other.score > kHopeless * found.front().score) continue;
      const auto same = [&](const ScoredPlan& one) { return one.plan == other.plan; };
      if (std::ranges::none_of(found, same)) found.push_back(std::move(other));
    }
    std::ranges::stable_sort(found.begin() + 1, found.end(), {}, &ScoredPlan::score);
    std::vector<PlanTraits> traits;
    for (const ScoredPlan& scored : found) traits.push_back(traits_of(scored.plan));
    std::vector<ScoredPlan> picked;
    for (const std::size_t i : pick_unlike(traits, count)) picked.push_back(std::move(found[i]));
    found = std::move(picked);
  }

  const Dealt& dealt(std::size_t option) {
    const auto [entry, is_new] = dealt_.try_emplace(option);
    if (is_new) {
      entry->second.groups =
          deal_outputs(shape_, pattern_, options_[option], channels_together(request_.output_layout));
      entry->second.work = count_work(pattern_, group_of_outputs(entry->second.groups, shape_.out_channels),
                                      entry->second.groups.size(), together());
    }
    return entry->second;
  }

  // Terms of the longest sum that one slice adds up.
  int longest_slice_sum(const BakedPlan& plan) const {
    const std::vector<int> group_of = group_of_outputs(plan.groups, shape_.out_channels);
    const auto splits = static_cast<std::size_t>(plan.splits), groups = plan.groups.size();
    std::vector<int> split_of(groups * static_cast<std::size_t>(shape_.in_channels), 0);
    const auto split_at = [&](int group, int c) -> int& {
      return split_of[static_cast<std::size_t>(group) * static_cast<std::size_t>(shape_.in_channels) +
                      static_cast<std::size_t>(c)];
    };
    for (const Slice& slice : plan.slices) {
      for (const int c : slice.channels) split_at(slice.group, c) = slice.split;
    }
    std::vector<int> terms(static_cast<std::size_t>(shape_.out_channels) * splits, 0);
    int longest = 0;
    for (const Tap& tap : pattern_.taps) {
      const auto split = static_cast<std::size_t>(split_at(group_of[tap.k], tap.c));
      longest = std::max(longest, ++terms[static_cast<std::size_t>(tap.k) * splits + split]);
    }
    return longest;
  }

  int together() const { return channels_together(request_.input_layout); }

  // Nothing when the exact channel counts need more stages than fit.
  std::optional<BakedPlan> build(const PlanCandidate& candidate, const ArchSpec& arch) {
    const Dealt& deal = dealt(candidate.option);
    BakedPlan plan;
    plan.arch = arch.name;
    plan.precision = request_.precision;
    plan.batch = request_.batch;
    plan.input_layout = request_.input_layout;
    plan.output_layout = request_.output_layout;
    plan.staging = candidate.staging;
    plan.tile = candidate.tile;
    if (shape_.epilogue.pool) plan.outputs = output_tile(plan.tile, shape_);
    plan.keeps_halves = may_keep_halves(request_.precision, shape_);
    plan.threads = threads_of(plan.tile);
    plan.shared = candidate.shared.layout;
    plan.groups = deal.groups;
    plan.splits = candidate.splits;
    plan.reduction = candidate.reduction;
    plan.cluster = candidate.cluster;
    if (request_.skip_dead_tiles) {
      plan.skips = default_cell(plan, shape_);
      plan.marks = true;
    }
    int most_channels = 0;
    const int align = plan.staging == Staging::bulk ? kBulkChannels : together();
    // One cut for all groups lets the entry find a slice's channels before it jumps to the slice. It is made as if all
    // output channels were one group.
    const bool one_cut = plan.staging == Staging::bulk && shape_.groups == 1;
    std::vector<std::vector<int>> common;
    if (one_cut) {
      const std::vector<int> one_group(static_cast<std::size_t>(shape_.out_channels), 0);
      const auto work = count_work(pattern_, one_group, 1, together());
      common = deal_channels(work.front(), shape_.in_channels, plan.splits, align);
    }
    for (std::size_t g = 0; g < deal.groups.size(); ++g) {
      const auto splits = one_cut ? common : deal_channels(deal.work[g], shape_.in_channels, plan.splits, align);
      for (int split = 0; split < plan.splits; ++split) {
        most_channels = std::max(most_channels, static_cast<int>(splits[split].size()));
        plan.slices.push_back({static_cast<int>(g), split, splits[split]});
      }
    }
    if (plan.precision == Precision::fp16x2) {
      plan.promote_every = choose_promotion(longest_slice_sum(plan), request_.constraints);
    }
    if (!set_staging(plan, candidate, most_channels)) return std::nullopt;
    plan.barrier_every = request_.constraints.barrier_every.value_or(barrier_cadence(plan.threads, plan.staging));
    plan.load_ahead = request_.constraints.load_ahead.value_or(load_ahead_of(plan.staging, together()));
    const std::int64_t blocks = ceil_div(plan.batch, plan.tile_images()) * plan.tiles_per_image(shape_) *
                                static_cast<std::int64_t>(plan.slices.size());
    plan.load_together = request_.constraints.load_together.value_or(load_together(plan, blocks, arch));
    const std::int64_t positions =
        plan.staging != Staging::shared
            ? 0
            : saturating_product({plan.tile.images, plan.shared.patch_rows, plan.shared.patch_cols});
    const int ahead = registers_ahead(plan.precision, plan.staging, plan.load_ahead, together());
    plan.max_registers = choose_registers(plan.accumulator_registers() + ahead, positions, plan.threads,
                                          plan.shared_bytes(), blocks, limits_, arch);
    if (plan.max_registers == 0) return std::nullopt;
    return plan;
  }

  // Direct loads that begin together. Where a multiprocessor has but one block, fetching its code bounds it, and the
  // instructions that keep batches apart cost more than waiting. Where large parts of images come from memory, blocks
  // that load in step are slow: 1x1 512->256@28, batch 32, 132 us against 67 (it is thought that they ask the same
  // banks, images being a power of two apart).
  int load_together(const BakedPlan& plan, std::int64_t blocks, const ArchSpec& arch) const {
    constexpr std::int64_t kCachedBytes = 32 << 20;  // what the L2 cache surely holds
    constexpr int kFewTiles = 2;
    if (plan.skips || plan.staging != Staging::direct || blocks <= arch.multiprocessors) return 1;
    const std::int64_t input_bytes =
        saturating_product({shape_.input_elements(), plan.batch, static_cast<std::int64_t>(sizeof(float))});
    if (input_bytes > kCachedBytes && plan.tiles_per_image(shape_) <= kFewTiles) return 1;
    return std::max(1, plan.load_ahead / 2);
  }

  // The candidate's stages were made for expected channel counts; the fullest slice may have some more.
  bool set_staging(BakedPlan& plan, const PlanCandidate& candidate, int most_channels) const {
    if (plan.staging == Staging::direct) {
      plan.stage_channels = std::max(1, most_channels);
      plan.buffers = 1;
      return true;
    }
    for (int stage = candidate.stage_channels; stage > 0; --stage) {
      if (plan.staging == Staging::bulk) {
        const std::int64_t stages = std::max<std::int64_t>(1, ceil_div(most_channels, stage));
        const int channels = std::max(1, static_cast<int>(ceil_div(most_channels, stages)));
        plan.stage_channels = bulk_channels(plan.tile, shape_, plan.input_layout, channels);
        plan.shared = bulk_layout(plan.tile, shape_, plan.input_layout, plan.stage_channels).layout;
      } else {
        plan.stage_channels = even_stage(most_channels, stage, plan.shared);
      }
      const auto stages = static_cast<int>(std::max<std::int64_t>(1, ceil_div(most_channels, plan.stage_channels)));
      plan.buffers = stages == 1 ? 1 : std::clamp(candidate.buffers, 2, stages);
      if (plan.shared_bytes() <= limits_.shared_bytes) return true;
    }
    return false;
  }

  [[noreturn]] void fail_no_room() const {
    const std::int64_t rows = patch_extent(1, shape_.stride_h, shape_.kernel_h, shape_.dilation_h);
    const std::int64_t cols = patch_extent(1, shape_.stride_w, shape_.kernel_w, shape_.dilation_w);
    fail(
        ErrorKind::unsupported,
        "layer '{}': one output pixel reads {}x{} inputs of a channel (kernel {}x{}, dilation {}x{}); two channels are "
        "{} bytes of shared memory, a block has {} on {}; a smaller dilation or kernel helps",
        layer_.name, rows, cols, shape_.kernel_h, shape_.kernel_w, shape_.dilation_h, shape_.dilation_w,
        2 * rows * cols * sizeof(float), limits_.shared_bytes - kSharedReserveBytes, fmt::join(request_.archs, ", "));
  }

  void check_plan(const BakedPlan& plan) const {
    for (const std::string& name : request_.archs) {
      BakedPlan on_arch = plan;
      on_arch.arch = name;
      const std::vector<std::string> faults =
          name == plan.arch ? verify(on_arch, shape_, pattern_) : verify(on_arch, shape_);
      // What a person chose may be what no check before the search has thought of.
      if (!faults.empty() && request_.constraints.any()) {
        fail(ErrorKind::usage, "layer '{}': the plan that --plan {} leads to is not legal on {}: {}", layer_.name,
             print(request_.constraints), name, faults.front());
      }
      BURIN_CHECK(faults.empty(), "the plan of layer '{}' is not legal on {}: {}", layer_.name, name, faults.front());
    }
  }

  const ConvLayer& layer_;
  const ConvShape& shape_;
  const SparsePattern& pattern_;
  PlanRequest request_;
  PlanLimits limits_;
  std::vector<GroupOption> options_;
  std::map<std::size_t, Dealt> dealt_;
};

}  // namespace

BakedPlan make_plan(const ConvLayer& layer, const SparsePattern& pattern, const PlanRequest& request) {
  return std::move(Planner(layer, pattern, request).run(1).front());
}

std::vector<BakedPlan> make_plans(const ConvLayer& layer, const SparsePattern& pattern, const PlanRequest& request,
                                  std::size_t count) {
  BURIN_CHECK(count > 0, "no plan of layer '{}' was asked for", layer.name);
  return Planner(layer, pattern, request).run(count);
}

}  // namespace burin
