// Fully connected layers of many images, as linear.cu computes them where `block_rows` is 0: a product of matrices. A
// block has a tile of `feature_threads` x `feature_quads` x 4 outputs and `image_threads` x `image_quads` x 4 images.
// It takes its inputs in chunks: while one is multiplied, those after it are copied. Of each chunk every one of
// `split_warps` splits has `split_terms` inputs, for all sums of the tile; the blocks of a cluster share out the
// chunks. What they all have is added up at the end.
//
// Weights: for each tile of outputs, for each chunk, for each input a row of `row_words`: the weights of the tile's
// outputs. With `half_values` a thread's eight are halves of four words. Then the biases, filled up to whole tiles.
#pragma once

#include "templates/kernels/function.h"
#include "templates/kernels/register_tiles.h"
#include "templates/kernels/split_sums.h"

constexpr u32 kMaxFeatureQuads = 2, kMaxImageQuads = 2;
constexpr u32 kCopiedInputs = 8, kCopiedImages = 4;  // that a warp copies at once: from whole sectors, to all banks

// ---- sizes, all constants
BURIN_DEVICE u32 tile_features() { return kQuadWords * feature_quads() * feature_threads(); }
BURIN_DEVICE u32 split_threads() { return feature_threads() * image_threads(); }
BURIN_DEVICE u32 sets() { return image_blocks() / cluster_blocks(); }
BURIN_DEVICE u32 chunk_terms() { return split_warps() * split_terms(); }
BURIN_DEVICE u32 chunks() {
  return divide_up(divide_up(in_features(), chunk_terms()), cluster_blocks());
}  // of a block
BURIN_DEVICE bool has_rest() { return in_features() % (chunk_terms() * chunks() * cluster_blocks()) != 0; }
// Shared memory: for each buffer the chunk's weights, then its inputs, of which a row has a quad more than images.
BURIN_DEVICE u32 image_pitch() { return block_images() + kQuadWords; }
BURIN_DEVICE u32 weight_words() { return chunk_terms() * row_words(); }
BURIN_DEVICE u32 buffer_bytes() { return (weight_words() + chunk_terms() * image_pitch()) * kWordBytes; }
BURIN_DEVICE i64 tile_bias_offset() {
  return static_cast<i64>(image_blocks() * chunks()) * weight_words() * static_cast<i64>(kWordBytes);
}

BURIN_DEVICE u32 rank_of_block() { return block_of_image() % cluster_blocks(); }
BURIN_DEVICE u32 set_of_block() { return block_of_image() / cluster_blocks(); }

// ---- copies of inputs, which are transposed on the way
// A warp copies some inputs of some images, and what lies `block_threads` words behind them. Its numbers of images and
// warps are powers of two.
struct CopiedPlace {
  u32 image, term;  // of the block, and of a chunk
};
BURIN_DEVICE u32 image_groups() { return block_images() / kCopiedImages; }
BURIN_DEVICE CopiedPlace copied_place() {
  const u32 lane = burin_dev_thread() % kWarpThreads, warp = burin_dev_thread() / kWarpThreads;
  return {warp % image_groups() * kCopiedImages + lane / kCopiedInputs,
          warp / image_groups() * kCopiedInputs + lane % kCopiedInputs};
}

// `image`: the words of the place's image.
BURIN_DEVICE void copy_inputs(const float* image, const CopiedPlace& place, u32 images, u32 chunk, u32 buffer) {
  const u32 feature = (rank_of_block() * chunks() + chunk) * chunk_terms() + place.term;
  const u32 base = buffer + (weight_words() + place.term * image_pitch() + place.image) * kWordBytes;
  const u32 warps = block_threads() / kWarpThreads, warp = burin_dev_thread() / kWarpThreads;
  const u32 groups = image_groups() * (chunk_terms() / kCopiedInputs);
#pragma unroll
  for (u32 first = 0; first < groups; first += warps) {
    if (groups % warps != 0 && first + warp >= groups) continue;
    const u32 more_images = first % image_groups() * kCopiedImages, more_terms = first / image_groups() * kCopiedInputs;
    const bool exists =
        place.image + more_images < images && (!has_rest() || feature + more_terms < static_cast<u32>(in_features()));
    burin_dev_copy_async(base, (more_terms * image_pitch() + more_images) * kWordBytes, image + feature,
                         static_cast<i64>(more_images) * in_image_words() * kWordBytes + bytes_of(more_terms), exists);
  }
}

// ---- sums
using LayerSums = TileSums<kMaxImageQuads, kMaxFeatureQuads>;

// A thread's place: its split, and its first quads of both. Quads lie as many apart as there are threads side by side.
struct ThreadPlace {
  u32 split, of_split, feature, image;
};
BURIN_DEVICE ThreadPlace place_of_thread() {
  const u32 thread = burin_dev_thread(), of_split = thread % split_threads();
  return {thread / split_threads(), of_split, of_split % feature_threads(), of_split / feature_threads()};
}

