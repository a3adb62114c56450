// conv_streamed: a convolution of few pixels whose nonzeros are data. Code that is baked from nonzeros is fetched once
// for each of them, which only pays where many pixels share what was fetched. Here the input of an image lies in shared
// memory, and a warp holds all pixels of an output, 32 side by side; it reads the output's nonzeros, which say by how
// many bytes each pixel's input lies behind the pixel's own place.
//
// A block computes `block_rows` outputs from `split_channels` input channels, and the blocks of a cluster those of all
// channels; then each adds up its part of the outputs, in the order of the splits, and stores them, their means, or
// what a pool makes of them, which it has all in shared memory. The nonzeros of an output and split are `row_parts`
// strips, each of which is a warp's.
//
// Weights, in words: for each block its parcel. A parcel: where each strip begins, counted in pairs, and where the last
// one ends; the biases of the block's outputs; filled up to a multiple of four; then pairs of a value and a word of its
// place: the bytes, and above them a bit for each row and each column of the filter. A strip has a multiple of four
// pairs; what fills it up points at a channel of zeros behind the others.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_streamed/conv_streamed.def"
#include "templates/kernels/conv_pool.h"
#include "templates/kernels/function.h"
#include "templates/kernels/residual.h"

constexpr i32 kMaxLaneWords = 4;  // pixels of a thread
constexpr i32 kMaxFilter = 7;     // rows and columns
constexpr i32 kMaxParts = 8;
constexpr i32 kMaxSplits = 8;
constexpr u32 kPairBytes = 8;
constexpr u32 kPairsAtOnce = 4;
constexpr u32 kPlaceBits = 18;
constexpr u32 kRowBit = kPlaceBits, kColBit = kRowBit + kMaxFilter;
enum { kParcelGate, kInputGate };

BURIN_DEVICE u32 warps() { return block_threads() / kWarpThreads; }
BURIN_DEVICE i32 lane_words() { return divide_up(pixels(), kWarpThreads); }
BURIN_DEVICE u32 strips() { return block_rows() * row_parts(); }
BURIN_DEVICE u32 splits() { return cluster_blocks(); }
// What is staged are the pixels that a 1x1 filter reads for the output, or all of the input.
BURIN_DEVICE u32 staged_words() { return compact() ? pixels() : in_rows() * in_cols(); }
BURIN_DEVICE u32 staged_cols() { return compact() ? conv_cols() : in_cols(); }

// Shared memory: a margin, the channels, one of zeros with a tail, the block's parcel, the strips' sums.
BURIN_DEVICE u32 input_start() { return kSharedStart + margin_words() * kWordBytes; }
BURIN_DEVICE u32 zeros_start() { return input_start() + split_channels() * staged_words() * kWordBytes; }
BURIN_DEVICE u32 parcel_start() { return zeros_start() + (staged_words() + tail_words()) * kWordBytes; }
BURIN_DEVICE u32 biases_start() { return parcel_start() + (strips() + 1) * kWordBytes; }
BURIN_DEVICE u32 pairs_start() {
  return parcel_start() + divide_up(strips() + 1 + block_rows(), kQuadWords) * kQuadWords * kWordBytes;
}
BURIN_DEVICE u32 sums_start() { return parcel_start() + parcel_words() * kWordBytes; }
BURIN_DEVICE u32 strip_bytes() { return lane_words() * kWarpThreads * kWordBytes; }

// Places of neighbouring pixels are neighbours: then a thread's places are a constant apart.
BURIN_DEVICE bool even_places() {
  return compact() || (stride_rows() == 1 && stride_cols() == 1 && in_cols() == conv_cols());
}

// Where a thread's pixels read the input.
struct Pixels {
  u32 place[kMaxLaneWords];    // where filter position (0, 0) of the first channel lies
  u32 outside[kMaxLaneWords];  // filter rows and columns that lie beyond the image, in the bits of a pair's word
};

