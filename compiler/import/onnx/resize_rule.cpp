#include "compiler/import/onnx/resize_rule.h"

#include <algorithm>
#include <cmath>

#include "ir/error.h"
#include "ir/limits.h"

namespace burin {
namespace {

float place_of(const ResizeRule& rule, const ResizedAxis& axis, std::int64_t index) {
  constexpr float kHalf = 0.5F;
  const auto x = static_cast<float>(index), in = static_cast<float>(axis.in), out = static_cast<float>(axis.out);
  switch (rule.places) {
    case ResizePlaces::half_pixel:
      return (x + kHalf) / axis.scale - kHalf;
    case ResizePlaces::half_pixel_symmetric: {
      const float adjustment = out / (axis.scale * in), center = in / 2;
      return center * (1 - adjustment) + (x + kHalf) / axis.scale - kHalf;
    }
    case ResizePlaces::pytorch_half_pixel:
      return axis.out > 1 ? (x + kHalf) / axis.scale - kHalf : 0;
    case ResizePlaces::align_corners:  // lengths in whole pixels, as exporters and ONNX Runtime count them
      return axis.out > 1 ? x * (in - 1) / (out - 1) : 0;
    case ResizePlaces::asymmetric:
      return x / axis.scale;
    case ResizePlaces::tf_half_pixel_for_nn:
      return (x + kHalf) / axis.scale;
    case ResizePlaces::tf_crop_and_resize:
      if (axis.out > 1) return axis.begin * (in - 1) + x * (axis.end - axis.begin) * (in - 1) / (out - 1);
      return kHalf * (axis.begin + axis.end) * (in - 1);
  }
  fail_internal(__FILE__, __LINE__, "a rule for places without a place");
}

float nearest_of(NearestPixel nearest, float place, bool shrinks) {
  constexpr float kHalf = 0.5F;
  switch (nearest) {
    case NearestPixel::round_prefer_floor:
      return std::ceil(place - kHalf);
    case NearestPixel::round_prefer_ceil:
      return std::floor(place + kHalf);
    case NearestPixel::floor:
      return std::floor(place);
    case NearestPixel::ceil:
      return std::ceil(place);
    case NearestPixel::by_direction:
      return shrinks ? std::ceil(place) : std::floor(place);
  }
  fail_internal(__FILE__, __LINE__, "a nearest pixel that is none");
}

// The weight of a pixel so far from the place.
double weight_of(const ResizeRule& rule, double distance) {
  const double a = rule.cubic_a, d = std::abs(distance);
  if (rule.mode == ResizeMode::linear) return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

}  // namespace

Taps taps_of(const ResizeRule& rule, const ResizedAxis& axis) {
  // What is resized to its own size along an axis is the same there, whatever the rule.
  const bool same = axis.in == axis.out && axis.scale == 1 && rule.places != ResizePlaces::tf_crop_and_resize &&
                    rule.places != ResizePlaces::tf_half_pixel_for_nn;
  const bool picks = rule.mode == ResizeMode::nearest || same;
  const int reach = rule.mode == ResizeMode::cubic ? 2 : 1;
  // Pixels that are smoothed are so much wider.
  const double spread = rule.antialias && axis.scale < 1 ? axis.scale : 1;
  const auto half = static_cast<std::int64_t>(std::ceil(reach / spread));
  Taps taps;
  taps.count = picks ? 1 : static_cast<int>(2 * half);
  if (taps.count > kMaxTaps || axis.out > kMaxTapTable / taps.count) return {};
  const auto clamped = [&](double index) {
    return static_cast<std::int32_t>(std::clamp<double>(index, 0, static_cast<double>(axis.in - 1)));
  };
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const float place = same ? static_cast<float>(i) : place_of(rule, axis, i);
    const bool cropped = rule.places == ResizePlaces::tf_crop_and_resize;
    if (cropped && (place < 0 || place > static_cast<float>(axis.in - 1))) {
      taps.indices.insert(taps.indices.end(), static_cast<std::size_t>(taps.count), -1);
      taps.weights.insert(taps.weights.end(), static_cast<std::size_t>(taps.count), 0.0F);
      continue;
    }
    if (picks) {
      taps.indices.push_back(same ? static_cast<std::int32_t>(i)
                                  : clamped(nearest_of(rule.nearest, place, axis.scale < 1)));
      taps.weights.push_back(1);
      continue;
    }
    const double first = std::floor(place) - static_cast<double>(half) + 1;
    std::vector<double> weights;
    double sum = 0;
    for (int tap = 0; tap < taps.count; ++tap) {
      const double pixel = first + tap;
      const bool outside = pixel < 0 || pixel > static_cast<double>(axis.in - 1);
      weights.push_back(rule.exclude_outside && outside ? 0 : weight_of(rule, (pixel - place) * spread));
      sum += weights.back();
      taps.indices.push_back(clamped(pixel));
    }
    // Of a cubic rule that excludes what is outside, weights of both signs might leave nothing.
    const bool normalizes = (rule.exclude_outside || spread != 1) && sum != 0;
    for (const double weight : weights) taps.weights.push_back(static_cast<float>(normalizes ? weight / sum : weight));
  }
  return taps;
}

}  // namespace burin
