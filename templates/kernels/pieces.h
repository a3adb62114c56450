// What kernels share whose threads have `steps` pieces of one or four words, a block's width apart.
#pragma once

#include "places.h"

constexpr i32 kMaxSteps = 8;

// Loads all pieces of the thread before it stores any: load(i, word) is called for piece i and its first word, where
// the last piece stands for those beyond it; store(i, word) for the pieces that there are.
template <typename Load, typename Store>
BURIN_DEVICE void move_pieces(Load load, Store store) {
  const u32 first = block_of_image() * steps() * block_threads() + burin_dev_thread();
  const u32 pieces = elements() / vector();
#pragma unroll
  for (i32 i = 0; i < kMaxSteps; ++i) {
    if (i < steps()) load(i, at_most(first + i * block_threads(), pieces - 1) * vector());
  }
#pragma unroll
  for (i32 i = 0; i < kMaxSteps; ++i) {
    const u32 piece = first + i * block_threads();
    if (i < steps() && piece < pieces) store(i, piece * vector());
  }
}
