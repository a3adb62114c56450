#include "ir/baked_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/baked_plan_pool.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/saturate.h"
#include "ir/text.h"

namespace burin {
namespace {

// Partial sums that the blocks of a cluster read from each other take the buffers' place, and so do the values that are
// to be pooled: those that a block of a cluster has summed up take that of its own partial sums.
std::int64_t exchange_bytes_of(const BakedPlan& plan) {
  if (plan.reduction != Reduction::cluster && !plan.outputs) return 0;
  const std::int64_t sums =
      plan.outputs ? bytes_of_values(plan.group_capacity(), plan.threads)
                   : saturating_product({plan.group_capacity(), plan.sums_per_channel(), plan.threads, kWordBytes});
  const std::int64_t before = kSharedReserveBytes + plan.activity_bytes();
  return sums > kSaturated - before ? kSaturated : sums + before;
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

std::string_view to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::none:
      return "none";
    case Reduction::last_block:
      return "last_block";
    case Reduction::cluster:
      return "cluster";
  }
  return "?";
}

std::optional<Reduction> parse_reduction(std::string_view text) {
  for (const Reduction reduction : {Reduction::none, Reduction::last_block, Reduction::cluster}) {
    if (text == to_string(reduction)) return reduction;
  }
  return std::nullopt;
}

std::string to_string(const ClusterShape& cluster) { return fmt::format("{}x{}", cluster.tiles, cluster.splits); }

std::string_view to_string(Staging staging) {
  switch (staging) {
    case Staging::shared:
      return "shared";
    case Staging::direct:
      return "direct";
    case Staging::bulk:
      return "bulk";
  }
  return "?";
}

std::optional<Staging> parse_staging(std::string_view text) {
  for (const Staging staging : {Staging::shared, Staging::direct, Staging::bulk}) {
    if (text == to_string(staging)) return staging;
  }
  return std::nullopt;
}

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
  std::string name;
  for (const char c : layer) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += plain ? c : '_';
  }
  std::string symbol =
      fmt::format("burin_{}_{}_{}_b{}_t{}x{}x{}_g{}s{}", name, plan.template_name, to_string(plan.precision),
                  plan.batch, plan.tile.images, plan.tile.rows, plan.tile.cols, plan.groups.size(), plan.splits);
  if (plan.cluster.tiles > 1) symbol += fmt::format("_c{}", to_string(plan.cluster));
  return symbol;
}

std::string print(const BakedPlan& plan) {
  std::string text = fmt::format("# {}\n", describe(plan));
  const auto add = [&](std::string_view key, const auto& value, std::string_view comment = {}) {
    text += fmt::format("{}: {}", key, value);
    if (!comment.empty()) text += fmt::format("  # {}", comment);
    text += '\n';
  };
  add("template", plan.template_name);
  add("arch", plan.arch, "the architecture whose limits and costs it was made for");
  add("precision", to_string(plan.precision));
  if (plan.precision == Precision::fp16x2 || plan.promote_every != 0) {
    add("promote_every", plan.promote_every, "terms added in FP16 before their sum goes over to FP32; 0: all");
  }
  add("batch", plan.batch, "tuned for this; correct for any");
  add("input_layout", to_string(plan.input_layout));
  add("output_layout", to_string(plan.output_layout));
  if (plan.output_image_words != 0) {
    add("output_image_words", plan.output_image_words, "from one image to the next: it is a slice of a larger tensor");
  }
  if (plan.residual_image_words != 0) {
    add("residual_image_words", plan.residual_image_words, "the same, of the residual");
  }
  text += is_half(plan.precision) ? "\n# a block: one output pixel of two images per thread\n"
                                  : "\n# a block: one output pixel per thread\n";
  add("staging", to_string(plan.staging), "how activations are reached: shared, bulk or direct (docs/pipeline.md)");
  add("tile", fmt::format("{}x{}x{}", plan.tile.images, plan.tile.rows, plan.tile.cols),
      is_half(plan.precision) ? "pairs of images x rows x columns" : "images x rows x columns");
  if (plan.outputs) {
    add("outputs", fmt::format("{}x{}", plan.outputs->rows, plan.outputs->cols), "that the pool makes of each image");
  }
  add("threads", plan.threads);
  add("max_registers", plan.max_registers, "per thread");
  text += "\n# shared memory, in words of 4 bytes\n";
  add("patch", fmt::format("{}x{}", plan.shared.patch_rows, plan.shared.patch_cols), "of one image");
  add("channels_per_row", plan.shared.channels_per_row);
  add("column_phases", plan.shared.column_phases, "columns apart by so many lie side by side");
  add("row_pitch", plan.shared.row_pitch);
  add("image_pitch", plan.shared.image_pitch);
  add("channel_pitch", plan.shared.channel_pitch);
  add("margin", plan.shared.margin, "before the buffers and behind each");
  text += "\n# the walk through the input channels\n";
  add("stage_channels", plan.stage_channels, "input channels that are staged together");
  add("buffers", plan.buffers, "stages in shared memory at once");
  add("barrier_every", plan.barrier_every, "multiply-adds between barriers inside a stage; 0: none");
  add("load_ahead", plan.load_ahead, "activations loaded ahead of their first use");
  if (plan.staging == Staging::direct) {
    add("load_together", plan.load_together, "loads that begin together, which the assembler does not mix with others");
  }
  if (plan.uses_activity()) text += "\n# channels that hold nothing but zeros\n";
  if (plan.skips) add("skips", print(*plan.skips), "cell of the input's activity map: images x rows x columns");
  if (plan.marks) add("marks", "yes", "the activity map of the output is written: its cells are the tiles");
  text += "\n# who computes what\n";
  add("splits", plan.splits, "parts of the input channels, each a block of its own");
  add("reduction", to_string(plan.reduction), "how the splits become one sum");
  add("cluster", to_string(plan.cluster), "tiles x splits whose blocks run together");
  add("predicted_us", plan.predicted_us, "nothing depends on it");
  text += "\n# output channels of each group, in the order of the accumulators\n";
  for (std::size_t i = 0; i < plan.groups.size(); ++i) add(fmt::format("group {}", i), print_integers(plan.groups[i]));
  text += "\n# input channels of each slice (group, split), in the order in which they are read\n";
  for (const Slice& slice : plan.slices) {
    add(fmt::format("slice {} {}", slice.group, slice.split), print_integers(slice.channels));
  }
  return text;
}

