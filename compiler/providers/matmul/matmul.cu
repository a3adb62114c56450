// matmul: products of matrices, then a function of each result. A block has a tile of one matrix of the output. It
// takes the terms of the sums in chunks of `kChunk`: while one is multiplied, the next is copied to shared memory,
// where a term of both operands is a row. A thread has up to 8 rows and 8 columns of the tile.
#define BURIN_TEMPLATE_DEF "compiler/providers/matmul/matmul.def"
#include "templates/kernels/function.h"
#include "templates/kernels/register_tiles.h"

constexpr u32 kChunk = 16, kMaxQuads = 2;

// ---- sizes, all constants
BURIN_DEVICE u32 tile_rows() { return kQuadWords * row_quads() * row_threads(); }
BURIN_DEVICE u32 tile_cols() { return kQuadWords * col_quads() * col_threads(); }
BURIN_DEVICE u32 row_tiles() { return divide_up(rows(), tile_rows()); }
BURIN_DEVICE u32 col_tiles() { return divide_up(cols(), tile_cols()); }
BURIN_DEVICE u32 chunks() { return divide_up(terms(), kChunk); }
// Rows of shared memory have a quad more than values, so that what is copied across them meets more banks.
BURIN_DEVICE u32 left_pitch() { return tile_rows() + kQuadWords; }
BURIN_DEVICE u32 right_pitch() { return tile_cols() + kQuadWords; }
BURIN_DEVICE u32 right_start() { return kChunk * left_pitch() * kWordBytes; }
BURIN_DEVICE u32 buffer_bytes() { return kChunk * (left_pitch() + right_pitch()) * kWordBytes; }

// ---- where the block stands: neighbours share their rows
struct Tile {
  u32 matrix, row, col;  // the first of both
};
BURIN_DEVICE Tile tile_of_block() {
  const u32 block = block_of_image();
  return {block / (row_tiles() * col_tiles()), block / col_tiles() % row_tiles() * tile_rows(),
          block % col_tiles() * tile_cols()};
}

// The first words of the matrix's operands.
struct Operands {
  u32 left, right;
};
BURIN_DEVICE Operands operands_of(u32 matrix) {
  const u32 third = matrix % matrix_extent3(), rest2 = matrix / matrix_extent3();
  const u32 second = rest2 % matrix_extent2(), rest1 = rest2 / matrix_extent2();
  const u32 first = rest1 % matrix_extent1(), zeroth = rest1 / matrix_extent1();
  return {zeroth * matrix_left0() + first * matrix_left1() + second * matrix_left2() + third * matrix_left3(),
          zeroth * matrix_right0() + first * matrix_right1() + second * matrix_right2() + third * matrix_right3()};
}

// Starts copying a chunk's terms of `tile` rows or columns, of which the first is `first` of `extent`. Neighbouring
// threads copy what lies side by side in the operand.
BURIN_DEVICE void copy_chunk(const float* operand, u32 chunk, u32 shared, u32 tile, u32 first, u32 extent, u32 step,
                             u32 term_step) {
  const bool along_terms = term_step == 1;
#pragma unroll 4
  for (u32 index = burin_dev_thread(); index < tile * kChunk; index += block_threads()) {
    const u32 term = along_terms ? index % kChunk : index / tile, place = along_terms ? index / kChunk : index % tile;
    const u32 of_all = chunk * kChunk + term;
    const bool exists = first + place < extent && of_all < static_cast<u32>(terms());
    burin_dev_copy_async(shared + (term * (tile + kQuadWords) + place) * kWordBytes, 0, operand,
                         bytes_of((first + place) * step + of_all * term_step), exists);
  }
}

using Sums = TileSums<kMaxQuads, kMaxQuads>;

// Quads of a thread lie a whole row, or column, of threads apart, so that neighbours load neighbouring words.
struct ThreadTile {
  u32 row, col;
};
BURIN_DEVICE ThreadTile tile_of_thread() {
  const u32 thread = burin_dev_thread();
  return {thread / col_threads() * kQuadWords, thread % col_threads() * kQuadWords};
}

BURIN_DEVICE void multiply(const ThreadTile& own, u32 buffer, Sums& sums) {
  const u32 left = buffer + own.row * kWordBytes, right = buffer + right_start() + own.col * kWordBytes;
  constexpr u32 kQuadBytes = kQuadWords * kWordBytes;
  add_products(
      sums, row_quads(), col_quads(), kChunk,
      [&](u32 term, f32x4(&quads)[kMaxQuads]) BURIN_INLINED {
        load_quads(left, term * left_pitch() * kWordBytes, row_threads() * kQuadBytes, row_quads(), quads);
      },
      [&](u32 term, f32x4(&quads)[kMaxQuads]) BURIN_INLINED {
        load_quads(right, term * right_pitch() * kWordBytes, col_threads() * kQuadBytes, col_quads(), quads);
      });
}

BURIN_DEVICE void store_sums(float* output, const Tile& tile, const ThreadTile& own, const Sums& sums) {
#pragma unroll
  for (u32 i = 0; i < kMaxQuads * kQuadWords; ++i) {
    const u32 row_quad = i / kQuadWords;
    const u32 row = tile.row + own.row + row_quad * row_threads() * kQuadWords + i % kQuadWords;
    if (row_quad >= static_cast<u32>(row_quads()) || row >= static_cast<u32>(rows())) continue;
#pragma unroll
    for (u32 quad = 0; quad < kMaxQuads; ++quad) {
      if (quad >= static_cast<u32>(col_quads())) continue;
      const u32 col = tile.col + own.col + quad * col_threads() * kQuadWords;
      const f32x4 made = apply4(sums.of[row_quad][i % kQuadWords][quad] * scale());
      const u32 word = (tile.matrix * rows() + row) * cols() + col;
      if (vector() == kQuadWords) {
        if (col < static_cast<u32>(cols())) burin_dev_global_store4(output, bytes_of(word), made);
        continue;
      }
#pragma unroll
      for (u32 j = 0; j < kQuadWords; ++j) {
        if (col + j < static_cast<u32>(cols())) burin_dev_global_store(output, bytes_of(word + j), made[j]);
      }
    }
  }
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32) {
  enum { kNone, kLeft, kRight };
  const Tile tile = tile_of_block();
  const ThreadTile own = tile_of_thread();
  const Operands first = operands_of(tile.matrix);
  Sums sums;
  clear(sums);
  burin_dev_await_launch();
  const float* image = input_of(input, first_image());
  const float* left = (constant() == kLeft ? weights : image) + first.left;
  const float* right = (constant() == kRight  ? weights
                        : constant() == kLeft ? image
                                              : residual_of(other, first_image())) +
                       first.right;
  const auto copy = [&](u32 chunk, u32 buffer) BURIN_INLINED {
    copy_chunk(left, chunk, buffer, tile_rows(), tile.row, rows(), left_row(), left_term());
    copy_chunk(right, chunk, buffer + right_start(), tile_cols(), tile.col, cols(), right_col(), right_term());
    burin_dev_copy_commit();
  };
  copy(0, kSharedStart);
  u32 filled = kSharedStart, empty = kSharedStart + buffer_bytes();
#pragma nounroll
  for (u32 chunk = 0; chunk < chunks(); ++chunk) {
    burin_dev_copy_wait(0);
    burin_dev_barrier();
    if (chunk + 1 < chunks()) copy(chunk + 1, empty);
    multiply(own, filled, sums);
    const u32 multiplied = filled;
    filled = empty;
    empty = multiplied;
  }
  store_sums(output_of(output, first_image()), tile, own, sums);
}
