// linear: a fully connected layer whose weights are streamed from memory once for all images of a block. For few images
// a block has `block_rows` outputs of `block_images` images; its threads share the features of a row, each with pieces
// of one or four words a block's width apart, and add up what they have at the end. For many, `block_rows` is 0, and a
// block has a tile of outputs and images (template/tiles.h).
//
// Weights for few images: `out_features` rows of `row_words` words, then the biases. With `half_values` a row's weights
// are FP16: with pieces of one, word i has those of features 2 i and 2 i + 1; with pieces of four, whose two words
// would lie apart for neighbouring threads, the first words of all pieces come before the second.
#define BURIN_TEMPLATE_DEF "compiler/providers/linear/linear.def"
#include "templates/kernels/function.h"

#include "compiler/providers/linear/template/tiles.h"

constexpr i32 kMaxRows = 4, kMaxImages = 8;
constexpr i32 kMaxWarps = 32;
constexpr u32 kPiecesAtOnce = 8;  // of weights, of a thread, in flight

BURIN_DEVICE u32 steps_at_once() { return kPiecesAtOnce / block_rows(); }

struct Block {
  const float* rows[kMaxRows];  // weights
  const float* images[kMaxImages];
};

BURIN_DEVICE float product(f32x4 a, f32x4 b, float sum) {
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    if (i < static_cast<u32>(vector())) sum = __builtin_fmaf(a[i], b[i], sum);
  }
  return sum;
}

BURIN_DEVICE i64 bytes_of_step(u32 step) { return bytes_of(step * block_threads() * vector()); }

// Left to itself the assembler loads two pieces, multiplies them, loads the next two. A condition that is never true
// but takes a word of each keeps the loads together, and all of them in flight.
BURIN_DEVICE u32 word_of(f32x4 piece) { return __builtin_bit_cast(u32, static_cast<float>(piece[0])); }

// The weights of the piece whose inputs are at byte `at` of an image.
BURIN_DEVICE f32x4 load_weights(const float* row, i64 at) {
  if (!half_values()) return load(vector(), row, at);
  const u32 piece = static_cast<u32>(at) / static_cast<u32>(vector() * kWordBytes);
  if (vector() == 1) {
    const float value = half_of(burin_dev_global_load_word(row, bytes_of(piece / 2)), piece % 2);
    return {value, value, value, value};
  }
  const u32 first = burin_dev_global_load_word(row, bytes_of(piece));
  const u32 second = burin_dev_global_load_word(row, bytes_of(in_features() / kQuadWords + piece));
  return {half_of(first, 0), half_of(first, 1), half_of(second, 0), half_of(second, 1)};
}

// `count` steps (a constant), a block's width apart, from byte `at` of each row on.
BURIN_DEVICE void add_pieces(const Block& block, i64 at, u32 count, float (&sums)[kMaxRows][kMaxImages]) {
  const bool all_together = block_images() == 1;  // the input's pieces too
  f32x4 weights[kPiecesAtOnce][kMaxRows], inputs[kPiecesAtOnce];
  u32 words = 1;
#pragma unroll
  for (u32 step = 0; step < kPiecesAtOnce; ++step) {
    if (step >= count) continue;
    if (all_together) {
      inputs[step] = load(vector(), block.images[0], at + bytes_of_step(step));
      words |= word_of(inputs[step]);
    }
#pragma unroll
    for (i32 row = 0; row < kMaxRows; ++row) {
      if (row >= block_rows()) continue;
      weights[step][row] = load_weights(block.rows[row], at + bytes_of_step(step));
      words |= word_of(weights[step][row]);
      if (half_values() && vector() > 1) words |= __builtin_bit_cast(u32, static_cast<float>(weights[step][row][2]));
    }
  }
  if (count > 1) burin_dev_keep_order(words);
#pragma unroll
  for (u32 step = 0; step < kPiecesAtOnce; ++step) {
    if (step >= count) continue;
#pragma unroll
    for (i32 image = 0; image < kMaxImages; ++image) {
      if (image >= block_images()) continue;
      const f32x4 x = all_together ? inputs[step] : load(vector(), block.images[image], at + bytes_of_step(step));
#pragma unroll
      for (i32 row = 0; row < kMaxRows; ++row) {
        if (row < block_rows()) sums[row][image] = product(weights[step][row], x, sums[row][image]);
      }
    }
  }
}

// Adds up what the warps have; the first threads then hold a result each.
BURIN_DEVICE void finish(const float* weights, float* output, i32 batch, u32 first_row,
                         const float (&sums)[kMaxRows][kMaxImages]) {
  const u32 thread = burin_dev_thread(), warps = block_threads() / kWarpThreads;
  const u32 results = block_rows() * block_images();
#pragma unroll
  for (i32 row = 0; row < kMaxRows; ++row) {
#pragma unroll
    for (i32 image = 0; image < kMaxImages; ++image) {
      if (row >= block_rows() || image >= block_images()) continue;
      const float sum = warp_sum(sums[row][image]);
      const u32 result = row * block_images() + image;
      if (thread % kWarpThreads == 0) {
        burin_dev_shared_store(kSharedStart + thread / kWarpThreads * kWordBytes, result * warps * kWordBytes, sum);
      }
    }
  }
  burin_dev_barrier();
  if (thread >= results) return;
  const u32 row = first_row + thread / block_images(), image = first_image() + thread % block_images();
  if (row >= static_cast<u32>(out_features()) || image >= static_cast<u32>(batch)) return;
  float sum = has_bias() ? burin_dev_global_load(weights, bytes_of(out_features() * row_words() + row)) : 0.0f;
#pragma unroll
  for (u32 warp = 0; warp < kMaxWarps; ++warp) {
    if (warp < warps) sum += burin_dev_shared_load(kSharedStart + thread * warps * kWordBytes, warp * kWordBytes);
  }
  burin_dev_global_store(output_of(output, image), bytes_of(row), apply(sum));
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float* weights, i32 batch) {
  if (block_rows() == 0) {
    multiply_tiles(input, output, weights, batch);
    return;
  }
  burin_dev_await_launch();
  const u32 first_row = block_of_image() * block_rows();
  Block block;
  float sums[kMaxRows][kMaxImages];
#pragma unroll
  for (i32 row = 0; row < kMaxRows; ++row) {
    block.rows[row] = weights + static_cast<i64>(at_most(first_row + row, out_features() - 1)) * row_words();
#pragma unroll
    for (i32 image = 0; image < kMaxImages; ++image) sums[row][image] = 0;
  }
#pragma unroll
  for (i32 image = 0; image < kMaxImages; ++image)
    block.images[image] = input_of(input, at_most(first_image() + image, batch - 1));

  const u32 pieces = in_features() / vector();
  u32 piece = burin_dev_thread();
#pragma nounroll
  for (; piece + (steps_at_once() - 1) * block_threads() < pieces; piece += steps_at_once() * block_threads()) {
    add_pieces(block, bytes_of(piece * vector()), steps_at_once(), sums);
  }
#pragma nounroll
  for (; piece < pieces; piece += block_threads()) add_pieces(block, bytes_of(piece * vector()), 1, sums);
  finish(weights, output, batch, first_row, sums);
}
