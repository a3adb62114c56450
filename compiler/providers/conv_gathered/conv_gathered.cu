// conv_gathered: a convolution of halves on tensor cores. For a set of output channels only those columns of the matrix
// of weights are multiplied that have a nonzero in it; a column is an input channel and a position of the filter. What
// the columns are multiplied with is gathered for nothing: each lane of a warp gives the address of one column's row of
// eight images to the instruction that loads 32 rows.
//
// A block has eight images, a rectangle of pixels, and `row_warps` x `warp_tiles` x 16 output channels. It takes the
// input channels in chunks; while one is multiplied, those after it are copied. A warp multiplies `warp_tiles` x 16
// channels with `warp_pixels` pixels, 32 columns a step; the steps of a chunk are shared out to `split_warps` warps,
// which add up their sums at the end.
//
// Weights: for each set of output channels (of a group of the convolution, then the next), for each chunk, a panel. A
// panel: how many steps each row of warps has, filled up to whole quads of words; for each row of warps, the steps.
// A step: the weights as the lanes hold them, the places of those that are stored, if sparse, and for each column the
// byte of shared memory where the first pixel's row lies. Behind the panels, for each row of each set: the output
// channel, and its bias. Rows that have none have a channel beyond the last.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_gathered/conv_gathered.def"
#include "templates/kernels/function.h"

constexpr u32 kMaxTiles = 4, kMaxPixels = 14;
constexpr u32 kTileRows = 16;    // of a tile of tensor cores
constexpr u32 kOctetBytes = 16;  // eight images of a pixel
constexpr u32 kLaneBytes = 16;   // of a tile's weights
constexpr u32 kWarpWordBytes = kWarpThreads * kWordBytes;
constexpr u32 kBankBytes = 128;  // of all banks of shared memory
constexpr u32 kNoChannel = 0xFFFFFFFF;

// ---- sizes, all constants
BURIN_DEVICE u32 block_rows() { return row_warps() * warp_tiles() * kTileRows; }
BURIN_DEVICE u32 tiles_across() { return divide_up(out_cols(), tile_cols()); }
BURIN_DEVICE u32 pixel_tiles() { return tiles_across() * divide_up(out_rows(), tile_rows()); }
BURIN_DEVICE u32 chunks() { return divide_up(group_channels(), chunk_channels()); }
BURIN_DEVICE u32 ahead() { return buffers() - (carries() ? 2 : 1); }  // chunks that are copied while one is multiplied
BURIN_DEVICE u32 patch_pixels() { return patch_rows() * patch_cols(); }
// Input rows and columns from one of the patch to the next, and patch rows and columns from one output to the next.
BURIN_DEVICE u32 patch_step_rows() { return compact() ? stride_rows() : 1; }
BURIN_DEVICE u32 patch_step_cols() { return compact() ? stride_cols() : 1; }
BURIN_DEVICE u32 pixel_step_rows() { return compact() ? 1 : stride_rows(); }
BURIN_DEVICE u32 pixel_step_cols() { return compact() ? 1 : stride_cols(); }

BURIN_DEVICE u32 step_weight_tiles() { return sparse() ? warp_tiles() : 2 * warp_tiles(); }
BURIN_DEVICE u32 step_place_words() { return sparse() ? divide_up(warp_tiles(), 2) : 0; }
BURIN_DEVICE u32 places_offset() { return step_weight_tiles() * kWarpThreads * kLaneBytes; }
BURIN_DEVICE u32 columns_offset() { return places_offset() + step_place_words() * kWarpWordBytes; }
BURIN_DEVICE u32 step_bytes() { return columns_offset() + kWarpWordBytes; }
BURIN_DEVICE u32 steps_offset() { return divide_up(row_warps(), kQuadWords) * kQuadWords * kWordBytes; }
BURIN_DEVICE u32 panel_bytes() { return steps_offset() + row_warps() * step_limit() * step_bytes(); }
// Shared memory: for each buffer the chunk's activations, then its panel. At the end sums lie there.
BURIN_DEVICE u32 activation_bytes() { return chunk_channels() * channel_pitch() * kOctetBytes; }
// A multiple of all banks, so that columns lie in the same bank in every buffer.
BURIN_DEVICE u32 buffer_bytes() { return divide_up(activation_bytes() + panel_bytes(), kBankBytes) * kBankBytes; }

