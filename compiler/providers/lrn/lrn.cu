// lrn: local response normalization across channels. A thread has `thread_channels` channels of one pixel: it loads
// them and those that their windows reach beyond them once, all together.
//
// `scale` is alpha / size, `exponent` is -beta.
#define BURIN_TEMPLATE_DEF "compiler/providers/lrn/lrn.def"
#include "templates/kernels/places.h"

constexpr i32 kMaxChannels = 8;
constexpr i32 kMaxHeld = 40;  // values of a thread in registers: its channels and their windows

BURIN_DEVICE i32 below() { return (size() - 1) / 2; }
BURIN_DEVICE i32 held() { return thread_channels() + size() - 1; }

BURIN_DEVICE float normalized(float value, float squares) {
  return value * burin_dev_power(__builtin_fmaf(scale(), squares, bias()), exponent());
}

BURIN_DEVICE Pair normalized(Pair values, Pair squares) {
  return {normalized(values.first, squares.first), normalized(values.second, squares.second)};
}
BURIN_DEVICE Pair with_square(Pair sums, Pair values) {
  return {__builtin_fmaf(values.first, values.first, sums.first),
          __builtin_fmaf(values.second, values.second, sums.second)};
}

// What a thread has of each channel: a word of a pixel.
struct Spot {
  u32 pixel, part;
};
BURIN_DEVICE u32 word_at(i32 channel, const Spot& spot) {
  return word_of(place_at(channel, spot.pixel, plane()), spot.part);
}
BURIN_DEVICE void store_channel(float* to, i32 channel, const Spot& spot, Pair values) {
  store_pair(to, word_at(channel, spot), is_filling(channel) ? Pair{0, 0} : values);
}

BURIN_DEVICE Pair value_of(const float* from, i32 channel, const Spot& spot) {
  const i32 inside = channel < 0 ? 0 : channel >= channels() ? channels() - 1 : channel;
  const Pair value = load_pair(from, word_at(inside, spot));
  if (inside == channel) return value;
  return {0.0f, 0.0f};
}

BURIN_DEVICE void with_held_values(const float* from, float* to, i32 first, const Spot& spot) {
  Pair values[kMaxHeld], squares[kMaxHeld];
#pragma unroll
  for (i32 i = 0; i < kMaxHeld; ++i) {
    if (i < held()) values[i] = value_of(from, first - below() + i, spot);
  }
#pragma unroll
  for (i32 i = 0; i < kMaxHeld; ++i) {
    if (i < held()) squares[i] = {values[i].first * values[i].first, values[i].second * values[i].second};
  }
#pragma unroll
  for (i32 i = 0; i < kMaxChannels; ++i) {
    if (i >= thread_channels() || first + i >= static_cast<i32>(filled(channels()))) continue;
    Pair sum = {0, 0}, mine = {0, 0};
#pragma unroll
    for (i32 other = 0; other < kMaxHeld; ++other) {
      if (other >= i && other < i + size())
        sum = {sum.first + squares[other].first, sum.second + squares[other].second};
      if (other == i + below()) mine = values[other];
    }
    store_channel(to, first + i, spot, normalized(mine, sum));
  }
}

// Computes one channel, whose window is too large for registers.
BURIN_DEVICE void with_large_window(const float* from, float* to, i32 channel, const Spot& spot) {
  const i32 begin = channel < below() ? 0 : channel - below();
  const i32 wanted = channel - below() + size(), end = wanted < channels() ? wanted : channels();
  Pair sum = {0, 0};
#pragma nounroll
  for (i32 other = begin; other < end; ++other) sum = with_square(sum, load_pair(from, word_at(other, spot)));
  store_channel(to, channel, spot, normalized(load_pair(from, word_at(channel, spot)), sum));
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32) {
  burin_dev_await_launch();
  const u32 item = block_of_image() * block_threads() + burin_dev_thread();
  const u32 plane_words = plane() * place_words(), word = item % plane_words;
  const i32 first = item / plane_words * thread_channels();
  const Spot spot = {word / place_words(), word % place_words()};
  if (first >= static_cast<i32>(filled(channels()))) return;
  const float* from = input_of(input, first_image());
  float* to = output_of(output, first_image());
  if (held() <= kMaxHeld) {
    with_held_values(from, to, first, spot);
  } else {
    with_large_window(from, to, first, spot);
  }
}
