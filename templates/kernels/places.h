// Where values lie whose channels lie side by side: the one place where that is computed.
//
// A place is what is accessed at once of one channel of a pixel: a word, or the four words of its values in eight
// images side by side (n8c8hw: halves), or in four (n4c8hw: floats). In nchw8, nhwc8 and nhwc4 it is the four words of
// eight or four channels, which count as one: their values, like those of images, know nothing of each other.
// `channels_together` places of a pixel lie side by side, then those of the next pixel, and all pixels of so many
// channels; places count from the beginning of an image. Neighbouring threads take neighbouring places, so that their
// accesses are whole lines.
#pragma once

#include "template_kernel.h"

constexpr u32 kPlaceBytes = kQuadWords * kWordBytes;  // of four or eight images

BURIN_DEVICE u32 place_at(u32 channel, u32 pixel, u32 plane) {
  const u32 together = channels_together();
  return (channel / together * plane + pixel) * together + channel % together;
}

struct PlacePosition {
  u32 channel, row, col;
};
BURIN_DEVICE PlacePosition position_of(u32 place, u32 rows, u32 cols) {
  const u32 together = channels_together(), pixel = place / together;
  return {pixel / (rows * cols) * together + place % together, pixel / cols % rows, pixel % cols};
}
BURIN_DEVICE u32 channel_of(u32 place, u32 plane) {
  const u32 together = channels_together();
  return place / (plane * together) * together + place % together;
}

// Channels, those included that fill up the last of as many as lie side by side.
BURIN_DEVICE u32 filled(u32 channels) { return divide_up(channels, channels_together()) * channels_together(); }

// Words of an image.
BURIN_DEVICE u32 word_of(u32 place, u32 part) { return place * place_words() + part; }

// The values of a place: of a word the first ones of each four, of one image or of two. Zeros where it is not `inside`.
BURIN_DEVICE Values load_place(const float* input, u32 place, bool inside = true) {
  f32x4 words = load(place_words(), input, bytes_of(word_of(place, 0)));
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) words[i] = inside ? words[i] : 0;
  return values_of(words, in_halves());
}
BURIN_DEVICE void store_place(float* output, u32 place, const Values& values) {
  store(place_words(), output, bytes_of(word_of(place, 0)), words_of(values, out_halves()));
}

// with(value, ...) for the values of as many places; those that a place does not have are the first one's.
template <typename With, typename... Places>
BURIN_DEVICE Values each_value(With with, const Places&... places) {
  Values result;
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    const bool is_new = i < static_cast<u32>(place_words());
    result.first[i] = is_new ? with(places.first[i]...) : result.first[0];
    if (in_halves() == kFloats) {
      result.second[i] = result.first[i];
    } else {
      result.second[i] = is_new ? with(places.second[i]...) : result.second[0];
    }
  }
  return result;
}
BURIN_DEVICE Values same_values(float value) {
  const f32x4 four = {value, value, value, value};
  return {four, four};
}

// What fills up the channels of the output is written as zeros, whatever was computed for it.
BURIN_DEVICE bool has_filling() { return image_channels() % channels_together() != 0; }
BURIN_DEVICE bool is_filling(u32 channel) { return has_filling() && channel >= static_cast<u32>(image_channels()); }
BURIN_DEVICE bool is_filling_word(u32 word) {
  return has_filling() && is_filling(channel_of(word / place_words(), image_plane()));
}