// ---- where the block stands: neighbours share their pixels
struct Position {
  u32 set;                   // of output channels
  u32 group;                 // of the convolution
  u32 first_row, first_col;  // of the tile
};
BURIN_DEVICE Position position_of_block() {
  const u32 block = block_of_image(), set_of_group = block % output_blocks(), rest = block / output_blocks();
  const u32 tile = rest % pixel_tiles(), group = rest / pixel_tiles();
  return {group * output_blocks() + set_of_group, group, tile / tiles_across() * tile_rows(),
          tile % tiles_across() * tile_cols()};
}

// ---- copies
// A thread copies the same pixels of the patch in every chunk: of one channel in so many, or several of each channel.
BURIN_DEVICE u32 channel_lanes() { return patch_pixels() < block_threads() ? block_threads() / patch_pixels() : 1; }
BURIN_DEVICE u32 slots() { return divide_up(patch_pixels(), block_threads()); }
constexpr u32 kMaxSlots = 8;

struct Slot {
  u32 source;  // byte of the first channel's plane
  u32 target;  // byte of a buffer
  u32 valid;   // the pixel is inside the image
  bool exists;
};
struct Copies {
  Slot slots[kMaxSlots];
  u32 lane;
};
BURIN_DEVICE Copies copies_of_thread(const Position& position) {
  Copies copies;
  const u32 thread = burin_dev_thread();
  copies.lane = slots() == 1 ? thread / patch_pixels() : 0;
#pragma unroll
  for (u32 i = 0; i < kMaxSlots; ++i) {
    if (i >= slots()) continue;
    const u32 pixel = slots() == 1 ? thread % patch_pixels() : thread + i * block_threads();
    const i32 y =
        static_cast<i32>(position.first_row * stride_rows() + pixel / patch_cols() * patch_step_rows()) - pad_top();
    const i32 x =
        static_cast<i32>(position.first_col * stride_cols() + pixel % patch_cols() * patch_step_cols()) - pad_left();
    copies.slots[i].valid =
        static_cast<u32>(y) < static_cast<u32>(in_rows()) && static_cast<u32>(x) < static_cast<u32>(in_cols());
    copies.slots[i].source = (y * in_cols() + x) * kOctetBytes;
    copies.slots[i].target = (copies.lane * channel_pitch() + pixel) * kOctetBytes;
    copies.slots[i].exists = slots() == 1 ? copies.lane < channel_lanes() : pixel < patch_pixels();
  }
  return copies;
}

BURIN_DEVICE void copy_panel(const float* weights, u32 set, u32 chunk, u32 buffer) {
  const float* panel = weights + static_cast<i64>(set * chunks() + chunk) * (panel_bytes() / kWordBytes);
  const u32 target = buffer + activation_bytes(), thread = burin_dev_thread();
#pragma unroll
  for (u32 first = 0; first < panel_bytes(); first += block_threads() * kLaneBytes) {
    const u32 byte = first + thread * kLaneBytes;
    if (first + block_threads() * kLaneBytes > panel_bytes() && byte >= panel_bytes()) continue;
    burin_dev_copy_async4(target + thread * kLaneBytes, first, panel, static_cast<i64>(thread * kLaneBytes) + first, 1);
  }
}

// `image` begins with the group's first channel.
BURIN_DEVICE void copy_activations(const float* image, const Copies& copies, u32 chunk, u32 buffer) {
  const u32 plane_bytes = in_rows() * in_cols() * kOctetBytes;
  const u32 first = chunk * chunk_channels() + copies.lane;
  const float* planes = image + static_cast<i64>(first) * (plane_bytes / kWordBytes);
#pragma unroll
  for (u32 channel = 0; channel < static_cast<u32>(chunk_channels()); channel += channel_lanes()) {
    const bool sure =
        channel + channel_lanes() <= static_cast<u32>(chunk_channels()) && group_channels() % chunk_channels() == 0;
    if (!sure && (channel + copies.lane >= static_cast<u32>(chunk_channels()) ||
                  first + channel >= static_cast<u32>(group_channels()))) {
      continue;
    }
#pragma unroll
    for (u32 i = 0; i < kMaxSlots; ++i) {
      if (i >= slots() || !copies.slots[i].exists) continue;
      burin_dev_copy_async4(
          buffer + copies.slots[i].target, channel * channel_pitch() * kOctetBytes, planes,
          static_cast<i64>(static_cast<i32>(copies.slots[i].source)) + static_cast<i64>(channel) * plane_bytes,
          copies.slots[i].valid);
    }
  }
}

