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
  nchw,   // image, channel, row, column
  nchw4,  // image, channel / 4, row, column, channel % 4: one load brings four channels of a pixel; the last four are
          // filled up with channels whose values mean nothing
  n2chw,  // image / 2, channel, row, column, image % 2: of the half types, of which a 4-byte word holds the same
          // element of two images; an odd number of images is filled up with one whose values mean nothing
  n8chw,  // image / 8, channel, row, column, image % 8: the same for eight images, whose halves are 16 bytes: a row of
          // what tensor cores multiply
};

inline constexpr std::array kTensorLayouts = {TensorLayout::nchw, TensorLayout::nchw4, TensorLayout::n2chw,
                                              TensorLayout::n8chw};

constexpr EnumNames<4> names_of(TensorLayout) { return {"a tensor layout", {"nchw", "nchw4", "n2chw", "n8chw"}}; }

// Channels that lie side by side.
constexpr int channels_together(TensorLayout layout) { return layout == TensorLayout::nchw4 ? 4 : 1; }

// Images that lie side by side.
constexpr int images_together(TensorLayout layout) {
  return layout == TensorLayout::n2chw ? 2 : layout == TensorLayout::n8chw ? 8 : 1;
}

// Words that one element takes: those of as many images as lie side by side, which of halves share words.
constexpr int element_words(TensorLayout layout) { return layout == TensorLayout::n8chw ? 4 : 1; }

// Words of a pixel, which kernels access at once.
constexpr int words_together(TensorLayout layout) { return channels_together(layout) * element_words(layout); }

// Bytes of a word, which is what tensors are counted in. Halves of one image do not share words in nchw: there each of
// them is a word of its own, so that images follow each other without a gap, however many halves they have.
constexpr int word_bytes(ElementType type, TensorLayout layout) {
  return layout == TensorLayout::nchw ? bytes_of(type) : kWordBytes;
}
// Values that make a word.
constexpr int elements_per_word(ElementType type, TensorLayout layout) {
  return word_bytes(type, layout) / bytes_of(type);
}

// Whether values of the type may lie in the layout: whole words of them lie side by side.
constexpr bool can_lie_in(ElementType type, TensorLayout layout) {
  return images_together(layout) == element_words(layout) * elements_per_word(type, layout);
}

// The elements of one image, filling channels included.
std::int64_t image_elements(TensorLayout layout, std::int64_t channels, std::int64_t rows, std::int64_t cols);
// The same of a whole tensor.
std::int64_t tensor_elements(TensorLayout layout, std::int64_t images, std::int64_t channels, std::int64_t rows,
                             std::int64_t cols);

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

// Whether kernels compute on values of the type in the layout.
bool can_compute_in(ElementType element, TensorLayout layout);

// The format in which convolutions of a precision compute: in `layout` where values of the precision may lie in it,
// else in nchw or n2chw.
TensorFormat format_of(Precision precision, TensorLayout layout = TensorLayout::nchw);

// Whether tensors of convolutions may be asked for in `layout`: values of the precision lie in it, or it is nchw, in
// which they stay FP32 and are multiplied in the precision.
bool can_ask_for(TensorLayout layout, Precision precision);

// The words that one image takes, or as many images as share words; filling is included.
std::int64_t image_words(const TensorFormat& format, const std::vector<std::int64_t>& shape);

// What a kernel may access at once, in bytes, where tensors of the format begin at a multiple of `distance` bytes and
// their images are so far apart: 16, or a word or two loose halves, else a loose half.
int access_bytes(const TensorFormat& format, std::int64_t distance);

// In words, for errors: of formats, and of what kernels compute in.
inline constexpr std::string_view kWhatLiesWhere = "n2chw and n8chw hold halves, nchw4 holds float32, nchw either";
inline constexpr std::string_view kWhatIsComputedIn = "n2chw and n8chw hold halves, the others float32";

// "f32 nchw", "f16 n2chw", "f16 n8chw"
std::string to_string(const TensorFormat& format);

// Where an element of a tensor lies; from `channels` on, the channel is a filling one, and so is the image from the
// number of images on.
struct TensorPlace {
  std::int64_t image = 0, channel = 0, row = 0, col = 0;
  bool operator==(const TensorPlace&) const = default;
};
TensorPlace place_of(TensorLayout layout, std::int64_t channels, std::int64_t rows, std::int64_t cols,
                     std::int64_t element);

// Whole tensors from and to nchw, as elements. What fills up gets the value `filling` and is left out again. Of how
// many images `values` are must be said where the layout does not show it: where images lie side by side; without
// `images`, it is a multiple of as many.
std::vector<float> from_nchw(TensorLayout layout, std::span<const float> nchw, int channels, int rows, int cols,
                             float filling = 0);
std::vector<float> to_nchw(TensorLayout layout, std::span<const float> values, int channels, int rows, int cols,
                           std::optional<std::int64_t> images = {});

}  // namespace burin
