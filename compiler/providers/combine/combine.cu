// combine: sum or product of two tensors, then a function of it. The second may have one value for each channel. A
// thread has `steps` pieces of one or four words, a block's width apart, which it loads before it stores any.
#define BURIN_TEMPLATE_DEF "compiler/providers/combine/combine.def"
#include "templates/kernels/function.h"
#include "templates/kernels/pieces.h"

BURIN_DEVICE f32x4 load_other(const float* other, u32 word) {
  if (!per_channel() || plane() == 1) return load(vector(), other, bytes_of(word));
  const u32 channel = channel_of(word / place_words(), plane());
  // Of one pixel, channels are places.
  if (place_words() > 1) return load(vector(), other, bytes_of(word_of(channel, word % place_words())));
  const float value = burin_dev_global_load(other, bytes_of(channel));
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
        const f32x4 made = words_of({both(a.first, b.first), both(a.second, b.second)}, out_halves());
        store(vector(), to, bytes_of(word), is_filling_word(word) ? f32x4{0, 0, 0, 0} : made);
      });
}
