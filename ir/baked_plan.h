// BakedPlan: every choice that is made for one baked kernel, in one validated type.
//
// A kernel computes one layer for one batch size it was tuned for (it is correct for any). Its grid is
// (pixel tiles) x (slices). A slice is one output-channel group and one split of the input channels: the code that a
// block runs. A block's threads own one output pixel each; with the half precisions, the same pixel of two images.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/activity_map.h"
#include "ir/arch.h"
#include "ir/conv_layer.h"
#include "ir/kernel.h"
#include "ir/named_enum.h"
#include "ir/precision.h"
#include "ir/sparse_pattern.h"
#include "ir/tensor_layout.h"

namespace burin {

// Registers of a thread beside its accumulators: addresses, loop state and activations loaded ahead of their use.
inline constexpr int kRegisterOverhead = 25;
// Below this many the assembler must spill.
inline constexpr int kMinRegisterOverhead = 10;
inline constexpr int kMaxLoadAhead = 64;
inline constexpr int kMaxBuffers = 8;
inline constexpr int kMaxPromoteEvery = 1024;
// A plan of Precision::fp16x2 has it unless it says otherwise.
inline constexpr int kDefaultPromoteEvery = 32;

// How the splits of a group become one sum.
enum class Reduction {
  none,        // one split: nothing to add
  last_block,  // partial sums in scratch; the last block to arrive adds them in the order of the splits
  cluster,  // the splits' blocks run together and read each other's shared memory; each adds up a part of the channels
};
constexpr EnumNames<3> names_of(Reduction) { return {"a reduction", {"none", "last_block", "cluster"}}; }

// The blocks that run together on neighbouring multiprocessors as a thread-block cluster: neighbouring pixel tiles x
// splits of one group. Ranks count tiles first, then splits, so that with an even number of tiles neighbours run the
// same code and share what is fetched of it.
struct ClusterShape {
  int tiles = 1;
  int splits = 1;  // Reduction::cluster: all splits
  int blocks() const { return tiles * splits; }
  bool operator==(const ClusterShape&) const = default;
};
std::string to_string(const ClusterShape& cluster);  // "2x4"

// Where a thread reads activations from.
enum class Staging {
  shared,  // shared memory: stages of channels are copied there while others are multiplied
  direct,  // global memory: 1x1 filters without padding, whose pixels no two threads of a block share
  bulk,    // shared memory, as whole rows of the image without halo, by bulk copies
};
constexpr EnumNames<3> names_of(Staging) { return {"a staging", {"shared", "direct", "bulk"}}; }

// The pixels of the convolution that one block computes: `rows` x `cols` of each of `images` consecutive images; with
// the half precisions, of `images` consecutive pairs of images, whose values share a word.
struct PixelTile {
  int images = 1, rows = 1, cols = 1;
  int pixels() const { return images * rows * cols; }
  bool operator==(const PixelTile&) const = default;
};

// What a tile of a layer that pools stores of each of its images (ir/baked_plan_pool.h).
struct OutputTile {
  int rows = 1, cols = 1;
  bool operator==(const OutputTile&) const = default;
};

// Where an activation lies in shared memory, in 4-byte words from the start of a stage's buffer:
//   word(channel i of the stage, image, row, col) =
//     (i / channels_per_row) * channel_pitch + image * image_pitch + row * row_pitch + (i % channels_per_row) *
//     row_words + (col % column_phases) * ceil(patch_cols / column_phases) + col / column_phases
// with (row, col) counted in the tile's input patch and row_words = column_phases * ceil(patch_cols / column_phases).
// Staging::shared: halo and padding included, a channel's images side by side (channel_pitch spans them). With as many
// column phases as the stride, neighbouring outputs read neighbouring words. Staging::bulk: the image's own rows and
// columns, an image's channels side by side (image_pitch spans the stage); a tile of whole images holds the image's
// rows, any other the rows that it reads, where those beyond the image stay unwritten. The buffers lie behind
// kSharedReserveBytes, words for activity maps where the plan has any, and a margin, on a boundary of all banks.
struct SharedLayout {
  int patch_rows = 0, patch_cols = 0;  // input patch of one image of the tile
  int margin = 0;            // words before the buffers and behind each: lanes that look beyond the image reach
                             // them instead of what is just being copied
  int channels_per_row = 1;  // channels that lie side by side in one row of words
  int column_phases = 1;     // columns apart by so many lie side by side: 1, or the stride
  int row_pitch = 0, image_pitch = 0, channel_pitch = 0;
  int phase_words() const;  // of one channel's row and one phase
  int row_words() const { return column_phases * phase_words(); }
  int word_of_column(int col) const { return col % column_phases * phase_words() + col / column_phases; }
  bool operator==(const SharedLayout&) const = default;
};

// Shared memory in bytes, saturated: one buffer, and all buffers with the reserve and the margins.
std::int64_t bytes_of_stage(Staging staging, const PixelTile& tile, const SharedLayout& shared, int stage_channels);
std::int64_t bytes_of_staging(Staging staging, const PixelTile& tile, const SharedLayout& shared, int stage_channels,
                              int buffers);

// The code of one block: one group, one split. `channels` are the input channels it reads, in the order it reads them.
struct Slice {
  int group = 0, split = 0;
  std::vector<int> channels;
  bool operator==(const Slice&) const = default;
};

struct BakedPlan {
  std::string template_name = "conv_baked";
  std::string arch = "sm_90";  // the architecture whose limits and costs it was made for
  Precision precision = Precision::fp32;
  // fp16x2: terms of a sum that are added in FP16 before it goes over to an FP32 one; 0: all. Others: 0.
  int promote_every = 0;
  int batch = 1;  // tuned for this; correct for any
  TensorLayout input_layout = TensorLayout::nchw;
  TensorLayout output_layout = TensorLayout::nchw;
  // Words from one image of the input, of the output or of the residual to the next, where it is a slice of a larger
  // tensor; 0: images follow one another.
  std::int64_t input_image_words = 0, output_image_words = 0, residual_image_words = 0;

