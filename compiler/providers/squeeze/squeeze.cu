// squeeze: the first half of squeeze-and-excitation. A block has a part of an image, or of the images that lie side by
// side: it adds up its channels' pixels, and multiplies the sums by its columns of the first layer's weights.
//
// Weights, in words, of the channels of one part after the other, each beginning at a multiple of four: for each
// channel those of all features. They are fetched before the launch before has ended.
#define BURIN_TEMPLATE_DEF "compiler/providers/squeeze/squeeze.def"
#include "templates/kernels/planes.h"

#include "templates/kernels/of_images.h"

BURIN_DEVICE u32 block_warps() { return block_threads() / kWarpThreads; }
BURIN_DEVICE u32 run_words() { return divide_up(features() * part_channels(), kQuadWords) * kQuadWords; }
BURIN_DEVICE u32 channel_part() { return block_of_image() / pixel_parts(); }

// Shared memory, of floats: the weights; then of each channel the sums of the warps that share its pixels, each for the
// images side by side; the sums of these.
BURIN_DEVICE u32 sums_start() { return kSharedStart + (weights_in_shared() ? run_words() * kWordBytes : 0); }
BURIN_DEVICE u32 sums_count() { return part_channels() * images(); }
BURIN_DEVICE u32 means_start() { return sums_start() + warps() * sums_count() * kWordBytes; }

// Adds up each warp's pixels of the block's channels.
BURIN_DEVICE void add_up_planes(const float* image) {
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads, warp = thread / kWarpThreads;
  const u32 together = channels_together(), planes = part_channels() / together;
  const u32 at_once = block_warps() / warps(), threads = warps() * kWarpThreads;
  const u32 last = divide_up(stored_channels(), together) - 1, first_channel = channel_part() * part_channels();
  const u32 first_word = block_of_image() % pixel_parts() * elements();
  const u32 pieces = at_most(elements(), plane() - first_word) / vector();
#pragma nounroll
  for (u32 round = 0; round < divide_up(planes, at_once); ++round) {
    const u32 own = round * at_once + warp / warps();
    const u32 read = at_most(first_channel / together + at_most(own, planes - 1), last);
    const Values sums = sum_of_pieces(image, read * plane() + first_word, thread % threads, threads, pieces);
#pragma unroll
    for (u32 number = 0; number < kMostImages; ++number) {
      if (number >= images()) continue;
      float sum = value_of(sums, number);
      // Of floats, and of two images, four words are of one channel.
      if (place_words() == 1 && vector() == kQuadWords) {
        const f32x4 words = number == 0 ? sums.first : sums.second;
        sum = (words[0] + words[1]) + (words[2] + words[3]);
      }
#pragma unroll
      for (u32 distance = kWarpThreads / 2; distance > 0; distance /= 2) {
        if (distance >= together) sum += burin_dev_shuffle_xor(sum, distance);
      }
      const u32 channel = own * together + lane;
      if (own < planes && lane < together) {
        const u32 word = (warp % warps() * part_channels() + channel) * images() + number;
        const bool exists = first_channel + channel < static_cast<u32>(stored_channels());
        burin_dev_shared_store(sums_start() + word * kWordBytes, 0, exists ? sum : 0);
      }
    }
  }
}

BURIN_DEVICE void take_means() {
#pragma nounroll
  for (u32 i = burin_dev_thread(); i < sums_count(); i += block_threads()) {
    float sum = 0;
#pragma nounroll
    for (u32 part = 0; part < static_cast<u32>(warps()); ++part) {
      sum += burin_dev_shared_load(sums_start() + (part * sums_count() + i) * kWordBytes, 0);
    }
    burin_dev_shared_store(means_start() + i * kWordBytes, 0,
                           sum * (1.0f / (plane() / (place_words() * channels_together()))));
  }
}

// A thread has one feature after the other.
BURIN_DEVICE void multiply(const float* weights, float* output, i32 batch) {
#pragma nounroll
  for (u32 feature = burin_dev_thread(); feature < static_cast<u32>(features()); feature += block_threads()) {
    float sums[kMostImages] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll 8
    for (u32 channel = 0; channel < static_cast<u32>(part_channels()); ++channel) {
      const float weight = weight_at(weights, channel * features() + feature);
      const OfImages means = load_of_images(means_start(), channel);
#pragma unroll
      for (u32 image = 0; image < kMostImages; ++image) {
        if (image < images()) sums[image] = __builtin_fmaf(weight, means.values[image], sums[image]);
      }
    }
#pragma unroll
    for (u32 image = 0; image < kMostImages; ++image) {
      const u32 stored_image = first_image() + image;
      if (image >= images() || stored_image >= static_cast<u32>(batch)) continue;
      burin_dev_global_store(output_of(output, stored_image), bytes_of(block_of_image() * features() + feature),
                             sums[image]);
    }
  }
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float* all_weights, i32 batch) {
  const float* weights = all_weights + static_cast<i64>(channel_part()) * run_words();
  fetch_weights(weights, run_words());
  burin_dev_await_launch();
  add_up_planes(input_of(input, first_image()));
  burin_dev_copy_wait(0);
  burin_dev_barrier();
  take_means();
  burin_dev_barrier();
  multiply(weights, output, batch);
}