BURIN_DEVICE void multiply_chunk(const ThreadPlace& own, u32 buffer, LayerSums& sums) {
  constexpr u32 kQuadBytes = kQuadWords * kWordBytes;
  const u32 first = own.split * split_terms();
  const u32 weights = buffer + first * row_words() * kWordBytes + own.feature * kQuadBytes;
  const u32 images = buffer + (weight_words() + first * image_pitch()) * kWordBytes + own.image * kQuadBytes;
  add_products(
      sums, image_quads(), feature_quads(), split_terms(),
      [&](u32 term, f32x4(&quads)[kMaxImageQuads]) BURIN_INLINED {
        load_quads(images, term * image_pitch() * kWordBytes, image_threads() * kQuadBytes, image_quads(), quads);
      },
      [&](u32 term, f32x4(&quads)[kMaxFeatureQuads]) BURIN_INLINED {
        const u32 row = term * row_words() * kWordBytes;
        if (!half_values()) {
          load_quads(weights, row, feature_threads() * kQuadBytes, feature_quads(), quads);
          return;
        }
        const u32x4 words = __builtin_bit_cast(u32x4, burin_dev_shared_load4(weights, row));
#pragma unroll
        for (u32 quad = 0; quad < kMaxFeatureQuads; ++quad) {
          const u32 low = words[2 * quad], high = words[2 * quad + 1];
          quads[quad] = {half_of(low, 0), half_of(low, 1), half_of(high, 0), half_of(high, 1)};
        }
      });
}

// ---- the end
// Four outputs of an image.
BURIN_DEVICE void store_outputs(float* output, const float* weights, i32 batch, const SumPlace& place, f32x4 sums) {
  const u32 thread = place.sum_warp * kWarpThreads + place.lane;
  const u32 quad = place.quad % feature_quads(), row = place.quad / feature_quads();
  const u32 image =
      (row / kQuadWords * image_threads() + thread / feature_threads()) * kQuadWords + row % kQuadWords + first_image();
  const u32 feature = set_of_block() * tile_features() +
                      (quad * feature_threads() + thread % feature_threads()) * static_cast<u32>(kQuadWords);
  if (image >= static_cast<u32>(batch) || feature >= static_cast<u32>(out_features())) return;
  if (has_bias()) sums += burin_dev_global_load4(weights, tile_bias_offset() + bytes_of(feature));
  const f32x4 results = apply4(sums);
  float* to = output_of(output, image);
  if (vector() == kQuadWords) {
    burin_dev_global_store4(to, bytes_of(feature), results);
    return;
  }
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    if (feature + i < static_cast<u32>(out_features())) burin_dev_global_store(to, bytes_of(feature + i), results[i]);
  }
}

BURIN_DEVICE void add_up_tiles(float* output, const float* weights, i32 batch, const ThreadPlace& own,
                               const LayerSums& sums) {
  const SplitSums split = {kSharedStart, kSharedStart + buffers() * buffer_bytes(), split_threads() / kWarpThreads,
                           image_quads() * kQuadWords * feature_quads()};
  const u32 quads = own_quads(split, own.split, own.of_split / kWarpThreads, own.of_split % kWarpThreads);
#pragma unroll
  for (u32 row = 0; row < kMaxImageQuads * kQuadWords; ++row) {
#pragma unroll
    for (u32 quad = 0; quad < kMaxFeatureQuads; ++quad) {
      if (row >= image_quads() * kQuadWords || quad >= static_cast<u32>(feature_quads())) continue;
      burin_dev_shared_store4(quads, (row * feature_quads() + quad) * kSumWarpBytes,
                              sums.of[row / kQuadWords][row % kQuadWords][quad]);
    }
  }
  add_up(split, rank_of_block(),
         [&](const SumPlace& at, f32x4 sum) BURIN_INLINED { store_outputs(output, weights, batch, at, sum); });
}

BURIN_DEVICE void multiply_tiles(const float* input, float* output, const float* weights, i32 batch) {
  const u32 ahead = buffers() - 1;  // chunks that are under way while one is multiplied
  begin_cluster_sums(burin_dev_thread());
  const float* panel = weights + static_cast<i64>(block_of_image() * chunks()) * weight_words();
  const auto copy_weights = [&](u32 chunk, u32 buffer) BURIN_INLINED {
    copy_panel(panel + static_cast<i64>(chunk) * weight_words(), weight_words(), buffer);
  };
#pragma unroll
  for (u32 i = 0; i < ahead; ++i) {
    if (i < chunks()) copy_weights(i, kSharedStart + i * buffer_bytes());
  }
  const CopiedPlace place = copied_place();
  const ThreadPlace own = place_of_thread();
  const u32 images = static_cast<u32>(batch) - first_image();
  LayerSums sums;
  clear(sums);
  burin_dev_await_launch();
  const float* image = input_of(input, first_image() + place.image);
#pragma unroll
  for (u32 i = 0; i < ahead; ++i) {
    if (i < chunks()) copy_inputs(image, place, images, i, kSharedStart + i * buffer_bytes());
    burin_dev_copy_commit();
  }
  const u32 last_buffer = kSharedStart + ahead * buffer_bytes();
  u32 filled = kSharedStart, empty = last_buffer;
#pragma nounroll
  for (u32 chunk = 0; chunk < chunks(); ++chunk) {
    burin_dev_copy_wait(ahead - 1);
    burin_dev_barrier();
    if (chunk + ahead < chunks()) {
      copy_weights(chunk + ahead, empty);
      copy_inputs(image, place, images, chunk + ahead, empty);
    }
    burin_dev_copy_commit();
    multiply_chunk(own, filled, sums);
    empty = filled;
    filled = filled == last_buffer ? kSharedStart : filled + buffer_bytes();
  }
  burin_dev_copy_wait(0);
  burin_dev_barrier();
  add_up_tiles(output, weights, batch, own, sums);
}
