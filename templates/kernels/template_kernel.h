// What all templates but that of baked kernels are made with. A template defines BURIN_TEMPLATE_DEF, the list of its
// constants, before it includes this; each constant is then a function of its name, which the specialiser replaces by
// its value.
//
// A block works on `block_images` images, and `image_blocks` blocks work on the same ones. Words of an image are
// counted in 32 bits, which ir/limits.h sees to.
#pragma once

#include "../device.h"
#include "numbers.h"

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
// Shared memory before it is the broadcast's and the gates' (ir/kernel.h: kSharedReserveBytes).
constexpr u32 kSharedStart = 128;

BURIN_DEVICE u32 block_of_image() { return burin_dev_block_x() % image_blocks(); }
BURIN_DEVICE u32 first_image() { return burin_dev_block_x() / image_blocks() * block_images(); }

// The first word of an image that the kernel reads, or writes; where images share words, of the first of them.
BURIN_DEVICE const float* input_of(const float* input, u32 image) {
  return input + static_cast<i64>(image / in_word_images()) * in_image_words();
}
BURIN_DEVICE const float* residual_of(const float* residual, u32 image) {
  return residual + static_cast<i64>(image / residual_word_images()) * residual_image_words();
}
BURIN_DEVICE float* output_of(float* output, u32 image) {
  return output + static_cast<i64>(image / out_word_images()) * out_image_words();
}
// Offsets within an image, or within weights, have 32 bits: added to an address that is the same for all threads, they
// need no arithmetic of 64.
BURIN_DEVICE i64 bytes_of(u32 words) { return static_cast<i64>(words * static_cast<u32>(kWordBytes)); }

BURIN_DEVICE u32 at_most(u32 value, u32 limit) { return value < limit ? value : limit; }
// Where a position beyond an axis of `extent` positions is taken from.
BURIN_DEVICE i32 nearest(i32 at, i32 extent) { return at < 0 ? 0 : at >= extent ? extent - 1 : at; }
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

// ---- words of two halves, which belong to two images: the first image's is the low one

enum { kFloats, kFp16, kBf16 };  // ir/element_type.h's ElementType: what words hold
constexpr u32 kHalfBits = 16;

// The values of four words: of floats the first ones alone.
struct Values {
  f32x4 first, second;
};

BURIN_DEVICE float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }

// BF16 is the upper half of a float.
BURIN_DEVICE float low_half(float word, i32 halves) {
  const u32 bits = __builtin_bit_cast(u32, word);
  return halves == kBf16 ? float_of(bits << kHalfBits) : burin_dev_f16_low(bits);
}
BURIN_DEVICE float high_half(float word, i32 halves) {
  const u32 bits = __builtin_bit_cast(u32, word);
  return halves == kBf16 ? float_of(bits >> kHalfBits << kHalfBits) : burin_dev_f16_high(bits);
}
BURIN_DEVICE float packed(float low, float high, i32 halves) {
  return float_of(halves == kBf16 ? burin_dev_bf16_pack(low, high) : burin_dev_f16_pack(low, high));
}

// The same of one word.
struct Pair {
  float first, second;
};

BURIN_DEVICE Pair load_pair(const float* input, u32 word) {
  const float bits = burin_dev_global_load(input, bytes_of(word));
  if (in_halves() == kFloats) return {bits, bits};
  return {low_half(bits, in_halves()), high_half(bits, in_halves())};
}
BURIN_DEVICE void store_pair(float* output, u32 word, Pair values) {
  const float bits = out_halves() == kFloats ? values.first : packed(values.first, values.second, out_halves());
  burin_dev_global_store(output, bytes_of(word), bits);
}

BURIN_DEVICE Values values_of(f32x4 words, i32 halves) {
  if (halves == kFloats) return {words, words};
  Values values;
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    values.first[i] = low_half(words[i], halves);
    values.second[i] = high_half(words[i], halves);
  }
  return values;
}
BURIN_DEVICE f32x4 words_of(Values values, i32 halves) {
  if (halves == kFloats) return values.first;
  f32x4 words;
#pragma unroll
  for (u32 i = 0; i < 4; ++i) words[i] = packed(values.first[i], values.second[i], halves);
  return words;
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
