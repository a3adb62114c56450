// Numbers in shared memory for each of the images that lie side by side, and weights that wait there. A template has
// the constant weights_in_shared().
#pragma once

#include "places.h"

constexpr u32 kMostImages = 8;  // side by side

BURIN_DEVICE u32 images() { return in_word_images(); }

BURIN_DEVICE void fetch_weights(const float* weights, u32 words) {
  if (!weights_in_shared()) return;
#pragma nounroll
  for (u32 word = burin_dev_thread() * kQuadWords; word < words; word += block_threads() * kQuadWords) {
    burin_dev_copy_async4(kSharedStart + word * kWordBytes, 0, weights, bytes_of(word), 1);
  }
  burin_dev_copy_commit();
}
// `weights`: the block's.
BURIN_DEVICE float weight_at(const float* weights, u32 word) {
  if (weights_in_shared()) return burin_dev_shared_load(kSharedStart + word * kWordBytes, 0);
  return burin_dev_global_load(weights, bytes_of(word));
}

// A value of a place, by the number of its image; of those that it does not have, any.
BURIN_DEVICE float value_of(const Values& values, u32 image) {
  if (in_halves() == kFloats) return values.first[image % kQuadWords];
  return image % 2 == 0 ? values.first[image / 2] : values.second[image / 2];
}

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
