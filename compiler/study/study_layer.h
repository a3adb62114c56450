// StudyLayer: a layer that a study looks at, as a person spells it: its sizes and its share of zeros. The weights are
// drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/conv_layer.h"
#include "ir/named_enum.h"

namespace burin {

// What a study varies.
enum class StudyAxis { batch, channels, filter, image, zeros, input_zeros };
constexpr EnumNames<6> names_of(StudyAxis) {
  return {"an axis", {"batch", "channels", "filter", "image", "zeros", "input-zeros"}};
}
// Whether its values are shares, not whole numbers.
constexpr bool is_share(StudyAxis axis) { return axis == StudyAxis::zeros || axis == StudyAxis::input_zeros; }

struct StudyLayer {
  int batch = 1;
  ConvShape shape;         // without an epilogue
  bool keeps_size = true;  // the padding follows from the filter: with stride 1 the output has the input's size
  double zeros = 0;        // share of the weights, from 0 to below 1
  // The share of the input's values, which is random. Nothing: nobody says, and no kernel skips them.
  std::optional<double> input_zeros = {};
  bool operator==(const StudyLayer&) const = default;
};

// "n=1 c=256 h=14 w=14 k=256 r=3 s=3 zeros=0.9": images, input channels, rows and columns of the input, output
// channels, rows and columns of the filter, share of zeros; input-zeros is that of the input. Of these c, h and r must
// be given; w is h, k is c, s is r, n is 1 and zeros is 0 where they are not. stride, dilation and groups are 1, and
// pad keeps the image's size. Throws Error(usage).
StudyLayer parse_study_layer(std::string_view text);
// The sizes and the share of zeros of a layer that has weights, to a hundredth of a percent, without its epilogue.
// Throws Error(unsupported) where the text above cannot say them.
StudyLayer study_layer_of(const ConvLayer& layer);
// The same text; stride, dilation, groups and pad only where they are not what goes without saying.
std::string print(const StudyLayer& layer);

// All faults; empty when such a layer can be compiled and measured.
std::vector<std::string> verify(const StudyLayer& layer);

// The base with another value of an axis. Channels, filter and image: that of c, r and h; k, s and w stay in
// proportion, which must be whole numbers. Throws Error(usage).
StudyLayer varied(const StudyLayer& base, StudyAxis axis, double value);
// The layer's own value of the axis.
double value_of(const StudyLayer& layer, StudyAxis axis);
// "16 images", "256 channels", "3x3 filters", "14x14 images", "90 % zeros".
std::string value_text(const StudyLayer& layer, StudyAxis axis);

// The layer with weights. They are drawn with the seed and then pruned by magnitude: exactly round(weights * (1 -
// zeros)) are not zero, at least one, and those of a layer with more zeros are among those of one with fewer.
ConvLayer with_weights(const StudyLayer& layer, std::uint64_t seed);

}  // namespace burin
