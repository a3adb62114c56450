// Every capacity limit of burin, in one place. Each has an error of its own that names it.
#pragma once

#include <cstdint>

namespace burin {

inline constexpr int kMaxKernelExtent = 11;              // rows or columns of a filter
inline constexpr int kMaxChannels = 1 << 16;             // input or output channels of a layer
inline constexpr int kMaxSpatialExtent = 1 << 15;        // rows or columns of an image
inline constexpr int kMaxStride = 64;                    // also bounds dilation
inline constexpr int kMaxPadding = 1 << 10;              // on each side
inline constexpr int kMaxBatch = 1 << 20;                // images in one launch
inline constexpr std::int64_t kMaxLayerWeights = 1 << 28;
inline constexpr std::int64_t kMaxImageBytes = (std::int64_t{1} << 31) - 1;  // one image, all channels: 32-bit offsets
inline constexpr std::int64_t kMaxLayerNonzeros = 4'000'000;  // every nonzero is an instruction of 16 bytes
inline constexpr int kMaxThreadsPerBlock = 1024;
inline constexpr int kWarpSize = 32;
inline constexpr int kMaxGroupChannels = 128;            // accumulators of one thread
inline constexpr int kMaxLayerNameBytes = 512;

}  // namespace burin
