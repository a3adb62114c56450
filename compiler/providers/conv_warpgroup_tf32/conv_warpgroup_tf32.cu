// conv_warpgroup_tf32: a convolution of floats in n4c8hw on the tensor cores of a warpgroup, which multiplies 32 pixels
// of four images with up to 128 output channels at once, in TF32. All weights are multiplied.
//
// A place, the values of a channel of a pixel in four images, is what a lane loads at once: its values are rows of two
// products, 64 x 8 by 8 x N each, of two images. So what is multiplied lies in registers, where it is rounded, and what
// a lane has of the sums are places, too. The weights lie in shared memory. Boxes are swizzled, so that lanes with
// neighbouring pixels load from different banks.
//
// A block has `pixel_groups` x 32 pixels of the convolution, those that a tile (line_tiles.h) is made of, in its order,
// and `output_groups` x `output_octets` octets of output channels. Behind a pool all pixels of an octet go through
// shared memory, where each window is read; pixels in windows of two tiles are multiplied for both.
//
// Weights: for each set of output channels, for each chunk, for each group of output channels, a panel; then the bias
// of each channel of the sets. A panel: for each step, weights as burin_dev_group_multiply_tf32() has them. Of eight
// output channels the columns are channels 0, 4, 1, 5, ..., so that neighbouring lanes have neighbouring places; of
// eight input channels the rows are channels 0, 2, 4, 6, 1, 3, 5, 7, so that a lane's two lie side by side.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_warpgroup_tf32/conv_warpgroup_tf32.def"
#include "templates/kernels/function.h"
#include "templates/kernels/line_tiles.h"
#include "templates/kernels/residual.h"

constexpr u32 kGroupThreads = 128, kGroupWarps = 4;
constexpr u32 kWarpPixels = 8, kGroupPixels = kGroupWarps * kWarpPixels;
constexpr u32 kMostOutputOctets = 16;
constexpr u32 kProducts = 2;          // of two images each
constexpr u32 kOctetStepBytes = 256;  // of weights: eight input channels of eight output channels
constexpr u32 kHalfLineBytes = 64;    // four channels of a pixel
constexpr u32 kSwizzledLines = 8;     // after which swizzled boxes have the same order again

// ---- sizes, all constants
BURIN_DEVICE u32 groups() { return output_groups() * pixel_groups(); }
BURIN_DEVICE u32 block_octets() { return output_groups() * output_octets(); }
// A group of the convolution has so many octets of outputs.
BURIN_DEVICE u32 stored_octets() { return divide_up(group_outputs(), kOctetChannels); }
BURIN_DEVICE u32 steps() { return part_positions() * chunk_octets(); }
BURIN_DEVICE u32 step_bytes() { return output_octets() * kOctetStepBytes; }
BURIN_DEVICE u32 panel_bytes() { return steps() * step_bytes(); }
BURIN_DEVICE u32 panels_bytes() { return output_groups() * panel_bytes(); }
BURIN_DEVICE u32 buffer_alignment() { return kSwizzledLines * kLineBytes; }
BURIN_DEVICE u32 tile_barriers() { return pools() ? output_octets() : 0; }
// A tile is made of so many pixels of the convolution.
BURIN_DEVICE u32 pixel_rows() { return (tile_rows() - 1) * pool_stride_rows() + pool_rows(); }
BURIN_DEVICE u32 pixel_cols() { return (tile_cols() - 1) * pool_stride_cols() + pool_cols(); }
BURIN_DEVICE i64 bias_offset() { return static_cast<i64>(sets()) * chunks() * panels_bytes(); }

// ---- where the thread stands
struct Seat {
  u32 output_group, lane;
  u32 pixel;     // of the tile's
  u32 row, col;  // where it lies
  bool exists;
};
BURIN_DEVICE Seat take_seat() {
  const u32 thread = burin_dev_thread(), group = thread / kGroupThreads, lane = thread % kWarpThreads;
  const u32 pixel =
      group / output_groups() * kGroupPixels + thread % kGroupThreads / kWarpThreads * kWarpPixels + lane / 4;
  const u32 pixels = pixel_rows() * pixel_cols(), seen = at_most(pixel, pixels - 1);
  return {group % output_groups(), lane, pixel, seen / pixel_cols(), seen % pixel_cols(), pixel < pixels};
}
BURIN_DEVICE u32 first_line(const Seat& seat) {
  return seat.row * pixel_step_rows() * patch_cols() + seat.col * pixel_step_cols();
}

