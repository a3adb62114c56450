// combine: sum or product of two tensors, then a function of it. The second may have one value for each channel. A
// thread has `steps` pieces of one or four words, a block's width apart, which it loads before it stores any.
#define BURIN_TEMPLATE_DEF "compiler/providers/combine/combine.def"
#include "templates/kernels/function.h"
#include "templates/kernels/pieces.h"

// A channel has `plane` words, and its one value as many as an element has.
BURIN_DEVICE f32x4 load_other(const float* other, u32 word) {
  if (!per_channel() || plane() == 1) return load(vector(), other, bytes_of(word));
  if (in_element_words() == kQuadWords) return load(vector(), other, bytes_of(word / plane() * kQuadWords));
  const float value = burin_dev_global_load(other, bytes_of(word / plane()));
  return {value, value, value, value};
}

BURIN_DEVICE f32x4 both(f32x4 a, f32x4 b) { return apply4(multiply() ? a * b : a + b); }

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float*, i32) {
  burin_dev_await_launch();
  const float* from = input_of(input, first_image());
  const float* others = residual_of(other, first_image());
  float* to = output_of(output, first_image());
  f32x4 left[kMaxSteps], right[kMaxSteps];
  move_pieces(
      [&](i32 i, u32 word) BURIN_INLINED {
        left[i] = load(vector(), from, bytes_of(word));
        right[i] = load_other(others, word);
      },
      [&](i32 i, u32 word) BURIN_INLINED {
        const Values a = values_of(left[i], in_halves()), b = values_of(right[i], in_halves());
        store(vector(), to, bytes_of(word), words_of({both(a.first, b.first), both(a.second, b.second)}, out_halves()));
      });
}
