// conv_baked: every nonzero of the layer is an instruction.
//
// A thread owns one output pixel and the accumulators of one group of output channels. A block stages the input patch
// of its pixel tile, a few channels at a time, in shared memory (halo included, padding as zeros), and multiplies while
// the next channels arrive. What depends on the pattern is a hole:
//
//   constants   name()               plan constants, listed in conv_baked.def
//   holes       burin_hole_*         calls that the specialiser fills, per slice and per stage
//   pieces      burin_piece_*        functions that the specialiser clones into the holes with constant arguments
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
BURIN_PRIMITIVE float burin_leaky_slope() __attribute__((const));

#define BURIN_PIECE extern "C" __attribute__((device, used))

// The order of ir/conv_layer.h's Activation.
enum { kNone, kRelu, kRelu6, kLeakyRelu, kSigmoid, kSilu };

constexpr i32 kWordBytes = 4;
constexpr u32 kHeldPositions = 4;      // patch positions per thread whose addresses stay in registers
constexpr i32 kMaxAccumulators = 128;  // ir/limits.h: kMaxGroupChannels

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
  u32 lane;  // shared bytes of this thread's pixel: filter position (0, 0), slot 0, buffer 0
  Position held[kHeldPositions];
};

// A thread's output pixel. Found when the sums are complete: until then it would only take registers.
struct Pixel {
  u32 owned;      // 0: the tile reaches beyond the image or the batch
  float* output;  // channel 0
  const float* residual;
};

// What a launch passes; the order is part of the package format.
struct Launch {
  const float* input;
  float* output;
  const float* residual;
  float* partials;
  u32* counters;
  i32 batch;
};

// ---- holes
BURIN_PRIMITIVE void burin_hole_copies(const float* source, u32 target, u32 valid);
BURIN_PRIMITIVE void burin_hole_fill_ahead(const Tile* tile);
BURIN_PRIMITIVE void burin_hole_taps(float* sums, u32 lane);
BURIN_PRIMITIVE void burin_hole_prologue(const Tile* tile);
BURIN_PRIMITIVE void burin_hole_stages(const Tile* tile, float* sums);
BURIN_PRIMITIVE void burin_hole_direct(float* sums, const float* source);
BURIN_PRIMITIVE void burin_hole_clear(float* sums);
BURIN_PRIMITIVE void burin_hole_publish(float* sums, float* partials);
BURIN_PRIMITIVE void burin_hole_gather(float* sums, const float* partials);
BURIN_PRIMITIVE void burin_hole_outputs(float* sums, const Pixel* pixel);
BURIN_PRIMITIVE void burin_hole_slices(u32 slice, const float* input, float* output, const float* residual,
                                       float* partials, u32* counters, i32 batch);

// ---- the input patch
BURIN_DEVICE u32 patch_positions() { return tile_images() * patch_rows() * patch_cols(); }
BURIN_DEVICE u32 positions_per_thread() { return (patch_positions() + block_threads() - 1) / block_threads(); }

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
  position.target = shared_reserve() + (image * image_pitch() + row * row_pitch() + col) * kWordBytes;
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

// ---- the multiply-adds
BURIN_PIECE float burin_piece_activation(u32 lane, u32 offset) { return burin_dev_shared_load(lane, offset); }

// Without staging: the thread's own pixel in global memory.
BURIN_PIECE float burin_piece_direct(const float* source, i64 byte_offset) {
  return burin_dev_global_load(source, byte_offset);
}

BURIN_PIECE float burin_piece_tap(float sum, float activation, float weight) {
  return __builtin_fmaf(activation, weight, sum);
}

BURIN_PIECE float burin_piece_start() { return burin_dev_zero(); }