// ---- products
struct Warp {
  u32 row, pixel, split, lane;  // of the block's warps
};
BURIN_DEVICE Warp warp_of_thread() {
  const u32 thread = burin_dev_thread(), warp = thread / kWarpThreads;
  return {warp / (split_warps() * pixel_warps()), warp / split_warps() % pixel_warps(), warp % split_warps(),
          thread % kWarpThreads};
}

struct Sums {
  f32x4 of[kMaxTiles][kMaxPixels];
};

// Where a pixel of the tile begins in a channel's patch. Those of a warp are a whole row's part, or whole rows: so the
// distance of each from the warp's first one is a constant.
BURIN_DEVICE u32 place_of(u32 pixel) {
  return (pixel / tile_cols() * pixel_step_rows() * patch_cols() + pixel % tile_cols() * pixel_step_cols()) *
         kOctetBytes;
}

struct Step {
  u32x4 weights[2 * kMaxTiles];
  u32 places[kMaxTiles / 2];
  u32 column;
};
BURIN_DEVICE u32x4 bits_of(f32x4 words) { return __builtin_bit_cast(u32x4, words); }

BURIN_DEVICE void load_step(u32 place, u32 lane, Step& step) {
  step.column = burin_dev_shared_load_word(place + lane * kWordBytes, columns_offset());
#pragma unroll
  for (u32 i = 0; i < 2 * kMaxTiles; ++i) {
    if (i >= step_weight_tiles()) continue;
    step.weights[i] = bits_of(burin_dev_shared_load4(place + lane * kLaneBytes, i * kWarpThreads * kLaneBytes));
  }
#pragma unroll
  for (u32 i = 0; i < kMaxTiles / 2; ++i) {
    if (i >= step_place_words()) continue;
    step.places[i] = burin_dev_shared_load_word(place + lane * kWordBytes, places_offset() + i * kWarpWordBytes);
  }
}

BURIN_DEVICE f32x4 product(u32x4 a, u32 b0, u32 b1, f32x4 sums) {
  return half_values() == kBf16 ? burin_dev_multiply_bf16(a, b0, b1, sums) : burin_dev_multiply_f16(a, b0, b1, sums);
}
BURIN_DEVICE f32x4 sparse_product(u32x4 a, u32x4 b, f32x4 sums, u32 places, u32 pair) {
  return half_values() == kBf16 ? burin_dev_multiply_sparse_bf16(a, b, sums, places, pair)
                              : burin_dev_multiply_sparse_f16(a, b, sums, places, pair);
}

BURIN_DEVICE void multiply(const Step& step, u32 first_pixel, Sums& sums) {
#pragma unroll
  for (u32 pixel = 0; pixel < kMaxPixels; ++pixel) {
    if (pixel >= static_cast<u32>(warp_pixels())) continue;
    const u32x4 rows = burin_dev_shared_load_rows(step.column + first_pixel, place_of(pixel));
#pragma unroll
    for (u32 tile = 0; tile < kMaxTiles; ++tile) {
      if (tile >= static_cast<u32>(warp_tiles())) continue;
      f32x4& sum = sums.of[tile][pixel];
      if (sparse()) {
        sum = sparse_product(step.weights[tile], rows, sum, step.places[tile / 2], tile % 2);
      } else {
        sum = product(step.weights[2 * tile], rows[0], rows[1], sum);
        sum = product(step.weights[2 * tile + 1], rows[2], rows[3], sum);
      }
    }
  }
}