// ---- products
struct ProductSums {
  float of[kMostOutputOctets * 4];
};
// Each product has an array of its own, since registers hold what one instruction adds to.
struct Sums {
  ProductSums& first;
  ProductSums& second;
};
BURIN_DEVICE float* sums_of(const Sums& sums, u32 product) { return product == 0 ? sums.first.of : sums.second.of; }
struct Factors {
  u32x4 of[kProducts];
};

// What a step multiplies: of two channels of a pixel the values in four images, of which every product has two. Of the
// channels of a pixel, a lane's are neighbours, which lie in different banks than those of the next pixel.
BURIN_DEVICE Factors load_factors(u32 buffer, const Seat& seat, u32 step) {
  const u32 lines = step_place(step, 1) / kLineBytes, first = first_line(seat);
  const u32 place = seat.lane % 4 * 2 ^ (first + lines % kSwizzledLines) % kSwizzledLines;
  const u32 at = buffer + first * kLineBytes + place * kPlaceBytes;
  const f32x4 even = burin_dev_shared_load4(at, lines * kLineBytes);
  const f32x4 odd = burin_dev_shared_load4(at ^ kPlaceBytes, lines * kLineBytes);
  Factors factors;
#pragma unroll
  for (u32 i = 0; i < kProducts; ++i) {
#pragma unroll
    for (u32 j = 0; j < 2; ++j) {
      factors.of[i][j] = burin_dev_tf32(even[2 * i + j]);
      factors.of[i][2 + j] = burin_dev_tf32(odd[2 * i + j]);
    }
  }
  return factors;
}

// While a step is multiplied, what the next one multiplies is loaded; then the step before must have ended. A step's
// factors lie in registers of their own, which the same step of the next chunk loads into again. So of two steps the
// one before must have ended earlier, and a chunk's only step itself: nothing else keeps them from being overwritten.
BURIN_DEVICE Factors multiply_step(const Sums& sums, u32 panel, u32 buffer, const Seat& seat, u32 step,
                                   const Factors& loaded) {
  Factors factors = loaded;
  burin_dev_group_take(&factors.of[0], &factors.of[1]);
#pragma unroll
  for (u32 i = 0; i < kProducts; ++i) {
    burin_dev_group_multiply_tf32(sums_of(sums, i), output_octets(), factors.of[i], panel, step * step_bytes());
  }
  burin_dev_group_commit();
  if (steps() <= 2) burin_dev_group_release(steps() - 1);
  const Factors next = step + 1 < steps() ? load_factors(buffer, seat, step + 1) : loaded;
  if (steps() > 2) burin_dev_group_release(1);
  return next;
}

// `emptied`: the buffer that holds what was multiplied before, or none.
constexpr u32 kNoBuffer = ~0u;
BURIN_DEVICE void multiply_chunk(const Sums& sums, u32 buffer, const Seat& seat, u32 emptied) {
  const u32 panel = buffer + activation_bytes() + seat.output_group * panel_bytes();
  Factors factors = multiply_step(sums, panel, buffer, seat, 0, load_factors(buffer, seat, 0));
  if (emptied != kNoBuffer) burin_dev_gate_release(kEmptyGates + emptied);
#pragma unroll
  for (u32 step = 1; step < steps(); ++step) factors = multiply_step(sums, panel, buffer, seat, step, factors);
}

// ---- the beginning and the end of a tile

// visit(octet of the warpgroup, byte of the image where the lane's first place lies, its channel of the convolution's
// group) for each octet of output channels that the pixel has; the second place lies half a line behind, and is of the
// fourth channel behind. The image is that of the convolution's pixels, before any pool.
template <typename Visit>
BURIN_DEVICE void for_each_octet(const Tile& tile, const Seat& seat, Visit visit) {
  const u32 row = tile.row + seat.row, col = tile.col + seat.col;
  if (!seat.exists || row >= static_cast<u32>(conv_rows()) || col >= static_cast<u32>(conv_cols())) return;
  const u32 first = set_of_block() % output_blocks() * block_octets() + seat.output_group * output_octets();
  const i64 plane_bytes = static_cast<i64>(conv_rows() * conv_cols()) * kLineBytes;
  const i64 place = (group_of_block() * stored_octets() + first) * plane_bytes +
                    static_cast<i64>((row * conv_cols() + col) * kLineBytes + seat.lane % 4 * kPlaceBytes);
#pragma unroll
  for (u32 i = 0; i < kMostOutputOctets; ++i) {
    if (i >= static_cast<u32>(output_octets()) || first + i >= stored_octets()) continue;
    visit(i, place + i * plane_bytes, (first + i) * kOctetChannels + seat.lane % 4);
  }
}

