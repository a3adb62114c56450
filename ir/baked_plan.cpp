#include "ir/baked_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/baked_plan_pool.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/saturate.h"
#include "ir/text_lines.h"

namespace burin {
namespace {

// Partial sums that the blocks of a cluster read from each other take the buffers' place, and so do the values that are
// to be pooled: those that a block of a cluster has summed up take that of its own partial sums.
std::int64_t exchange_bytes_of(const BakedPlan& plan) {
  if (plan.reduction != Reduction::cluster && !plan.outputs) return 0;
  const std::int64_t sums =
      plan.outputs ? bytes_of_values(plan.group_capacity(), plan.value_pitch(), plan.threads)
                   : saturating_product({plan.group_capacity(), plan.sums_per_channel(), plan.threads, kWordBytes});
  const std::int64_t before = kSharedReserveBytes + plan.activity_bytes();
  return sums > kSaturated - before ? kSaturated : sums + before;
}

// Every line but those of groups and slices.
template <typename Lines, typename Plan>
void plan_lines(Lines& lines, Plan& plan) {
  const auto images = [](auto& of) { return std::tie(of.images, of.rows, of.cols); };
  lines.line("template", plan.template_name);
  lines.line("arch", plan.arch, "the architecture whose limits and costs it was made for");
  lines.line("precision", plan.precision);
  lines.optional(plan.precision == Precision::fp16x2 || plan.promote_every != 0, "promote_every", plan.promote_every,
                 "terms added in FP16 before their sum goes over to FP32; 0: all");
  lines.line("batch", plan.batch, "tuned for this; correct for any");
  lines.line("input_layout", plan.input_layout);
  lines.line("output_layout", plan.output_layout);
  lines.optional(plan.input_image_words != 0, "input_image_words", plan.input_image_words,
                 "from one image to the next: it is a slice of a larger tensor");
  lines.optional(plan.output_image_words != 0, "output_image_words", plan.output_image_words,
                 "the same, of the output");
  lines.optional(plan.residual_image_words != 0, "residual_image_words", plan.residual_image_words,
                 "the same, of the residual");
  lines.section(is_half(plan.precision) ? "a block: one output pixel of two images per thread"
                                        : "a block: one output pixel per thread");
  lines.line("staging", plan.staging, "how activations are reached: shared, bulk or direct (docs/pipeline.md)");
  lines.line("tile", images(plan.tile),
             is_half(plan.precision) ? "pairs of images x rows x columns" : "images x rows x columns");
  if (lines.has("outputs", plan.outputs)) {
    lines.line("outputs", std::tie(plan.outputs->rows, plan.outputs->cols), "that the pool makes of each image");
  }
  lines.optional(plan.keeps_halves, "keeps_halves", plan.keeps_halves,
                 "pixels are rounded before the pool, not behind it");
  lines.line("threads", plan.threads);
  lines.line("max_registers", plan.max_registers, "per thread");
  lines.section("shared memory, in words of 4 bytes");
  lines.line("patch", std::tie(plan.shared.patch_rows, plan.shared.patch_cols), "of one image");
  lines.line("channels_per_row", plan.shared.channels_per_row);
  lines.line("column_phases", plan.shared.column_phases, "columns apart by so many lie side by side");
  lines.line("row_pitch", plan.shared.row_pitch);
  lines.line("image_pitch", plan.shared.image_pitch);
  lines.line("channel_pitch", plan.shared.channel_pitch);
  lines.line("margin", plan.shared.margin, "before the buffers and behind each");
  lines.section("the walk through the input channels");
  lines.line("stage_channels", plan.stage_channels, "input channels that are staged together");
  lines.line("buffers", plan.buffers, "stages in shared memory at once");
  lines.line("barrier_every", plan.barrier_every, "multiply-adds between barriers inside a stage; 0: none");
  lines.line("load_ahead", plan.load_ahead, "activations loaded ahead of their first use");
  lines.optional(plan.staging == Staging::direct, "load_together", plan.load_together,
                 "loads that begin together, which the assembler does not mix with others");
  if (plan.uses_activity()) lines.section("channels that hold nothing but zeros");
  if (lines.has("skips", plan.skips)) {
    lines.line("skips", images(*plan.skips), "cell of the input's activity map: images x rows x columns");
  }
  lines.optional(plan.marks, "marks", plan.marks, "the activity map of the output is written: its cells are the tiles");
  lines.section("who computes what");
  lines.line("splits", plan.splits, "parts of the input channels, each a block of its own");
  lines.line("reduction", plan.reduction, "how the splits become one sum");
  lines.line("cluster", std::tie(plan.cluster.tiles, plan.cluster.splits), "tiles x splits whose blocks run together");
  lines.optional(true, "predicted_us", plan.predicted_us, "nothing depends on it");
}

}  // namespace

int SharedLayout::phase_words() const { return saturate_to_int(ceil_div(patch_cols, std::max(1, column_phases))); }

std::int64_t bytes_of_stage(Staging staging, const PixelTile& tile, const SharedLayout& shared, int stage_channels) {
  if (staging == Staging::direct) return 0;
  if (staging == Staging::bulk) {
    const std::int64_t words = saturating_product({tile.images, shared.image_pitch});
    return saturating_product({std::min(words, kSaturated - shared.margin) + shared.margin, kWordBytes});
  }
  if (shared.channels_per_row < 1 || stage_channels < 1) return 0;
  return saturating_product({ceil_div(stage_channels, shared.channels_per_row), shared.channel_pitch, kWordBytes});
}

std::int64_t bytes_of_staging(Staging staging, const PixelTile& tile, const SharedLayout& shared, int stage_channels,
                              int buffers) {
  const std::int64_t all = saturating_product({buffers, bytes_of_stage(staging, tile, shared, stage_channels)});
  const std::int64_t rest = kSharedReserveBytes + saturating_product({shared.margin, kWordBytes});
  return all > kSaturated - rest ? kSaturated : all + rest;
}

std::string to_string(const ClusterShape& cluster) { return fmt::format("{}x{}", cluster.tiles, cluster.splits); }

int BakedPlan::group_capacity() const {
  std::size_t most = 0;
  for (const std::vector<int>& group : groups) most = std::max(most, group.size());
  return static_cast<int>(most);
}

int BakedPlan::tile_images() const { return saturate_to_int(saturating_product({tile.images, word_images()})); }

int BakedPlan::registers_per_channel() const {
  // A word of two running sums, and the FP32 sums that they go over to.
  if (precision == Precision::fp16x2) return promote_every == 0 ? 1 : 1 + sums_per_channel();
  return sums_per_channel();
}

int BakedPlan::accumulator_registers() const { return group_capacity() * registers_per_channel(); }

int BakedPlan::value_words() const { return keeps_halves ? 1 : word_images(); }
// What a block of a cluster has summed up takes the place of its own partial sums.
int BakedPlan::value_pitch() const { return reduction == Reduction::cluster ? sums_per_channel() : value_words(); }

int BakedPlan::stage_bytes() const { return saturate_to_int(bytes_of_stage(staging, tile, shared, stage_channels)); }
int BakedPlan::staging_bytes() const {
  const std::int64_t bytes = bytes_of_staging(staging, tile, shared, stage_channels, buffers);
  return saturate_to_int(std::min(bytes, kSaturated - activity_bytes()) + activity_bytes());
}
int BakedPlan::shared_bytes() const { return std::max(staging_bytes(), saturate_to_int(exchange_bytes_of(*this))); }

int BakedPlan::added_channels(int group) const {
  return static_cast<int>(ceil_div(static_cast<std::int64_t>(groups[group].size()), std::max(1, splits)));
}

int BakedPlan::slice_stages(const Slice& slice) const {
  return saturate_to_int(ceil_div(static_cast<std::int64_t>(slice.channels.size()), std::max(1, stage_channels)));
}

int BakedPlan::shared_start() const {
  return saturate_to_int(kSharedReserveBytes + activity_bytes() + saturating_product({shared.margin, kWordBytes}));
}

int BakedPlan::stages_ahead() const {
  int most = 0;
  for (const Slice& slice : slices) most = std::max(most, slice_stages(slice));
  if (most <= buffers) return std::max(1, most);
  return std::max(1, buffers - 1);
}

int BakedPlan::tiles_per_image(const ConvShape& shape) const {
  if (tile.rows < 1 || tile.cols < 1) return 0;
  return saturate_to_int(burin::tiles_per_image(tile, shape));
}

std::int64_t input_image_words(const BakedPlan& plan, const ConvShape& shape) {
  if (plan.input_image_words != 0) return plan.input_image_words;
  return image_elements(plan.input_layout, shape.in_channels, shape.in_h, shape.in_w);
}

std::int64_t output_image_words(const BakedPlan& plan, const ConvShape& shape) {
  if (plan.output_image_words != 0) return plan.output_image_words;
  return image_elements(plan.output_layout, shape.out_channels, shape.out_h(), shape.out_w());
}

std::int64_t residual_image_words(const BakedPlan& plan, const ConvShape& shape) {
  if (plan.residual_image_words != 0) return plan.residual_image_words;
  return image_elements(plan.output_layout, shape.out_channels, shape.conv_h(), shape.conv_w());
}

std::string describe(const BakedPlan& plan) {
  std::string text = fmt::format("tile {}x{}x{}", plan.tile.images, plan.tile.rows, plan.tile.cols);
  if (plan.outputs) text += fmt::format(" to {}x{}", plan.outputs->rows, plan.outputs->cols);
  text +=
      fmt::format(", {} group{} of {}", plan.groups.size(), plan.groups.size() == 1 ? "" : "s", plan.group_capacity());
  if (plan.splits > 1) text += fmt::format(", {} splits", plan.splits);
  if (plan.cluster.tiles > 1) text += fmt::format(", clusters of {}", to_string(plan.cluster));
  if (plan.staging == Staging::direct) return text + ", direct loads";
  if (plan.staging == Staging::bulk) text += ", bulk";
  return text + fmt::format(", {} ch x {}", plan.stage_channels, plan.buffers);
}

std::string kernel_symbol(const std::string& layer, const BakedPlan& plan) {
  std::string symbol =
      fmt::format("{}_{}_{}_b{}_t{}x{}x{}_g{}s{}", symbol_of(layer), plan.template_name, to_string(plan.precision),
                  plan.batch, plan.tile.images, plan.tile.rows, plan.tile.cols, plan.groups.size(), plan.splits);
  if (plan.cluster.tiles > 1) symbol += fmt::format("_c{}", to_string(plan.cluster));
  return symbol;
}

std::string print(const BakedPlan& plan) {
  LinePrinter lines;
  lines.text = fmt::format("# {}\n", describe(plan));
  plan_lines(lines, plan);
  lines.section("output channels of each group, in the order of the accumulators");
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    lines.line(fmt::format("group {}", i), print_integers(plan.groups[i]));
  }
  lines.section("input channels of each slice (group, split), in the order in which they are read");
  for (const Slice& slice : plan.slices) {
    lines.line(fmt::format("slice {} {}", slice.group, slice.split), print_integers(slice.channels));
  }
  return lines.text;
}

BakedPlan parse_baked_plan(std::string_view text) {
  LineReader reader(text, "kernel plan");
  BakedPlan plan;
  plan_lines(reader, plan);
  for (const TextLine* line : reader.with_first_word("group")) {
    const std::vector<std::string_view> parts = words(line->key);
    if (parts.size() != 2 || reader.integer(*line, parts[1]) != static_cast<std::int64_t>(plan.groups.size())) {
      reader.fail_at(*line, "'{}' stands where 'group {}' is expected; groups are numbered from 0 in order", line->key,
                     plan.groups.size());
    }
    plan.groups.push_back(reader.integers(*line, kMaxChannels));
  }
  for (const TextLine* line : reader.with_first_word("slice")) {
    const std::vector<std::string_view> parts = words(line->key);
    if (parts.size() != 3) reader.fail_at(*line, "'{}' is not of the form 'slice GROUP SPLIT'", line->key);
    Slice slice;
    slice.group = reader.integer32(*line, parts[1]);
    slice.split = reader.integer32(*line, parts[2]);
    slice.channels = reader.integers(*line, kMaxChannels);
    plan.slices.push_back(std::move(slice));
  }
  reader.finish();
  return plan;
}

}  // namespace burin