// The steps of a chunk; the next one's weights are loaded before a step is multiplied.
BURIN_DEVICE void multiply_chunk(const Warp& warp, u32 first_pixel, u32 buffer, Sums& sums) {
  const u32 panel = buffer + activation_bytes();
  const u32 steps = burin_dev_shared_load_word(panel + warp.row * kWordBytes, 0);
  u32 number = warp.split;
  if (number >= steps) return;
  u32 place = panel + steps_offset() + (warp.row * step_limit() + number) * step_bytes();
  Step step;
  load_step(place, warp.lane, step);
#pragma nounroll
  for (number += split_warps(); number < steps; number += split_warps()) {
    place += split_warps() * step_bytes();
    Step next;
    load_step(place, warp.lane, next);
    multiply(step, first_pixel, sums);
    step = next;
  }
  multiply(step, first_pixel, sums);
}

// ---- the end
// The sums of all splits go to the first one's warps.
BURIN_DEVICE void add_splits(const Warp& warp, Sums& sums) {
  if (split_warps() == 1) return;
  const u32 warps = row_warps() * pixel_warps(), own = warp.row * pixel_warps() + warp.pixel;
  const u32 warp_bytes = warp_tiles() * warp_pixels() * kWarpThreads * kLaneBytes;
  const u32 place = kSharedStart + own * warp_bytes + warp.lane * kLaneBytes;
  if (warp.split > 0) {
#pragma unroll
    for (u32 i = 0; i < kMaxTiles * kMaxPixels; ++i) {
      const u32 tile = i / kMaxPixels, pixel = i % kMaxPixels;
      if (tile >= static_cast<u32>(warp_tiles()) || pixel >= static_cast<u32>(warp_pixels())) continue;
      burin_dev_shared_store4(place + (warp.split - 1) * warps * warp_bytes,
                              (tile * warp_pixels() + pixel) * kWarpThreads * kLaneBytes, sums.of[tile][pixel]);
    }
  }
  burin_dev_barrier();
  if (warp.split == 0) {
#pragma unroll
    for (u32 i = 0; i < kMaxTiles * kMaxPixels; ++i) {
      const u32 tile = i / kMaxPixels, pixel = i % kMaxPixels;
      if (tile >= static_cast<u32>(warp_tiles()) || pixel >= static_cast<u32>(warp_pixels())) continue;
#pragma unroll
      for (u32 split = 1; split < static_cast<u32>(split_warps()); ++split) {
        sums.of[tile][pixel] += burin_dev_shared_load4(
            place, (split - 1) * warps * warp_bytes + (tile * warp_pixels() + pixel) * kWarpThreads * kLaneBytes);
      }
    }
  }
  burin_dev_barrier();
}

// Words of two images between the lanes that have them as sums and those that have all eight images of a pixel.
struct Exchange {
  u32 start;          // of the warp's part
  const float* rows;  // the output channels of the warp's tile, and their biases
  u32 first_pixel;    // of the tile
  u32 first_row, first_col;
};
BURIN_DEVICE u32 exchange_bytes() { return kTileRows * warp_pixels() * kOctetBytes; }

// visit(byte of the exchange, byte of the output) for each of the lane's pixels and channels that are stored.
template <typename Visit>
BURIN_DEVICE void for_each_octet(const Exchange& exchange, u32 lane, Visit visit) {
#pragma unroll
  for (u32 first = 0; first < kTileRows * kMaxPixels; first += kWarpThreads) {
    const u32 item = first + lane;
    if (first >= kTileRows * warp_pixels() || item >= kTileRows * warp_pixels()) continue;
    const u32 pixel = exchange.first_pixel + item % warp_pixels();
    const u32 row = exchange.first_row + pixel / tile_cols(), col = exchange.first_col + pixel % tile_cols();
    const u32 channel = burin_dev_global_load_word(exchange.rows, bytes_of(item / warp_pixels() * 2));
    if (channel == kNoChannel || row >= static_cast<u32>(out_rows()) || col >= static_cast<u32>(out_cols())) continue;
    const i64 octet = static_cast<i64>(channel) * (out_rows() * out_cols()) + row * out_cols() + col;
    visit(exchange.start + item * kOctetBytes, octet * kOctetBytes);
  }
}

