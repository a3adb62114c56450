// How linear.cu divides a fully connected layer of many images into tiles, and what that costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/arch.h"
#include "ir/element_type.h"
#include "ir/operators.h"

namespace burin {

// A block's tile has feature_threads x 4 * feature_quads outputs and image_threads x 4 * image_quads images; each of
// its splits has a thread for every 4 * feature_quads x 4 * image_quads of them, and of each chunk `split_terms`
// inputs. The blocks of a cluster share out the chunks.
struct LayerTiles {
  static constexpr int kQuad = 4;

  int feature_threads = 1, feature_quads = 1, image_threads = 1, image_quads = 1;
  int split_warps = 1, split_terms = 1;
  int buffers = 1;
  int cluster = 1;

  int features() const { return kQuad * feature_quads * feature_threads; }
  int images() const { return kQuad * image_quads * image_threads; }
  int split_threads() const { return feature_threads * image_threads; }
  int threads() const { return split_warps * split_threads(); }
  int chunk_terms() const { return split_warps * split_terms; }
  int row_words(ElementType storage) const { return features() / elements_per_word(storage); }
  std::int64_t chunks(const Linear& op) const;  // of a block
  std::int64_t sets(const Linear& op) const;    // tiles side by side, with the same images
  std::int64_t blocks(const Linear& op) const { return sets(op) * cluster; }  // of the same images
  std::int64_t weight_words(const Linear& op, ElementType storage) const;
  int shared_bytes(ElementType storage) const;

  bool operator==(const LayerTiles&) const = default;
};

// Whether the template has such tiles, and a block of them fits a multiprocessor.
bool fits(const LayerTiles& tiles, ElementType storage, const ArchSpec& arch);

// The registers that a thread has at most.
int registers_of(const LayerTiles& tiles);

// The time of one launch in us.
double predict(const LayerTiles& tiles, const Linear& op, ElementType storage, int batch, const ArchSpec& arch);

// By prediction the best first, up to `count`; no two have tiles of the same shape and as many blocks in a cluster.
std::vector<LayerTiles> choose_layer_tiles(const Linear& op, ElementType storage, int batch, const ArchSpec& arch,
                                           std::size_t count);

// The words of `op`, whose weights the storage can hold.
std::vector<std::uint32_t> pack_tiles(const LayerTiles& tiles, const Linear& op, ElementType storage);

}  // namespace burin
