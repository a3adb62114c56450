// The pool behind the activation: threads keep their pixels' values in shared memory, and then the same threads make
// outputs of them.
//
// All values of one accumulator lie side by side, thread after thread, in the place of a cluster's partial sums: what a
// block has summed up no other block reads. Behind them lie the numbers of the channels, since a group's may be any.
//
// With the half precisions a thread has values of two images. Where the pool takes the largest, they are rounded, share
// a word and are compared in it; where it adds up, those of the second image lie behind all threads' of the first, in
// FP32.
//
// A window's positions beyond the image are loaded from the nearest one inside, which lies in the window too.
//
// For conv_baked.cu, which defines the plan's constants, the holes and the tile's place before.
#pragma once

#include "templates/device.h"

constexpr i32 kUnrolledWindow = 25;  // positions of the largest window without a loop (ir/baked_plan_pool.cpp)
constexpr i32 kPositionsAtOnce = 8;  // whose loads are in flight together, in a loop

BURIN_DEVICE u32 values_start() { return partials_start(); }
BURIN_DEVICE bool keeps_halves() { return word_images() == 2 && value_words() == 1; }
BURIN_DEVICE u32 plane_bytes() { return block_threads() * kWordBytes; }  // a word of each thread

// ---- what a thread keeps
BURIN_PIECE void burin_piece_keep(float sum, float residual, u32 place, u32 offset, float bias) {
  burin_dev_shared_store(place, offset, finished(sum, residual, bias));
}

// With the half precisions, this keeps the values of two images.
BURIN_PIECE void burin_piece_keep_pair(float low, float high, u32 residual, u32 place, u32 offset, float bias) {
  const FinishedPair pair = finished_pair(low, high, residual, bias);
  if (keeps_halves()) {
    burin_dev_shared_store_word(place, offset, pack_halves(pair.low, pair.high));
  } else {
    burin_dev_shared_store(place, offset, pair.low);
    burin_dev_shared_store(place, offset + plane_bytes(), pair.high);
  }
}

BURIN_PIECE void burin_piece_number(u32 place, u32 offset, u32 channel) {
  burin_dev_shared_store_word(place, offset, channel);
}

// ---- windows
BURIN_DEVICE i32 nearest(i32 at, i32 extent) { return at < 0 ? 0 : at >= extent ? extent - 1 : at; }

BURIN_DEVICE float joined(float result, float value) {
  return pool_averages() ? result + value : __builtin_fmaxf(result, value);
}

// What there is of the images of a word: the value of one, those of two, or those of two as halves. The rest is
// nobody's.
struct WordValues {
  float first, second;
  u32 halves;
};

BURIN_DEVICE WordValues kept_values(u32 place, u32 offset) {
  if (keeps_halves()) return {0.0f, 0.0f, burin_dev_shared_load_word(place, offset)};
  const float first = burin_dev_shared_load(place, offset);
  return {first, word_images() == 2 ? burin_dev_shared_load(place, offset + plane_bytes()) : 0.0f, 0};
}

BURIN_DEVICE WordValues joined(const WordValues& result, const WordValues& values) {
  if (keeps_halves()) {
    return {0.0f, 0.0f,
            bf16() ? burin_dev_bf16x2_max(result.halves, values.halves)
                   : burin_dev_f16x2_max(result.halves, values.halves)};
  }
  return {joined(result.first, values.first), word_images() == 2 ? joined(result.second, values.second) : 0.0f, 0};
}

// What the lane so far away has made.
BURIN_DEVICE WordValues shuffled(const WordValues& values, u32 distance) {
  if (keeps_halves()) {
    const float other = burin_dev_shuffle_xor(__builtin_bit_cast(float, values.halves), distance);
    return {0.0f, 0.0f, __builtin_bit_cast(u32, other)};
  }
  const float first = burin_dev_shuffle_xor(values.first, distance);
  return {first, word_images() == 2 ? burin_dev_shuffle_xor(values.second, distance) : 0.0f, 0};
}

// A window of one channel of one image.
struct ChannelWindow {
  i32 top, left;  // first position
  u32 first;      // where its value is, if it lies inside
};

BURIN_DEVICE WordValues with_position(const ChannelWindow& window, i32 r, i32 s, bool counts, WordValues result) {
  // What is the same for all windows becomes part of the load.
  const i32 rows = windows_leave_rows() ? nearest(window.top + r, conv_rows()) - window.top : 0;
  const i32 cols = windows_leave_cols() ? nearest(window.left + s, conv_cols()) - window.left : 0;
  const i32 fixed_rows = windows_leave_rows() ? 0 : r, fixed_cols = windows_leave_cols() ? 0 : s;
  const WordValues values = kept_values(window.first + (rows * tile_cols() + cols) * kWordBytes,
                                        (fixed_rows * tile_cols() + fixed_cols) * kWordBytes);
  const bool inside = counts && (!pool_averages() || (rows + fixed_rows == r && cols + fixed_cols == s));
  return inside ? joined(result, values) : result;
}

