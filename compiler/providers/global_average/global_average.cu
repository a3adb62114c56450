// global_average: the mean of each channel, by a warp or several of a block, of which a lane adds up one channel of as
// many as lie side by side. Of halves it writes floats, each image's by itself, or halves as it has read them.
#define BURIN_TEMPLATE_DEF "compiler/providers/global_average/global_average.def"
#include "templates/kernels/planes.h"

constexpr u32 kMostWarps = 32;
constexpr u32 kRowBytes = kWarpThreads * kWordBytes;  // a number of each lane

BURIN_DEVICE u32 block_warps() { return block_threads() / kWarpThreads; }

// The mean of a plane from what each thread of its warps has added up, in the threads of the first of them that have
// its channel. `number`: another one for each plane of a thread.
BURIN_DEVICE float mean_of(float mine, u32 number) {
  float sum = mine;
#pragma unroll
  for (i32 distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    if (distance >= channels_together()) sum += burin_dev_shuffle_xor(sum, distance);
  }
  if (warps() > 1) {
    const u32 thread = burin_dev_thread(), warp = thread / kWarpThreads,
              lane_bytes = thread % kWarpThreads * kWordBytes;
    const u32 rows = kSharedStart + number * block_warps() * kRowBytes;
    burin_dev_shared_store(rows + warp * kRowBytes, lane_bytes, sum);
    burin_dev_barrier();
#pragma unroll
    for (u32 other = 1; other < kMostWarps; ++other) {
      if (other >= static_cast<u32>(warps())) continue;
      sum += burin_dev_shared_load(rows + at_most(warp + other, block_warps() - 1) * kRowBytes, lane_bytes);
    }
  }
  return sum * (1.0f / (elements() / (place_words() * channels_together())));
}
BURIN_DEVICE float mean_of(f32x4 sum, u32 number) {
  return mean_of(vector() == kQuadWords ? (sum[0] + sum[1]) + (sum[2] + sum[3]) : sum[0], number);
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32 batch) {
  burin_dev_await_launch();
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads, warp = thread / kWarpThreads;
  const u32 threads = warps() * kWarpThreads;
  const u32 wanted = block_of_image() * (block_warps() / warps()) + warp / warps();
  const u32 first = at_most(wanted, divide_up(channels(), channels_together()) - 1) * elements();
  const u32 channel = wanted * channels_together() + lane;
  const Values sum = sum_of_pieces(input_of(input, first_image()), first, thread % threads, threads);
  // The means of a thread's channel, for the images that lie side by side.
  Values means = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  if (place_words() == 1) {
    means.first[0] = mean_of(sum.first, 0);
    if (in_halves() != kFloats) means.second[0] = mean_of(sum.second, 1);
  } else {
    // A piece is a place of all images that lie side by side.
    const u32 images = in_halves() == kFloats ? 1 : 2;
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) {
      means.first[i] = mean_of(sum.first[i], images * i);
      if (images == 2) means.second[i] = mean_of(sum.second[i], 2 * i + 1);
    }
  }
  const bool is_mine = warp % warps() == 0 && lane < static_cast<u32>(channels_together());
  const bool as_read = out_word_images() > 1;
  const u32 stored = as_read ? filled(channels()) : channels();
  if (!is_mine || channel >= stored) return;
  if (as_read) {
    const f32x4 words = is_filling(channel) ? f32x4{0, 0, 0, 0} : words_of(means, out_halves());
    store(place_words(), output_of(output, first_image()), bytes_of(word_of(channel, 0)), words);
    return;
  }
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
      if (half == 1 && in_halves() == kFloats) continue;
      const u32 image = in_halves() == kFloats ? i : 2 * i + half, stored_image = first_image() + image;
      if (image >= static_cast<u32>(in_word_images()) || stored_image >= static_cast<u32>(batch)) continue;
      burin_dev_global_store(output_of(output, stored_image), bytes_of(channel),
                             half == 0 ? means.first[i] : means.second[i]);
    }
  }
}
