// conv_winograd: a convolution with 3x3 filters by Winograd's algorithm. A tile of tile() x tile() outputs reads a
// patch of side() x side() inputs; points are real numbers (transformed_tiles.h). For 2x2 outputs 16 are multiplied in
// place of 36, for 4x4 outputs 36 in place of 144.
//
// The transforms are those of polynomials that are multiplied by their values: at 0, 1, -1 and infinity for 2x2
// outputs, at 0, a, -a, b, -b and infinity for 4x4. With a = 5/8 and b = 3/2 the roundings matter half as much as with
// 1 and 2.
//
// A thread transforms the patch of a tile and a channel, and at the end the sums of a tile and an output, in registers.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_winograd/conv_winograd.def"
#include "templates/kernels/transformed_tiles.h"

constexpr i32 kMaxTile = 4, kMaxSide = 6;
// winograd_transform.cpp has the same.
constexpr float kNear = 5.0f / 8, kFar = 3.0f / 2;
constexpr float kNear2 = kNear * kNear, kFar2 = kFar * kFar;

BURIN_DEVICE i32 side() { return tile() + kernel_rows() - 1; }
BURIN_DEVICE u32 point_words() { return 1; }
BURIN_DEVICE u32 result_pitch() { return tile(); }

// ---- transforms of a row or a column, in place
BURIN_DEVICE void transform(float (&d)[kMaxSide]) {
  if (tile() == 2) {
    const float v[] = {d[2] - d[0], d[2] + d[1], d[2] - d[1], d[3] - d[1]};
#pragma unroll
    for (i32 i = 0; i < 4; ++i) d[i] = v[i];
    return;
  }
  const float near_even = __builtin_fmaf(-kFar2, d[2], d[4]), near_odd = __builtin_fmaf(-kFar2, d[1], d[3]);
  const float far_even = __builtin_fmaf(-kNear2, d[2], d[4]), far_odd = __builtin_fmaf(-kNear2, d[1], d[3]);
  const float v[] = {__builtin_fmaf(kNear2 * kFar2, d[0], __builtin_fmaf(-(kNear2 + kFar2), d[2], d[4])),
                     __builtin_fmaf(kNear, near_odd, near_even),
                     __builtin_fmaf(-kNear, near_odd, near_even),
                     __builtin_fmaf(kFar, far_odd, far_even),
                     __builtin_fmaf(-kFar, far_odd, far_even),
                     __builtin_fmaf(kNear2 * kFar2, d[1], __builtin_fmaf(-(kNear2 + kFar2), d[3], d[5]))};
#pragma unroll
  for (i32 i = 0; i < kMaxSide; ++i) d[i] = v[i];
}
// The sums of side() points become tile() outputs.
BURIN_DEVICE void transform_back(float (&m)[kMaxSide]) {
  const float near_sum = m[1] + m[2], near_difference = m[1] - m[2];
  if (tile() == 2) {
    m[1] = near_difference + m[3];
    m[0] += near_sum;
    return;
  }
  const float far_sum = m[3] + m[4], far_difference = m[3] - m[4];
  m[0] += near_sum + far_sum;
  m[1] = __builtin_fmaf(kFar, far_difference, kNear * near_difference);
  m[2] = __builtin_fmaf(kFar2, far_sum, kNear2 * near_sum);
  m[3] = __builtin_fmaf(kFar2 * kFar, far_difference, __builtin_fmaf(kNear2 * kNear, near_difference, m[5]));
}

struct Patch {
  float of[kMaxSide][kMaxSide];
};

// Rows become what `change` makes of them, then columns; of these as many as `rows` says.
template <typename Change>
BURIN_DEVICE void change_both_ways(Patch& patch, i32 rows, Change change) {
#pragma unroll
  for (i32 col = 0; col < kMaxSide; ++col) {
    if (col >= side()) continue;
    float line[kMaxSide];
#pragma unroll
    for (i32 row = 0; row < kMaxSide; ++row) line[row] = row < side() ? patch.of[row][col] : 0;
    change(line);
#pragma unroll
    for (i32 row = 0; row < kMaxSide; ++row) patch.of[row][col] = line[row];
  }
#pragma unroll
  for (i32 row = 0; row < kMaxSide; ++row) {
    if (row < rows) change(patch.of[row]);
  }
}