// Image `image` of the lane's first or second channel of an octet.
BURIN_DEVICE u32 sum_at(u32 octet, u32 part, u32 image) { return 4 * octet + image % 2 * 2 + part; }
BURIN_DEVICE f32x4 place_of(const Sums& sums, u32 octet, u32 part) {
  f32x4 place;
#pragma unroll
  for (u32 image = 0; image < kQuadWords; ++image) place[image] = sums_of(sums, image / 2)[sum_at(octet, part, image)];
  return place;
}

// Sums begin with the bias, and with a residual that is not added last: its loads are under way together, and nothing
// has to be kept for it until the end.
BURIN_DEVICE void begin_sums(const Sums& sums, const Tile& tile, const Seat& seat, const float* weights,
                             const float* other) {
  const u32 first = (set_of_block() * block_octets() + seat.output_group * output_octets()) * kOctetChannels;
#pragma unroll
  for (u32 i = 0; i < kMostOutputOctets; ++i) {
    if (i >= static_cast<u32>(output_octets())) continue;
#pragma unroll
    for (u32 part = 0; part < 2; ++part) {
      const u32 channel = first + i * kOctetChannels + seat.lane % 4 + 4 * part;
      const float bias = burin_dev_global_load(weights, bias_offset() + static_cast<i64>(channel) * kWordBytes);
#pragma unroll
      for (u32 image = 0; image < kQuadWords; ++image) sums_of(sums, image / 2)[sum_at(i, part, image)] = bias;
    }
  }
  if (!residual() || residual_last()) return;
  const float* added = residual_of(other, tile.image);
  for_each_octet(tile, seat, [&](u32 octet, i64 place, u32) BURIN_INLINED {
#pragma unroll
    for (u32 part = 0; part < 2; ++part) {
      const f32x4 values = burin_dev_global_load4(added, place + part * kHalfLineBytes);
#pragma unroll
      for (u32 image = 0; image < kQuadWords; ++image)
        sums_of(sums, image / 2)[sum_at(octet, part, image)] += values[image];
    }
  });
}

BURIN_DEVICE void store_sums(const Sums& sums, const Tile& tile, const Seat& seat, const float* other, float* output) {
  float* made = output_of(output, tile.image);
  const float* added = residual_of(other, tile.image);
  for_each_octet(tile, seat, [&](u32 octet, i64 place, u32 channel) BURIN_INLINED {
#pragma unroll
    for (u32 part = 0; part < 2; ++part) {
      const i64 at = place + part * kHalfLineBytes;
      f32x4 values = place_of(sums, octet, part), last = {0, 0, 0, 0};
      if (residual_last()) last = burin_dev_global_load4(added, at);
#pragma unroll
      for (u32 image = 0; image < kQuadWords; ++image) {
        const float value = residual_last() ? end_of_sum(values[image], last[image]) : apply(values[image]);
        values[image] = channel + 4 * part < static_cast<u32>(group_outputs()) ? value : 0;
      }
      burin_dev_global_store4(made, at, values);
    }
  });
}

