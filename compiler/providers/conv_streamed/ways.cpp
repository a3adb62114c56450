#include "compiler/providers/conv_streamed/ways.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "compiler/launch_time.h"
#include "compiler/providers/template_provider.h"
#include "compiler/providers/window_tiles.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/kernel.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// The same as in conv_streamed.cu.
constexpr int kMaxLaneWords = 4, kMaxFilter = 7, kMaxParts = 8;
constexpr int kPairWords = 2, kPairsAtOnce = 4;
constexpr int kPlaceBits = 18;
constexpr int kRowBit = kPlaceBits, kColBit = kRowBit + kMaxFilter;
constexpr int kMaxStripWarps = 32;

int lane_words(const ConvShape& shape) {
  return static_cast<int>(ceil_div(shape.conv_h() * shape.conv_w(), kWarpSize));
}

bool is_masked(const ConvShape& shape) { return shape.pad != Padding{}; }

// What a split's nonzeros of one output take, filled up.
std::int64_t strip_pairs(std::int64_t nonzeros, int parts, int part) {
  return round_up(nonzeros * (part + 1) / parts - nonzeros * part / parts, kPairsAtOnce);
}

// Nonzeros of each output channel in each of `splits` runs of input channels, split fastest.
std::vector<std::int64_t> count_nonzeros(const ConvLayer& layer, int splits) {
  const ConvShape& shape = layer.shape;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(shape.out_channels) * splits);
  const std::size_t run = layer.weights.size() / counts.size();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto begin = layer.weights.begin() + static_cast<std::ptrdiff_t>(i * run);
    counts[i] = std::count_if(begin, begin + static_cast<std::ptrdiff_t>(run), [](float w) { return w != 0; });
  }
  return counts;
}

struct BlockPairs {
  std::int64_t most = 0;       // of any block
  std::int64_t most_warp = 0;  // of any warp
};

BlockPairs count_pairs(const ConvShape& shape, const ConvStreamed& choices, const std::vector<std::int64_t>& nonzeros) {
  BlockPairs result;
  std::vector<std::int64_t> warps(static_cast<std::size_t>(choices.warps()));
  for (int block = 0; block < choices.row_blocks(shape) * choices.splits; ++block) {
    std::int64_t all = 0;
    std::ranges::fill(warps, 0);
    for (int row = 0; row < choices.block_rows; ++row) {
      const int k = block / choices.splits * choices.block_rows + row;
      if (k >= shape.out_channels) break;
      const std::int64_t of_row = nonzeros[static_cast<std::size_t>(k) * choices.splits + block % choices.splits];
      for (int part = 0; part < choices.row_parts; ++part) {
        const std::int64_t pairs = strip_pairs(of_row, choices.row_parts, part);
        all += pairs;
        warps[static_cast<std::size_t>(row * choices.row_parts + part) % warps.size()] += pairs;
      }
    }
    result.most = std::max(result.most, all);
    result.most_warp = std::max(result.most_warp, std::ranges::max(warps));
  }
  return result;
}

// Fitted to measurements of ResNet-50's and MobileNet's layers at 7x7 on an H200 (docs/experiments.md), but for planes
// of more than two pixels for each lane, whose latency is that of two layers of 10x10 and 11x11.
double predict(const ConvShape& shape, const ConvStreamed& choices, const BlockPairs& pairs, std::int64_t parcel_words,
               int batch, const ArchSpec& arch) {
  constexpr double kPairUs = 0.4, kMoreSplitsUs = 0.35;  // splits are added: by two blocks, by each doubling
  constexpr double kOutputUs = 0.02;                     // for each output that a block finishes
  // What a multiprocessor takes in per clock. All blocks read the same input, which arrives beside the parcels.
  constexpr double kBulkBytes = 110, kWordCopyBytes = 17, kParcelBytes = 30;
  constexpr double kPairClocks = 1, kMaskClocks = 1.1;  // a pair's own words; the bits of its place
  constexpr double kConflict = 2.1;                     // threads read every other word
  constexpr double kPairsLatency = 70;                  // of four pairs in one warp
  const bool strided = !streams_compact(shape) && shape.stride_w > 1;
  const double input = static_cast<double>(choices.split_channels(shape)) * choices.staged_words(shape) * kWordBytes;
  const double copies = input / (choices.bulk ? kBulkBytes : kWordCopyBytes) +
                        static_cast<double>(parcel_words * kWordBytes) / kParcelBytes;
  const double pair =
      kPairClocks + (is_masked(shape) ? kMaskClocks : 0) + lane_words(shape) * (strided ? kConflict : 1);
  const double multiplied =
      std::max(static_cast<double>(pairs.most) * pair, static_cast<double>(pairs.most_warp) / kPairsAtOnce *
                                                           kPairsLatency * std::max(1, lane_words(shape) - 1));
  const double added = choices.splits == 1 ? 0 : kPairUs + kMoreSplitsUs * (std::log2(choices.splits) - 1);
  const auto own_rows = static_cast<double>(ceil_div(choices.block_rows, choices.splits));
  double outputs = kOutputUs * own_rows;
  if (shape.epilogue.pool && !takes_means(shape)) {
    const double instructions = own_rows * WindowTile::all_of(shape).instructions(*shape.epilogue.pool);
    outputs += clocks_us(instructions / (kWarpSize * kSchedulersPerMultiprocessor), arch);
  }
  const std::int64_t blocks = std::int64_t{choices.row_blocks(shape)} * choices.splits * batch;
  const double of_multiprocessor =
      static_cast<double>(ceil_div(blocks, arch.clustered_blocks[static_cast<std::size_t>(choices.splits - 1)]));
  constexpr int kSharedOfBlock = 1024;  // that the driver takes
  const auto by_shared = static_cast<double>(arch.max_shared_per_multiprocessor /
                                             (choices.shared_bytes(shape, parcel_words) + kSharedOfBlock));
  const double by_threads = arch.max_threads_per_multiprocessor / (choices.warps() * kWarpSize);
  const double resident = std::max(1.0, std::min({of_multiprocessor, std::floor(by_shared), std::floor(by_threads)}));
  // Another block's copies go on while this one multiplies.
  constexpr double kOverlapLoss = 0.6;
  const double clocks =
      resident > 1 ? std::max(copies, multiplied) + kOverlapLoss * std::min(copies, multiplied) : copies + multiplied;
  return launch_time_us({.busy_us = of_multiprocessor * (clocks_us(clocks, arch) + added + outputs),
                         .blocks = of_multiprocessor,
                         .resident = resident,
                         .waits = kConvolutionWaits,
                         .activation_bytes = activation_bytes(shape, batch)},
                        arch);
}

