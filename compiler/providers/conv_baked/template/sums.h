// What becomes of a thread's sums: splits are added up, and outputs made of them.
//
// For conv_baked.cu, which defines the plan's constants, the holes and what a thread keeps before.
#pragma once

#include "templates/device.h"
#include "templates/kernels/apply_function.h"
#include "templates/kernels/residual.h"

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

// Or the splits are the blocks of a cluster: each leaves its partial sums in its shared memory and adds up a part
// of the group's channels, again in the order of the splits.
BURIN_PIECE void burin_piece_leave(u32 place, u32 offset, float sum) { burin_dev_shared_store(place, offset, sum); }

// Between the ranks of neighbouring splits are those of the cluster's other tiles.
BURIN_PIECE float burin_piece_collect(u32 place, u32 offset, u32 first_rank, u32 split) {
  return burin_dev_cluster_load(place, offset, first_rank + split * cluster_tiles());
}

// The rank of the block with this one's tile and split 0.
BURIN_DEVICE u32 rank_of_first_split() {
  if (cluster_tiles() == 1) return 0;
  return burin_dev_cluster_rank() - burin_slice_split() * cluster_tiles();
}

BURIN_PIECE float burin_piece_add(float sum, float partial) { return sum + partial; }

// ---- the epilogue
// What is added to outputs, loaded ahead of them: one word, or with nchw4 four.
BURIN_PIECE float burin_piece_residual(const Pixel* pixel, i64 channel_bytes) {
  return burin_dev_global_load(pixel->residual, channel_bytes);
}
BURIN_PIECE u32 burin_piece_residual_pair(const Pixel* pixel, i64 channel_bytes) {
  return burin_dev_global_load_word(pixel->residual, channel_bytes);
}
BURIN_PIECE f32x4 burin_piece_residual4(const Pixel* pixel, i64 channel_bytes) {
  return burin_dev_global_load4(pixel->residual, channel_bytes);
}

// What a complete sum becomes.
BURIN_DEVICE float finished(float sum, float residual, float bias) {
  if (has_bias()) sum += bias;
  return has_residual() ? end_of_sum(sum, residual) : apply(sum);
}

// The same of the two images of a word.
struct FinishedPair {
  float low, high;
};

BURIN_DEVICE FinishedPair finished_pair(float low, float high, u32 residual, float bias) {
  if (!has_residual()) return {finished(low, 0.0f, bias), finished(high, 0.0f, bias)};
  return {finished(low, low_half(residual), bias), finished(high, high_half(residual), bias)};
}

// Each stores one output, or several, and says of each whether it is live, in bits from 0 on.
BURIN_PIECE u32 burin_piece_output(float sum, float residual, const Pixel* pixel, i64 channel_bytes, float bias) {
  const float value = finished(sum, residual, bias);
  burin_dev_global_store(pixel->output, channel_bytes, value);
  return is_live(value);
}

// With the half precisions, this stores the outputs of two images.
BURIN_PIECE u32 burin_piece_output_pair(float low, float high, u32 residual, const Pixel* pixel, i64 channel_bytes,
                                        float bias) {
  const FinishedPair pair = finished_pair(low, high, residual, bias);
  const u32 word = pack_halves(pair.low, pair.high);
  burin_dev_global_store_word(pixel->output, channel_bytes, word);
  return (word & pixel->value_bits) != 0 ? 1u : 0u;
}

// With nchw4, this stores four accumulators whose channels lie side by side.
BURIN_PIECE u32 burin_piece_output4(float sum0, float sum1, float sum2, float sum3, f32x4 residual, const Pixel* pixel,
                                    i64 channel_bytes, float bias0, float bias1, float bias2, float bias3) {
  f32x4 sums = {sum0, sum1, sum2, sum3};
  if (has_bias()) sums += f32x4{bias0, bias1, bias2, bias3};
  const f32x4 values = has_residual() ? f32x4{end_of_sum(sums[0], residual[0]), end_of_sum(sums[1], residual[1]),
                                              end_of_sum(sums[2], residual[2]), end_of_sum(sums[3], residual[3])}
                                      : f32x4{apply(sums[0]), apply(sums[1]), apply(sums[2]), apply(sums[3])};
  burin_dev_global_store4(pixel->output, channel_bytes, values);
  return is_live(values[0]) | is_live(values[1]) << 1 | is_live(values[2]) << 2 | is_live(values[3]) << 3;
}
