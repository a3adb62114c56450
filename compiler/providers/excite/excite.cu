// excite: the second half of squeeze-and-excitation. A block has some channels and pixels of an image, or of the images
// that lie side by side. It loads them, adds up the parts of the features' sums, computes what its channels are
// multiplied by from its rows of the second layer, and multiplies.
//
// Weights, in words, of the channels of one block after the other, each beginning at a multiple of four: for each
// channel those of all features, the biases of the channels, the biases of the features. They are fetched before the
// launch before has ended.
#define BURIN_TEMPLATE_DEF "compiler/providers/excite/excite.def"
#include "templates/kernels/of_images.h"

#include "templates/kernels/apply_function.h"

constexpr u32 kMostSteps = 8;

BURIN_DEVICE u32 bias_start() { return block_channels() * features(); }
BURIN_DEVICE u32 feature_bias_start() { return bias_start() + block_channels(); }
BURIN_DEVICE u32 run_words() { return divide_up(feature_bias_start() + features(), kQuadWords) * kQuadWords; }
BURIN_DEVICE u32 channel_block() { return block_of_image() / pixel_blocks(); }

// Shared memory, of floats: the weights; what each of a feature's sharers has added up, for the images side by side;
// the features; what channels are multiplied by.
BURIN_DEVICE u32 sums_count() { return features() * images(); }
BURIN_DEVICE u32 sums_start() { return kSharedStart + (weights_in_shared() ? run_words() * kWordBytes : 0); }
BURIN_DEVICE u32 features_start() { return sums_start() + sharers() * sums_count() * kWordBytes; }
BURIN_DEVICE u32 factors_start() { return features_start() + sums_count() * kWordBytes; }

// The thread's pieces.
struct Piece {
  u32 word, channel;  // of the image; of the block
  bool exists;
};
BURIN_DEVICE Piece piece_of(u32 step) {
  const u32 of_plane = elements() / vector();
  const u32 piece = step * block_threads() + burin_dev_thread();
  const u32 own = piece / of_plane, rest = piece % of_plane * vector();
  const u32 together = channels_together(), first = channel_block() * (block_channels() / together);
  const u32 word = block_of_image() % pixel_blocks() * elements() + rest;
  const bool exists = own < block_channels() / together && first + own < stored_channels() / together &&
                      word < static_cast<u32>(plane());
  return {(first + own) * plane() + word, own * together + word / place_words() % together, exists};
}

// Each thread has every so many-th part of one feature of one image, or of as many as are loaded at once.
BURIN_DEVICE void add_up_parts(const float* sums, i32 batch) {
  const u32 of_sharer = sums_count() / sum_vector(), of_image = features() / sum_vector();
#pragma nounroll
  for (u32 i = burin_dev_thread(); i < sharers() * of_sharer; i += block_threads()) {
    const u32 sum_of = i % of_sharer, feature = sum_of % of_image * sum_vector();
    const u32 read = at_most(first_image() + sum_of / of_image, static_cast<u32>(batch) - 1);
    const float* parts_of_image = residual_of(sums, read);
    f32x4 sum = {0, 0, 0, 0};
#pragma unroll 8
    for (u32 part = i / of_sharer; part < static_cast<u32>(parts()); part += sharers()) {
      sum = sum + load(sum_vector(), parts_of_image, bytes_of(part * features() + feature));
    }
    const u32 place = sums_start() + i * sum_vector() * kWordBytes;
    if (sum_vector() == kQuadWords) {
      burin_dev_shared_store4(place, 0, sum);
    } else {
      burin_dev_shared_store(place, 0, sum[0]);
    }
  }
}

BURIN_DEVICE void take_features(const float* weights) {
#pragma nounroll
  for (u32 i = burin_dev_thread(); i < sums_count(); i += block_threads()) {
    const u32 image = i / features(), feature = i % features();
    float sum = weight_at(weights, feature_bias_start() + feature);
#pragma unroll 4
    for (u32 sharer = 0; sharer < static_cast<u32>(sharers()); ++sharer) {
      sum += burin_dev_shared_load(sums_start() + (sharer * sums_count() + i) * kWordBytes, 0);
    }
    burin_dev_shared_store(features_start() + (feature * images() + image) * kWordBytes, 0,
                           apply(feature_function(), feature_alpha(), feature_beta(), sum));
  }
}

// A warp has one channel after the other, and each lane some of the features.
BURIN_DEVICE void take_factors(const float* weights) {
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads, warp = thread / kWarpThreads;
  const u32 warps = block_threads() / kWarpThreads;
#pragma nounroll
  for (u32 round = 0; round < divide_up(block_channels(), warps); ++round) {
    const u32 wanted = round * warps + warp, channel = at_most(wanted, block_channels() - 1);
    float sums[kMostImages] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll 4
    for (u32 feature = lane; feature < static_cast<u32>(features()); feature += kWarpThreads) {
      const float weight = weight_at(weights, channel * features() + feature);
      const OfImages inputs = load_of_images(features_start(), feature);
#pragma unroll
      for (u32 image = 0; image < kMostImages; ++image) {
        if (image < images()) sums[image] = __builtin_fmaf(weight, inputs.values[image], sums[image]);
      }
    }
    const float bias = weight_at(weights, bias_start() + channel);
#pragma unroll
    for (u32 image = 0; image < kMostImages; ++image) {
      if (image >= images()) continue;
      const float sum = warp_sum(sums[image]) + bias;
      if (lane == 0 && wanted < static_cast<u32>(block_channels())) {
        burin_dev_shared_store(factors_start() + (channel * images() + image) * kWordBytes, 0, apply(sum));
      }
    }
  }
}

BURIN_DEVICE f32x4 multiplied(f32x4 words, u32 channel) {
  const OfImages factors = load_of_images(factors_start(), channel);
  Values values = values_of(words, in_halves());
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    const bool floats = in_halves() == kFloats;
    const u32 image = place_words() == 1 ? 0 : floats ? i : 2 * i;
    values.first[i] *= factors.values[image];
    if (!floats) values.second[i] *= factors.values[image + 1];
  }
  return words_of(values, out_halves());
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* sums, const float* all_weights,
                               i32 batch) {
  const float* weights = all_weights + static_cast<i64>(channel_block()) * run_words();
  fetch_weights(weights, run_words());
  burin_dev_await_launch();
  const float* from = input_of(input, first_image());
  f32x4 words[kMostSteps];
#pragma unroll
  for (u32 step = 0; step < kMostSteps; ++step) {
    if (step >= static_cast<u32>(steps())) continue;
    const Piece piece = piece_of(step);
    words[step] = load(vector(), from, bytes_of(piece.exists ? piece.word : 0));
  }
  add_up_parts(sums, batch);
  burin_dev_copy_wait(0);
  burin_dev_barrier();
  take_features(weights);
  burin_dev_barrier();
  take_factors(weights);
  burin_dev_barrier();
  float* to = output_of(output, first_image());
#pragma unroll
  for (u32 step = 0; step < kMostSteps; ++step) {
    const Piece piece = piece_of(step);
    if (step >= static_cast<u32>(steps()) || !piece.exists) continue;
    store(vector(), to, bytes_of(piece.word), multiplied(words[step], piece.channel));
  }
}