std::optional<ConvStreamedWay> price(const ConvShape& shape, const ConvStreamed& choices,
                                     const std::vector<std::int64_t>& nonzeros, int batch, const ArchSpec& arch) {
  const BlockPairs pairs = count_pairs(shape, choices, nonzeros);
  const std::int64_t parcel_words = choices.header_words() + pairs.most * kPairWords;
  const std::int64_t places = std::int64_t{choices.split_channels(shape) + 1} * choices.staged_words(shape);
  if (places * kWordBytes >= std::int64_t{1} << kPlaceBits) return std::nullopt;
  if (choices.shared_bytes(shape, parcel_words) > arch.max_shared_per_block) return std::nullopt;
  return ConvStreamedWay{choices, parcel_words, predict(shape, choices, pairs, parcel_words, batch, arch)};
}

}  // namespace

int ConvStreamed::row_blocks(const ConvShape& shape) const {
  return static_cast<int>(ceil_div(shape.out_channels, block_rows));
}

int ConvStreamed::warps() const {
  const std::int64_t rounds = ceil_div(strips(), kMaxStripWarps);
  return static_cast<int>(ceil_div(strips(), rounds));
}

int ConvStreamed::staged_words(const ConvShape& shape) const {
  return streams_compact(shape) ? shape.conv_h() * shape.conv_w() : shape.in_h * shape.in_w;
}

int ConvStreamed::margin_words(const ConvShape& shape) const {
  return static_cast<int>(round_up(std::int64_t{shape.pad.top} * shape.in_w + shape.pad.left, kVectorWords));
}

// A thread without a pixel looks behind the last one; one whose filter leaves the image, behind the last row.
int ConvStreamed::tail_words(const ConvShape& shape) const {
  const std::int64_t beyond = std::int64_t{shape.pad.bottom} * shape.in_w + shape.pad.right;
  const std::int64_t channels = std::int64_t{split_channels(shape) + 1} * staged_words(shape);
  return static_cast<int>(round_up(channels + kMaxLaneWords * kWarpSize + beyond, kVectorWords) - channels);
}

int ConvStreamed::header_words() const { return static_cast<int>(round_up(strips() + 1 + block_rows, kVectorWords)); }

std::int64_t ConvStreamed::shared_bytes(const ConvShape& shape, std::int64_t parcel_words) const {
  const std::int64_t channels = split_channels(shape) + 1;  // and one of zeros
  const std::int64_t words = margin_words(shape) + channels * staged_words(shape) + tail_words(shape) + parcel_words +
                             std::int64_t{strips()} * lane_words(shape) * kWarpSize;
  return round_up(kSharedReserveBytes + words * kWordBytes, kVectorWords * kWordBytes);
}

bool streams_compact(const ConvShape& shape) {
  return shape.kernel_h == 1 && shape.kernel_w == 1 && !is_masked(shape) && (shape.stride_h > 1 || shape.stride_w > 1);
}

bool takes_means(const ConvShape& shape) {
  const std::optional<Pool>& pool = shape.epilogue.pool;
  return pool && pool->kind == PoolKind::average && pool->kernel_h == shape.conv_h() &&
         pool->kernel_w == shape.conv_w() && pool->pad == Padding{};
}