// One stage: its channels have arrived; the buffer that the last stage has left takes a later one.
BURIN_PIECE void burin_piece_stage(const Tile* tile, float* sums) {
  burin_dev_copy_wait(copies_in_flight());
  burin_dev_barrier();
  burin_hole_fill_ahead(tile);
  burin_dev_copy_commit();
  burin_hole_taps(sums, tile->lane);
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

// ---- the epilogue
BURIN_DEVICE float activate(float x) {
  switch (activation()) {
    case kRelu:
      return x < 0 ? 0 : x;
    case kRelu6:
      return x < 0 ? 0 : x > 6 ? 6 : x;
    case kLeakyRelu:
      return x < 0 ? x * burin_leaky_slope() : x;
    case kSigmoid:
      return burin_dev_reciprocal(1 + burin_dev_exp(-x));
    case kSilu:
      return x * burin_dev_reciprocal(1 + burin_dev_exp(-x));
    default:
      return x;
  }
}

BURIN_PIECE void burin_piece_output(float sum, const Pixel* pixel, i64 channel_bytes, float bias) {
  if (has_bias()) sum += bias;
  if (has_residual()) sum += burin_dev_global_load(pixel->residual, channel_bytes);
  burin_dev_global_store(pixel->output, channel_bytes, activate(sum));
}

// ---- a block
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

BURIN_DEVICE Tile locate_tile(const Launch& launch) {
  const TileOrigin origin = locate_origin();
  Tile tile;
  tile.input = launch.input;
  tile.batch = launch.batch;
  tile.first_image = origin.image;
  tile.first_row = origin.row;
  tile.first_col = origin.col;
  tile.thread = burin_dev_thread();
  const TilePlace place = locate_place(tile.thread);
  tile.lane =
      shared_reserve() +
      (place.image * image_pitch() + place.row * stride_rows() * row_pitch() + place.col * stride_cols()) * kWordBytes;
  if (positions_per_thread() <= kHeldPositions) {
#pragma unroll
    for (u32 i = 0; i < kHeldPositions; ++i) {
      if (i < positions_per_thread()) tile.held[i] = locate_position(&tile, i * block_threads() + tile.thread);
    }
  }
  return tile;
}

// The input of this thread's pixel in channel 0, of a 1x1 filter without padding. A thread without a pixel reads one
// that exists.
BURIN_DEVICE const float* locate_source(const Launch& launch) {
  const TileOrigin origin = locate_origin();
  const TilePlace place = locate_place(burin_dev_thread());
  const auto at_most = [](i32 value, i32 limit) { return value < limit ? value : limit; };
  const i32 image = at_most(origin.image + place.image, launch.batch - 1);
  const i32 row = at_most(origin.row + place.row, out_rows() - 1);
  const i32 col = at_most(origin.col + place.col, out_cols() - 1);
  return launch.input + static_cast<i64>(image) * in_channels() * in_rows() * in_cols() +
         (row * stride_rows() * in_cols() + col * stride_cols());
}

BURIN_DEVICE Pixel locate_pixel(const Launch& launch) {
  const TileOrigin origin = locate_origin();
  const u32 thread = burin_dev_thread();
  const TilePlace place = locate_place(thread);
  const i32 image = origin.image + place.image;
  const i32 row = origin.row + place.row;
  const i32 col = origin.col + place.col;
  const i64 offset = static_cast<i64>(image) * out_channels() * out_rows() * out_cols() + (row * out_cols() + col);
  Pixel pixel;
  pixel.owned = thread < tile_pixels() && image < launch.batch && row < out_rows() && col < out_cols();
  pixel.output = launch.output + offset;
  pixel.residual = has_residual() ? launch.residual + offset : nullptr;
  return pixel;
}

// The code of one slice: cloned per output-channel group and split.
BURIN_PIECE void burin_piece_slice(const float* input, float* output, const float* residual, float* partials,
                                   u32* counters, i32 batch) {
  burin_dev_prefetch_code(burin_slice_code(), burin_slice_code_bytes(), block_threads());
  const Launch launch = {input, output, residual, partials, counters, batch};
  float sums[kMaxAccumulators];
  if (staged()) {
    const Tile tile = locate_tile(launch);
    burin_hole_clear(sums);
    burin_hole_prologue(&tile);
    burin_hole_stages(&tile, sums);
  } else {
    burin_hole_clear(sums);
    burin_hole_direct(sums, locate_source(launch));
  }

  if (splits() > 1) {
    const i64 slice_words = static_cast<i64>(group_capacity()) * block_threads();
    const i64 first_slice = (static_cast<i64>(burin_dev_block_x()) * group_count() + burin_slice_group()) * splits();
    float* group_partials = partials + first_slice * slice_words + burin_dev_thread();
    burin_hole_publish(sums, group_partials + burin_slice_split() * slice_words);
    if (!last_to_arrive(counters + burin_dev_block_x() * group_count() + burin_slice_group())) burin_dev_exit();
    burin_hole_clear(sums);
#pragma nounroll
    for (i32 split = 0; split < splits(); ++split) burin_hole_gather(sums, group_partials + split * slice_words);
  }
  const Pixel pixel = locate_pixel(launch);
  if (pixel.owned) burin_hole_outputs(sums, &pixel);
  burin_dev_exit();
}

// The entry. The name is replaced by the kernel's symbol.
BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* residual, float* partials, u32* counters,
                               i32 batch) {
  burin_hole_slices(burin_dev_block_y(), input, output, residual, partials, counters, batch);
}
