// Sums over a plane: all pixels of one channel, or of as many as lie side by side. A template has the constants
// elements(), the words of a plane, and vector(), the words that are loaded at once, and defines BURIN_TEMPLATE_DEF
// before it includes this.
#pragma once

#include "places.h"

constexpr u32 kAtOnce = 8;  // loads of a thread in flight

// What one of so many threads adds up, from the word `first` on: of one channel, or of a place. `pieces` are as many as
// elements() has, or fewer.
BURIN_DEVICE Values sum_of_pieces(const float* image, u32 first, u32 thread, u32 threads, u32 pieces) {
  const u32 rounds = divide_up(elements() / vector(), threads * kAtOnce);
  Values sum = {{0, 0, 0, 0}, {0, 0, 0, 0}};
#pragma nounroll
  for (u32 round = 0; round < rounds; ++round) {
    f32x4 values[kAtOnce];
#pragma unroll
    for (u32 i = 0; i < kAtOnce; ++i) {
      if (rounds == 1 && i * threads >= elements() / vector()) continue;
      const u32 piece = (round * kAtOnce + i) * threads + thread;
      values[i] = load(vector(), image, bytes_of(first + at_most(piece, pieces - 1) * vector()));
    }
#pragma unroll
    for (u32 i = 0; i < kAtOnce; ++i) {
      if (rounds == 1 && i * threads >= elements() / vector()) continue;
      const u32 piece = (round * kAtOnce + i) * threads + thread;
      if (piece >= pieces) continue;
      const Values added = values_of(values[i], in_halves());
      sum = {sum.first + added.first, sum.second + added.second};
    }
  }
  return sum;
}
BURIN_DEVICE Values sum_of_pieces(const float* image, u32 first, u32 thread, u32 threads) {
  return sum_of_pieces(image, first, thread, threads, elements() / vector());
}