bool can_stream(const ConvShape& shape, const ArchSpec& arch) {
  return shape.groups == 1 && !shape.epilogue.filters() && lane_words(shape) <= kMaxLaneWords &&
         shape.kernel_h <= kMaxFilter && shape.kernel_w <= kMaxFilter && arch.clusters &&
         arch.compute >= kBulkCopyCompute;
}

std::optional<ConvStreamedWay> price_streamed(const ConvLayer& layer, const ConvStreamed& choices, int batch,
                                              const ArchSpec& arch) {
  return price(layer.shape, choices, count_nonzeros(layer, choices.splits), batch, arch);
}

std::vector<ConvStreamedWay> streamed_ways(const ConvLayer& layer, int batch, bool aligned, const ArchSpec& arch) {
  const ConvShape& shape = layer.shape;
  std::vector<ConvStreamedWay> ways;
  for (const int splits : {1, 2, 4, 8}) {
    if (shape.in_channels % splits != 0) continue;
    ConvStreamed choices;
    choices.splits = splits;
    const std::int64_t input_words = std::int64_t{choices.split_channels(shape)} * shape.in_h * shape.in_w;
    choices.bulk = !streams_compact(shape) && aligned && input_words % kVectorWords == 0;
    const int clusters = arch.clustered_blocks[static_cast<std::size_t>(splits - 1)] / splits;
    choices.block_rows = static_cast<int>(ceil_div(shape.out_channels, clusters));
    const std::vector<std::int64_t> nonzeros = count_nonzeros(layer, splits);
    for (int parts = 1; parts <= kMaxParts && (parts == 1 || parts * choices.block_rows <= kMaxStripWarps); ++parts) {
      choices.row_parts = parts;
      const auto way = price(shape, choices, nonzeros, batch, arch);
      if (way) ways.push_back(*way);
    }
  }
  std::ranges::stable_sort(ways, {}, &ConvStreamedWay::predicted_us);
  return ways;
}

std::vector<std::uint32_t> pack_streamed(const ConvLayer& layer, const ConvStreamed& choices,
                                         std::int64_t parcel_words) {
  const ConvShape& shape = layer.shape;
  const int channels = choices.split_channels(shape), staged = choices.staged_words(shape);
  const int cols = streams_compact(shape) ? shape.conv_w() : shape.in_w;
  const auto word_of_place = [&](int c, int r, int s) {
    const int offset = c * staged + r * shape.dilation_h * cols + s * shape.dilation_w;
    auto word = static_cast<std::uint32_t>(offset * kWordBytes);
    if (is_masked(shape)) word |= 1U << (kRowBit + r) | 1U << (kColBit + s);
    return word;
  };
  // The pixel's own place in the channel of zeros, if it were read there by a filter that never leaves the image.
  const auto filling = static_cast<std::uint32_t>(
      (channels * staged + (streams_compact(shape) ? 0 : shape.pad.top * cols + shape.pad.left)) * kWordBytes);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(choices.row_blocks(shape) * choices.splits * parcel_words));
  std::vector<std::array<std::uint32_t, kPairWords>> pairs;
  for (int block = 0; block < choices.row_blocks(shape) * choices.splits; ++block) {
    std::uint32_t* parcel = words.data() + block * parcel_words;
    std::uint32_t* next = parcel + choices.header_words();
    std::uint32_t count = 0;
    for (int row = 0; row < choices.block_rows; ++row) {
      const int k = block / choices.splits * choices.block_rows + row;
      pairs.clear();
      for (int c = 0; k < shape.out_channels && c < channels; ++c) {
        for (int r = 0; r < shape.kernel_h; ++r) {
          for (int s = 0; s < shape.kernel_w; ++s) {
            const float weight = layer.weight(k, block % choices.splits * channels + c, r, s);
            if (weight != 0) pairs.push_back({std::bit_cast<std::uint32_t>(weight), word_of_place(c, r, s)});
          }
        }
      }
      const auto nonzeros = static_cast<std::int64_t>(pairs.size());
      for (int part = 0; part < choices.row_parts; ++part) {
        parcel[row * choices.row_parts + part] = count;
        const std::int64_t begin = nonzeros * part / choices.row_parts, end = nonzeros * (part + 1) / choices.row_parts;
        const std::int64_t filled = strip_pairs(nonzeros, choices.row_parts, part);
        for (std::int64_t i = 0; i < filled; ++i) {
          const auto& pair = begin + i < end ? pairs[static_cast<std::size_t>(begin + i)]
                                             : std::array<std::uint32_t, kPairWords>{0, filling};
          next = std::ranges::copy(pair, next).out;
        }
        count += static_cast<std::uint32_t>(filled);
      }
      const float bias = k < shape.out_channels && !layer.bias.empty() ? layer.bias[static_cast<std::size_t>(k)] : 0;
      parcel[choices.strips() + 1 + row] = std::bit_cast<std::uint32_t>(bias);
    }
    parcel[choices.strips()] = count;
    BURIN_CHECK(next - parcel <= parcel_words, "a block's parcel has {} words, not {}", next - parcel, parcel_words);
  }
  return words;
}

}  // namespace burin
