// TensorLayout: how an activation lies in memory; TensorFormat: of which type its values are, as well. What a kernel
// reads and writes is part of its plan.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/element_type.h"
#include "ir/named_enum.h"

namespace burin {

enum class TensorLayout {
  nchw,    // image, channel, row, column
  nchw4,   // image, channel / 4, row, column, channel % 4: one load brings four channels of a pixel; the last four are
           // filled up with channels whose values mean nothing
  n2chw,   // image / 2, channel, row, column, image % 2: of the half types, of which a 4-byte word holds the same
           // element of two images; an odd number of images is filled up with one whose values mean nothing
  n8c8hw,  // image / 8, channel / 8, row, column, channel % 8, image % 8, of the half types: 16 bytes, a place, hold
           // the same element of eight images, and eight channels of a pixel are 128 bytes side by side, a whole line
           // and one core matrix of tensor cores. Images are filled up to eight with such whose values mean nothing,
           // channels to a multiple of eight with zeros: whoever writes such a tensor writes them, since kernels
           // multiply them with zeros, which NaN and infinity would not survive. (Of images that fill up, filling
           // channels mean nothing either.)
  nchw8,   // image, channel / 8, row, column, channel % 8, of the half types: 16 bytes, a place, hold eight channels of
          // a pixel, as tensor cores multiply them. Channels are filled up to a multiple of eight with zeros, as above.
  n4c8hw,  // image / 4, channel / 8, row, column, channel % 8, image % 4, of float32: the same places and lines, with
           // as many bytes, of half as many images; filled up likewise
  nhwc8,   // image, row, column, channel, of the half types, as libraries of dense kernels like it best: the places of
           // nchw8, those of a pixel one behind the other. Channels are filled up to a multiple of eight with zeros.
  nhwc4,   // the same of float32, of which a place holds four channels: filled up to a multiple of four
};

inline constexpr std::array kTensorLayouts = {TensorLayout::nchw,   TensorLayout::nchw4, TensorLayout::n2chw,
                                              TensorLayout::n8c8hw, TensorLayout::nchw8, TensorLayout::n4c8hw,
                                              TensorLayout::nhwc8,  TensorLayout::nhwc4};

constexpr EnumNames<8> names_of(TensorLayout) {
  return {"a tensor layout", {"nchw", "nchw4", "n2chw", "n8c8hw", "nchw8", "n4c8hw", "nhwc8", "nhwc4"}};
}

// Whether eight channels of a pixel, of all images that lie side by side, are a line of 128 bytes: eight places of 16.
constexpr bool has_lines(TensorLayout layout) {
  return layout == TensorLayout::n8c8hw || layout == TensorLayout::n4c8hw;
}

// Whether all channels of a pixel follow each other.
constexpr bool has_channels_last(TensorLayout layout) {
  return layout == TensorLayout::nhwc8 || layout == TensorLayout::nhwc4;
}

// Whether several channels of a pixel of one image are a place of 16 bytes.
constexpr bool has_places(TensorLayout layout) { return layout == TensorLayout::nchw8 || has_channels_last(layout); }

// Channels are filled up to a multiple of so many, which lie side by side.
constexpr int channels_together(TensorLayout layout) {
  if (layout == TensorLayout::nchw4 || layout == TensorLayout::nhwc4) return 4;
  return has_lines(layout) || has_places(layout) ? 8 : 1;
}

// So many of as many channels lie side by side, what fills them up included.
constexpr std::int64_t channels_side_by_side(TensorLayout layout, std::int64_t channels) {
  const int together = channels_together(layout);
  return has_channels_last(layout) ? (channels + together - 1) / together * together : together;
}

// Images that lie side by side.
constexpr int images_together(TensorLayout layout) {
  switch (layout) {
    case TensorLayout::n2chw:
      return 2;
    case TensorLayout::n4c8hw:
      return 4;
    case TensorLayout::n8c8hw:
      return 8;
    case TensorLayout::nchw:
    case TensorLayout::nchw4:
    case TensorLayout::nchw8:
    case TensorLayout::nhwc8:
    case TensorLayout::nhwc4:
      break;
  }
  return 1;
}

// Words of a place: of what lies side by side of one channel, or of several channels of a pixel.
constexpr int element_words(TensorLayout layout) { return has_lines(layout) || has_places(layout) ? 4 : 1; }

// Words that kernels access at once: four channels of a pixel, or a place of four or eight images.
constexpr int words_together(TensorLayout layout) {
  return layout == TensorLayout::nchw4 ? channels_together(layout) : element_words(layout);
}

// Whether what fills up the channels of an image is zero; else it means nothing.
constexpr bool fills_with_zeros(TensorLayout layout) { return has_lines(layout) || has_places(layout); }

// Whether tensors may be slices of larger ones. Where channels lie side by side, a slice begins at a multiple of as
// many, and has such a number of channels, or is the last part. It is one run of an image, so there are none where all
// channels of a pixel follow each other.
constexpr bool can_be_slices(TensorLayout layout) {
  return layout != TensorLayout::nchw4 && !has_channels_last(layout);
}

// Bytes of a word, which is what tensors are counted in. Halves of one image do not share words in nchw: there each of
// them is a word of its own, so that images follow each other without a gap, however many halves they have.
constexpr int word_bytes(ElementType type, TensorLayout layout) {
  return layout == TensorLayout::nchw ? bytes_of(type) : kWordBytes;
}
// Values that make a word.
constexpr int elements_per_word(ElementType type, TensorLayout layout) {
  return word_bytes(type, layout) / bytes_of(type);
}

// Whether values of the type may lie in the layout.
constexpr bool can_lie_in(ElementType type, TensorLayout layout) {
  switch (layout) {
    case TensorLayout::nchw:
      return true;
    case TensorLayout::nchw4:
    case TensorLayout::n4c8hw:
    case TensorLayout::nhwc4:
      return type == ElementType::f32;
    case TensorLayout::n2chw:
    case TensorLayout::n8c8hw:
    case TensorLayout::nchw8:
    case TensorLayout::nhwc8:
      break;
  }
  return type != ElementType::f32;
}

// The elements of one image, filling channels included.
std::int64_t image_elements(TensorLayout layout, std::int64_t channels, std::int64_t rows, std::int64_t cols);
// The same of a whole tensor.
std::int64_t tensor_elements(TensorLayout layout, std::int64_t images, std::int64_t channels, std::int64_t rows,
                             std::int64_t cols);

// Whether tensors of so many channels (each at least 1) can lie one behind the other as slices of one tensor.
bool can_be_parts(TensorLayout layout, std::span<const std::int64_t> channels);

// What a tensor is in memory: its element type and its layout.
struct TensorFormat {
  ElementType element = ElementType::f32;
  TensorLayout layout = TensorLayout::nchw;

