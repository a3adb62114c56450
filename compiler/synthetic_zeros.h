// Zeros that are made up, as those of feature maps: to try and to measure kernels that skip them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ir/activation_zeros.h"
#include "ir/named_enum.h"

namespace burin {

enum class ZeroPattern {
  random,    // each value by itself
  channels,  // half of the zeros are those of channels without any nonzero
  blobs,     // zeros lie together, and some channels have more than others
  dead,      // all zeros are those of channels without any nonzero, but for what makes no whole one
};
constexpr EnumNames<4> names_of(ZeroPattern) { return {"a pattern of zeros", {"random", "channels", "blobs", "dead"}}; }

struct SyntheticZeros {
  ZeroPattern pattern = ZeroPattern::random;
  double share = 0;
};

// "0.8" or "0.8:blobs". Throws Error(usage).
SyntheticZeros parse_synthetic_zeros(const std::string& text);

// Makes the share of each image's values zero, rounded to a number of values and drawn by `seed`, the same on every
// machine; others stay what they are. An image is channels x rows x cols.
void set_zeros(const SyntheticZeros& zeros, std::span<float> images, int channels, int rows, int cols,
               std::uint64_t seed);

// What is counted of some images of this size.
ActivationZeros count_synthetic(const SyntheticZeros& zeros, int channels, int rows, int cols);

// Makes values of planes zero, so that single values, pairs and whole channels are zero as often as was counted; longer
// runs follow.
void imitate_zeros(const ActivationZeros& zeros, std::span<float> planes, std::int64_t plane, std::uint64_t seed);

}  // namespace burin
