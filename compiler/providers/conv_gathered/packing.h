// Packing: which columns of the matrix of weights are multiplied, and in which order, for kernels that multiply those
// alone in which a set of output channels has a nonzero.
//
// A column is an input channel of a group of the convolution and a position of the filter. Rows are output channels;
// `group_rows` of them share their columns, and are as alike as can be. Steps of columns are taken from one chunk of
// input channels, or with `carries` from the one before, too: what would not fill a step waits for the next chunk.
//
// An octet is eight values side by side in shared memory, of halves or of words (TF32). A step, what one load of octets
// brings, has 32 columns of halves or 16 of words; the octets of eight or four columns side by side fill all banks.
//
// What holds of every packing:
// - each output channel is one row, and each column with a nonzero in a row group is in one slot of its steps;
// - `sparse`: of four columns side by side no row has more than two nonzeros; of words: of two, more than one;
// - eight columns side by side, or four, begin in as many different banks of shared memory, as far as there are such
//   columns left.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/conv_layer.h"
#include "ir/factor_type.h"
#include "ir/kernel.h"
#include "ir/sparse_pattern.h"

namespace burin {

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
  bool by_column = false;  // a column's weights lie side by side, so that kernels can take some of them: not sparse
  // Channels of which octets lie side by side, in eight different banks. In places of as many octets: from one channel
  // of a chunk to the next that does not lie beside it, from one row of the input to the next, and from what one column
  // of the filter reads to what the next one does.
  int channels_together = 1;
  int channel_pitch = 1, row_pitch = 1, col_pitch = 1;
  int value_bytes = 2;  // of an octet

  int word_values() const { return kWordBytes / value_bytes; }
  int octet_bytes() const { return 8 * value_bytes; }
  int octet_banks() const { return 16 / value_bytes; }  // places in all banks of shared memory
  int step_columns() const { return 64 / value_bytes; }
  // By column, eight rows take turns within 128 bytes, so that columns side by side begin in different banks.
  int column_eights() const { return group_rows / 8; }
  int turn_of(int slot) const;
  int sparse_columns() const { return 2 * word_values(); }  // side by side, of which a row stores half, a word
  int chunks(const ConvShape& shape) const;
};

// The output channels in the order of rows: those of each group of the convolution, whole sets, of which the last may
// have rows without a channel (kNoRow). Those of a row group ascend.
std::vector<int> order_outputs(const ConvShape& shape, const SparsePattern& pattern, const Packing& packing);

// For each column of a row group, a bit for each row that has a nonzero there.
using ColumnMasks = std::vector<std::uint64_t>;
// Each row group has its own, in the order of rows.
std::vector<ColumnMasks> column_masks(const ConvShape& shape, const SparsePattern& pattern, std::span<const int> rows,
                                      int group_rows);

// The columns of a step, kNoColumn where there is none.
using GatheredStep = std::vector<int>;
// One row group has so many steps for each chunk.
using GatheredSteps = std::vector<std::vector<GatheredStep>>;
GatheredSteps gather(const ConvShape& shape, const ColumnMasks& masks, const Packing& packing);

// Where the first octet that a column is multiplied with lies in its chunk, in octets.
int column_place(const ConvShape& shape, const Packing& packing, int column);

// The words of a step, for the lanes that steps.h has; `factors` take packing.value_bytes.
std::vector<std::uint32_t> encode_step(const ConvLayer& layer, const Packing& packing, FactorType factors,
                                       std::span<const int> rows, const GatheredStep& step, int chunk);
int step_words(const Packing& packing);

// ---- a whole layer

// Whether groups of the convolution fill tiles of tensor cores: 16 output channels, and as many input channels.
bool fills_tiles(const ConvShape& shape);
// Whether groups of the convolution begin where eight channels that lie side by side begin.
inline constexpr int kOctetChannels = 8;
bool has_whole_octets(const ConvShape& shape);
// Whether no weight becomes infinite.
bool can_hold(FactorType factors, const ConvLayer& layer);

struct Gathered {
  std::vector<int> rows;              // output channels
  std::vector<GatheredSteps> groups;  // of each row group
  int step_limit = 1;                 // the most that a chunk has
};
// `shape` is the layer's, or another view of it.
Gathered gather_layer(const ConvLayer& layer, const ConvShape& shape, const Packing& packing);

MultipliedColumns count_columns(const ConvShape& shape, const Packing& packing, const Gathered& gathered);

// The weights as kernels read them (steps.h): for each set of rows, for each chunk, a panel; then for each row its
// output channel and bias. Where channels lie side by side, rows without a channel have those that fill up the output.
std::int64_t panel_words(const Packing& packing, int step_limit);
std::int64_t encoded_words(const ConvShape& shape, const Packing& packing, const Gathered& gathered);
std::vector<std::uint32_t> encode_panels(const ConvLayer& layer, const ConvShape& shape, const Packing& packing,
                                         FactorType factors, const Gathered& gathered);

}  // namespace burin
