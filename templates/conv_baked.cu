// conv_baked: every nonzero of the layer is an instruction.
//
// A thread owns one output pixel and the accumulators of one group of output channels. A block stages the input of its
// pixel tile, a few channels at a time, in shared memory, and multiplies while the next channels arrive: either as a
// patch with halo and zeros around the image, copied word by word, or as the image's own rows in bulk copies, where
// multiply-adds that would read beyond the image are left out. What depends on the pattern is a hole:
//
//   constants   name()               plan constants, listed in conv_baked.def
//   holes       burin_hole_*         calls that the specialiser fills, per slice and per stage
//   pieces      burin_piece_*        functions that the specialiser clones into the holes with constant arguments
//
// With the half precisions a word holds the same pixel of two images, and a thread owns both. All places are counted in
// words, so that "image" means a pair of images; only loading, multiplying and writing know of the two.
//
// A channel block is what lies side by side in memory: one channel, or four with the layout nchw4.
//
// Where the plan has activity maps, channels that hold nothing but zeros are skipped (activity.h).
//
// All threads of a block run the same code to its end: threads without a pixel still copy and wait.
#include "device.h"

#define BURIN_CONSTANT(name, value) BURIN_PRIMITIVE i32 burin_const_##name() __attribute__((const));
#include "conv_baked.def"
#undef BURIN_CONSTANT
#define BURIN_CONSTANT(name, value) \
  BURIN_DEVICE i32 name() { return burin_const_##name(); }
#include "conv_baked.def"
#undef BURIN_CONSTANT

// Of the slice that is being specialised.
BURIN_PRIMITIVE u32 burin_slice_group() __attribute__((const));
BURIN_PRIMITIVE u32 burin_slice_split() __attribute__((const));
BURIN_PRIMITIVE const void* burin_slice_code() __attribute__((const));
BURIN_PRIMITIVE u32 burin_slice_code_bytes() __attribute__((const));  // an estimate
BURIN_PRIMITIVE float burin_real_leaky_slope() __attribute__((const));

#define BURIN_PIECE extern "C" __attribute__((device, used))

#include "activity.h"

// The order of ir/conv_layer.h's Activation.
enum { kNone, kRelu, kRelu6, kLeakyRelu, kSigmoid, kSilu };

constexpr i32 kWordBytes = 4;
constexpr u32 kCopiesAtOnce = 4;   // of a loop over channels
constexpr u32 kHeldPositions = 4;  // patch positions per thread whose addresses stay in registers
constexpr i32 kMaxChannels = 128;  // ir/limits.h: kMaxGroupChannels
// Sums of a thread: one for each image that it owns, and a word of two that are FP16.
constexpr i32 kMaxSums = 3 * kMaxChannels;
constexpr u32 kWarpThreads = 32;

// One word of the input patch, the same for every channel.
struct Position {
  const float* source;  // in channel 0
  u32 target;           // bytes from the start of shared memory, in slot 0 of buffer 0
  u32 valid;            // 0: padding, or an image beyond the batch
};

// What a thread keeps while it multiplies.
struct Tile {
  const float* input;
  i32 batch;
  i32 first_image, first_row, first_col;  // of the output pixels
  u32 thread;
  u32 lane;                       // shared bytes of this thread's pixel: filter position (0, 0), slot 0, buffer 0
  Position held[kHeldPositions];  // only of patches
  // Only of bulk copies.
  u32 outside;  // filter rows (bits 0 and up) and columns (bits outside_column_bit() and up) that lie beyond the image
  const float* source;  // what this thread copies: an image of the tile, or the tile's rows of block 0
  u32 target;           // where its copy of slot 0 goes, in buffer 0
  u32 copies;           // images of the tile that exist; or 0: rows that exist
  u32 bytes;            // of one channel block of an image or of the rows
  u32 sharing;          // where blocks share copies: locate_sharing()
};

// A thread's output pixel.
struct Pixel {
  float* output;  // channel 0; null: the tile reaches beyond the image or the batch
  const float* residual;
  u32 meant;  // bits of a stored word that mean something and are not a sign
};

// What a launch passes; the order is part of the package format.
struct Launch {
  const float* input;
  float* output;
  const float* residual;
  float* partials;
  u32* counters;
  i32 images;
  i32 batch;  // images, or pairs of images
};

// ---- holes
BURIN_PRIMITIVE void burin_hole_copies(const float* source, u32 target, u32 valid);
BURIN_PRIMITIVE void burin_hole_fill_ahead(const Tile* tile);
BURIN_PRIMITIVE void burin_hole_taps(float* sums, u32 lane, u32 outside);
BURIN_PRIMITIVE void burin_hole_prologue(const Tile* tile);
BURIN_PRIMITIVE void burin_hole_stages(const Tile* tile, float* sums);
BURIN_PRIMITIVE void burin_hole_direct(float* sums, const float* source);
BURIN_PRIMITIVE void burin_hole_clear(float* sums);
BURIN_PRIMITIVE void burin_hole_publish(float* sums, float* partials);
BURIN_PRIMITIVE void burin_hole_gather(float* sums, const float* partials);
BURIN_PRIMITIVE void burin_hole_share(float* sums, u32 place);
BURIN_PRIMITIVE void burin_hole_collect(float* sums, u32 place, u32 first_rank);
BURIN_PRIMITIVE void burin_hole_outputs(float* sums, const Pixel* pixel, u32* live);
BURIN_PRIMITIVE u32 burin_hole_first_block(u32 slice);
BURIN_PRIMITIVE u32 burin_hole_blocks(u32 slice);
BURIN_PRIMITIVE void burin_hole_slices(u32 slice, u32 lane, u32 outside, const float* source, u32 target, u32 copies,
                                       u32 bytes, u32 sharing, float* partials, u32* counters, u8* marks, i32 batch,
                                       float* output, const float* residual, u32 meant);

// ---- the input patch
BURIN_DEVICE u32 patch_positions() { return tile_images() * patch_rows() * patch_cols(); }
BURIN_DEVICE u32 positions_per_thread() { return (patch_positions() + block_threads() - 1) / block_threads(); }

BURIN_DEVICE u32 word_of_column(u32 col) { return col % column_phases() * phase_words() + col / column_phases(); }

// Indices are unsigned, so that dividing by a constant is a multiplication.
BURIN_DEVICE Position locate_position(const Tile* tile, u32 index) {
  const u32 patch = patch_rows() * patch_cols();
  const i32 image = index / patch;
  const u32 within = index % patch;
  const i32 row = within / patch_cols();
  const i32 col = within % patch_cols();
  const i32 y = tile->first_row * stride_rows() - pad_top() + row;
  const i32 x = tile->first_col * stride_cols() - pad_left() + col;
  const bool valid = index < patch_positions() && tile->first_image + image < tile->batch && 0 <= y && y < in_rows() &&
                     0 <= x && x < in_cols();
  const i64 image_elements = static_cast<i64>(in_channels()) * in_rows() * in_cols();
  Position position;
  position.source =
      valid ? tile->input + (tile->first_image + image) * image_elements + (y * in_cols() + x) : tile->input;
  position.target = shared_start() + (image * image_pitch() + row * row_pitch() + word_of_column(col)) * kWordBytes;
  position.valid = valid;
  return position;
}

// Starts the copies of all channels of one stage.
BURIN_PIECE void burin_piece_fill(const Tile* tile) {
  if (positions_per_thread() <= kHeldPositions) {
#pragma unroll
    for (u32 i = 0; i < kHeldPositions; ++i) {
      const u32 index = i * block_threads() + tile->thread;
      if (i < positions_per_thread() && index < patch_positions()) {
        burin_hole_copies(tile->held[i].source, tile->held[i].target, tile->held[i].valid);
      }
    }
  } else {
    for (u32 index = tile->thread; index < patch_positions(); index += block_threads()) {
      const Position position = locate_position(tile, index);
      burin_hole_copies(position.source, position.target, position.valid);
    }
  }
}

BURIN_PIECE void burin_piece_copy_channel(const float* source, u32 target, u32 valid, i64 channel_bytes,
                                          u32 slot_bytes) {
  burin_dev_copy_async(target, slot_bytes, source, channel_bytes, valid);
}

// Evenly spaced channels to evenly spaced slots. A loop: code is fetched more slowly than it runs.
BURIN_PIECE void burin_piece_copy_channels(const float* source, u32 target, u32 valid, i64 channel_bytes,
                                           u32 slot_bytes, i64 channel_step, u32 slot_step, u32 count) {
  const float* from = source + channel_bytes / kWordBytes;
  u32 to = target + slot_bytes;
  u32 left = count;
#pragma nounroll
  for (; left >= kCopiesAtOnce; left -= kCopiesAtOnce) {
    for (u32 i = 0; i < kCopiesAtOnce; ++i) {
      burin_dev_copy_async(to, 0, from, 0, valid);
      from += channel_step / kWordBytes;
      to += slot_step;
    }
  }
  for (u32 i = 0; i < count % kCopiesAtOnce; ++i) {
    burin_dev_copy_async(to, 0, from, 0, valid);
    from += channel_step / kWordBytes;
    to += slot_step;
  }
}

// ---- bulk copies
// Whole planes of several images: each of the first warp's threads copies from one image. Else rows of one image: each
// copies channels.
BURIN_DEVICE bool whole_planes() { return tile_rows() == out_rows(); }

BURIN_DEVICE i64 block_bytes() { return static_cast<i64>(in_rows()) * in_cols() * in_together() * kWordBytes; }

// The blocks of a cluster with the same tile and split, of different groups, need the same channels at the same time.
// Each copies its part of a stage to all of them. So a buffer is filled only when all have left it: each block has a
// gate for each of its buffers, behind those of the copies, at which all of them arrive.
constexpr u32 kPeerBit = 16, kPartBit = 24;

// The ranks that share (bits), the rank of the one to which this thread says what its block has left, and which part of
// a stage this block copies.
BURIN_DEVICE u32 locate_sharing() {
  const u32 rank = burin_dev_cluster_rank();
  const u32 first = rank % share_stride(), part = rank / share_stride();
  const u32 peer = first + burin_dev_thread() % sharers() * share_stride();
  return share_ranks() << first | peer << kPeerBit | part << kPartBit;
}

BURIN_DEVICE u32 blocks_before(u32 sharing) { return (sharing >> kPartBit) * share_blocks(); }

// Of a stage's channel blocks, those that this block copies.
BURIN_DEVICE u32 own_blocks(const Tile* tile, u32 blocks) {
  if (sharers() == 1) return blocks;
  if (blocks == sharers() * share_blocks()) return share_blocks();
  const u32 before = blocks_before(tile->sharing);
  const u32 left = blocks > before ? blocks - before : 0;
  return left < share_blocks() ? left : share_blocks();
}

BURIN_DEVICE void bulk_copy(const Tile* tile, u32 shared_base, u32 shared_offset, i64 byte_offset, u32 bytes,
                            u32 gate) {
  if (sharers() == 1) {
    burin_dev_bulk_copy(shared_base, shared_offset, tile->source, byte_offset, bytes, gate);
  } else {
    burin_dev_bulk_copy_all(shared_base, shared_offset, tile->source, byte_offset, bytes, gate,
                            tile->sharing & ((1u << kPeerBit) - 1));
  }
}

// After a barrier: the buffer that belongs to the gate is left.
BURIN_PIECE void burin_piece_leave_buffer(const Tile* tile, u32 gate) {
  if (tile->thread < sharers()) burin_dev_gate_arrive(gate, tile->sharing >> kPeerBit & 7);
}
// Before a buffer is filled again.
BURIN_PIECE void burin_piece_await_buffer(const Tile* tile, u32 gate, u32 phase) {
  if (tile->thread < kWarpThreads) burin_dev_gate_wait_blocks(gate, phase);
}

// Starts the copies of `blocks` channel blocks, whose first is `source_bytes` into an image, to a buffer.
BURIN_PIECE void burin_piece_bulk_fill(const Tile* tile, i64 source_bytes, u32 blocks, u32 buffer_bytes, u32 gate) {
  if (tile->thread >= kWarpThreads) return;
  if (tile->thread == 0) burin_dev_gate_expect(gate, tile->copies * blocks * tile->bytes);
  const u32 own = own_blocks(tile, blocks);
  if (whole_planes()) {
    if (own == 0) return;
#pragma nounroll
    for (u32 image = tile->thread; image < tile->copies; image += kWarpThreads) {
      const i64 image_bytes = static_cast<i64>(image - tile->thread) * in_image_words() * kWordBytes;
      bulk_copy(tile, tile->target + (image - tile->thread) * image_pitch() * kWordBytes, buffer_bytes,
                image_bytes + source_bytes, own * tile->bytes, gate);
    }
  } else {
#pragma nounroll
    for (u32 block = tile->thread; block < own * tile->copies; block += kWarpThreads) {
      bulk_copy(tile, tile->target + block * channel_pitch() * kWordBytes, buffer_bytes,
                block * block_bytes() + source_bytes, tile->bytes, gate);
    }
  }
}

// The first stages of a slice, into as many buffers.
BURIN_DEVICE void fill_first_buffers(const Tile* tile, u32 first_block, u32 blocks) {
  u32 left = blocks, stage = 0;
#pragma nounroll
  for (; stage < stages_ahead() && left > 0; ++stage) {
    const u32 now = left < stage_blocks() ? left : stage_blocks();
    burin_piece_bulk_fill(tile, (first_block + stage * stage_blocks()) * block_bytes(), now, stage * stage_bytes(),
                          stage);
    left -= now;
  }
}

// ---- the multiply-adds
BURIN_PIECE float burin_piece_activation(u32 lane, u32 offset) { return burin_dev_shared_load(lane, offset); }

// With nchw4, four channels at once.
BURIN_PIECE f32x4 burin_piece_activation4(u32 lane, u32 offset) { return burin_dev_shared_load4(lane, offset); }
BURIN_PIECE f32x4 burin_piece_activation4_if(u32 inside, u32 lane, u32 offset) {
  return burin_dev_shared_load4_if(inside, lane, offset);
}

// Without staging: the thread's own pixel in global memory.
BURIN_PIECE f32x4 burin_piece_direct4(const float* source, i64 byte_offset) {
  return burin_dev_global_load4(source, byte_offset);
}
BURIN_PIECE float burin_piece_direct(const float* source, i64 byte_offset) {
  return burin_dev_global_load(source, byte_offset);
}

BURIN_PIECE float burin_piece_tap(float sum, float activation, float weight) {
  return __builtin_fmaf(activation, weight, sum);
}

// ---- the same in half precision
BURIN_PIECE u32 burin_piece_activations(u32 lane, u32 offset) { return burin_dev_shared_load_word(lane, offset); }
BURIN_PIECE u32 burin_piece_activations_if(u32 inside, u32 lane, u32 offset) {
  return burin_dev_shared_load_word_if(inside, lane, offset);
}
BURIN_PIECE u32 burin_piece_direct_pair(const float* source, i64 byte_offset) {
  return burin_dev_global_load_word(source, byte_offset);
}

BURIN_DEVICE float low_half(u32 word) {
  return bf16() ? __builtin_bit_cast(float, word << 16) : burin_dev_f16_low(word);
}
BURIN_DEVICE float high_half(u32 word) {
  return bf16() ? __builtin_bit_cast(float, word & 0xFFFF0000u) : burin_dev_f16_high(word);
}
BURIN_DEVICE u32 pack_halves(float low, float high) {
  return bf16() ? burin_dev_bf16_pack(low, high) : burin_dev_f16_pack(low, high);
}
BURIN_PIECE float burin_piece_low(u32 word) { return low_half(word); }
BURIN_PIECE float burin_piece_high(u32 word) { return high_half(word); }

// Two sums in FP16; they have no predicated multiply-adds, of which the assembler would make two instructions, but code
// that threads jump over. When they have gone over to FP32 ones they start anew, with their first term.
BURIN_PIECE u32 burin_piece_pair_start() { return __builtin_bit_cast(u32, burin_dev_zero()); }
BURIN_PIECE u32 burin_piece_pair_first(u32 activations, u32 weights) {
  return burin_dev_f16x2_mul(activations, weights);
}
BURIN_PIECE u32 burin_piece_pair_tap(u32 sums, u32 activations, u32 weights) {
  return burin_dev_f16x2_fma(activations, weights, sums);
}

// The bits of `outside` that are set when a filter position lies beyond the image; one of them may be enough.
BURIN_PIECE u32 burin_piece_inside(u32 outside, u32 bits) { return (outside & bits) == 0; }
BURIN_PIECE float burin_piece_activation_if(u32 inside, u32 lane, u32 offset) {
  return burin_dev_shared_load_if(inside, lane, offset);
}
BURIN_PIECE float burin_piece_tap_if(u32 inside, float sum, float activation, float weight) {
  return burin_dev_fma_if(inside, activation, weight, sum);
}

BURIN_PIECE float burin_piece_start() { return burin_dev_zero(); }

// One stage: its channels have arrived; the buffer that the last stage has left takes a later one.
BURIN_PIECE void burin_piece_stage(const Tile* tile, float* sums) {
  burin_dev_copy_wait(copies_in_flight());
  burin_dev_barrier();
  burin_hole_fill_ahead(tile);
  burin_dev_copy_commit();
  burin_hole_taps(sums, tile->lane, 0);
}

// The same with bulk copies. A stage after which no buffer is filled needs no barrier for it, but many warps share
// fetches of code only as long as they keep together.
BURIN_PIECE void burin_piece_bulk_stage(const Tile* tile, float* sums, u32 gate, u32 phase) {
  burin_dev_gate_wait(gate, phase);
  burin_dev_barrier();
  burin_hole_fill_ahead(tile);
  burin_hole_taps(sums, tile->lane, tile->outside);
}
// After the last stage: waits for what has long arrived. Of the barrier that comes next the assembler would make use to
// load the last activations before it and to unpack and multiply them behind it; a loop ends that.
BURIN_PIECE void burin_piece_bulk_end(u32 gate, u32 phase) { burin_dev_gate_wait(gate, phase); }
BURIN_PIECE void burin_piece_bulk_free_stage(const Tile* tile, float* sums, u32 gate, u32 phase) {
  burin_dev_gate_wait(gate, phase);
  burin_hole_taps(sums, tile->lane, tile->outside);
}

// ---- splits: partial sums go through scratch; the last block to arrive adds them, always in the order of the splits
BURIN_PIECE void burin_piece_publish(float* partials, i64 byte_offset, float sum) {
  burin_dev_scratch_store(partials, byte_offset, sum);
}

BURIN_PIECE float burin_piece_gather(const float* partials, i64 byte_offset, float sum) {
  return sum + burin_dev_scratch_load(partials, byte_offset);
}

BURIN_DEVICE bool last_to_arrive(u32* counter) {
  burin_dev_fence();
  burin_dev_barrier();
  const u32 last = splits() - 1;
  u32 order = 0;
  if (burin_dev_thread() == 0) order = burin_dev_count_arrival(counter, last);
  order = burin_dev_broadcast(order);
  burin_dev_fence();
  return order == last;
}

// Or the splits are the blocks of a cluster: each leaves its partial sums in its shared memory and adds its share of
// the group's channels, again in the order of the splits.
BURIN_PIECE void burin_piece_share(u32 place, u32 offset, float sum) { burin_dev_shared_store(place, offset, sum); }

// Between the ranks of neighbouring splits are those of the cluster's other tiles.
BURIN_PIECE float burin_piece_collect(u32 place, u32 offset, u32 first_rank, u32 split) {
  return burin_dev_cluster_load(place, offset, first_rank + split * cluster_tiles());
}

// The rank of the block with this one's tile and group and split 0.
BURIN_DEVICE u32 rank_of_first_split() {
  if (cluster_blocks() == splits()) return 0;
  return burin_dev_cluster_rank() - burin_slice_split() * cluster_tiles();
}

BURIN_PIECE float burin_piece_add(float sum, float partial) { return sum + partial; }

// ---- the epilogue
BURIN_DEVICE float activate(float x) {
  switch (activation()) {
    case kRelu:
      return x < 0 ? 0 : x;
    case kRelu6:
      return x < 0 ? 0 : x > 6 ? 6 : x;
    case kLeakyRelu:
      return x < 0 ? x * burin_real_leaky_slope() : x;
    case kSigmoid:
      return burin_dev_reciprocal(1 + burin_dev_exp(-x));
    case kSilu:
      return x * burin_dev_reciprocal(1 + burin_dev_exp(-x));
    default:
      return x;
  }
}

// Each stores one output, or several, and says of each whether it is live, in bits from 0 on.
BURIN_PIECE u32 burin_piece_output(float sum, const Pixel* pixel, i64 channel_bytes, float bias) {
  if (has_bias()) sum += bias;
  if (has_residual()) sum += burin_dev_global_load(pixel->residual, channel_bytes);
  const float value = activate(sum);
  burin_dev_global_store(pixel->output, channel_bytes, value);
  return is_live(value);
}

// With the half precisions: of two images.
BURIN_PIECE u32 burin_piece_output_pair(float low, float high, const Pixel* pixel, i64 channel_bytes, float bias) {
  if (has_bias()) {
    low += bias;
    high += bias;
  }
  if (has_residual()) {
    const u32 word = burin_dev_global_load_word(pixel->residual, channel_bytes);
    low += low_half(word);
    high += high_half(word);
  }
  const u32 word = pack_halves(activate(low), activate(high));
  burin_dev_global_store_word(pixel->output, channel_bytes, word);
  return (word & pixel->meant) != 0 ? 1u : 0u;
}

// With nchw4, four accumulators whose channels lie side by side.
BURIN_PIECE u32 burin_piece_output4(float sum0, float sum1, float sum2, float sum3, const Pixel* pixel,
                                    i64 channel_bytes, float bias0, float bias1, float bias2, float bias3) {
  f32x4 sums = {sum0, sum1, sum2, sum3};
  if (has_bias()) sums += f32x4{bias0, bias1, bias2, bias3};
  if (has_residual()) sums += burin_dev_global_load4(pixel->residual, channel_bytes);
  const f32x4 values = {activate(sums[0]), activate(sums[1]), activate(sums[2]), activate(sums[3])};
  burin_dev_global_store4(pixel->output, channel_bytes, values);
  return is_live(values[0]) | is_live(values[1]) << 1 | is_live(values[2]) << 2 | is_live(values[3]) << 3;
}

// ---- a block
BURIN_DEVICE i32 words_of_images(i32 images) { return (images + word_images() - 1) / word_images(); }

// Where the tile's pixels are in the output.
struct TileOrigin {
  i32 image, row, col;
};

BURIN_DEVICE TileOrigin locate_origin() {
  const u32 row_tiles = (out_rows() + tile_rows() - 1) / tile_rows();
  const u32 col_tiles = (out_cols() + tile_cols() - 1) / tile_cols();
  const u32 block = burin_dev_block_x();
  const u32 within_image = block % (row_tiles * col_tiles);
  TileOrigin origin;
  origin.image = block / (row_tiles * col_tiles) * tile_images();
  origin.row = within_image / col_tiles * tile_rows();
  origin.col = within_image % col_tiles * tile_cols();
  return origin;
}

// A thread's pixel within the tile; a thread beyond the last pixel shares the last one's place.
struct TilePlace {
  i32 image, row, col;
};

BURIN_DEVICE u32 tile_pixels() { return tile_images() * tile_rows() * tile_cols(); }

BURIN_DEVICE TilePlace locate_place(u32 thread) {
  const u32 pixel = thread < tile_pixels() ? thread : tile_pixels() - 1;
  const u32 image_pixels = tile_rows() * tile_cols();
  const u32 within_image = pixel % image_pixels;
  TilePlace place;
  place.image = pixel / image_pixels;
  place.row = within_image / tile_cols();
  place.col = within_image % tile_cols();
  return place;
}

BURIN_DEVICE Tile locate_tile(const float* input, i32 batch) {
  const TileOrigin origin = locate_origin();
  Tile tile;
  tile.input = input;
  tile.batch = batch;
  tile.first_image = origin.image;
  tile.first_row = origin.row;
  tile.first_col = origin.col;
  tile.thread = burin_dev_thread();
  const TilePlace place = locate_place(tile.thread);
  tile.lane = shared_start() + (place.image * image_pitch() + place.row * stride_rows() * row_pitch() +
                                word_of_column(place.col * stride_cols())) *
                                   kWordBytes;
  if (positions_per_thread() <= kHeldPositions) {
#pragma unroll
    for (u32 i = 0; i < kHeldPositions; ++i) {
      if (i < positions_per_thread()) tile.held[i] = locate_position(&tile, i * block_threads() + tile.thread);
    }
  }
  return tile;
}

BURIN_DEVICE i32 at_most(i32 value, i32 limit) { return value < limit ? value : limit; }

// For bulk copies. A thread whose pixel does not exist stands in for one that does.
BURIN_DEVICE Tile locate_bulk_tile(const Launch& launch) {
  const TileOrigin origin = locate_origin();
  Tile tile;
  tile.thread = burin_dev_thread();
  const TilePlace place = locate_place(tile.thread);
  const i32 images = at_most(tile_images(), launch.batch - origin.image);
  const i32 image = at_most(place.image, images - 1);
  const i32 row = at_most(origin.row + place.row, out_rows() - 1);
  const i32 y = row * stride_rows() - pad_top();
  const i32 x = place.col * stride_cols() - pad_left();
  // The first of the image's rows in a buffer, and rows between it and the buffer's start.
  const i32 first_row = whole_planes() ? 0 : origin.row * stride_rows() - pad_top();
  const i32 missing = first_row < 0 ? -first_row : 0;
  const i32 reached = at_most(patch_rows(), in_rows() - first_row) - missing;
  const i32 rows = whole_planes() ? in_rows() : reached < 0 ? 0 : reached;  // 0: the tile reads nothing but padding
  tile.lane = shared_start() + (image * image_pitch() + (y - first_row) * row_pitch() + x * in_together()) * kWordBytes;

  tile.outside = 0;
#pragma unroll
  for (i32 r = 0; r < kernel_rows(); ++r) {
    const i32 at = y + r * dilation_rows();
    if (at < 0 || at >= in_rows()) tile.outside |= 1u << r;
  }
#pragma unroll
  for (i32 s = 0; s < kernel_cols(); ++s) {
    const i32 at = x + s * dilation_cols();
    if (at < 0 || at >= in_cols()) tile.outside |= 1u << (outside_column_bit() + s);
  }

  const u32 copied_image = whole_planes() ? tile.thread : 0;
  tile.source = launch.input + static_cast<i64>(origin.image + copied_image) * in_image_words() +
                (first_row + missing) * in_cols() * in_together();
  tile.target = shared_start() + (copied_image * image_pitch() + missing * row_pitch()) * kWordBytes;
  tile.copies = whole_planes() ? images : rows > 0;
  tile.bytes = rows * in_cols() * in_together() * kWordBytes;
  if (sharers() > 1) {
    tile.sharing = locate_sharing();
    const u32 before = blocks_before(tile.sharing);
    tile.source += before * (block_bytes() / kWordBytes);
    tile.target += before * channel_pitch() * kWordBytes;
  }
  return tile;
}

// The input of this thread's pixel in channel 0, of a 1x1 filter without padding. A thread without a pixel reads one
// that exists.
BURIN_DEVICE const float* locate_source(const Launch& launch) {
  const TileOrigin origin = locate_origin();
  const TilePlace place = locate_place(burin_dev_thread());
  const i32 image = at_most(origin.image + place.image, launch.batch - 1);
  const i32 row = at_most(origin.row + place.row, out_rows() - 1);
  const i32 col = at_most(origin.col + place.col, out_cols() - 1);
  return launch.input + static_cast<i64>(image) * in_image_words() +
         (row * stride_rows() * in_cols() + col * stride_cols()) * in_together();
}

BURIN_DEVICE Pixel locate_pixel(const Launch& launch) {
  const TileOrigin origin = locate_origin();
  const u32 thread = burin_dev_thread();
  const TilePlace place = locate_place(thread);
  const i32 image = origin.image + place.image;
  const i32 row = origin.row + place.row;
  const i32 col = origin.col + place.col;
  const i64 offset = static_cast<i64>(image) * out_image_words() + (row * out_cols() + col) * out_together();
  const bool owned = thread < tile_pixels() && image < launch.batch && row < out_rows() && col < out_cols();
  Pixel pixel;
  pixel.output = owned ? launch.output + offset : nullptr;
  pixel.residual = has_residual() ? launch.residual + offset : nullptr;
  constexpr u32 kBoth = 0x7FFF7FFF, kFirst = 0x00007FFF;
  pixel.meant = image * word_images() + 1 < launch.images ? kBoth : kFirst;
  return pixel;
}

// The code of one slice: cloned per output-channel group and split. The entry has found the thread's places, as it
// waits for the first copies anyway. What comes first is needed at once, and lies in registers; what comes last, at the
// end.
BURIN_PIECE void burin_piece_slice(u32 lane, u32 outside, const float* source, u32 target, u32 copies, u32 bytes,
                                   u32 sharing, float* partials, u32* counters, u8* marks, i32 batch, float* output,
                                   const float* residual, u32 meant) {
  burin_dev_prefetch_code(burin_slice_code(), burin_slice_code_bytes(), block_threads());
  const Pixel pixel = {output, residual, meant};
  u32 live[kMaxMarkWords];
  clear_live(live);
  float sums[kMaxSums];
  if (bulk()) {
    Tile tile;
    tile.thread = burin_dev_thread();
    tile.lane = lane;
    tile.outside = outside;
    tile.source = source;
    tile.target = target;
    tile.copies = copies;
    tile.bytes = bytes;
    tile.sharing = sharing;
    burin_hole_clear(sums);
    burin_hole_stages(&tile, sums);
  } else if (staged()) {
    const Tile tile = locate_tile(source, batch);
    burin_hole_clear(sums);
    burin_hole_prologue(&tile);
    burin_hole_stages(&tile, sums);
  } else {
    burin_hole_clear(sums);
    burin_hole_direct(sums, source);
  }

  if (clustered()) {
    burin_dev_barrier();  // the partial sums take the buffers' place
    const u32 place = partials_start() + burin_dev_thread() * kWordBytes;
    burin_hole_share(sums, place);
    burin_dev_cluster_barrier();
    if (pixel.output != nullptr) {
      burin_hole_collect(sums, place, rank_of_first_split());
      burin_hole_outputs(sums, &pixel, live);
    }
    write_marks(marks, live);
    burin_dev_cluster_leave();
    burin_dev_exit();
  } else if (splits() > 1) {
    const i64 slice_words = static_cast<i64>(group_sums()) * block_threads();
    const i64 first_slice = (static_cast<i64>(burin_dev_block_x()) * group_count() + burin_slice_group()) * splits();
    float* group_partials = partials + first_slice * slice_words + burin_dev_thread();
    burin_hole_publish(sums, group_partials + burin_slice_split() * slice_words);
    if (!last_to_arrive(counters + burin_dev_block_x() * group_count() + burin_slice_group())) burin_dev_exit();
    burin_hole_clear(sums);
#pragma nounroll
    for (i32 split = 0; split < splits(); ++split) burin_hole_gather(sums, group_partials + split * slice_words);
  }
  if (pixel.output != nullptr) burin_hole_outputs(sums, &pixel, live);
  write_marks(marks, live);
  burin_dev_exit();
}

// What is the same for all slices is done here: this code is fetched once for the whole GPU.
BURIN_DEVICE void run_block(const Launch& launch, const u8* activity, u8* marks) {
  const u32 slice = burin_dev_block_y();
  // The grid is whole clusters; nobody waits for a block whose tile lies beyond the batch.
  if (cluster_tiles() > 1 && locate_origin().image >= launch.batch) burin_dev_exit();
  Tile tile = {};
  if (uses_activity()) clear_activity();
  if (bulk()) {
    const u32 gate = burin_dev_thread();
    if (gate < buffers()) burin_dev_gate_init(gate);
    if (sharers() > 1 && buffers() <= gate && gate < 2 * buffers()) burin_dev_gate_init_blocks(gate, sharers());
    tile = locate_bulk_tile(launch);
    if (sharers() > 1) {
      burin_dev_cluster_barrier();
    } else {
      burin_dev_barrier();
    }
    fill_first_buffers(&tile, burin_hole_first_block(slice), burin_hole_blocks(slice));
  } else {
    tile.source = staged() ? launch.input : locate_source(launch);
  }
  if (uses_activity()) {
    if (!bulk()) burin_dev_barrier();  // the words are clear
    if (skips()) {
      const TileOrigin origin = locate_origin();
      find_live_channels(activity, launch.batch, origin.image, origin.row, origin.col,
                         burin_hole_first_live_word(slice), burin_hole_live_words(slice));
      burin_dev_barrier();
    }
  }
  const Pixel pixel = locate_pixel(launch);
  burin_hole_slices(slice, tile.lane, tile.outside, tile.source, tile.target, tile.copies, tile.bytes, tile.sharing,
                    launch.partials, launch.counters, marks, launch.batch, pixel.output, pixel.residual, pixel.meant);
}

// The entries: the plan decides which is kept, under the kernel's symbol.
BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* residual, float* partials, u32* counters,
                               i32 batch) {
  run_block({input, output, residual, partials, counters, batch, words_of_images(batch)}, nullptr, nullptr);
}

BURIN_KERNEL void burin_kernel_with_activity(const float* input, float* output, const float* residual, float* partials,
                                             u32* counters, i32 batch, const u8* input_activity, u8* output_activity) {
  run_block({input, output, residual, partials, counters, batch, words_of_images(batch)}, input_activity,
            output_activity);
}
