// conv_warpgroup: a convolution of halves in n8c8hw on the tensor cores of a warpgroup, which multiplies 64 output
// channels with up to 32 pixels of eight images at once. Eight channels of a pixel of eight images are 128 bytes side
// by side: what the instruction takes as it is, and what copies are fast with.
//
// All weights are multiplied, or, if `sparse`, two of each four side by side, with half the bytes and instructions; the
// few nonzeros beyond those (the rest) are multiplied by each warp for itself, with gathered columns.
//
// A block has `row_groups` x 64 output channels, and tiles, one after the other: a tile is a rectangle of pixels of
// eight images, `pixel_groups` x `group_rows` rows of `tile_cols`. A thread fills buffers with chunks (line_tiles.h),
// also of the next tile: their patch of the image as a box, with zeros beside the image, and their weights. Warpgroups
// multiply them; gates say when a buffer is filled and when it is empty. The pixels of a warpgroup are those
// of its rows side by side, with what lies between the rows of the patch: sums of those are not used.
//
// Rows and columns of a tile are those of what is stored. Behind a pool a warpgroup multiplies all pixels that the
// windows of its outputs have, so a thread has all of them for its channels and images: a window is arithmetic on
// registers. What lies in windows of two warpgroups, both multiply. Without a pool a window is a pixel.
//
// Weights: for each set of output channels (of a group of the convolution, then the next), for each chunk, for each 64
// rows, a panel; then the bias of each row. A panel: for each step, 64 rows by 16 halves as
// burin_dev_group_multiply_f16() has them. If sparse, then the places of what is stored, a word for each thread and two
// steps; then for each warp the number of its steps of the rest, and those: weights as lanes hold them, and for each of
// 16 columns the byte of the chunk where its first pixel lies.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_warpgroup/conv_warpgroup.def"
#include "templates/kernels/function.h"

BURIN_DEVICE u32 tile_rows() { return pixel_groups() * group_rows(); }

#include "templates/kernels/line_tiles.h"

constexpr u32 kGroupThreads = 128, kGroupWarps = 4, kGroupRows = 64;
constexpr u32 kWarpRows = 16;
constexpr u32 kMaxStepPairs = 16;  // of a chunk of a sparse matrix
constexpr u32 kMaxOctets = 32;     // pixels of a warpgroup
constexpr u32 kStepBytes = 2048;   // of weights
constexpr u32 kRestColumns = 16;
constexpr u32 kQuadBytes = 16;
constexpr u32 kRestWeightBytes = kWarpThreads * kQuadBytes;
constexpr u32 kRestStepBytes = kRestWeightBytes + kRestColumns * kWordBytes;

// ---- sizes, all constants
BURIN_DEVICE u32 groups() { return row_groups() * pixel_groups(); }
BURIN_DEVICE u32 block_rows() { return row_groups() * kGroupRows; }
// Pixels of the convolution that a warpgroup multiplies, and how far the next one's are below them.
BURIN_DEVICE u32 pixel_rows() { return (group_rows() - 1) * pool_stride_rows() + pool_rows(); }
BURIN_DEVICE u32 pixel_cols() { return (tile_cols() - 1) * pool_stride_cols() + pool_cols(); }
BURIN_DEVICE u32 next_pixel_rows() { return group_rows() * pool_stride_rows(); }
BURIN_DEVICE u32 output_octets() { return divide_up(group_outputs(), kOctetChannels); }
BURIN_DEVICE u32 step_octets() { return sparse() ? 4 : 2; }
BURIN_DEVICE u32 steps() { return part_positions() * (chunk_octets() / step_octets()); }
// Pixels from one row of a warpgroup to the next, and all of its pixels.
BURIN_DEVICE u32 row_pixels() {
  return pixel_rows() == 1 ? pixel_cols() : pixel_step_rows() * patch_cols() / pixel_step_cols();
}
BURIN_DEVICE u32 group_pixels() { return (pixel_rows() - 1) * row_pixels() + pixel_cols(); }

BURIN_DEVICE u32 places_offset() { return steps() * kStepBytes; }
BURIN_DEVICE u32 rest_offset() { return places_offset() + divide_up(steps(), 2) * kGroupThreads * kWordBytes; }
BURIN_DEVICE u32 panel_bytes() {
  if (!sparse()) return places_offset();
  return rest_offset() + kQuadBytes + kGroupWarps * rest_limit() * kRestStepBytes;
}
BURIN_DEVICE u32 panels_bytes() { return row_groups() * panel_bytes(); }
BURIN_DEVICE u32 tile_barriers() { return 0; }
BURIN_DEVICE u32 buffer_alignment() { return kLineBytes; }
BURIN_DEVICE i64 bias_offset() { return static_cast<i64>(sets()) * chunks() * panels_bytes(); }