// ---- windows of a pool
// Shared memory has two places for an octet of a tile, of which one is read while the other is stored to: in each,
// every group of output channels has a line for each pixel. This says where they begin.
BURIN_DEVICE u32 windows_at(u32 octet, u32 output_group) {
  const u32 number = octet % 2 * output_groups() + output_group;
  return buffer_at(buffers()) + number * pixel_groups() * kGroupPixels * kLineBytes;
}
// What a window makes of a channel in four images, whose place in the tile's first pixel is at `line`.
BURIN_DEVICE f32x4 pooled(const Tile& tile, u32 line, u32 row, u32 col) {
  const u32 top = row * pool_stride_rows(), left = col * pool_stride_cols();
  const i32 first_row = tile.row + static_cast<i32>(top), first_col = tile.col + static_cast<i32>(left);
  const float start = pool_start(pool_averages());
  f32x4 result = {start, start, start, start};
  for_each_pixel_of_window(first_row, first_col, [&](u32 r, u32 s, bool inside) BURIN_INLINED {
    const f32x4 values = burin_dev_shared_load4(line, ((top + r) * pixel_cols() + left + s) * kLineBytes);
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) result[i] = pool_with(pool_averages(), result[i], values[i], inside);
  });
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) result[i] = end_of_window(first_row, first_col, result[i]);
  return result;
}
BURIN_DEVICE void store_windows(const Tile& tile, const Seat& seat, u32 octet, float* made) {
  const u32 of_group = set_of_block() % output_blocks() * block_octets() + seat.output_group * output_octets() + octet;
  if (of_group >= stored_octets()) return;
  const u32 thread = burin_dev_thread();
  const u32 of_pixels = thread / kGroupThreads / output_groups() * kGroupThreads + thread % kGroupThreads;
  const u32 channel = of_pixels % kOctetChannels;
  const bool exists = of_group * kOctetChannels + channel < static_cast<u32>(group_outputs());
  const i64 plane = static_cast<i64>(group_of_block() * stored_octets() + of_group) * (out_rows() * out_cols());
#pragma nounroll
  for (u32 i = of_pixels / kOctetChannels; i < static_cast<u32>(tile_rows() * tile_cols());
       i += pixel_groups() * kGroupThreads / kOctetChannels) {
    const u32 row = i / tile_cols(), col = i % tile_cols(), y = tile.out_row + row, x = tile.out_col + col;
    if (y >= static_cast<u32>(out_rows()) || x >= static_cast<u32>(out_cols())) continue;
    f32x4 values = pooled(tile, windows_at(octet, seat.output_group) + channel * kPlaceBytes, row, col);
#pragma unroll
    for (u32 image = 0; image < kQuadWords; ++image) values[image] = exists ? values[image] : 0;
    burin_dev_global_store4(made, (plane + y * out_cols() + x) * kLineBytes + channel * kPlaceBytes, values);
  }
}
BURIN_DEVICE void store_pooled(const Sums& sums, const Tile& tile, const Seat& seat, float* output) {
  float* made = output_of(output, tile.image);
  const u32 place = seat.pixel * kLineBytes + seat.lane % 4 * kPlaceBytes;
#pragma unroll
  for (u32 i = 0; i < kMostOutputOctets; ++i) {
    if (i >= static_cast<u32>(output_octets())) continue;
#pragma unroll
    for (u32 part = 0; part < 2; ++part) {
      f32x4 values = place_of(sums, i, part);
#pragma unroll
      for (u32 image = 0; image < kQuadWords; ++image) values[image] = apply(values[image]);
      burin_dev_shared_store4(windows_at(i, seat.output_group) + place, part * kHalfLineBytes, values);
    }
    burin_dev_barrier();
    store_windows(tile, seat, i, made);
  }
}

BURIN_DEVICE void multiply(float* output, const float* other, const float* weights, i32 batch) {
  const Seat seat = take_seat();
  burin_dev_await_launch();
  Turn turn;
#pragma nounroll
  for (u32 number = first_tile(); exists(number, batch); number += set_blocks()) {
    const Tile tile = tile_at(number);
    const u32 chunks = chunks_of(parts_of(tile));
    ProductSums first_sums, second_sums;
    const Sums sums = {first_sums, second_sums};
    begin_sums(sums, tile, seat, weights, other);
#pragma unroll
    for (u32 i = 0; i < kProducts; ++i) burin_dev_group_begin(sums_of(sums, i), output_octets());
#pragma nounroll
    for (u32 chunk = 0; chunk < chunks; ++chunk) {
      burin_dev_gate_sleep(turn.buffer, turn.round % 2);
      multiply_chunk(sums, buffer_at(turn.buffer), seat, chunk > 0 ? before(turn) : kNoBuffer);
      turn = after(turn);
    }
#pragma unroll
    for (u32 i = 0; i < kProducts; ++i) burin_dev_group_wait(sums_of(sums, i), output_octets(), 0);
    burin_dev_gate_release(kEmptyGates + before(turn));
    if (pools()) {
      store_pooled(sums, tile, seat, output);
    } else {
      store_sums(sums, tile, seat, other, output);
    }
  }
}

BURIN_KERNEL void burin_kernel(const float*, float* output, const float* other, const float* weights,
                               const TensorBox box, i32 batch) {
  const u32 thread = burin_dev_thread();
  init_gates(thread, groups() * kGroupWarps);
  if (thread >= groups() * kGroupThreads) {
    fill(box, weights, batch, thread % kWarpThreads);
  } else {
    multiply(output, other, weights, batch);
  }
}