// Counts what an average divides by: rounding up, a window may reach beyond the padding, which never counts.
BURIN_DEVICE i32 counted(i32 begin, i32 kernel, i32 extent, i32 pad_behind) {
  const i32 first = begin < 0 && !pool_counts_padding() ? 0 : begin;
  return at_most(begin + kernel, extent + (pool_counts_padding() ? pad_behind : 0)) - first;
}

// What a mean has of each value.
BURIN_DEVICE float share_of_value(i32 top, i32 left) {
  if (!windows_leave_rows() && !windows_leave_cols()) return 1.0f / (pool_rows() * pool_cols());
  const i32 rows = counted(top, pool_rows(), conv_rows(), pool_pad_bottom());
  const i32 cols = counted(left, pool_cols(), conv_cols(), pool_pad_right());
  return burin_dev_reciprocal(static_cast<float>(rows * cols));
}

// Where a window has several lanes, each takes positions of its own, and then what the others have made of theirs.
BURIN_DEVICE WordValues pool_window(const ChannelWindow& window, u32 lane) {
  const float start = pool_averages() ? 0.0f : -__builtin_inff();
  WordValues result = {start, start, bf16() ? 0xFF80FF80u : 0xFC00FC00u};
  const i32 positions = pool_rows() * pool_cols();
  if (positions <= kUnrolledWindow) {
#pragma unroll
    for (i32 i = 0; i < kUnrolledWindow; ++i) {
      if (i < positions) result = with_position(window, i / pool_cols(), i % pool_cols(), true, result);
    }
  } else {
#pragma nounroll
    for (i32 first = lane; first < positions; first += kPositionsAtOnce * window_lanes()) {
#pragma unroll
      for (i32 i = 0; i < kPositionsAtOnce; ++i) {
        const i32 wanted = first + i * window_lanes();
        const u32 position = at_most(wanted, positions - 1);
        result = with_position(window, position / pool_cols(), position % pool_cols(), wanted < positions, result);
      }
    }
#pragma unroll
    for (u32 distance = kWarpThreads / 2; distance > 0; distance /= 2) {
      if (distance < static_cast<u32>(window_lanes())) {
        result = joined(result, shuffled(result, distance));
      }
    }
  }
  if (!pool_averages()) return result;
  const float share = share_of_value(window.top, window.left);
  return {result.first * share, result.second * share, 0};
}

// All threads of a block, whose pixels' values are kept: the outputs of the block's own channels. An output that does
// not exist is computed as the last one, since all lanes pass what they have. "Images" are those that words are of.
BURIN_DEVICE void pool_outputs(float* output, i32 images) {
  if (burin_dev_thread() == 0) burin_hole_numbers(numbers_start());
  burin_dev_barrier();
  const TileOrigin origin = locate_origin();
  const u32 of_image = tile_out_rows() * tile_out_cols(), of_channel = tile_images() * of_image;
  const u32 outputs = burin_slice_outputs() * of_channel;
  const u32 lanes = window_lanes(), lane = burin_dev_thread() % lanes;
#pragma nounroll
  for (u32 first = 0; first < outputs; first += block_threads() / lanes) {
    const u32 wanted = first + burin_dev_thread() / lanes;
    const u32 item = wanted < outputs ? wanted : outputs - 1;
    const u32 own = item / of_channel, within_channel = item % of_channel, within_image = within_channel % of_image;
    const i32 image_of_tile = within_channel / of_image;
    const i32 image = origin.image + image_of_tile;
    const i32 row = origin.out_row + within_image / tile_out_cols();
    const i32 col = origin.out_col + within_image % tile_out_cols();
    const bool exists = wanted < outputs && image < images && row < out_rows() && col < out_cols();
    const i32 existing_image = tile_images() == 1 ? 0 : at_most(image_of_tile, images - 1 - origin.image);
    ChannelWindow window;
    window.top = at_most(row, out_rows() - 1) * pool_stride_rows() - pool_pad_top();
    window.left = at_most(col, out_cols() - 1) * pool_stride_cols() - pool_pad_left();
    window.first = values_start() + (burin_slice_first_output() + own) * value_pitch() * plane_bytes() +
                   ((existing_image * tile_rows() + window.top - origin.row) * tile_cols() + window.left - origin.col) *
                       kWordBytes;
    const WordValues values = pool_window(window, lane);
    if (!exists || lane != 0) continue;
    const u32 channel = burin_dev_shared_load_word(numbers_start() + own * kWordBytes, 0);
    const u32 pixel = row * out_cols() + col, plane = out_rows() * out_cols();
    const i64 word = static_cast<i64>(image) * out_image_words() +
                     (channel / out_together() * plane + pixel) * out_together() + channel % out_together();
    if (word_images() == 2) {
      const u32 halves = keeps_halves() ? values.halves : pack_halves(values.first, values.second);
      burin_dev_global_store_word(output, word * kWordBytes, halves);
    } else {
      burin_dev_global_store(output, word * kWordBytes, values.first);
    }
  }
}