BURIN_DEVICE Pixels locate_pixels(u32 lane) {
  Pixels result;
#pragma unroll
  for (i32 i = 0; i < kMaxLaneWords; ++i) {
    if (i >= lane_words()) continue;
    const u32 wanted = lane + i * kWarpThreads;
    const i32 pixel = even_places() ? wanted : at_most(wanted, pixels() - 1);
    const i32 row = pixel / conv_cols(), col = pixel % conv_cols();
    const i32 y = compact() ? row : row * stride_rows() - pad_top();
    const i32 x = compact() ? col : col * stride_cols() - pad_left();
    result.place[i] = input_start() + (y * static_cast<i32>(staged_cols()) + x) * kWordBytes;
    if (i > 0 && even_places()) result.place[i] = result.place[0] + i * kWarpThreads * kWordBytes;
    result.outside[i] = 0;
#pragma unroll
    for (i32 r = 0; r < kMaxFilter; ++r) {
      const i32 at_row = y + r * dilation_rows(), at_col = x + r * dilation_cols();
      if (r < kernel_rows() && (at_row < 0 || at_row >= in_rows())) result.outside[i] |= 1u << (kRowBit + r);
      if (r < kernel_cols() && (at_col < 0 || at_col >= in_cols())) result.outside[i] |= 1u << (kColBit + r);
    }
  }
  return result;
}

BURIN_DEVICE void clear_words(u32 place, u32 words, u32 thread) {
#pragma nounroll
  for (u32 word = thread; word < words; word += block_threads())
    burin_dev_shared_store(place + word * kWordBytes, 0, 0);
}

// Weights are no other kernel's output.
BURIN_DEVICE void begin_parcel(const float* weights, u32 thread) {
  if (thread != 0) return;
  const u32 bytes = parcel_words() * kWordBytes;
  burin_dev_gate_expect(kParcelGate, bytes);
  burin_dev_bulk_copy(parcel_start(), 0, weights, static_cast<i64>(block_of_image()) * bytes, bytes, kParcelGate);
}

BURIN_DEVICE void begin_input(const float* image, u32 split, u32 thread) {
  const u32 plane = in_rows() * in_cols(), first = split * split_channels() * plane;
  if (bulk()) {
    if (thread != 0) return;
    const u32 bytes = split_channels() * plane * kWordBytes;
    burin_dev_gate_expect(kInputGate, bytes);
    burin_dev_bulk_copy(input_start(), 0, image, bytes_of(first), bytes, kInputGate);
    return;
  }
#pragma nounroll
  for (u32 word = thread; word < split_channels() * staged_words(); word += block_threads()) {
    const u32 channel = word / staged_words(), pixel = word % staged_words();
    const u32 within =
        compact() ? pixel / conv_cols() * stride_rows() * in_cols() + pixel % conv_cols() * stride_cols() : pixel;
    burin_dev_copy_async(input_start() + word * kWordBytes, 0, image, bytes_of(first + channel * plane + within), 1);
  }
  burin_dev_copy_commit();
}

// Two sums of each pixel, so that an addition need not wait for the one before it.
struct Sums {
  float even[kMaxLaneWords], odd[kMaxLaneWords];
};

BURIN_DEVICE void add_pairs(u32 pairs, const Pixels& pixels, Sums& sums) {
  f32x4 words[kPairsAtOnce / 2];
#pragma unroll
  for (u32 i = 0; i < kPairsAtOnce / 2; ++i) words[i] = burin_dev_shared_load4(pairs, i * 2 * kPairBytes);
#pragma unroll
  for (u32 i = 0; i < kPairsAtOnce; ++i) {
    const float value = words[i / 2][i % 2 * 2], place = words[i / 2][i % 2 * 2 + 1];
    const u32 word = __builtin_bit_cast(u32, place);  // (of an element of a vector, clang takes the first)
    const u32 offset = masked() ? word & ((1u << kPlaceBits) - 1) : word;
#pragma unroll
    for (i32 j = 0; j < kMaxLaneWords; ++j) {
      if (j >= lane_words()) continue;
      const u32 base = even_places() ? pixels.place[0] + offset : pixels.place[j] + offset;
      const float x = burin_dev_shared_load(base, even_places() ? j * kWarpThreads * kWordBytes : 0);
      float& sum = i % 2 == 0 ? sums.even[j] : sums.odd[j];
      sum = masked() ? burin_dev_fma_if((word & pixels.outside[j]) == 0, x, value, sum) : __builtin_fmaf(x, value, sum);
    }
  }
}