// ---- patches: each thread of the first has one
BURIN_DEVICE void load_patch(const float* input, const Source& source, u32 slice, Patch& patch) {
  const u32 inside = inside_of(source, slice);
  const i64 place = place_of(source, slice);
#pragma unroll
  for (i32 row = 0; row < kMaxSide; ++row) {
    if (row >= side()) continue;
    const u32 cols = (inside >> row & 1) != 0 ? inside >> kColumnBits : 0;
#pragma unroll
    for (i32 col = 0; col < kMaxSide; ++col) {
      if (col >= side()) continue;
      patch.of[row][col] = load_value(input, cols, col, place + row * in_cols() * kWordBytes);
    }
  }
}
BURIN_DEVICE void leave_patch(Patch& patch, u32 buffer) {
  if (burin_dev_thread() >= slice_patches()) return;
  change_both_ways(patch, side(), [](float(&line)[kMaxSide]) BURIN_INLINED { transform(line); });
  const u32 base = patch_place(buffer, burin_dev_thread());
#pragma unroll
  for (i32 row = 0; row < kMaxSide; ++row) {
#pragma unroll
    for (i32 col = 0; col < kMaxSide; ++col) {
      if (row >= side() || col >= side()) continue;
      burin_dev_shared_store(base, (row * side() + col) * next_patch_word(), patch.of[row][col]);
    }
  }
}

// ---- sums
struct Sums {
  WordSums of[kMaxPoints];
};

BURIN_DEVICE void multiply(const Share& own, u32 buffer, Sums& sums) {
  const Factors factors = factors_of(own, buffer);
#pragma unroll
  for (u32 channel = 0; channel < static_cast<u32>(slice_channels()); ++channel) {
#pragma unroll
    for (u32 point = 0; point < kMaxPoints; ++point) {
      if (point >= static_cast<u32>(points())) continue;
      f32x4 weights[kMaxOutputQuads], tiles[kMaxTileQuads];
      load_weights(factors, point * word_step(), channel, weights);
      load_points(factors, point * word_step(), channel, tiles);
      add_product(sums.of[point], output_quads(), tile_quads(), weights, tiles);
    }
  }
}

// ---- results
BURIN_DEVICE void finish(const float* weights, const float* other, float* output, i32 batch) {
#pragma nounroll
  for (u32 number = burin_dev_thread(); number < items(); number += block_threads()) {
    const Item item = item_at(number, batch);
    if (cluster_blocks() == 1 && !item.exists) continue;
    const float bias = cluster_blocks() == 1 ? bias_of(weights, item) : 0;
    Patch sums;
#pragma unroll
    for (i32 row = 0; row < kMaxSide; ++row) {
#pragma unroll
      for (i32 col = 0; col < kMaxSide; ++col) {
        if (row >= side() || col >= side()) continue;
        const u32 point = row * side() + col;
        sums.of[row][col] = burin_dev_shared_load(kSharedStart + number * kWordBytes, point * items() * kWordBytes);
      }
    }
    change_both_ways(sums, tile(), [](float(&line)[kMaxSide]) BURIN_INLINED { transform_back(line); });
#pragma unroll
    for (u32 quad = 0; quad < static_cast<u32>(kMaxTile); ++quad) {
      if (quad >= item_quads()) continue;
      const float(&row)[kMaxSide] = sums.of[quad];
      const f32x4 outputs =
          tile() == 2 ? f32x4{row[0], row[1], sums.of[1][0], sums.of[1][1]} : f32x4{row[0], row[1], row[2], row[3]};
      give_quad(item, number, quad, outputs, bias, other, output);
    }
  }
  finish_block(weights, other, output, batch);
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32 batch) {
  begin_cluster_sums(burin_dev_thread());
  const Slices walk = begin_slices(weights);
  const Source source = source_of(burin_dev_thread(), burin_dev_thread() < slice_patches(), batch);
  const Share own = share_of_thread();
  Sums sums;
#pragma unroll
  for (u32 point = 0; point < kMaxPoints; ++point) clear(sums.of[point]);
  Patch patch;
  walk_slices(
      walk, weights, [&](u32 slice) BURIN_INLINED { load_patch(input, source, slice, patch); },
      [&](u32 buffer) BURIN_INLINED { leave_patch(patch, buffer); },
      [&](u32 buffer) BURIN_INLINED {
        if (own.exists) multiply(own, buffer, sums);
      });
  // It is computed anew: where the loop's condition is kept for this, the assembler spills.
  if (const Share left = share_of_thread(); left.exists) {
#pragma unroll
    for (u32 point = 0; point < kMaxPoints; ++point) {
      if (point < static_cast<u32>(points())) leave(left, sums.of[point], point * word_step());
    }
  }
  burin_dev_barrier();
  finish(weights, other, output, batch);
}
