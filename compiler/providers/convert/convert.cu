// convert: the same values in another element type or layout. A thread has `steps` pieces, a block's width apart, which
// it loads before it stores any.
//
// Between float32 and halves a block has the images that lie side by side. Two of them: a piece is one or four words of
// halves, and as many of each image. Eight: a piece is the four words of one element, and one float of each image, so
// that threads side by side read and write floats side by side. Between nchw and nchw4 a piece is one float.
#define BURIN_TEMPLATE_DEF "compiler/providers/convert/convert.def"
#include "templates/kernels/pieces.h"

constexpr u32 kChannelsTogether = 4;

// What four words of halves hold. In n2chw these are four elements of two images, in n8chw one of eight: the first of
// each word are those of the even images. Images beyond the last are filling: they get its values.
BURIN_DEVICE Values gather(const float* input, u32 image, u32 last, u32 element) {
  const i64 at = bytes_of(element);
  if (out_element_words() == 1) {
    return {load(vector(), input_of(input, image), at), load(vector(), input_of(input, at_most(image + 1, last)), at)};
  }
  Values values;
#pragma unroll
  for (u32 word = 0; word < kQuadWords; ++word) {
    const u32 even = image + word * kWordHalves;
    values.first[word] = burin_dev_global_load(input_of(input, at_most(even, last)), at);
    values.second[word] = burin_dev_global_load(input_of(input, at_most(even + 1, last)), at);
  }
  return values;
}

BURIN_DEVICE void scatter(float* output, u32 image, u32 last, u32 element, Values values) {
  const i64 at = bytes_of(element);
  if (in_element_words() == 1) {
    store(vector(), output_of(output, image), at, values.first);
    if (image < last) store(vector(), output_of(output, image + 1), at, values.second);
    return;
  }
#pragma unroll
  for (u32 word = 0; word < kQuadWords; ++word) {
    const u32 even = image + word * kWordHalves;
    if (even <= last) burin_dev_global_store(output_of(output, even), at, values.first[word]);
    if (even < last) burin_dev_global_store(output_of(output, even + 1), at, values.second[word]);
  }
}

BURIN_DEVICE void make_halves(const float* input, float* output, u32 image, u32 last) {
  float* to = output_of(output, image);
  Values values[kMaxSteps];
  move_pieces([&](i32 i, u32 element) BURIN_INLINED { values[i] = gather(input, image, last, element); },
              [&](i32 i, u32 element) BURIN_INLINED {
                const i32 words = out_element_words();
                store(vector() * words, to, bytes_of(element * words), words_of(values[i], out_halves()));
              });
}

BURIN_DEVICE void read_halves(const float* input, float* output, u32 image, u32 last) {
  const float* from = input_of(input, image);
  f32x4 halves[kMaxSteps];
  move_pieces(
      [&](i32 i, u32 element) BURIN_INLINED {
        const i32 words = in_element_words();
        halves[i] = load(vector() * words, from, bytes_of(element * words));
      },
      [&](i32 i, u32 element)
          BURIN_INLINED { scatter(output, image, last, element, values_of(halves[i], in_halves())); });
}

// Where the element of a plain image lies in one whose channels lie in fours.
BURIN_DEVICE u32 place_in_fours(u32 element) {
  const u32 channel = element / plane(), pixel = element % plane();
  return (channel / kChannelsTogether * plane() + pixel) * kChannelsTogether + channel % kChannelsTogether;
}

// Elements of fours beyond the channels are filling: they are written as zeros.
BURIN_DEVICE void move_fours(const float* from, float* to) {
  move_pieces([](i32, u32) BURIN_INLINED {},
              [&](i32, u32 word) BURIN_INLINED {
                const u32 fours = place_in_fours(word);
                if (to_fours()) {
                  const bool filling = word >= static_cast<u32>(channels() * plane());
                  const float value = burin_dev_global_load(from, bytes_of(filling ? 0 : word));
                  burin_dev_global_store(to, bytes_of(fours), filling ? 0 : value);
                } else {
                  burin_dev_global_store(to, bytes_of(word), burin_dev_global_load(from, bytes_of(fours)));
                }
              });
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32 batch) {
  burin_dev_await_launch();
  const u32 image = first_image();
  const u32 last = batch - 1;
  if (out_halves() != kFloats) {
    make_halves(input, output, image, last);
  } else if (in_halves() != kFloats) {
    read_halves(input, output, image, last);
  } else {
    move_fours(input_of(input, image), output_of(output, image));
  }
}