  Staging staging = Staging::shared;
  PixelTile tile;
  std::optional<OutputTile> outputs;  // with a pool, which the threads compute when they have all pixels
  // With a pool and halves: threads keep what they have computed as halves, the two images of a word in one, and not in
  // FP32. The largest of rounded values is the largest value, rounded; a mean needs them as they were.
  bool keeps_halves = false;
  int threads = 0;      // per block: tile.pixels() rounded up to warps
  SharedLayout shared;  // direct: all zero

  std::vector<std::vector<int>> groups;  // output channels of each group, in accumulator order; a permutation of all
  int splits = 1;
  std::vector<Slice> slices;  // groups x splits, split fastest
  Reduction reduction = Reduction::none;
  ClusterShape cluster;

  int stage_channels = 1;  // input channels that are staged together
  int buffers = 2;         // stages in shared memory at once
  int barrier_every = 0;   // multiply-adds between lockstep barriers inside a stage; 0: only at stages
  int load_ahead = 8;      // activations loaded ahead of their first use
  int load_together =
      1;  // direct loads that begin together, behind an order that the assembler keeps; 1: no such order

  // Channels that hold nothing but zeros (ir/activity_map.h). The kernel then has two parameters more.
  std::optional<ActivityMap> skips;  // the input's map: what is dead in a tile's patch is neither loaded nor multiplied
  bool marks = false;                // writes the map of its output, whose cells are its tiles

  int max_registers = 255;  // per thread: the cap given to the assembler
  double predicted_us = 0;  // by the cost model; nothing depends on it

  int group_capacity() const;                                     // channels of the fullest group
  int word_images() const { return is_half(precision) ? 2 : 1; }  // whose values make a word, and share a thread
  int tile_images() const;                                        // of a tile, pairs counted as two
  int sums_per_channel() const { return word_images(); }          // FP32 sums of a thread when it has added all
  int registers_per_channel() const;                              // that hold a thread's sums while it multiplies
  int accumulator_registers() const;                              // of the fullest group
  // With a pool: words in which a thread keeps its values of a channel, and those from one channel's to the next one's.
  int value_words() const;
  int value_pitch() const;
  int stage_bytes() const;    // one buffer
  int shared_start() const;   // bytes before the first buffer
  int staging_bytes() const;  // kSharedReserveBytes, activity_bytes(), margins and all buffers
  // Dynamic shared memory of a block: staging, or what its threads or a cluster's blocks exchange after it.
  int shared_bytes() const;
  // With Reduction::cluster each block adds so many channels of its group: split i from i * added_channels() on.
  int added_channels(int group) const;
  int slice_stages(const Slice& slice) const;
  // Stages whose copies begin before the first stage is computed: all when none shares its buffer with another.
  int stages_ahead() const;
  int tiles_per_image(const ConvShape& shape) const;

  bool uses_activity() const { return skips.has_value() || marks; }
  ActivityMap output_map() const { return {tile_images(), tile.rows, tile.cols}; }
  // Shared memory has a bit for each input channel of the slice, in words that begin at multiples of 32 channels, then
  // a bit for each accumulator of the group.
  int live_words(const Slice& slice) const;
  int first_live_word(const Slice& slice) const;  // that of the slice's lowest channel
  int live_words() const;                         // of any slice; 0: the plan skips nothing
  int mark_words() const;                         // 0: the plan marks nothing
  int activity_bytes() const;                     // both, on a boundary of all banks
  bool operator==(const BakedPlan&) const = default;
};

// Words from one image of the tensor to the next, with the half precisions from one pair to the next.
std::int64_t input_image_words(const BakedPlan& plan, const ConvShape& shape);
std::int64_t output_image_words(const BakedPlan& plan, const ConvShape& shape);
std::int64_t residual_image_words(const BakedPlan& plan, const ConvShape& shape);

// All faults, each a sentence that says why the rule exists; empty when the plan can be specialised.
std::vector<std::string> verify(const BakedPlan& plan, const ConvShape& shape);
// The same, and that every nonzero is computed exactly once: its input channel is in one split of its group.
std::vector<std::string> verify(const BakedPlan& plan, const ConvShape& shape, const SparsePattern& pattern);

// "key: value" lines with comments; parse() of print() gives the same plan. Throws Error(bad_input) naming the line.
std::string print(const BakedPlan& plan);
BakedPlan parse_baked_plan(std::string_view text);

// In short, for tables: "tile 4x14x14, 16 groups of 16, 2 splits, 8 ch x 3".
std::string describe(const BakedPlan& plan);

// "burin_<layer>_conv_baked_fp32_b1_t1x14x14_g16s4", and "_c2x4" where clusters hold more than splits: a profile
// needs no lookup. Layer names are reduced to [A-Za-z0-9_].
std::string kernel_symbol(const std::string& layer, const BakedPlan& plan);

}  // namespace burin
