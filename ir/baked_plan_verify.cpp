// The rules of a BakedPlan, each with the reason why it exists.
#include <fmt/format.h>

#include <algorithm>

#include "ir/baked_plan.h"
#include "ir/baked_plan_activity.h"
#include "ir/baked_plan_pool.h"
#include "ir/element_type.h"
#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

class PlanVerifier : private Faults {
 public:
  PlanVerifier(const BakedPlan& plan, const ConvShape& shape) : plan_(plan), shape_(shape) {}

  std::vector<std::string> run() {
    // Every further rule computes with the shape.
    if (add_all(verify(shape_), "the layer's shape: ")) return take();
    check_scalars();
    check_image_words("input_image_words", plan_.input_image_words, shape_.input_elements(), plan_.input_layout);
    check_image_words("output_image_words", plan_.output_image_words, shape_.output_elements(), plan_.output_layout);
    if (shape_.epilogue.residual) {
      check_image_words("residual_image_words", plan_.residual_image_words, shape_.conv_elements(),
                        plan_.output_layout);
    } else if (plan_.residual_image_words != 0) {
      add("residual_image_words is {}, but the layer has no such tensor", plan_.residual_image_words);
    }
    check_precision();
    add_all(activity_faults(plan_, shape_));
    add_all(pool_faults(plan_, shape_));
    check_tile();
    check_shared_layout();
    check_groups();
    check_slices();
    check_stages();
    check_arch();
    return take();
  }

 private:
  bool in_range(std::string_view attribute, std::int64_t value, std::int64_t low, std::int64_t high,
                std::string_view why) {
    if (value >= low && value <= high) return true;
    add("{} is {}, allowed is {} to {}: {}", attribute, value, low, high, why);
    return false;
  }

  void check_image_words(std::string_view attribute, std::int64_t words, std::int64_t own, TensorLayout layout) {
    if (words == 0) return;
    if (channels_together(layout) != 1) {
      add("{} is {}: a slice of a larger tensor lies in nchw or n2chw, not in {}", attribute, words, to_string(layout));
    } else {
      in_range(attribute, words, own, kMaxImageBytes / kWordBytes, "images must not overlap, and offsets have 32 bits");
    }
  }

