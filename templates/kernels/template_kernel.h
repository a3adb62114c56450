// What all templates but that of baked kernels are made with. A template defines BURIN_TEMPLATE_DEF, the list of its
// constants, before it includes this; each constant is then a function of its name, which the specialiser replaces by
// its value.
//
// A block works on `block_images` images, and `image_blocks` blocks work on the same ones. Words of an image are
// counted in 32 bits, which ir/limits.h sees to.
#pragma once

#include "../device.h"

#define BURIN_INTEGER(name, low, high) BURIN_PRIMITIVE i32 burin_const_##name() __attribute__((const));
#define BURIN_REAL(name) BURIN_PRIMITIVE float burin_real_##name() __attribute__((const));
#include "common.def"
#include BURIN_TEMPLATE_DEF
#undef BURIN_INTEGER
#undef BURIN_REAL
#define BURIN_INTEGER(name, low, high) \
  BURIN_DEVICE i32 name() { return burin_const_##name(); }
#define BURIN_REAL(name) \
  BURIN_DEVICE float name() { return burin_real_##name(); }
#include "common.def"
#include BURIN_TEMPLATE_DEF
#undef BURIN_INTEGER
#undef BURIN_REAL

constexpr u32 kWarpThreads = 32;
constexpr i32 kWordBytes = 4;
constexpr u32 kQuadWords = 4;
constexpr float kInfinity = __builtin_inff();
// Shared memory before it is the broadcast's and the gates' (ir/kernel.h: kSharedReserveBytes).
constexpr u32 kSharedStart = 128;

BURIN_DEVICE u32 block_of_image() { return burin_dev_block_x() % image_blocks(); }
BURIN_DEVICE u32 first_image() { return burin_dev_block_x() / image_blocks() * block_images(); }

// The first word of an image that the kernel reads, or writes; where images share words, of the first of them.
BURIN_DEVICE const float* input_of(const float* input, u32 image) {
  return input + static_cast<i64>(image / in_word_images()) * in_image_words();
}
BURIN_DEVICE const float* residual_of(const float* residual, u32 image) {
  return residual + static_cast<i64>(image) * residual_image_words();
}
BURIN_DEVICE float* output_of(float* output, u32 image) {
  return output + static_cast<i64>(image / out_word_images()) * out_image_words();
}
// Offsets within an image, or within weights, have 32 bits: added to an address that is the same for all threads, they
// need no arithmetic of 64.
BURIN_DEVICE i64 bytes_of(u32 words) { return static_cast<i64>(words * static_cast<u32>(kWordBytes)); }

BURIN_DEVICE u32 at_most(u32 value, u32 limit) { return value < limit ? value : limit; }
BURIN_DEVICE float larger(float a, float b) { return __builtin_fmaxf(a, b); }
BURIN_DEVICE u32 divide_up(u32 a, u32 b) { return (a + b - 1) / b; }

// Over the threads of each warp; in every thread. All threads of the block must call these.
BURIN_DEVICE float warp_sum(float value) {
#pragma unroll
  for (u32 distance = kWarpThreads / 2; distance > 0; distance /= 2) value += burin_dev_shuffle_xor(value, distance);
  return value;
}
BURIN_DEVICE float warp_largest(float value) {
#pragma unroll
  for (u32 distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    value = larger(value, burin_dev_shuffle_xor(value, distance));
  }
  return value;
}

// A half of a word: the low one is number 0.
BURIN_DEVICE float half_of(u32 word, u32 number) {
  return number == 0 ? burin_dev_f16_low(word) : burin_dev_f16_high(word);
}

// A float or four of them.
BURIN_DEVICE f32x4 load(u32 vector, const float* base, i64 byte_offset) {
  if (vector == kQuadWords) return burin_dev_global_load4(base, byte_offset);
  const float value = burin_dev_global_load(base, byte_offset);
  return {value, value, value, value};
}
BURIN_DEVICE void store(u32 vector, float* base, i64 byte_offset, f32x4 value) {
  if (vector == kQuadWords) {
    burin_dev_global_store4(base, byte_offset, value);
  } else {
    burin_dev_global_store(base, byte_offset, value[0]);
  }
}
