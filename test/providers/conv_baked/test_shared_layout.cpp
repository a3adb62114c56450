#include <map>
#include <set>

#include "compiler/providers/conv_baked/plan/shared_layout.h"
#include "compiler/providers/conv_baked/plan/tiles.h"
#include "ir/limits.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"

using namespace burin;

namespace {

// Clocks of all loads of the tile, from the definition: lanes of a warp that want different words of one bank wait.
double brute_force_conflict(const PixelTile& tile, const SharedLayout& layout, const ConvShape& shape) {
  std::vector<int> words;
  for (int pixel = 0; pixel < tile.pixels(); ++pixel) {
    const int image = pixel / (tile.rows * tile.cols), row = pixel / tile.cols % tile.rows, col = pixel % tile.cols;
    words.push_back(image * layout.image_pitch + row * shape.stride_h * layout.row_pitch +
                    layout.word_of_column(col * shape.stride_w));
  }
  double clocks = 0, warps = 0;
  for (std::size_t first = 0; first < words.size(); first += 32, ++warps) {
    std::map<int, int> in_bank;
    for (std::size_t i = first; i < std::min(first + 32, words.size()); ++i) ++in_bank[words[i] % 32];
    int most = 0;
    for (const auto& [bank, count] : in_bank) most = std::max(most, count);
    clocks += most;
  }
  return clocks / warps;
}

ConvShape square(int extent, int kernel, int stride, int pad) {
  ConvShape shape;
  shape.in_channels = 8;
  shape.kernel_h = shape.kernel_w = kernel;
  shape.stride_h = shape.stride_w = stride;
  shape.pad = {pad, pad, pad, pad};
  shape.in_h = shape.in_w = extent;
  return shape;
}

}  // namespace

TEST_CASE("shared_layout: conflicts match brute force, candidates trade conflicts for words") {
  burin_test::Random random(41);
  for (int i = 0; i < 60; ++i) {
    const ConvShape shape = burin_test::random_shape(random);
    const std::vector<PixelTile> tiles = tile_candidates(shape, 8);
    const PixelTile tile = tiles[random.integer(0, static_cast<int>(tiles.size()) - 1)];
    INFO("seed 41, case " << i << ": " << describe(shape) << ", tile " << tile.images << "x" << tile.rows << "x"
                          << tile.cols);
    const std::vector<LayoutCandidate> candidates = layout_candidates(tile, shape);
    REQUIRE(!candidates.empty());
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      const LayoutCandidate& candidate = candidates[c];
      CHECK(candidate.conflict == Approx(brute_force_conflict(tile, candidate.layout, shape)));
      CHECK(candidate.conflict == load_conflict(tile, candidate.layout, shape, TensorLayout::nchw));
      if (c == 0) continue;
      CHECK(candidate.conflict > candidates[c - 1].conflict);
      CHECK(candidate.words_per_channel < candidates[c - 1].words_per_channel);
    }
  }
}

TEST_CASE("shared_layout: whole images at stride 1 are free of conflicts, whatever their width") {
  for (const int extent : {7, 13, 14, 28, 31}) {
    const ConvShape shape = square(extent, 3, 1, 1);
    const int images = std::min(4, kMaxThreadsPerBlock / (extent * extent));
    CHECK(layout_candidates({images, extent, extent}, shape).front().conflict == 1.0);
  }
}

TEST_CASE("shared_layout: stride 2 is free of conflicts when columns are split into phases") {
  for (const int extent : {28, 56, 112}) {
    const ConvShape shape = square(extent, 3, 2, 1);
    INFO(describe(shape));
    const LayoutCandidate best = layout_candidates({1, 4, std::min(shape.out_w(), 32)}, shape).front();
    CHECK(best.conflict == 1.0);
    CHECK(best.layout.column_phases == 2);
  }
}

TEST_CASE("shared_layout: every column of a row has a word of its own") {
  for (int phases = 1; phases <= 4; ++phases) {
    for (int cols = 1; cols <= 13; ++cols) {
      SharedLayout layout;
      layout.patch_cols = cols;
      layout.column_phases = phases;
      std::set<int> words;
      for (int col = 0; col < cols; ++col) {
        const int word = layout.word_of_column(col);
        CHECK((word >= 0 && word < layout.row_words()));
        words.insert(word);
        if (col + phases < cols) CHECK(layout.word_of_column(col + phases) == word + 1);
      }
      CHECK(static_cast<int>(words.size()) == cols);
    }
  }
}

TEST_CASE("shared_layout: channels that share a row save the padding") {
  const LayoutCandidate best = layout_candidates({1, 14, 14}, square(14, 3, 1, 1)).front();
  CHECK(best.conflict == 1.0);
  CHECK(best.layout.channels_per_row > 1);
  CHECK(best.words_per_channel < 16 * 18);  // 16 words of a row of the patch; alone it would be padded to 46
}

TEST_CASE("tiles: legal, distinct, and the single pixel is among them") {
  burin_test::Random random(42);
  for (int i = 0; i < 100; ++i) {
    ConvShape shape = burin_test::random_shape(random);
    if (i % 4 == 0) shape.in_w = random.integer(600, 3000);
    const int batch = random.integer(1, 100);
    INFO("seed 42, case " << i << ": " << describe(shape) << ", batch " << batch);
    const std::vector<PixelTile> tiles = tile_candidates(shape, batch);
    bool single = false;
    for (std::size_t a = 0; a < tiles.size(); ++a) {
      const PixelTile& tile = tiles[a];
      CHECK(tile.pixels() <= kMaxThreadsPerBlock);
      CHECK((tile.images >= 1 && tile.images <= batch));
      CHECK((tile.rows >= 1 && tile.rows <= shape.out_h()));
      CHECK((tile.cols >= 1 && tile.cols <= shape.out_w()));
      single = single || tile == PixelTile{1, 1, 1};
      for (std::size_t b = 0; b < a; ++b) CHECK(!(tiles[b] == tile));
    }
    CHECK(single);
    CHECK(tiles.size() <= 200);
  }
}

TEST_CASE("tiles: whole small images fill the block") {
  const std::vector<PixelTile> tiles = tile_candidates(square(7, 3, 1, 1), 32);
  CHECK(std::find(tiles.begin(), tiles.end(), PixelTile{16, 7, 7}) != tiles.end());
  const std::vector<PixelTile> rows = tile_candidates(square(224, 3, 1, 1), 1);
  CHECK(std::find(rows.begin(), rows.end(), PixelTile{1, 4, 224}) != rows.end());
}