BURIN_DEVICE void compute_strip(u32 strip, u32 lane, const Pixels& pixels) {
  const u32 begin = burin_dev_shared_load_word(parcel_start() + strip * kWordBytes, 0);
  const u32 end = burin_dev_shared_load_word(parcel_start() + strip * kWordBytes, kWordBytes);
  u32 place = pairs_start() + begin * kPairBytes;
  const u32 stop = pairs_start() + end * kPairBytes;
  Sums sums;
#pragma unroll
  for (i32 j = 0; j < kMaxLaneWords; ++j) sums.even[j] = sums.odd[j] = 0;
#pragma nounroll
  for (; place + 2 * kPairsAtOnce * kPairBytes <= stop; place += 2 * kPairsAtOnce * kPairBytes) {
    add_pairs(place, pixels, sums);
    add_pairs(place + kPairsAtOnce * kPairBytes, pixels, sums);
  }
  if (place < stop) add_pairs(place, pixels, sums);
#pragma unroll
  for (i32 j = 0; j < kMaxLaneWords; ++j) {
    if (j >= lane_words()) continue;
    burin_dev_shared_store(sums_start() + strip * strip_bytes() + lane * kWordBytes, j * kWarpThreads * kWordBytes,
                           sums.even[j] + sums.odd[j]);
  }
}

// Where the first part's sum of a pixel lies.
BURIN_DEVICE u32 sum_place(u32 row, u32 pixel) {
  return sums_start() + row * row_parts() * strip_bytes() + pixel * kWordBytes;
}

// All parts and splits of a word of the strips' sums, always in the same order.
BURIN_DEVICE float collect(u32 row, u32 pixel) {
  const u32 place = sum_place(row, pixel);
  float parts[kMaxSplits * kMaxParts];
#pragma unroll
  for (i32 i = 0; i < kMaxSplits * kMaxParts; ++i) {
    const i32 split = i / kMaxParts, part = i % kMaxParts;
    if (split >= splits() || part >= row_parts()) continue;
    parts[i] = splits() == 1 ? burin_dev_shared_load(place, part * strip_bytes())
                             : burin_dev_cluster_load(place, part * strip_bytes(), split);
  }
  float sum = 0;
#pragma unroll
  for (i32 i = 0; i < kMaxSplits * kMaxParts; ++i) {
    if (i / kMaxParts < splits() && i % kMaxParts < row_parts()) sum += parts[i];
  }
  return sum;
}

BURIN_DEVICE u32 own_rows() { return divide_up(block_rows(), splits()); }

// Makes a value of the block's row, as the activation leaves it.
BURIN_DEVICE float finish(u32 row, u32 channel, u32 pixel, const float* other) {
  const u32 word = channel * pixels() + pixel;
  const float added = residual() ? burin_dev_global_load(residual_of(other, first_image()), bytes_of(word)) : 0.0f;
  const float bias = burin_dev_shared_load(biases_start() + row * kWordBytes, 0);
  return end_of_sum(collect(row, pixel) + bias, added);
}

// Behind a pool they stay where the block's first part of the sums lies, which nobody else reads: the rows are its own.
BURIN_DEVICE void store_pixels(float* output, const float* other, u32 split, u32 row_block, u32 thread) {
#pragma nounroll
  for (u32 item = thread; item < own_rows() * pixels(); item += block_threads()) {
    const u32 row = split * own_rows() + item / pixels(), pixel = item % pixels();
    const u32 channel = row_block * block_rows() + row;
    if (row >= static_cast<u32>(block_rows()) || channel >= static_cast<u32>(out_channels())) continue;
    const float value = finish(row, channel, pixel, other);
    if (pools()) {
      burin_dev_shared_store(sum_place(row, pixel), 0, value);
    } else {
      burin_dev_global_store(output_of(output, first_image()), bytes_of(channel * pixels() + pixel), value);
    }
  }
}