// ---- products
struct Warp {
  u32 row_group, pixel_group, of_group, lane;
};
BURIN_DEVICE Warp warp_of_thread() {
  const u32 thread = burin_dev_thread(), group = thread / kGroupThreads;
  return {group % row_groups(), group / row_groups(), thread % kGroupThreads / kWarpThreads, thread % kWarpThreads};
}

struct Sums {
  float of[kMaxOctets * 4];
};

BURIN_DEVICE void multiply_step(Sums& sums, u32 panel, u32 patch, u32 step, u32 places) {
  const u32 place = step_place(step, step_octets());
  if (!sparse()) {
    if (half_values() == kBf16) {
      burin_dev_group_multiply_bf16(sums.of, group_pixels(), panel, step * kStepBytes, patch, place, octet_bytes(),
                                    pixel_bytes());
    } else {
      burin_dev_group_multiply_f16(sums.of, group_pixels(), panel, step * kStepBytes, patch, place, octet_bytes(),
                                   pixel_bytes());
    }
  } else if (half_values() == kBf16) {
    burin_dev_group_multiply_sparse_bf16(sums.of, group_pixels(), panel, step * kStepBytes, patch, place, octet_bytes(),
                                         pixel_bytes(), places, step % 2);
  } else {
    burin_dev_group_multiply_sparse_f16(sums.of, group_pixels(), panel, step * kStepBytes, patch, place, octet_bytes(),
                                        pixel_bytes(), places, step % 2);
  }
}

BURIN_DEVICE void add_product(Sums& sums, u32 pixel, u32x4 weights, u32 b0, u32 b1) {
  float* of = sums.of + pixel * 4;
  const f32x4 before = {of[0], of[1], of[2], of[3]};
  const f32x4 result = half_values() == kBf16 ? burin_dev_multiply_bf16(weights, b0, b1, before)
                                              : burin_dev_multiply_f16(weights, b0, b1, before);
#pragma unroll
  for (u32 i = 0; i < 4; ++i) of[i] = result[i];
}

// The warp's nonzeros beyond two of four, whose columns are gathered: half of the lanes have those of one pixel, and
// the others those of the next.
BURIN_DEVICE void multiply_rest(Sums& sums, u32 panel, u32 patch, const Warp& warp) {
  const u32 count = burin_dev_shared_load_word(panel + warp.of_group * kWordBytes, rest_offset());
  u32 step = panel + warp.of_group * rest_limit() * kRestStepBytes;
#pragma nounroll
  for (u32 i = 0; i < count; ++i) {
    const u32 first = rest_offset() + kQuadBytes;
    const u32x4 weights = __builtin_bit_cast(u32x4, burin_dev_shared_load4(step + warp.lane * kQuadBytes, first));
    const u32 column =
        burin_dev_shared_load_word(step + warp.lane % kRestColumns * kWordBytes, first + kRestWeightBytes);
    const u32 one = patch + column, both = one + warp.lane / kRestColumns * pixel_bytes();
#pragma unroll
    for (u32 pixel = 0; pixel < kMaxOctets; pixel += 2) {
      if (pixel >= group_pixels()) continue;
      const bool is_last = pixel + 1 == group_pixels();
      const u32x4 rows = burin_dev_shared_load_rows(is_last ? one : both, pixel * pixel_bytes());
      add_product(sums, pixel, weights, rows[0], rows[1]);
      if (!is_last) add_product(sums, pixel + 1, weights, rows[2], rows[3]);
    }
    step += kRestStepBytes;
  }
}

BURIN_DEVICE void multiply_chunk(Sums& sums, u32 buffer, const Warp& warp) {
  const u32 panel = buffer + activation_bytes() + warp.row_group * panel_bytes();
  const u32 patch = buffer + warp.pixel_group * next_pixel_rows() * pixel_step_rows() * patch_cols() * kLineBytes;
  if (!sparse()) {
    burin_dev_group_begin(sums.of, group_pixels());
#pragma unroll
    for (u32 step = 0; step < steps(); ++step) multiply_step(sums, panel, patch, step, 0);
    burin_dev_group_commit();
    return;
  }
  multiply_rest(sums, panel, patch, warp);
  // Products read the places from registers, which must hold them before products begin.
  const u32 first = panel + (warp.of_group * kWarpThreads + warp.lane) * kWordBytes;
  u32 places[kMaxStepPairs];
#pragma unroll
  for (u32 pair = 0; pair < kMaxStepPairs; ++pair) {
    if (2 * pair >= steps()) continue;
    places[pair] = burin_dev_shared_load_word(first, places_offset() + pair * kGroupThreads * kWordBytes);
  }
  burin_dev_group_begin(sums.of, group_pixels());
#pragma unroll
  for (u32 pair = 0; pair < kMaxStepPairs; ++pair) {
    if (2 * pair < steps()) multiply_step(sums, panel, patch, 2 * pair, places[pair]);
    if (2 * pair + 1 < steps()) multiply_step(sums, panel, patch, 2 * pair + 1, places[pair]);
  }
  burin_dev_group_commit();
}

