// Packing: which columns of the matrix of weights are multiplied, and in which order, for kernels that multiply those
// alone in which a set of output channels has a nonzero.
//
// A column is an input channel of a group of the convolution and a position of the filter. Rows are output channels;
// `group_rows` of them share their columns, and are as alike as can be. Steps of 32 columns are taken from one chunk of
// input channels, or with `carries` from the one before, too: what would not fill a step waits for the next chunk.
//
// What holds of every packing:
// - each output channel is one row, and each column with a nonzero in a row group is in one slot of its steps;
// - `sparse`: of four columns side by side no row has more than two nonzeros;
// - eight columns side by side begin in eight different banks of shared memory, as far as there are such columns left.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/conv_layer.h"
#include "ir/element_type.h"
#include "ir/kernel.h"
#include "ir/sparse_pattern.h"

namespace burin {

inline constexpr int kStepColumns = 32;
inline constexpr int kTileRows = 16;      // of tensor cores
inline constexpr int kMaxGroupRows = 64;  // a bit for each in a word
inline constexpr int kNoRow = -1, kNoColumn = -1;

inline int filter_positions(const ConvShape& shape) { return shape.kernel_h * shape.kernel_w; }

struct Packing {
  int group_rows = kTileRows;
  int set_rows = kTileRows;  // of a block: a multiple of group_rows
  int row_groups() const { return set_rows / group_rows; }
  int chunk_channels = 1;
  bool sparse = false;
  bool carries = false;
  // In octets: from one channel of a chunk to the next, from one row of the input to the next, and from what one column
  // of the filter reads to what the next one does.
  int channel_pitch = 1, row_pitch = 1, col_pitch = 1;

  int chunks(const ConvShape& shape) const;
};

// The output channels in the order of rows: those of each group of the convolution, whole sets, of which the last may
// have rows without a channel (kNoRow).
std::vector<int> order_outputs(const ConvShape& shape, const SparsePattern& pattern, const Packing& packing);

// For each column of a row group, a bit for each row that has a nonzero there.
using ColumnMasks = std::vector<std::uint64_t>;
// Of each row group in the order of rows.
std::vector<ColumnMasks> column_masks(const ConvShape& shape, const SparsePattern& pattern, std::span<const int> rows,
                                      int group_rows);

// The columns of a step, kNoColumn where there is none.
using GatheredStep = std::array<int, kStepColumns>;
// Of one row group, for each chunk.
using GatheredSteps = std::vector<std::vector<GatheredStep>>;
GatheredSteps gather(const ConvShape& shape, const ColumnMasks& masks, const Packing& packing);

// Where the first octet that a column is multiplied with lies in its chunk, in octets.
int column_place(const ConvShape& shape, const Packing& packing, int column);

// The words of a step, for the lanes that conv_gathered.cu has.
std::vector<std::uint32_t> encode_step(const ConvLayer& layer, const Packing& packing, ElementType element,
                                       std::span<const int> rows, const GatheredStep& step, int chunk);
int step_words(const Packing& packing);

// ---- a whole layer

// Whether groups of the convolution fill tiles of tensor cores: 16 output channels, and as many input channels.
bool fills_tiles(const ConvShape& shape);
bool half_can_hold(ElementType element, const ConvLayer& layer);

struct Gathered {
  std::vector<int> rows;              // output channels
  std::vector<GatheredSteps> groups;  // of each row group
  int step_limit = 1;                 // the most that a chunk has
};
// `shape` is the layer's, or another view of it.
Gathered gather_layer(const ConvLayer& layer, const ConvShape& shape, const Packing& packing);

GatheredColumns count_columns(const ConvShape& shape, const Packing& packing, const Gathered& gathered);

// The weights as kernels read them (steps.h): for each set of rows, for each chunk, a panel; then for each row its
// output channel and bias.
std::int64_t panel_words(const Packing& packing, int step_limit);
std::int64_t encoded_words(const ConvShape& shape, const Packing& packing, const Gathered& gathered);
std::vector<std::uint32_t> encode_panels(const ConvLayer& layer, const ConvShape& shape, const Packing& packing,
                                         ElementType element, const Gathered& gathered);

}  // namespace burin