BakedPlan parse_baked_plan(std::string_view text) {
  KeyValueText reader(text, "kernel plan");
  BakedPlan plan;
  plan.template_name = reader.required("template").value;
  plan.arch = reader.required("arch").value;
  const TextLine& precision = reader.required("precision");
  const std::optional<Precision> known_precision = parse_precision(precision.value);
  if (!known_precision) {
    reader.fail_at(precision, "'{}' is not a precision; known are {}", precision.value, precision_names());
  }
  plan.precision = *known_precision;
  if (const TextLine* promote = reader.optional("promote_every")) {
    plan.promote_every = reader.integer32(*promote, promote->value);
  }
  plan.batch = reader.integer32("batch");
  const auto layout = [&](std::string_view key) {
    const TextLine& line = reader.required(key);
    const std::optional<TensorLayout> parsed = parse_tensor_layout(line.value);
    if (!parsed) {
      reader.fail_at(line, "'{}' is not a tensor layout; known are {}", line.value, tensor_layout_names());
    }
    return *parsed;
  };
  plan.input_layout = layout("input_layout");
  plan.output_layout = layout("output_layout");
  const auto image_words = [&](std::string_view key) -> std::int64_t {
    const TextLine* line = reader.optional(key);
    return line == nullptr ? 0 : reader.integer(*line, line->value);
  };
  plan.output_image_words = image_words("output_image_words");
  plan.residual_image_words = image_words("residual_image_words");

  const TextLine& staging = reader.required("staging");
  const std::optional<Staging> known = parse_staging(staging.value);
  if (!known) reader.fail_at(staging, "'{}' is no staging; known are shared, direct and bulk", staging.value);
  plan.staging = *known;
  const std::vector<int> tile = reader.extents("tile", 3);
  plan.tile = {tile[0], tile[1], tile[2]};
  if (reader.optional("outputs") != nullptr) {
    const std::vector<int> outputs = reader.extents("outputs", 2);
    plan.outputs = {outputs[0], outputs[1]};
  }
  plan.threads = reader.integer32("threads");
  plan.max_registers = reader.integer32("max_registers");
  const std::vector<int> patch = reader.extents("patch", 2);
  plan.shared.patch_rows = patch[0];
  plan.shared.patch_cols = patch[1];
  plan.shared.channels_per_row = reader.integer32("channels_per_row");
  plan.shared.column_phases = reader.integer32("column_phases");
  plan.shared.row_pitch = reader.integer32("row_pitch");
  plan.shared.image_pitch = reader.integer32("image_pitch");
  plan.shared.channel_pitch = reader.integer32("channel_pitch");
  plan.shared.margin = reader.integer32("margin");
  plan.stage_channels = reader.integer32("stage_channels");
  plan.buffers = reader.integer32("buffers");
  plan.barrier_every = reader.integer32("barrier_every");
  plan.load_ahead = reader.integer32("load_ahead");
  if (reader.optional("load_together") != nullptr) plan.load_together = reader.integer32("load_together");
  if (reader.optional("skips") != nullptr) {
    const std::vector<int> cell = reader.extents("skips", 3);
    plan.skips = {cell[0], cell[1], cell[2]};
  }
  if (reader.optional("marks") != nullptr) plan.marks = reader.boolean("marks");
  plan.splits = reader.integer32("splits");
  const TextLine& reduction = reader.required("reduction");
  const std::optional<Reduction> known_reduction = parse_reduction(reduction.value);
  if (!known_reduction) {
    reader.fail_at(reduction, "'{}' is not a reduction; known are none, last_block, cluster", reduction.value);
  }
  plan.reduction = *known_reduction;
  const std::vector<int> cluster = reader.extents("cluster", 2);
  plan.cluster = {cluster[0], cluster[1]};
  if (const TextLine* predicted = reader.optional("predicted_us")) {
    plan.predicted_us = reader.real(*predicted, predicted->value);
  }

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