// ---- the beginning and the end of a tile: a warp loads and stores eight channels of a pixel of eight images, 128
// bytes, at once

// What a warpgroup has of an image: of the convolution's pixels, or of what is stored.
struct Rectangle {
  u32 rows, cols;
  i32 first_row, first_col;
  i32 image_rows, image_cols;
};
BURIN_DEVICE bool image_has_row(const Rectangle& of, u32 row) {
  return of.first_row + row < static_cast<u32>(of.image_rows);
}
BURIN_DEVICE bool image_has_col(const Rectangle& of, u32 col) {
  return of.first_col + col < static_cast<u32>(of.image_cols);
}
BURIN_DEVICE Rectangle pixels_of(const Tile& tile, const Warp& warp) {
  const i32 row = tile.row + static_cast<i32>(warp.pixel_group * next_pixel_rows());
  return {pixel_rows(), pixel_cols(), row, tile.col, conv_rows(), conv_cols()};
}
BURIN_DEVICE Rectangle outputs_of(const Tile& tile, const Warp& warp) {
  const u32 row = tile.out_row + warp.pixel_group * group_rows();
  return {static_cast<u32>(group_rows()),
          static_cast<u32>(tile_cols()),
          static_cast<i32>(row),
          static_cast<i32>(tile.out_col),
          out_rows(),
          out_cols()};
}
// Where the sum of the first of its images is; `part` says whether of the thread's first or second channel.
BURIN_DEVICE u32 sum_at(u32 row, u32 col, u32 part) { return 4 * (row * row_pixels() + col) + 2 * part; }

// visit(row and column in the rectangle, which of the thread's channels, byte of the image, whether that channel
// exists) for each place of the rectangle that the image has.
template <typename Visit>
BURIN_DEVICE void for_each_place(const Rectangle& rectangle, const Warp& warp, Visit visit) {
  const u32 first_octet =
      (set_of_block() % output_blocks() * block_rows() + warp.row_group * kGroupRows + warp.of_group * kWarpRows) /
      kOctetChannels;
#pragma unroll
  for (u32 part = 0; part < 2; ++part) {
    const u32 octet = first_octet + part;
    if (octet >= output_octets()) continue;
    const bool is_channel = octet * kOctetChannels + warp.lane / 4 < static_cast<u32>(group_outputs());
    const i64 plane_bytes = static_cast<i64>(rectangle.image_rows * rectangle.image_cols) * kLineBytes;
    const i64 place = static_cast<i64>(group_of_block() * output_octets() + octet) * plane_bytes +
                      static_cast<i64>(rectangle.first_row * rectangle.image_cols + rectangle.first_col) * kLineBytes +
                      warp.lane * kWordBytes;
#pragma unroll
    for (u32 row = 0; row < rectangle.rows; ++row) {
#pragma unroll
      for (u32 col = 0; col < rectangle.cols; ++col) {
        if (!image_has_row(rectangle, row) || !image_has_col(rectangle, col)) continue;
        visit(row, col, part, place + static_cast<i64>(row * rectangle.image_cols + col) * kLineBytes, is_channel);
      }
    }
  }
}

// visit(number of a sum, two words of it: the first image's and the second one's) for what is added to all sums.
template <typename Visit>
BURIN_DEVICE void for_each_residual(const Tile& tile, const Warp& warp, const float* other, Visit visit) {
  const float* added = residual_of(other, tile.image);
  for_each_place(pixels_of(tile, warp), warp, [&](u32 row, u32 col, u32 part, i64 place, bool) BURIN_INLINED {
    const float word = burin_dev_global_load(added, place);
    visit(sum_at(row, col, part), low_half(word, out_halves()), high_half(word, out_halves()));
  });
}