  bool is_plain() const { return element == ElementType::f32 && layout == TensorLayout::nchw; }
  // Halves that share no words, as callers have them: inputs and outputs of a network alone may be loose, and only
  // Convert reads and writes them.
  bool is_loose() const { return element != ElementType::f32 && layout == TensorLayout::nchw; }
  int word_bytes() const { return burin::word_bytes(element, layout); }
  // Images that share words.
  int images_together() const { return burin::images_together(layout); }
  bool operator==(const TensorFormat&) const = default;
};

// What an operator reads, and what it writes; a convolution adds what is like its output.
struct OperatorFormats {
  TensorFormat input, output;
  bool operator==(const OperatorFormats&) const = default;
};

// Whether kernels compute on values of the type in the layout.
bool can_compute_in(ElementType element, TensorLayout layout);

// The format in which convolutions of a precision compute: in `layout` where values of the precision may lie in it,
// else in nchw or n2chw.
TensorFormat format_of(Precision precision, TensorLayout layout = TensorLayout::nchw);

// Whether tensors of convolutions may be asked for in `layout`: values of the precision lie in it and convolutions
// compute so, or it is nchw, in which they stay FP32 and are multiplied in the precision.
bool can_ask_for(TensorLayout layout, Precision precision);

// The elements of one image, filling included, and the bytes that each takes in as many images as lie side by side.
std::int64_t image_elements(const TensorFormat& format, const std::vector<std::int64_t>& shape);
int element_bytes(const TensorFormat& format);
// The words that one image takes, or as many images as lie side by side; filling is included.
std::int64_t image_words(const TensorFormat& format, const std::vector<std::int64_t>& shape);

// What a kernel may access at once, in bytes, where tensors of the format begin at a multiple of `distance` bytes and
// their images are so far apart: 16, or a word or two loose halves, else a loose half.
int access_bytes(const TensorFormat& format, std::int64_t distance);

// In words, for errors: of formats, and of what kernels compute in.
inline constexpr std::string_view kWhatLiesWhere =
    "n2chw, n8c8hw, nchw8 and nhwc8 hold halves, nchw4, n4c8hw and nhwc4 float32, nchw either";
inline constexpr std::string_view kWhatIsComputedIn = "n2chw, n8c8hw, nchw8 and nhwc8 hold halves, the others float32";

// "f32 nchw", "f16 n2chw", "f16 nchw8"
std::string to_string(const TensorFormat& format);

// Where an element of a tensor lies; from `channels` on, the channel is a filling one, and so is the image from the
// number of images on.
struct TensorPlace {
  std::int64_t image = 0, channel = 0, row = 0, col = 0;
  bool operator==(const TensorPlace&) const = default;
};
TensorPlace place_of(TensorLayout layout, std::int64_t channels, std::int64_t rows, std::int64_t cols,
                     std::int64_t element);

// Whole tensors from and to nchw, as elements. What fills up gets the value `filling`, or zero where it must, and is
// left out again. Of how many images `values` are must be said where the layout does not show it: where images lie side
// by side; without `images`, it is a multiple of as many.
std::vector<float> from_nchw(TensorLayout layout, std::span<const float> nchw, int channels, int rows, int cols,
                             float filling = 0);
std::vector<float> to_nchw(TensorLayout layout, std::span<const float> values, int channels, int rows, int cols,
                           std::optional<std::int64_t> images = {});

// The first element of a tensor that must be zero, as it fills up the channels of one of its `images`, and is not.
std::optional<std::int64_t> nonzero_filling(TensorLayout layout, std::span<const float> values, int channels, int rows,
                                            int cols, std::int64_t images);

}  // namespace burin
