// combine: sum or product of two tensors, then a function of it. The second may have one value for each channel. A
// thread has `steps` pieces of one or four words, a block's width apart, which it loads before it stores any.
#define BURIN_TEMPLATE_DEF "compiler/providers/combine/combine.def"
#include "templates/kernels/function.h"

constexpr i32 kMaxSteps = 8;

BURIN_DEVICE f32x4 load_other(const float* other, u32 word) {
  if (!per_channel() || plane() == 1) return load(vector(), other, bytes_of(word));
  const float value = burin_dev_global_load(other, bytes_of(word / plane()));
  return {value, value, value, value};
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float*, i32) {
  burin_dev_await_launch();
  const u32 first = block_of_image() * steps() * block_threads() + burin_dev_thread();
  const float* from = input_of(input, first_image());
  const float* others = residual_of(other, first_image());
  float* to = output_of(output, first_image());
  const u32 pieces = elements() / vector();
  f32x4 left[kMaxSteps], right[kMaxSteps];
#pragma unroll
  for (i32 i = 0; i < kMaxSteps; ++i) {
    if (i >= steps()) continue;
    const u32 word = at_most(first + i * block_threads(), pieces - 1) * vector();
    left[i] = load(vector(), from, bytes_of(word));
    right[i] = load_other(others, word);
  }
#pragma unroll
  for (i32 i = 0; i < kMaxSteps; ++i) {
    const u32 piece = first + i * block_threads();
    if (i >= steps() || piece >= pieces) continue;
    const f32x4 result = multiply() ? left[i] * right[i] : left[i] + right[i];
    store(vector(), to, bytes_of(piece * vector()), apply4(result));
  }
}
