// gate: what squeeze-and-excitation multiplies channels by. The blocks of an image are a cluster, and each has some of
// the channels: it takes their means, and multiplies them by its columns of the first layer's weights. The features are
// what the blocks' sums add up to; from these each block computes its rows of the second layer.
//
// Weights, in words, of one block after the other, each beginning at a multiple of four: for each feature the weights
// of the block's channels, the biases of the features, for each feature its weights for the block's outputs, the biases
// of these. They are fetched before the launch before has ended.
#define BURIN_TEMPLATE_DEF "compiler/providers/gate/gate.def"
#include "templates/kernels/planes.h"

#include "templates/kernels/apply_function.h"

constexpr u32 kMostImages = 8;  // side by side

BURIN_DEVICE u32 images() { return in_word_images(); }
BURIN_DEVICE u32 block_warps() { return block_threads() / kWarpThreads; }

BURIN_DEVICE u32 squeeze_bias_start() { return features() * in_channels(); }
BURIN_DEVICE u32 expand_start() { return squeeze_bias_start() + features(); }
BURIN_DEVICE u32 expand_bias_start() { return expand_start() + features() * out_channels(); }
BURIN_DEVICE u32 block_words() { return divide_up(expand_bias_start() + out_channels(), kQuadWords) * kQuadWords; }

// Shared memory, of floats: the weights; then of each channel the sums of the warps that share its plane, each for the
// images side by side; the means; the block's part of each feature's sum; the features.
BURIN_DEVICE u32 sums_start() { return kSharedStart + (weights_in_shared() ? block_words() * kWordBytes : 0); }
BURIN_DEVICE u32 means_count() { return in_channels() * images(); }
BURIN_DEVICE u32 means_start() { return sums_start() + warps() * means_count() * kWordBytes; }
BURIN_DEVICE u32 parts_start() { return means_start() + means_count() * kWordBytes; }
BURIN_DEVICE u32 features_start() { return parts_start() + features() * images() * kWordBytes; }

BURIN_DEVICE void fetch_weights(const float* weights) {
  if (!weights_in_shared()) return;
#pragma nounroll
  for (u32 word = burin_dev_thread() * kQuadWords; word < block_words(); word += block_threads() * kQuadWords) {
    burin_dev_copy_async4(kSharedStart + word * kWordBytes, 0, weights, bytes_of(word), 1);
  }
  burin_dev_copy_commit();
}
// `weights`: the block's.
BURIN_DEVICE float weight_at(const float* weights, u32 word) {
  if (weights_in_shared()) return burin_dev_shared_load(kSharedStart + word * kWordBytes, 0);
  return burin_dev_global_load(weights, bytes_of(word));
}

// A value of a place, by the number of its image.
BURIN_DEVICE float value_of(const Values& values, u32 image) {
  return image % 2 == 0 ? values.first[image / 2] : values.second[image / 2];
}

// Of the block's channels, the sums of each warp's part of a plane.
BURIN_DEVICE void add_up_planes(const float* image, u32 first_channel) {
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads, warp = thread / kWarpThreads;
  const u32 together = channels_together(), planes = in_channels() / together;
  const u32 at_once = block_warps() / warps(), threads = warps() * kWarpThreads;
  const u32 last = divide_up(stored_channels(), together) - 1;
#pragma nounroll
  for (u32 round = 0; round < divide_up(planes, at_once); ++round) {
    const u32 plane = round * at_once + warp / warps();
    const u32 read = at_most(first_channel / together + at_most(plane, planes - 1), last);
    const Values sums = sum_of_pieces(image, read * elements(), thread % threads, threads);
#pragma unroll
    for (u32 number = 0; number < kMostImages; ++number) {
      if (number >= images()) continue;
      float sum = value_of(sums, number);
      // Of floats four words are of one channel.
      if (place_words() == 1 && vector() == kQuadWords) {
        const f32x4 words = number == 0 ? sums.first : sums.second;
        sum = (words[0] + words[1]) + (words[2] + words[3]);
      }
#pragma unroll
      for (u32 distance = kWarpThreads / 2; distance > 0; distance /= 2) {
        if (distance >= together) sum += burin_dev_shuffle_xor(sum, distance);
      }
      const u32 channel = plane * together + lane;
      if (plane < planes && lane < together) {
        const u32 word = (warp % warps() * in_channels() + channel) * images() + number;
        const bool exists = first_channel + channel < static_cast<u32>(stored_channels());
        burin_dev_shared_store(sums_start() + word * kWordBytes, 0, exists ? sum : 0);
      }
    }
  }
}

// What lies in shared memory for each of the images side by side.
struct OfImages {
  float values[kMostImages];
};
BURIN_DEVICE OfImages load_of_images(u32 start, u32 number) {
  OfImages loaded;
  if (images() == kMostImages) {
    const u32 place = start + number * kMostImages * kWordBytes;
    const f32x4 low = burin_dev_shared_load4(place, 0), high = burin_dev_shared_load4(place, kPlaceBytes);
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) {
      loaded.values[i] = low[i];
      loaded.values[kQuadWords + i] = high[i];
    }
    return loaded;
  }