BURIN_DEVICE void finish_tile(const Exchange& exchange, const Warp& warp, const f32x4 (&sums)[kMaxPixels],
                              const float* other, float* output) {
  const bool own = warp.split == 0;
  if (residual()) {
    if (own) {
      for_each_octet(exchange, warp.lane, [&](u32 place, i64 octet) BURIN_INLINED {
        burin_dev_shared_store4(place, 0, burin_dev_global_load4(other, octet));
      });
    }
    burin_dev_barrier();
  }
  if (own) {
    const u32 row = warp.lane / 4, pair = warp.lane % 4;
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
      const float bias = burin_dev_global_load(exchange.rows, bytes_of((row + half * 8) * 2 + 1));
#pragma unroll
      for (u32 pixel = 0; pixel < kMaxPixels; ++pixel) {
        if (pixel >= static_cast<u32>(warp_pixels())) continue;
        const u32 place = exchange.start + row * warp_pixels() * kOctetBytes + pair * kWordBytes;
        const u32 offset = (half * 8 * warp_pixels() + pixel) * kOctetBytes;
        float first = sums[pixel][2 * half] + bias, second = sums[pixel][2 * half + 1] + bias;
        if (residual()) {
          const float added = float_of(burin_dev_shared_load_word(place, offset));
          first += low_half(added, in_halves());
          second += high_half(added, in_halves());
        }
        burin_dev_shared_store(place, offset, packed(apply(first), apply(second), out_halves()));
      }
    }
  }
  burin_dev_barrier();
  if (own) {
    for_each_octet(exchange, warp.lane, [&](u32 place, i64 octet) BURIN_INLINED {
      burin_dev_global_store4(output, octet, burin_dev_shared_load4(place, 0));
    });
  }
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32) {
  const Position position = position_of_block();
  const Warp warp = warp_of_thread();
  const Copies copies = copies_of_thread(position);
#pragma unroll
  for (u32 i = 0; i < ahead(); ++i) {
    if (i < chunks()) copy_panel(weights, position.set, i, kSharedStart + i * buffer_bytes());
  }
  Sums sums;
#pragma unroll
  for (u32 i = 0; i < kMaxTiles; ++i) {
#pragma unroll
    for (u32 pixel = 0; pixel < kMaxPixels; ++pixel) sums.of[i][pixel] = {0, 0, 0, 0};
  }
  burin_dev_await_launch();
  const u32 plane_words = in_rows() * in_cols() * (kOctetBytes / kWordBytes);
  const float* image =
      input_of(input, first_image()) + static_cast<i64>(position.group) * group_channels() * plane_words;
#pragma unroll
  for (u32 i = 0; i < ahead(); ++i) {
    if (i < chunks()) copy_activations(image, copies, i, kSharedStart + i * buffer_bytes());
    burin_dev_copy_commit();
  }
  u32 filled = kSharedStart, empty = kSharedStart + ahead() * buffer_bytes();
  const u32 last_buffer = kSharedStart + (buffers() - 1) * buffer_bytes();
  const u32 first_pixel = place_of(warp.pixel * warp_pixels());
#pragma nounroll
  for (u32 chunk = 0; chunk < chunks(); ++chunk) {
    burin_dev_copy_wait(ahead() - 1);
    burin_dev_barrier();
    if (chunk + ahead() < chunks()) {
      copy_panel(weights, position.set, chunk + ahead(), empty);
      copy_activations(image, copies, chunk + ahead(), empty);
    }
    burin_dev_copy_commit();
    multiply_chunk(warp, first_pixel, filled, sums);
    empty = empty == last_buffer ? kSharedStart : empty + buffer_bytes();
    filled = filled == last_buffer ? kSharedStart : filled + buffer_bytes();
  }
  burin_dev_copy_wait(0);
  burin_dev_barrier();
  add_splits(warp, sums);
  const u32 sets = image_blocks() / pixel_tiles();
  const i64 rows_word = static_cast<i64>(sets * chunks()) * (panel_bytes() / kWordBytes) +
                        (position.set * block_rows() + warp.row * warp_tiles() * kTileRows) * 2;
#pragma unroll
  for (u32 tile = 0; tile < kMaxTiles; ++tile) {
    if (tile >= static_cast<u32>(warp_tiles())) continue;
    const Exchange exchange = {kSharedStart + (warp.row * pixel_warps() + warp.pixel) * exchange_bytes(),
                               weights + rows_word + tile * kTileRows * 2, warp.pixel * warp_pixels(),
                               position.first_row, position.first_col};
    finish_tile(exchange, warp, sums.of[tile], residual_of(other, first_image()), output_of(output, first_image()));
    burin_dev_barrier();
  }
}
