// How ONNX's Resize finds the pixels that each output is made of, along one axis.
#pragma once

#include "ir/operators.h"

namespace burin {

enum class ResizeMode { nearest, linear, cubic };
constexpr EnumNames<3> names_of(ResizeMode) { return {"a mode of Resize", {"nearest", "linear", "cubic"}}; }

// Which place of the input belongs to a place of the output.
enum class ResizePlaces {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  tf_half_pixel_for_nn,
  tf_crop_and_resize
};
constexpr EnumNames<7> names_of(ResizePlaces) {
  return {"a rule for places of Resize",
          {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
           "tf_half_pixel_for_nn", "tf_crop_and_resize"}};
}

// Which of two pixels the nearest one is. `by_direction` is that of opsets before 11: the lower one where the image
// grows, the upper one where it shrinks.
enum class NearestPixel { round_prefer_floor, round_prefer_ceil, floor, ceil, by_direction };
constexpr EnumNames<4> names_of(NearestPixel) {  // by_direction is none of a file's
  return {"a nearest pixel of Resize", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}};
}

struct ResizeRule {
  ResizeMode mode = ResizeMode::nearest;
  ResizePlaces places = ResizePlaces::half_pixel;
  NearestPixel nearest = NearestPixel::round_prefer_floor;
  float cubic_a = -0.75F;
  bool exclude_outside = false;  // pixels outside the image have no weight, else they are those at its edge
  bool antialias = false;        // where the image shrinks, an output is made of all pixels that it covers
};

// Extents and scale of an axis; of tf_crop_and_resize also the part of the input, as shares of its length.
struct ResizedAxis {
  std::int64_t in = 1, out = 1;
  float scale = 1;
  float begin = 0, end = 1;
};

// Places are computed in float, as ONNX Runtime does: of a scale such as 1/3 it depends on that which pixel is the
// nearest one.
// There are at most kMaxTaps for each output, and kMaxTapTable in all: where antialias asks for more, the result has
// none.
Taps taps_of(const ResizeRule& rule, const ResizedAxis& axis);

}  // namespace burin
