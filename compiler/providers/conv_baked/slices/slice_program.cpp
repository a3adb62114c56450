#include "compiler/providers/conv_baked/slices/slice_program.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>

#include "ir/error.h"

namespace burin {
namespace {

// First tap of each input channel in the pattern's (c, r, s, k) order, and the end.
std::vector<std::size_t> channel_starts(const SparsePattern& pattern) {
  std::vector<std::size_t> starts(static_cast<std::size_t>(pattern.in_channels) + 1, 0);
  for (const Tap& tap : pattern.taps) ++starts[tap.c + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  return starts;
}

std::uint32_t slot_word(const SharedLayout& shared, int slot) {
  return static_cast<std::uint32_t>(slot / shared.channels_per_row) * shared.channel_pitch +
         static_cast<std::uint32_t>(slot % shared.channels_per_row) * shared.row_words();
}

// The channels' blocks, each once.
std::vector<int> blocks_of(std::span<const int> channels, int together) {
  std::vector<int> blocks;
  for (const int c : channels) {
    if (blocks.empty() || blocks.back() != c / together) blocks.push_back(c / together);
  }
  return blocks;
}

// Copies of one stage's channels (or blocks), as few runs as they fall into.
std::vector<ChannelCopies> stage_copies(std::span<const int> channels, const SharedLayout& shared,
                                        std::int64_t plane_bytes, std::uint32_t buffer_bytes) {
  std::vector<ChannelCopies> runs;
  const int count = static_cast<int>(channels.size()), per_row = shared.channels_per_row;
  for (int first = 0; first < std::min(per_row, count); ++first) {
    bool open = false;
    for (int slot = first; slot < count; slot += per_row) {
      const std::int64_t source = channels[slot] * plane_bytes;
      if (open && runs.back().count == 1) runs.back().source_step = source - runs.back().source_bytes;
      if (open && source == runs.back().source_bytes + runs.back().count * runs.back().source_step) {
        ++runs.back().count;
        continue;
      }
      runs.push_back({source, buffer_bytes + slot_word(shared, slot) * kWordBytes, plane_bytes,
                      static_cast<std::uint32_t>(shared.channel_pitch) * kWordBytes, 1});
      open = true;
    }
  }
  return runs;
}

// A bit for each of an axis' filter positions that lies beyond the image for some output pixel.
std::uint32_t positions_beyond(int kernel, int stride, int dilation, int pad, int in, int out) {
  std::uint32_t bits = 0;
  for (int i = 0; i < kernel; ++i) {
    const std::int64_t first = std::int64_t{i} * dilation - pad, last = first + std::int64_t{out - 1} * stride;
    if (first < 0 || last >= in) bits |= 1U << i;
  }
  return bits;
}

}  // namespace

std::vector<SliceProgram> lower_plan(const BakedPlan& plan, const ConvShape& shape, const SparsePattern& pattern) {
  struct Accumulator {
    int group, position;
  };
  std::vector<Accumulator> accumulators(static_cast<std::size_t>(shape.out_channels));
  for (int g = 0; g < std::ssize(plan.groups); ++g) {
    for (int j = 0; j < std::ssize(plan.groups[g]); ++j) accumulators[plan.groups[g][j]] = {g, j};
  }
  const std::vector<std::size_t> starts = channel_starts(pattern);
  const int together = channels_together(plan.input_layout);
  const std::int64_t block_bytes = static_cast<std::int64_t>(shape.in_h) * shape.in_w * together * kWordBytes;
  // Which load of a stage brings each filter position of the current channel block.
  constexpr int kNone = -1;
  std::vector<int> loads_of_block(static_cast<std::size_t>(shape.kernel_h) * shape.kernel_w, kNone);

  const bool staged = plan.staging != Staging::direct, bulk = plan.staging == Staging::bulk;
  const std::uint32_t rows_beyond =
      positions_beyond(shape.kernel_h, shape.stride_h, shape.dilation_h, shape.pad.top, shape.in_h, shape.conv_h());
  const std::uint32_t cols_beyond =
      positions_beyond(shape.kernel_w, shape.stride_w, shape.dilation_w, shape.pad.left, shape.in_w, shape.conv_w());

  std::vector<SliceProgram> programs;
  programs.reserve(plan.slices.size());
  for (const Slice& slice : plan.slices) {
    SliceProgram program{slice.group, slice.split, {}};
    const std::size_t stage_channels = staged ? plan.stage_channels : std::max<std::size_t>(1, slice.channels.size());
    for (std::size_t first = 0; first < slice.channels.size(); first += stage_channels) {
      const std::size_t last = std::min(slice.channels.size(), first + stage_channels);
      const std::uint32_t buffer_bytes =
          static_cast<std::uint32_t>(program.stages.size() % plan.buffers) * plan.stage_bytes();
      StageProgram stage;
      const std::span<const int> channels = std::span(slice.channels).subspan(first, last - first);
      const std::vector<int> blocks = blocks_of(channels, together);
      if (staged) stage.copies = stage_copies(blocks, plan.shared, block_bytes, buffer_bytes);
      BURIN_CHECK(!bulk || stage.copies.size() == 1, "bulk copies of channels that lie apart");
      std::size_t slot = 0;
      for (const int c : channels) {
        if (blocks[slot] != c / together) {
          ++slot;
          std::ranges::fill(loads_of_block, kNone);
        }
        const std::uint32_t slot_bytes =
            staged ? buffer_bytes + slot_word(plan.shared, static_cast<int>(slot)) * kWordBytes : 0;
        for (std::size_t t = starts[c]; t < starts[c + 1]; ++t) {
          const Tap& tap = pattern.taps[t];
          if (accumulators[tap.k].group != slice.group) continue;
          int& load = loads_of_block[static_cast<std::size_t>(tap.r) * shape.kernel_w + tap.s];
          if (load == kNone) {
            load = static_cast<int>(stage.loads.size());
            const std::uint32_t word =
                static_cast<std::uint32_t>(tap.r) * shape.dilation_h * plan.shared.row_pitch +
                static_cast<std::uint32_t>(plan.shared.word_of_column(tap.s * shape.dilation_w)) * together;
            const std::uint32_t outside =
                (rows_beyond & (1U << tap.r)) | ((cols_beyond & (1U << tap.s)) << kOutsideColumnBit);
            stage.loads.push_back({blocks[slot] * together,
                                   tap.r,
                                   tap.s,
                                   staged ? slot_bytes + word * kWordBytes : blocks[slot] * block_bytes,
                                   bulk ? outside : 0,
                                   {}});
          }
          stage.loads[load].uses.push_back({accumulators[tap.k].position, c % together, tap.value});
        }
      }
      std::ranges::fill(loads_of_block, kNone);
      // Filter position by filter position, of each channel by itself where channels are skipped: what decides whether
      // it lies beyond the image is then computed once. First those that never do: a sum that begins with a predicated
      // multiply-add costs an instruction more.
      if (bulk) {
        std::ranges::stable_sort(stage.loads, [&](const LoadedTap& a, const LoadedTap& b) {
          const bool a_may = a.outside != 0, b_may = b.outside != 0;
          const int a_channel = plan.skips ? a.c : 0, b_channel = plan.skips ? b.c : 0;
          return std::tie(a_channel, a_may, a.r, a.s) < std::tie(b_channel, b_may, b.r, b.s);
        });
      }
      program.stages.push_back(std::move(stage));
    }
    BURIN_CHECK(plan.buffers > 1 || program.stages.size() <= 1, "several stages in one buffer");
    programs.push_back(std::move(program));
  }
  return programs;
}

}  // namespace burin
