// How the work of linear_expanded.cu is divided, what that costs, and its weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/arch.h"
#include "ir/factor_type.h"
#include "ir/operators.h"

namespace burin {

// A block has `row_warps` x `split_warps` warps, each of which multiplies panels of `warp_tiles` x 16 outputs and
// `panel_cols` features with `octets` x 8 images. The blocks of a cluster share out the features.
struct ExpandedTiles {
  int warp_tiles = 1, panel_cols = 32, octets = 1;
  int row_warps = 1, split_warps = 1;
  int cluster = 1;

  int warps() const { return row_warps * split_warps; }
  int threads() const;
  int warp_rows() const;
  int block_rows() const { return row_warps * warp_rows(); }
  int chunk_cols() const { return split_warps * panel_cols; }
  int images() const;
  std::int64_t sets(const Linear& op) const;
  std::int64_t blocks(const Linear& op) const { return sets(op) * cluster; }  // of the same images
  std::int64_t chunks(const Linear& op) const;                                // of a block
  std::int64_t table_words(const Linear& op) const { return warps() * chunks(op); }
  std::int64_t shared_bytes(const Linear& op, int list_quads) const;
};

// Quads of words: of the longest list, and of all.
struct ListQuads {
  int longest = 0;
  std::int64_t all = 0;
};

// The nonzeros of a layer whose weights are rounded, counted by cells of 16 outputs and 32 features.
class PanelCounts {
 public:
  PanelCounts(const Linear& op, FactorType factors);

  ListQuads quads(const ExpandedTiles& tiles) const;
  std::int64_t nonzeros() const { return nonzeros_; }

 private:
  std::int64_t rows_ = 0, cols_ = 0;  // of cells
  std::vector<std::uint16_t> cells_;
  std::int64_t nonzeros_ = 0;
};

// Whether the type has all weights.
bool can_hold(FactorType factors, const Linear& op);

// Whether the template has such tiles, and a block of them fits a multiprocessor.
bool fits(const ExpandedTiles& tiles, const Linear& op, int list_quads, const ArchSpec& arch);

double predict(const ExpandedTiles& tiles, const Linear& op, const ListQuads& quads, int batch, const ArchSpec& arch);

// Those that fit, by prediction the best first.
std::vector<ExpandedTiles> choose_expanded(const Linear& op, const PanelCounts& counts, int batch,
                                           const ArchSpec& arch);

std::int64_t expanded_words(const ExpandedTiles& tiles, const Linear& op, std::int64_t quads);
std::vector<std::uint32_t> pack_expanded(const ExpandedTiles& tiles, const Linear& op, FactorType factors);

}  // namespace burin
