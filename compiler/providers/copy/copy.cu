// copy: padding, transposes, picks, and what of a concatenation cannot be written in place by those who make it. A
// thread has `steps` pieces, a block's width apart, which it loads before it stores any. Where both sides are one run
// ("flat") a piece has one or four words; else it is one element of a box of six axes, the last one fastest.
//
// The box is `extent`; an element lies in the output at the sum of index * out_stride; in the input at the sum of
// (index - before) * in_stride and `origin` where each index - before is in [0, in_extent), and is `copy_value`
// elsewhere. A stride of the input may be negative or 0.
#define BURIN_TEMPLATE_DEF "compiler/providers/copy/copy.def"
#include "templates/kernels/pieces.h"

struct Element {
  u32 source, target;
  bool inside;
};

BURIN_DEVICE void add_axis(Element& element, u32 index, u32 before, u32 in_extent, i32 in_stride, u32 out_stride) {
  const u32 from = index - before;  // below 0: beyond any extent
  element.inside &= from < in_extent;
  element.source += from * static_cast<u32>(in_stride);
  element.target += index * out_stride;
}

BURIN_DEVICE Element locate(u32 item) {
  Element element = {static_cast<u32>(origin()), 0, true};
  add_axis(element, item % extent5(), before5(), in_extent5(), in_stride5(), out_stride5());
  item /= extent5();
  add_axis(element, item % extent4(), before4(), in_extent4(), in_stride4(), out_stride4());
  item /= extent4();
  add_axis(element, item % extent3(), before3(), in_extent3(), in_stride3(), out_stride3());
  item /= extent3();
  add_axis(element, item % extent2(), before2(), in_extent2(), in_stride2(), out_stride2());
  item /= extent2();
  add_axis(element, item % extent1(), before1(), in_extent1(), in_stride1(), out_stride1());
  add_axis(element, item / extent1(), before0(), in_extent0(), in_stride0(), out_stride0());
  return element;
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32) {
  burin_dev_await_launch();
  const float* from = input_of(input, first_image());
  float* to = output_of(output, first_image());
  f32x4 values[kMaxSteps];
  u32 targets[kMaxSteps];
  move_pieces(
      [&](i32 i, u32 word) BURIN_INLINED {
        if (flat()) {
          targets[i] = word;
          values[i] = load(vector(), from, bytes_of(word));
          return;
        }
        const Element element = locate(word);
        const float value = burin_dev_global_load(from, bytes_of(element.inside ? element.source : 0));
        const float outside = in_halves() == kFloats ? copy_value() : packed(copy_value(), copy_value(), in_halves());
        const bool filling = is_filling_word(element.target);
        values[i] = {filling ? 0.0f : element.inside ? value : outside, 0, 0, 0};
        targets[i] = element.target;
      },
      [&](i32 i, u32 word) BURIN_INLINED { store(vector(), to, bytes_of(targets[i]), values[i]); });
}