  void check_scalars() {
    const bool plain_name =
        !plan_.template_name.empty() && std::all_of(plan_.template_name.begin(), plan_.template_name.end(), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
        });
    if (!plain_name) {
      add("template is '{}', allowed are names of a-z, 0-9 and '_': it becomes part of the kernel's symbol",
          plan_.template_name);
    }
    in_range("batch", plan_.batch, 1, kMaxBatch, "kMaxBatch images fit one launch");
    in_range("barrier_every", plan_.barrier_every, 0, kMaxLayerNonzeros,
             "it counts multiply-adds, of which a layer has at most kMaxLayerNonzeros");
    in_range("load_ahead", plan_.load_ahead, 1, kMaxLoadAhead,
             "each activation that is loaded ahead holds a register (kMaxLoadAhead)");
    const bool may_keep_together = plan_.staging == Staging::direct && !plan_.skips;
    in_range("load_together", plan_.load_together, 1, may_keep_together ? std::max(1, plan_.load_ahead) : 1,
             "direct loads, of those that are ahead, can be kept together where no channels are skipped");
    if (!(plan_.predicted_us >= 0)) add("predicted_us is {}, it must be a time: 0 or more", plan_.predicted_us);
  }

  void check_precision() {
    if (plan_.precision == Precision::tf32) add("precision is tf32, and baked code rounds no factors: fp32 it can");
    const auto check_layout = [&](std::string_view tensor, TensorLayout layout) {
      const bool pairs = layout == TensorLayout::n2chw;
      if (pairs == is_half(plan_.precision) && element_words(layout) == 1) return;
      if (!is_half(plan_.precision)) {
        add("{} is {} with fp32, it must be nchw or nchw4, the layouts of floats that baked code knows", tensor,
            to_string(layout));
      } else {
        add("{} is {} with {}, it must be n2chw: a thread computes the two images that share a word", tensor,
            to_string(layout), to_string(plan_.precision));
      }
    };
    check_layout("input_layout", plan_.input_layout);
    check_layout("output_layout", plan_.output_layout);
    if (plan_.precision == Precision::fp16x2) {
      if (plan_.promote_every < 0 || plan_.promote_every > kMaxPromoteEvery) {
        add("promote_every is {}, allowed is 0 to {} (kMaxPromoteEvery): it counts terms that FP16 can add up",
            plan_.promote_every, kMaxPromoteEvery);
      }
    } else if (plan_.promote_every != 0) {
      add("promote_every is {}, with {} it must be 0: its sums are FP32 from the start", plan_.promote_every,
          to_string(plan_.precision));
    }
  }

  void check_tile() {
    const PixelTile& tile = plan_.tile;
    tile_legal_ = in_range("tile images", tile.images, 1, kMaxThreadsPerBlock, "every pixel of the tile has a thread");
    tile_legal_ &= in_range("tile rows", tile.rows, 1, shape_.conv_h(), "the output has no more rows");
    tile_legal_ &= in_range("tile columns", tile.cols, 1, shape_.conv_w(), "the output has no more columns");
    in_range("threads", plan_.threads, kWarpSize, kMaxThreadsPerBlock, "the hardware's limit (kMaxThreadsPerBlock)");
    if (plan_.threads % kWarpSize != 0) {
      add("threads is {}, it must be a multiple of {}: barriers count whole warps", plan_.threads, kWarpSize);
    }
    if (!tile_legal_) return;
    const std::int64_t pixels = saturating_product({tile.images, tile.rows, tile.cols});
    if (pixels > plan_.threads) {
      add("the tile has {} pixels ({}x{}x{}) for {} threads: every pixel needs a thread", pixels, tile.images,
          tile.rows, tile.cols, plan_.threads);
      tile_legal_ = false;
      return;
    }
    const std::int64_t cluster = std::max(1, plan_.cluster.tiles);
    if (plan_.tiles_per_image(shape_) < 1) return;  // pool_faults() has said why
    const std::int64_t tiles =
        saturating_product({ceil_div(std::max(1, plan_.batch), plan_.tile_images()), plan_.tiles_per_image(shape_)});
    const std::int64_t width = saturating_product({ceil_div(tiles, cluster), cluster});
    in_range("the number of tiles", width, 1, kMaxTiles, "the grid's limit in x");
  }

  void check_shared_layout() {
    const SharedLayout& shared = plan_.shared;
    if (plan_.staging == Staging::direct) {
      check_direct();
      return;
    }
    if (!tile_legal_) return;
    if (plan_.staging == Staging::bulk) {
      check_bulk();
      return;
    }
    if (channels_together(plan_.input_layout) != 1) {
      add("staging is shared, the input layout is {}: patches are copied word by word from nchw; bulk or direct help",
          to_string(plan_.input_layout));
    }
    if (shared.margin != 0) add("margin is {}, with shared staging it must be 0: the halo is copied", shared.margin);
    check_patch("rows", shared.patch_rows, plan_.tile.rows, shape_.stride_h, shape_.kernel_h, shape_.dilation_h);
    check_patch("columns", shared.patch_cols, plan_.tile.cols, shape_.stride_w, shape_.kernel_w, shape_.dilation_w);
    if (!in_range("channels_per_row", shared.channels_per_row, 1, kMaxChannels, "a row holds at least one channel")) {
      return;
    }
    if (shared.column_phases != 1 && shared.column_phases != shape_.stride_w) {
      add("column_phases is {}, the stride is {}: it must be 1 or the stride, so that lanes step from word to word",
          shared.column_phases, shape_.stride_w);
      return;
    }
    check_pitch("row_pitch", shared.row_pitch, saturating_product({shared.channels_per_row, shared.row_words()}),
                shared.column_phases == 1 ? "channels_per_row x patch columns"
                                          : "channels_per_row x patch columns, rounded up to whole phases",
                "rows would overlap");
    check_pitch("image_pitch", shared.image_pitch, saturating_product({shared.patch_rows, shared.row_pitch}),
                "patch rows x row_pitch", "images would overlap");
    check_pitch("channel_pitch", shared.channel_pitch, saturating_product({plan_.tile.images, shared.image_pitch}),
                "tile images x image_pitch", "channels would overlap");
  }

  void check_direct() {
    if (shape_.kernel_h != 1 || shape_.kernel_w != 1) {
      add("staging is direct, the kernel is {}x{}: only with 1x1 does each thread read activations of its own",
          shape_.kernel_h, shape_.kernel_w);
    }
    if (shape_.pad != Padding{}) {
      add("staging is direct, but the layer is padded: nothing would put zeros around the image");
    }
    if (plan_.buffers != 1) add("staging is direct, so buffers is 1, not {}: there is nothing to copy", plan_.buffers);
    if (plan_.shared != SharedLayout{}) add("staging is direct, so the shared layout is all zero: it is not used");
  }

  void check_bulk() {
    if (plan_.input_image_words % (kWideAccessBytes / kWordBytes) != 0) {
      add("staging is bulk, input_image_words is {}: bulk copies begin at multiples of {} words",
          plan_.input_image_words, kWideAccessBytes / kWordBytes);
    }
    const SharedLayout& shared = plan_.shared;
    if (plan_.tile.cols != shape_.conv_w()) {
      add("staging is bulk, the tile has {} of {} columns: bulk copies bring whole rows", plan_.tile.cols,
          shape_.conv_w());
    }
    const bool planes = plan_.tile.rows == shape_.conv_h();
    if (!planes && plan_.tile.images != 1) {
      add("staging is bulk, the tile has {} of {} rows of {} images: parts of several images lie apart",
          plan_.tile.rows, shape_.conv_h(), plan_.tile.images);
    }
    const std::int64_t rows =
        planes ? shape_.in_h : input_reach(plan_.tile.rows, shape_.stride_h, shape_.kernel_h, shape_.dilation_h);
    const auto expect = [&](std::string_view name, std::int64_t given, std::int64_t needed, std::string_view why) {
      if (given != needed) add("staging is bulk, {} is {}, it must be {}: {}", name, given, needed, why);
    };
    expect("patch rows", shared.patch_rows, rows, planes ? "the image's" : "those that the tile's pixels read");
    expect("patch columns", shared.patch_cols, shape_.in_w, "the image's");
    expect("channels_per_row", shared.channels_per_row, 1, "rows lie as in the image");
    expect("column_phases", shared.column_phases, 1, "rows lie as in the image");
    const int together = channels_together(plan_.input_layout);
    expect("row_pitch", shared.row_pitch, std::int64_t{shape_.in_w} * together, "rows lie as in the image");
    expect("channel_pitch", shared.channel_pitch, saturating_product({rows, shape_.in_w, together}),
           "planes lie as in the image");
    check_pitch("image_pitch", shared.image_pitch,
                saturating_product({ceil_div(std::max(1, plan_.stage_channels), together), shared.channel_pitch}),
                "stage_channels x channel_pitch", "images would overlap");
    const auto reach = [&](int rows_beyond, int cols_beyond) {
      return saturating_product({rows_beyond, shape_.in_w, together}) + std::int64_t{cols_beyond} * together;
    };
    const std::int64_t margin =
        std::max(reach(shape_.pad.top, shape_.pad.left), reach(shape_.pad.bottom, shape_.pad.right));
    check_pitch("margin", shared.margin, margin, "the padding in rows of the image",
                "lanes at the border would read outside of the block's shared memory");
    // Copies move 16 bytes at a time.
    constexpr std::int64_t kQuantum = 4;
    const auto whole = [&](std::string_view name, std::int64_t words) {
      if (words % kQuantum != 0) {
        add("staging is bulk, {} is {} words, it must be a multiple of {}: bulk copies move 16 bytes", name, words,
            kQuantum);
      }
    };
    whole("image_pitch", shared.image_pitch);
    whole("margin", shared.margin);
    const std::int64_t plane = std::int64_t{shape_.in_h} * shape_.in_w;
    if (together > 1) {
      check_blocks(together);
      return;
    }
    whole("one image", plane * shape_.in_channels);
    if (!planes) {
      whole("a row", shape_.in_w);
      return;
    }
    if (plane % kQuantum == 0) return;
    for (const Slice& slice : plan_.slices) {
      if (slice.channels.empty()) continue;
      whole("what lies before a slice's first channel", plane * slice.channels.front());
      whole("a slice", plane * static_cast<std::int64_t>(slice.channels.size()));
    }
    whole("a stage", plane * plan_.stage_channels);
  }

  // Blocks of channels are copied whole.
  void check_blocks(int together) {
    if (plan_.stage_channels % together != 0 && plan_.stage_channels < shape_.in_channels) {
      add("stage_channels is {}, with {} it must be a multiple of {}: blocks of channels are copied whole",
          plan_.stage_channels, to_string(plan_.input_layout), together);
    }
    for (const Slice& slice : plan_.slices) {
      if (slice.channels.empty() || (slice.channels.front() % together == 0)) continue;
      add("slice {} {} begins with channel {}, with {} it must be a multiple of {}: blocks of channels are copied "
          "whole",
          slice.group, slice.split, slice.channels.front(), to_string(plan_.input_layout), together);
      return;
    }
  }

  void check_contiguous() {
    for (const Slice& slice : plan_.slices) {
      for (std::size_t i = 1; i < slice.channels.size(); ++i) {
        if (slice.channels[i] == slice.channels[i - 1] + 1) continue;
        add("slice {} {} reads channel {} after {}: with bulk staging they must follow each other, one copy brings "
            "many",
            slice.group, slice.split, slice.channels[i], slice.channels[i - 1]);
        return;
      }
    }
  }

  void check_patch(std::string_view axis, int given, int tile, int stride, int kernel, int dilation) {
    const int needed = input_reach(tile, stride, kernel, dilation);
    if (given != needed) {
      add("patch {} is {}, it must be {}: that is what {} output {} read with stride {}, kernel {} and dilation {}",
          axis, given, needed, tile, axis, stride, kernel, dilation);
    }
  }

  void check_pitch(std::string_view name, std::int64_t given, std::int64_t least, std::string_view product,
                   std::string_view why) {
    if (given < least) add("{} is {}, it must be at least {} ({}): {}", name, given, least, product, why);
  }

  void check_groups() {
    if (plan_.groups.empty()) add("there is no group: every output channel needs one");
    std::vector<int> owner(static_cast<std::size_t>(shape_.out_channels), -1);
    for (std::size_t g = 0; g < plan_.groups.size(); ++g) {
      const std::vector<int>& group = plan_.groups[g];
      if (group.empty()) add("group {} is empty: a block of it would compute nothing", g);
      if (group.size() > kMaxGroupChannels) {
        add("group {} has {} channels, allowed are {} (kMaxGroupChannels): each is an accumulator in a register", g,
            group.size(), kMaxGroupChannels);
      }
      for (const int k : group) {
        if (k < 0 || k >= shape_.out_channels) {
          add("group {} names output channel {}, the layer has 0 to {}", g, k, shape_.out_channels - 1);
        } else if (owner[k] >= 0) {
          add("output channel {} is in group {} and in group {}: it would be written twice", k, owner[k], g);
        } else {
          owner[k] = static_cast<int>(g);
        }
      }
    }
    std::vector<int> missing;
    for (int k = 0; k < shape_.out_channels; ++k) {
      if (owner[k] < 0) missing.push_back(k);
    }
    if (!missing.empty()) {
      add("{} output channel{} in no group, the first is {}: the output would keep old values", missing.size(),
          missing.size() == 1 ? " is" : "s are", missing.front());
    }
  }

  void check_slices() {
    if (!in_range("splits", plan_.splits, 1, kMaxSlices, "the grid's limit in y")) return;
    const auto expected = static_cast<std::int64_t>(plan_.groups.size()) * plan_.splits;
    if (expected > kMaxSlices) {
      add("{} groups x {} splits are {} slices, allowed are {} (kMaxSlices): the grid's limit in y",
          plan_.groups.size(), plan_.splits, expected, kMaxSlices);
    }
    if (static_cast<std::int64_t>(plan_.slices.size()) != expected) {
      add("there are {} slices, {} groups x {} splits need {}", plan_.slices.size(), plan_.groups.size(), plan_.splits,
          expected);
      return;
    }
    std::vector<int> stamp(static_cast<std::size_t>(shape_.in_channels), -1);
    for (std::size_t i = 0; i < plan_.slices.size(); ++i) {
      const Slice& slice = plan_.slices[i];
      const int group = static_cast<int>(i) / plan_.splits, split = static_cast<int>(i) % plan_.splits;
      if (slice.group != group || slice.split != split) {
        add("slice {} is (group {}, split {}), it must be ({}, {}): a block finds its slice by its number", i,
            slice.group, slice.split, group, split);
      }
      for (const int c : slice.channels) {
        if (c < 0 || c >= shape_.in_channels) {
          add("slice {} {} names input channel {}, the layer has 0 to {}", group, split, c, shape_.in_channels - 1);
        } else if (stamp[c] == group) {
          add("slice {} {} names input channel {}, which its group already reads: it would be added twice", group,
              split, c);
        } else {
          stamp[c] = group;
        }
      }
    }
    check_reduction();
    check_cluster_shape();
  }

  void check_reduction() {
    if (plan_.splits == 1 && plan_.reduction != Reduction::none) {
      add("reduction is {}, with 1 split it must be none: there is nothing to add", to_string(plan_.reduction));
    }
    if (plan_.splits > 1 && plan_.reduction == Reduction::none) {
      add("reduction is none, with {} splits it must be last_block or cluster: the partial sums must be added",
          plan_.splits);
    }
    if (plan_.reduction == Reduction::cluster && plan_.splits > kMaxClusterBlocks) {
      add("reduction is cluster with {} splits, allowed are {} (kMaxClusterBlocks): more blocks may find no place "
          "together, last_block has no such limit",
          plan_.splits, kMaxClusterBlocks);
    }
  }

  void check_cluster_shape() {
    const ClusterShape& cluster = plan_.cluster;
    const std::string shape = to_string(cluster);
    if (cluster.tiles < 1 || cluster.splits < 1) return add("cluster is {}, it must be at least 1x1: one block", shape);
    if (saturating_product({cluster.tiles, cluster.splits}) > kMaxClusterBlocks) {
      add("cluster is {}, allowed are {} blocks (kMaxClusterBlocks): more may find no place together", shape,
          kMaxClusterBlocks);
    }
    const int needed = plan_.reduction == Reduction::cluster ? plan_.splits : 1;
    if (cluster.splits == needed) return;
    add("cluster is {}, with reduction {} and {} split{} it must hold {} of them: {}", shape,
        to_string(plan_.reduction), plan_.splits, plan_.splits == 1 ? "" : "s", needed,
        needed > 1 ? "they read each other's shared memory" : "none needs another at its side");
  }

  void check_stages() {
    in_range("stage_channels", plan_.stage_channels, 1, kMaxChannels, "a stage holds at least one channel");
    in_range("buffers", plan_.buffers, 1, kMaxBuffers, "asynchronous copies are counted per buffer (kMaxBuffers)");
    if (plan_.staging == Staging::bulk) check_contiguous();
    if (plan_.staging == Staging::direct || plan_.buffers != 1 || plan_.stage_channels < 1) return;
    for (const Slice& slice : plan_.slices) {
      if (plan_.slice_stages(slice) <= 1) continue;
      add("buffers is 1, but slice {} {} has {} stages ({} channels, {} at a time): the next copy would overwrite the "
          "buffer that is being read",
          slice.group, slice.split, plan_.slice_stages(slice), slice.channels.size(), plan_.stage_channels);
      return;
    }
  }

  void check_arch() {
    const ArchSpec* arch = find_arch(plan_.arch);
    if (arch == nullptr) return add("arch is '{}', known are {}", plan_.arch, fmt::join(known_arch_names(), ", "));
    if (plan_.cluster.blocks() > 1 && plan_.reduction != Reduction::cluster && !arch->clusters) {
      add("clusters are of {} blocks ({}), but {} has none (sm_90 and later do): 1x1 runs everywhere",
          plan_.cluster.blocks(), to_string(plan_.cluster), plan_.arch);
    }
    if (plan_.reduction == Reduction::cluster) check_cluster(*arch);
    if (plan_.outputs) check_values(*arch);
    if (plan_.staging == Staging::bulk && arch->compute < kBulkCopyCompute) {
      add("staging is bulk on {}: bulk copies begin with sm_{}", plan_.arch, kBulkCopyCompute);
    }
    if (plan_.staging_bytes() > arch->max_shared_per_block) {
      add("{} buffers of {} bytes and {} bytes of reserve need more shared memory than the {} bytes that a block has "
          "on "
          "{}: fewer stage_channels or buffers, or a smaller tile, help",
          plan_.buffers, plan_.stage_bytes(),
          plan_.staging_bytes() - saturate_to_int(saturating_product({plan_.buffers, plan_.stage_bytes()})),
          arch->max_shared_per_block, plan_.arch);
    }

    if (!in_range("max_registers", plan_.max_registers, 1, arch->max_registers_per_thread,
                  "the hardware's limit per thread")) {
      return;
    }
    const int warps = resident_warps(arch->registers_per_multiprocessor, plan_.max_registers);
    if (plan_.threads > warps * kWarpSize) {
      add("threads is {}, with max_registers {} a multiprocessor of {} runs {}: no block could start; {} registers are "
          "the most for that many threads",
          plan_.threads, plan_.max_registers, plan_.arch, warps * kWarpSize,
          most_registers(arch->registers_per_multiprocessor, ceil_div(plan_.threads, kWarpSize)));
    }
    if (plan_.accumulator_registers() + kMinRegisterOverhead > plan_.max_registers) {
      add("max_registers is {}, the fullest group's {} accumulators and {} more (kMinRegisterOverhead) do not fit: the "
          "assembler would spill",
          plan_.max_registers, plan_.accumulator_registers(), kMinRegisterOverhead);
    }
  }

  void check_values(const ArchSpec& arch) {
    const std::int64_t bytes = bytes_of_values(plan_.group_capacity(), plan_.value_pitch(), plan_.threads);
    if (bytes <= arch.max_shared_per_block - kSharedReserveBytes) return;
    add("the values of {} threads x {} channels (the fullest group) that are to be pooled take {} bytes and {} bytes "
        "of "
        "reserve, more shared memory than the {} bytes that a block has on {}: smaller groups or tiles help",
        plan_.threads, plan_.group_capacity(), bytes, kSharedReserveBytes, arch.max_shared_per_block, plan_.arch);
  }

  void check_cluster(const ArchSpec& arch) {
    if (!arch.clusters) {
      add("reduction is cluster, but {} has no clusters (sm_90 and later do): last_block runs everywhere", plan_.arch);
    }
    const std::int64_t sums =
        saturating_product({plan_.group_capacity(), plan_.sums_per_channel(), plan_.threads, sizeof(float)});
    const int reserve = kSharedReserveBytes + plan_.activity_bytes();
    if (sums > arch.max_shared_per_block - reserve) {
      add("reduction is cluster, the partial sums of {} threads x {} channels (the fullest group) take {} bytes and "
          "{} bytes of reserve, more shared memory than the {} bytes that a block has on {}: smaller groups or tiles, "
          "or last_block, help",
          plan_.threads, plan_.group_capacity(), sums, reserve, arch.max_shared_per_block, plan_.arch);
    }
  }

  const BakedPlan& plan_;
  const ConvShape& shape_;
  bool tile_legal_ = false;
};

