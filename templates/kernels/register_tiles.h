// Products of matrices whose sums lie in registers: a thread has some quads of rows and some of columns of a block's
// tile. What is multiplied lies in shared memory, where each term of the sums is a row of both operands.
#pragma once

#include "templates/kernels/template_kernel.h"

template <u32 kMaxRowQuads, u32 kMaxColQuads>
struct TileSums {
  f32x4 of[kMaxRowQuads][kQuadWords][kMaxColQuads];  // quad of rows, row, quad of columns
};

template <u32 kMaxRowQuads, u32 kMaxColQuads>
BURIN_DEVICE void clear(TileSums<kMaxRowQuads, kMaxColQuads>& sums) {
#pragma unroll
  for (u32 row = 0; row < kMaxRowQuads * kQuadWords; ++row) {
#pragma unroll
    for (u32 col = 0; col < kMaxColQuads; ++col) sums.of[row / kQuadWords][row % kQuadWords][col] = {0, 0, 0, 0};
  }
}

// `count` quads, `step` bytes apart; all but `base` are constants.
template <u32 kMaxQuads>
BURIN_DEVICE void load_quads(u32 base, u32 offset, u32 step, u32 count, f32x4 (&quads)[kMaxQuads]) {
#pragma unroll
  for (u32 quad = 0; quad < kMaxQuads; ++quad) {
    if (quad < count) quads[quad] = burin_dev_shared_load4(base, offset + quad * step);
  }
}

// Adds what a thread's rows and columns of one term make; their numbers of quads are constants.
template <u32 kMaxRowQuads, u32 kMaxColQuads>
BURIN_DEVICE void add_product(TileSums<kMaxRowQuads, kMaxColQuads>& sums, u32 row_quads, u32 col_quads,
                              const f32x4 (&a)[kMaxRowQuads], const f32x4 (&b)[kMaxColQuads]) {
#pragma unroll
  for (u32 row = 0; row < kMaxRowQuads; ++row) {
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) {
#pragma unroll
      for (u32 col = 0; col < kMaxColQuads; ++col) {
        if (row >= row_quads || col >= col_quads) continue;
        f32x4& sum = sums.of[row][i][col];
#pragma unroll
        for (u32 j = 0; j < kQuadWords; ++j) sum[j] = __builtin_fmaf(a[row][i], b[col][j], sum[j]);
      }
    }
  }
}

// rows(term, quads) and cols(term, quads) load a thread's of a term; the numbers of quads and terms are constants.
template <u32 kMaxRowQuads, u32 kMaxColQuads, typename Rows, typename Cols>
BURIN_DEVICE void add_products(TileSums<kMaxRowQuads, kMaxColQuads>& sums, u32 row_quads, u32 col_quads, u32 terms,
                               Rows rows, Cols cols) {
#pragma unroll
  for (u32 term = 0; term < terms; ++term) {
    f32x4 a[kMaxRowQuads], b[kMaxColQuads];
    rows(term, a);
    cols(term, b);
    add_product(sums, row_quads, col_quads, a, b);
  }
}

// Leaves a thread's sums in shared memory: rows of columns, `pitch` words apart; its quads lie `row_step` rows and
// `col_step` columns apart. All but `base` are constants.
template <u32 kMaxRowQuads, u32 kMaxColQuads>
BURIN_DEVICE void leave_sums(const TileSums<kMaxRowQuads, kMaxColQuads>& sums, u32 row_quads, u32 col_quads,
                             u32 row_step, u32 col_step, u32 pitch, u32 base, u32 offset) {
#pragma unroll
  for (u32 row = 0; row < kMaxRowQuads; ++row) {
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) {
#pragma unroll
      for (u32 col = 0; col < kMaxColQuads; ++col) {
        if (row >= row_quads || col >= col_quads) continue;
        const u32 word = (row * row_step + i) * pitch + col * col_step;
        burin_dev_shared_store4(base, offset + word * kWordBytes, sums.of[row][i][col]);
      }
    }
  }
}

// Starts copying what lies side by side, `words` words (a constant, a multiple of four), to shared memory: a share for
// each thread of the block.
BURIN_DEVICE void copy_panel(const float* from, u32 words, u32 shared) {
  constexpr u32 kBytes = kQuadWords * kWordBytes;
  const u32 pieces = words / kQuadWords, thread = burin_dev_thread();
#pragma unroll
  for (u32 first = 0; first < pieces; first += block_threads()) {
    const bool all = first + block_threads() <= pieces;
    if (!all && first + thread >= pieces) continue;
    burin_dev_copy_async4(shared + thread * kBytes, first * kBytes, from,
                          bytes_of(thread * kQuadWords) + first * kBytes, 1);
  }
}