#pragma unroll
  for (u32 i = 0; i < kMostImages; ++i) {
    loaded.values[i] =
        i < images() ? burin_dev_shared_load(start + (number * images() + i) * kWordBytes, 0) : loaded.values[0];
  }
  return loaded;
}

BURIN_DEVICE void take_means() {
#pragma nounroll
  for (u32 i = burin_dev_thread(); i < means_count(); i += block_threads()) {
    float sum = 0;
#pragma nounroll
    for (u32 part = 0; part < static_cast<u32>(warps()); ++part) {
      sum += burin_dev_shared_load(sums_start() + (part * means_count() + i) * kWordBytes, 0);
    }
    burin_dev_shared_store(means_start() + i * kWordBytes, 0,
                           sum * (1.0f / (elements() / (place_words() * channels_together()))));
  }
}

// A warp has one feature after the other, and each lane some of the block's channels.
BURIN_DEVICE void multiply_means(const float* weights) {
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads, warp = thread / kWarpThreads;
#pragma nounroll
  for (u32 round = 0; round < divide_up(features(), block_warps()); ++round) {
    const u32 wanted = round * block_warps() + warp, feature = at_most(wanted, features() - 1);
    float sums[kMostImages] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll 4
    for (u32 channel = lane; channel < static_cast<u32>(in_channels()); channel += kWarpThreads) {
      const float weight = weight_at(weights, feature * in_channels() + channel);
      const OfImages means = load_of_images(means_start(), channel);
#pragma unroll
      for (u32 image = 0; image < kMostImages; ++image) {
        if (image < images()) sums[image] = __builtin_fmaf(weight, means.values[image], sums[image]);
      }
    }
#pragma unroll
    for (u32 image = 0; image < kMostImages; ++image) {
      if (image >= images()) continue;
      const float sum = warp_sum(sums[image]);
      if (lane == 0 && wanted < static_cast<u32>(features())) {
        burin_dev_shared_store(parts_start() + (feature * images() + image) * kWordBytes, 0, sum);
      }
    }
  }
}

BURIN_DEVICE void take_features(const float* weights) {
#pragma nounroll
  for (u32 i = burin_dev_thread(); i < features() * images(); i += block_threads()) {
    float sum = weight_at(weights, squeeze_bias_start() + i / images());
#pragma unroll
    for (u32 rank = 0; rank < static_cast<u32>(cluster_blocks()); ++rank) {
      const u32 part = parts_start() + i * kWordBytes;
      sum += cluster_blocks() == 1 ? burin_dev_shared_load(part, 0) : burin_dev_cluster_load(part, 0, rank);
    }
    burin_dev_shared_store(features_start() + i * kWordBytes, 0,
                           apply(feature_function(), feature_alpha(), feature_beta(), sum));
  }
}

// A thread has one of the block's outputs after the other, of all images side by side.
BURIN_DEVICE void multiply_features(const float* weights, float* output, i32 batch) {
  const u32 stored = out_halves() == kFloats ? image_channels() : filled(image_channels());
#pragma nounroll
  for (u32 own = burin_dev_thread(); own < static_cast<u32>(out_channels()); own += block_threads()) {
    const u32 channel = block_of_image() * out_channels() + own;
    float sums[kMostImages];
#pragma unroll
    for (u32 image = 0; image < kMostImages; ++image) sums[image] = weight_at(weights, expand_bias_start() + own);
#pragma unroll 4
    for (u32 feature = 0; feature < static_cast<u32>(features()); ++feature) {
      const float weight = weight_at(weights, expand_start() + feature * out_channels() + own);
      const OfImages inputs = load_of_images(features_start(), feature);
#pragma unroll
      for (u32 image = 0; image < kMostImages; ++image) {
        if (image < images()) sums[image] = __builtin_fmaf(weight, inputs.values[image], sums[image]);
      }
    }
    if (channel >= stored) continue;
    Values values;
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) {
      values.first[i] = is_filling(channel) ? 0 : apply(sums[2 * i]);
      values.second[i] = is_filling(channel) ? 0 : apply(sums[2 * i + 1]);
    }
    if (out_halves() != kFloats) {
      store_place(output_of(output, first_image()), channel, values);
      continue;
    }
#pragma unroll
    for (u32 image = 0; image < kMostImages; ++image) {
      const u32 stored_image = first_image() + image;
      if (image >= images() || stored_image >= static_cast<u32>(batch)) continue;
      burin_dev_global_store(output_of(output, stored_image), bytes_of(channel), value_of(values, image));
    }
  }
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float* all_weights, i32 batch) {
  const float* weights = all_weights + static_cast<i64>(block_of_image()) * block_words();
  fetch_weights(weights);
  burin_dev_await_launch();
  add_up_planes(input_of(input, first_image()), block_of_image() * in_channels());
  burin_dev_copy_wait(0);
  burin_dev_barrier();
  take_means();
  burin_dev_barrier();
  multiply_means(weights);
  if (cluster_blocks() == 1) {
    burin_dev_barrier();
  } else {
    burin_dev_cluster_barrier();
  }
  take_features(weights);
  burin_dev_barrier();
  multiply_features(weights, output, batch);
  if (cluster_blocks() > 1) burin_dev_cluster_leave();
}