// Sums begin with the bias, and with a residual that is not added last: its loads are under way together, and nothing
// has to be kept for it until the end.
BURIN_DEVICE void begin_sums(Sums& sums, const Tile& tile, const Warp& warp, const float (&bias)[2],
                             const float* other) {
#pragma unroll
  for (u32 i = 0; i < kMaxOctets * 4; ++i) {
    if (i < 4 * group_pixels()) sums.of[i] = bias[i / 2 % 2];
  }
  if (!residual() || residual_last()) return;
  for_each_residual(tile, warp, other, [&](u32 at, float first, float second) BURIN_INLINED {
    sums.of[at] += first;
    sums.of[at + 1] += second;
  });
}

// The activation; what lies beyond the image counts for no window.
BURIN_DEVICE void activate(Sums& sums, const Rectangle& pixels) {
#pragma unroll
  for (u32 row = 0; row < pixel_rows(); ++row) {
#pragma unroll
    for (u32 col = 0; col < pixel_cols(); ++col) {
      const bool inside = (!windows_leave_rows() || image_has_row(pixels, row)) &&
                          (!windows_leave_cols() || image_has_col(pixels, col));
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        float& value = sums.of[sum_at(row, col, 0) + i];
        value = inside ? apply(value) : pool_start(pool_averages());
      }
    }
  }
}

// What is stored of one of two images: the window of an output of the rectangle.
BURIN_DEVICE float window_of(const Sums& sums, const Rectangle& pixels, u32 row, u32 col, u32 part, u32 image) {
  if (!pools()) return sums.of[sum_at(row, col, part) + image];
  const u32 top = row * pool_stride_rows(), left = col * pool_stride_cols();
  float result = pool_start(pool_averages());
#pragma unroll
  for (u32 r = 0; r < static_cast<u32>(pool_rows()); ++r) {
#pragma unroll
    for (u32 s = 0; s < static_cast<u32>(pool_cols()); ++s) {
      result = pool_with(pool_averages(), result, sums.of[sum_at(top + r, left + s, part) + image], true);
    }
  }
  if (!pool_averages()) return result;
  return mean_of_window(pixels.first_row + static_cast<i32>(top), pixels.first_col + static_cast<i32>(left), result);
}

BURIN_DEVICE void store_sums(Sums& sums, const Tile& tile, const Warp& warp, const float* other, float* output) {
  float* made = output_of(output, tile.image);
  const Rectangle pixels = pixels_of(tile, warp);
  activate(sums, pixels);
  if (residual_last()) {
    for_each_residual(tile, warp, other, [&](u32 at, float first, float second) BURIN_INLINED {
      sums.of[at] += first;
      sums.of[at + 1] += second;
    });
  }
  const auto store = [&](u32 row, u32 col, u32 part, i64 place, bool is_channel) BURIN_INLINED {
    const float word =
        packed(window_of(sums, pixels, row, col, part, 0), window_of(sums, pixels, row, col, part, 1), out_halves());
    burin_dev_global_store(made, place, is_channel ? word : 0);
  };
  for_each_place(outputs_of(tile, warp), warp, store);
}

BURIN_DEVICE void multiply(float* output, const float* other, const float* weights, i32 batch) {
  const Warp warp = warp_of_thread();
  float bias[2];
#pragma unroll
  for (u32 half = 0; half < 2; ++half) {
    const u32 row = set_of_block() * block_rows() + warp.row_group * kGroupRows + warp.of_group * kWarpRows + half * 8 +
                    warp.lane / 4;
    bias[half] = burin_dev_global_load(weights, bias_offset() + static_cast<i64>(row) * kWordBytes);
  }
  burin_dev_await_launch();
  Turn turn;
#pragma nounroll
  for (u32 number = first_tile(); exists(number, batch); number += set_blocks()) {
    const Tile tile = tile_at(number);
    const u32 chunks = chunks_of(parts_of(tile));
    Sums sums;
    begin_sums(sums, tile, warp, bias, other);
#pragma nounroll
    for (u32 chunk = 0; chunk < chunks; ++chunk) {
      burin_dev_gate_sleep(turn.buffer, turn.round % 2);
      multiply_chunk(sums, buffer_at(turn.buffer), warp);
      burin_dev_group_wait(sums.of, group_pixels(), overlap());
      if (!overlap()) {
        burin_dev_gate_release(kEmptyGates + turn.buffer);
      } else if (chunk > 0) {
        burin_dev_gate_release(kEmptyGates + before(turn));
      }
      turn = after(turn);
    }
    if (overlap()) {
      burin_dev_group_wait(sums.of, group_pixels(), 0);
      burin_dev_gate_release(kEmptyGates + before(turn));
    }
    store_sums(sums, tile, warp, other, output);
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