// Only for plans that are legal by themselves.
void check_coverage(const BakedPlan& plan, const SparsePattern& pattern, std::vector<std::string>& faults) {
  const std::size_t groups = plan.groups.size();
  std::vector<int> group_of(static_cast<std::size_t>(pattern.out_channels), 0);
  for (std::size_t g = 0; g < groups; ++g) {
    for (const int k : plan.groups[g]) group_of[k] = static_cast<int>(g);
  }
  std::vector<std::size_t> first(groups + 1, 0);
  for (const Tap& tap : pattern.taps) ++first[group_of[tap.k] + 1];
  for (std::size_t g = 0; g < groups; ++g) first[g + 1] += first[g];
  std::vector<const Tap*> by_group(pattern.taps.size());
  std::vector<std::size_t> next(first.begin(), first.end() - 1);
  for (const Tap& tap : pattern.taps) by_group[next[group_of[tap.k]]++] = &tap;

  std::vector<int> read_by(static_cast<std::size_t>(pattern.in_channels), -1);
  for (std::size_t g = 0; g < groups; ++g) {
    for (int split = 0; split < plan.splits; ++split) {
      for (const int c : plan.slices[g * plan.splits + split].channels) read_by[c] = static_cast<int>(g);
    }
    std::size_t lost = 0;
    const Tap* example = nullptr;
    for (std::size_t i = first[g]; i < first[g + 1]; ++i) {
      if (read_by[by_group[i]->c] == static_cast<int>(g)) continue;
      if (lost++ == 0) example = by_group[i];
    }
    if (lost == 0) continue;
    faults.push_back(
        fmt::format("group {} loses {} nonzeros, the first is (c {}, r {}, s {}, k {}): no slice of the "
                    "group reads input channel {}",
                    g, lost, example->c, example->r, example->s, example->k, example->c));
  }
}

}  // namespace

std::vector<std::string> verify(const BakedPlan& plan, const ConvShape& shape) {
  return PlanVerifier(plan, shape).run();
}

std::vector<std::string> verify(const BakedPlan& plan, const ConvShape& shape, const SparsePattern& pattern) {
  std::vector<std::string> faults = verify(plan, shape);
  if (pattern.in_channels != shape.in_channels || pattern.out_channels != shape.out_channels ||
      pattern.kernel_h != shape.kernel_h || pattern.kernel_w != shape.kernel_w) {
    faults.push_back(fmt::format("the pattern is of a {} -> {} layer with a {}x{} filter, the shape is {}",
                                 pattern.in_channels, pattern.out_channels, pattern.kernel_h, pattern.kernel_w,
                                 describe(shape)));
  }
  if (faults.empty()) check_coverage(plan, pattern, faults);
  return faults;
}

}  // namespace burin