BURIN_DEVICE void store_windows(float* output, u32 split, u32 row_block, u32 thread) {
  const u32 windows = out_rows() * out_cols();
#pragma nounroll
  for (u32 item = thread; item < own_rows() * windows; item += block_threads()) {
    const u32 row = split * own_rows() + item / windows, window = item % windows;
    const u32 channel = row_block * block_rows() + row;
    if (row >= static_cast<u32>(block_rows()) || channel >= static_cast<u32>(out_channels())) continue;
    const i32 top = static_cast<i32>(window / out_cols()) * pool_stride_rows() - pool_pad_top();
    const i32 left = static_cast<i32>(window % out_cols()) * pool_stride_cols() - pool_pad_left();
    // What lies in padding is loaded from the nearest pixel.
    const float value = pool_of_window(top, left, [&](u32 r, u32 s) BURIN_INLINED {
      const u32 y = nearest(top + static_cast<i32>(r), conv_rows());
      const u32 x = nearest(left + static_cast<i32>(s), conv_cols());
      return burin_dev_shared_load(sum_place(row, y * conv_cols() + x), 0);
    });
    burin_dev_global_store(output_of(output, first_image()), bytes_of(channel * windows + window), value);
  }
}

// A warp for each row. All threads go through all rows: a sum over a warp is for all.
BURIN_DEVICE void store_means(float* output, const float* other, u32 split, u32 row_block, u32 thread) {
  const u32 lane = thread % kWarpThreads;
#pragma nounroll
  for (u32 first = 0; first < own_rows(); first += warps()) {
    const u32 own = first + thread / kWarpThreads, row = split * own_rows() + own;
    const u32 channel = row_block * block_rows() + row;
    const bool exists =
        own < own_rows() && row < static_cast<u32>(block_rows()) && channel < static_cast<u32>(out_channels());
    float sum = 0;
#pragma unroll
    for (i32 i = 0; i < kMaxLaneWords; ++i) {
      const u32 pixel = lane + i * kWarpThreads;
      if (i < lane_words() && exists && pixel < static_cast<u32>(pixels())) sum += finish(row, channel, pixel, other);
    }
    sum = warp_sum(sum);
    if (exists && lane == 0) {
      burin_dev_global_store(output_of(output, first_image()), bytes_of(channel), sum * (1.0f / pixels()));
    }
  }
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32) {
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads;
  const u32 split = block_of_image() % splits(), row_block = block_of_image() / splits();
  if (thread < 2) burin_dev_gate_init(thread);
  clear_words(kSharedStart, margin_words(), thread);
  clear_words(zeros_start(), staged_words() + tail_words(), thread);
  burin_dev_barrier();
  begin_parcel(weights, thread);
  const Pixels pixels_here = locate_pixels(lane);
  burin_dev_await_launch();
  begin_input(input_of(input, first_image()), split, thread);
  burin_dev_gate_wait(kParcelGate, 0);
  if (bulk()) {
    burin_dev_gate_wait(kInputGate, 0);
  } else {
    burin_dev_copy_wait(0);
    burin_dev_barrier();
  }
#pragma nounroll
  for (u32 strip = thread / kWarpThreads; strip < strips(); strip += warps()) {
    compute_strip(strip, lane, pixels_here);
  }
  if (splits() > 1) {
    burin_dev_cluster_barrier();
  } else {
    burin_dev_barrier();
  }
  if (means()) {
    store_means(output, other, split, row_block, thread);
  } else {
    store_pixels(output, other, split, row_block, thread);
  }
  if (pools() && !means()) {
    burin_dev_barrier();
    store_windows(output, split, row_block, thread);
  }
  if (splits() > 1) {
    burin_dev_cluster_arrive();
    burin_dev_cluster_meet();
  }
}
