// normalize_channels: the channels of each pixel are a group. A thread has a piece of one or four words, the same
// pixels of every so many channels, and keeps them in registers; neighbouring threads have neighbouring pieces, so that
// their accesses are whole lines. The warps of a block have other channels of the same pixels, and exchange their sums;
// so do the lanes of a warp where channels lie side by side.
#define BURIN_TEMPLATE_DEF "compiler/providers/normalize_channels/normalize_channels.def"
#include "templates/kernels/normalization.h"
#include "templates/kernels/places.h"

constexpr u32 kMostWarps = 32, kMostHeld = 32;
constexpr u32 kRowBytes = kWarpThreads * kWordBytes;  // a number of each lane

BURIN_DEVICE u32 warps() { return block_threads() / kWarpThreads; }
BURIN_DEVICE bool in_octets() { return channels_together() != 1; }
// Images whose values a word holds side by side.
BURIN_DEVICE u32 word_images() { return in_halves() == kFloats ? 1 : 2; }

// Which channels of which pixels a thread has. Threads beyond the last pixel work on that, and store nothing.
struct Seat {
  u32 warp, lane, pixel;
  bool exists;
};
BURIN_DEVICE Seat take_seat() {
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads;
  const u32 pixels = place_words() == 1 ? vector() : 1;
  const u32 piece = block_of_image() * (kWarpThreads / channels_together()) + lane / channels_together();
  const u32 last = plane() / pixels - 1;
  return {thread / kWarpThreads, lane, at_most(piece, last) * pixels, piece <= last};
}
BURIN_DEVICE u32 channel_at(const Seat& at, u32 i) {
  return (i * warps() + at.warp) * channels_together() + at.lane % channels_together();
}
// Whether there is such a channel; where all warps have one, nobody asks.
BURIN_DEVICE bool has_channel(u32 channel, u32 i, u32 count) {
  return (i + 1) * warps() * channels_together() <= count || channel < count;
}

// with(value, ...) for the values of as many pieces; of floats those of one image alone.
template <typename With, typename... Pieces>
BURIN_DEVICE Values each(With with, const Pieces&... pieces) {
  Values result;
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    result.first[i] = with(pieces.first[i]...);
    result.second[i] = word_images() == 1 ? result.first[i] : with(pieces.second[i]...);
  }
  return result;
}

// Where warps leave what they have put together: rows of a number for each lane.
BURIN_DEVICE u32 row_of(u32 exchange, u32 warp, u32 number, u32 numbers) {
  return kSharedStart + ((exchange * warps() + warp) * numbers + number) * kRowBytes;
}

// Gives the lane what its number is over all warps.
template <typename Both>
BURIN_DEVICE float over_warps(const Seat& at, u32 exchange, u32 number, u32 numbers, Both both) {
  float result = burin_dev_shared_load(row_of(exchange, 0, number, numbers), at.lane * kWordBytes);
#pragma unroll
  for (u32 warp = 1; warp < kMostWarps; ++warp) {
    if (warp >= warps()) continue;
    result = both(result, burin_dev_shared_load(row_of(exchange, warp, number, numbers), at.lane * kWordBytes));
  }
  return result;
}

// Where eight channels lie side by side each lane takes one image, and gives the others back what it then has.
template <typename Both>
BURIN_DEVICE Values over_octets(const Seat& at, const Values& mine, u32 exchange, Both both) {
  const bool upper = (at.lane & 4) != 0, behind = (at.lane & 2) != 0, odd = (at.lane & 1) != 0;
  f32x4 four;
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    const float kept = upper ? mine.second[i] : mine.first[i], given = upper ? mine.first[i] : mine.second[i];
    four[i] = both(kept, burin_dev_shuffle_xor(given, 4));
  }
  float two[2];
#pragma unroll
  for (u32 i = 0; i < 2; ++i) {
    const float kept = behind ? four[i + 2] : four[i], given = behind ? four[i] : four[i + 2];
    two[i] = both(kept, burin_dev_shuffle_xor(given, 2));
  }
  float one = both(odd ? two[1] : two[0], burin_dev_shuffle_xor(odd ? two[0] : two[1], 1));
  if (warps() > 1) {
    burin_dev_shared_store(row_of(exchange, at.warp, 0, 1), at.lane * kWordBytes, one);
    burin_dev_barrier();
    one = over_warps(at, exchange, 0, 1, both);
  }
  const float beside = burin_dev_shuffle_xor(one, 1);
  two[0] = odd ? beside : one;
  two[1] = odd ? one : beside;
