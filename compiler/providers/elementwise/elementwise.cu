// elementwise: a function of each value, or a factor and a summand for each channel and then the function. A thread has
// `steps` pieces of one or four words, a block's width apart, which it loads before it stores any.
//
// Weights of the affine form: the factors of all channels, then the summands, those included that fill up the last of
// the channels that lie side by side.
#define BURIN_TEMPLATE_DEF "compiler/providers/elementwise/elementwise.def"
#include "templates/kernels/function.h"
#include "templates/kernels/pieces.h"

// Loads the value of the word's channel; where each channel has one word, those of four channels.
BURIN_DEVICE f32x4 of_channels(const float* weights, u32 word, i64 table) {
  if (plane() == 1 && place_words() == 1) return load(vector(), weights, table + bytes_of(word));
  const float value = burin_dev_global_load(weights, table + bytes_of(channel_of(word / place_words(), plane())));
  return {value, value, value, value};
}

BURIN_DEVICE f32x4 transform(f32x4 x, f32x4 scale, f32x4 shift) {
  if (affine()) {
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) x[i] = __builtin_fmaf(x[i], scale[i], shift[i]);
  }
  return apply4(x);
}

BURIN_DEVICE f32x4 transform_words(const float* weights, u32 word, f32x4 words) {
  f32x4 scale = words, shift = words;
  if (affine()) {
    scale = of_channels(weights, word, 0);
    shift = of_channels(weights, word, bytes_of(elements() / (plane() * place_words())));
  }
  if (is_filling_word(word)) return {0, 0, 0, 0};
  const Values x = values_of(words, in_halves());
  return words_of({transform(x.first, scale, shift), transform(x.second, scale, shift)}, out_halves());
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float* weights, i32) {
  burin_dev_await_launch();
  const float* from = input_of(input, first_image());
  float* to = output_of(output, first_image());
  f32x4 values[kMaxSteps];
  move_pieces([&](i32 i, u32 word) BURIN_INLINED { values[i] = load(vector(), from, bytes_of(word)); },
              [&](i32 i, u32 word)
                  BURIN_INLINED { store(vector(), to, bytes_of(word), transform_words(weights, word, values[i])); });
}
