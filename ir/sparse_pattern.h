// SparsePattern: the nonzeros of a layer as small records, in the order in which emission walks them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/conv_layer.h"

namespace burin {

// One multiply-add: output channel k reads input channel c at filter position (r, s).
struct Tap {
  int c = 0;  // absolute input channel (groups resolved)
  int r = 0, s = 0;
  int k = 0;
  float value = 0;
  bool operator==(const Tap&) const = default;
};

// Group sizes for which the share of live columns is reported: what a kernel that compacts columns would see.
inline constexpr std::array<int, 4> kColumnGroupSizes = {8, 16, 32, 64};

struct PatternStatistics {
  std::int64_t nonzeros = 0;
  std::int64_t weights = 0;
  double sparsity = 0;           // 1 - nonzeros / weights
  std::vector<int> per_row;      // nonzeros of each output channel
  std::vector<int> per_channel;  // nonzeros that read each input channel
  std::vector<int> per_column;   // nonzeros of each column (c, r, s), c absolute
  int dead_outputs = 0;          // output channels without a nonzero
  int dead_inputs = 0;           // input channels that no nonzero reads
  int empty_columns = 0;         // columns (c, r, s) without a nonzero
  // Share of columns with at least one nonzero within consecutive groups of kColumnGroupSizes output channels.
  std::array<double, kColumnGroupSizes.size()> live_columns{};
};

struct SparsePattern {
  int in_channels = 0, out_channels = 0, kernel_h = 0, kernel_w = 0;
  std::vector<Tap> taps;  // sorted by (c, r, s, k)
  PatternStatistics statistics;
};

// The layer must verify.
SparsePattern analyse(const ConvLayer& layer);

// The taps as text, with the statistics as comments.
std::string print(const SparsePattern& pattern);

}  // namespace burin