#pragma unroll
  for (u32 i = 0; i < 2; ++i) {
    const float other = burin_dev_shuffle_xor(two[i], 2);
    four[i] = behind ? other : two[i];
    four[i + 2] = behind ? two[i] : other;
  }
  Values result;
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    const float other = burin_dev_shuffle_xor(four[i], 4);
    result.first[i] = upper ? other : four[i];
    result.second[i] = upper ? four[i] : other;
  }
  return result;
}

// What the threads of a pixel have, put together, in all of them. All threads of the block call it; `exchange` is
// another number each time.
template <typename Both>
BURIN_DEVICE Values over_channels(const Seat& at, const Values& mine, u32 exchange, Both both) {
  if (in_octets()) return over_octets(at, mine, exchange, both);
  if (warps() == 1) return mine;
  const u32 images = word_images(), numbers = vector() * images;
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    if (i >= static_cast<u32>(vector())) continue;
    burin_dev_shared_store(row_of(exchange, at.warp, i * images, numbers), at.lane * kWordBytes, mine.first[i]);
    if (images == 1) continue;
    burin_dev_shared_store(row_of(exchange, at.warp, i * images + 1, numbers), at.lane * kWordBytes, mine.second[i]);
  }
  burin_dev_barrier();
  Values result = same_values(0);
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    if (i >= static_cast<u32>(vector())) continue;
    result.first[i] = result.second[i] = over_warps(at, exchange, i * images, numbers, both);
    if (images != 1) result.second[i] = over_warps(at, exchange, i * images + 1, numbers, both);
  }
  return result;
}

BURIN_DEVICE Values changed(const Values& values, const Values& center, const Values& factor, const float* weights,
                            u32 channel) {
  const float scale = scales() ? burin_dev_global_load(weights, bytes_of(channel)) : 1;
  const float shift = shifts() ? burin_dev_global_load(weights, bytes_of(scale_words() + channel)) : 0;
  return each(
      [&](float x, float of_center, float of_factor) BURIN_INLINED {
        float result = changed_by(x, {of_center, of_factor});
        if (scales()) result *= scale;
        if (shifts()) result += shift;
        return apply(result);
      },
      values, center, factor);
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float* weights, i32) {
  burin_dev_await_launch();
  const Seat at = take_seat();
  const float* from = input_of(input, first_image());
  float* to = output_of(output, first_image());
  const u32 stored = filled(channels());
  const auto bytes_at = [&](u32 channel)
                            BURIN_INLINED { return bytes_of(word_of(place_at(channel, at.pixel, plane()), 0)); };
  f32x4 words[kMostHeld];
#pragma unroll
  for (u32 i = 0; i < kMostHeld; ++i) {
    if (i < static_cast<u32>(held())) {
      words[i] = load(vector(), from, bytes_at(at_most(channel_at(at, i), stored - 1)));
    }
  }
  // with(result, its values) for each channel of the thread.
  const auto over_held = [&](Values result, auto with) BURIN_INLINED {
#pragma unroll
    for (u32 i = 0; i < kMostHeld; ++i) {
      if (i >= static_cast<u32>(held())) continue;
      if (has_channel(channel_at(at, i), i, channels())) result = with(result, values_of(words[i], in_halves()));
    }
    return result;
  };
  const float share = 1.0f / channels();
  Values center = same_values(0);
  if (has_center()) {
    const auto both = [](float a, float b) BURIN_INLINED { return center_of(a, b); };
    const auto with = [&](const Values& a, const Values& b) BURIN_INLINED { return each(both, a, b); };
    center = over_channels(at, over_held(same_values(center_start()), with), 0, both);
    if (!center_is_largest()) center = each([&](float x) BURIN_INLINED { return x * share; }, center);
  }
  const auto with = [&](const Values& sum, const Values& values) BURIN_INLINED {
    return each([](float a, float x, float c) BURIN_INLINED { return size_with(a, x, c); }, sum, values, center);
  };
  const auto add = [](float a, float b) BURIN_INLINED { return a + b; };
  const Values size = over_channels(at, over_held(same_values(0), with), 1, add);
  const Values factor = each([&](float x) BURIN_INLINED { return factor_of(x, share); }, size);
#pragma unroll
  for (u32 i = 0; i < kMostHeld; ++i) {
    const u32 channel = channel_at(at, i);
    if (i >= static_cast<u32>(held()) || !at.exists || !has_channel(channel, i, stored)) continue;
    const Values values = values_of(words[i], in_halves());
    const f32x4 made =
        words_of(changed(values, center, factor, weights, at_most(channel, channels() - 1)), out_halves());
    store(vector(), to, bytes_at(channel), is_filling(channel) ? f32x4{0, 0, 0, 0} : made);
  }
}
