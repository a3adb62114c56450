#include "compiler/providers/linear_expanded/panels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "compiler/launch_time.h"
#include "compiler/providers/conv_gathered/tiles.h"
#include "ir/element_type.h"
#include "ir/kernel.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// As the template has them.
constexpr int kTileRows16 = 16, kSide = 8, kHalfBytes = 2, kListSlots = 6, kPanels = 3;
constexpr int kMostListQuads = 96, kMostItems = 16, kMostExpandedOctets = 8, kMostExpandedWarps = 16;
constexpr int kCellRows = 16, kCellCols = 32;
constexpr int kFirstBits = 25;                      // of an entry of the table
constexpr int kQuadWords = 4, kSumQuadBytes = 512;  // of a quad of each lane

ElementType element_of(FactorType factors) {
  return factors == FactorType::bf16 ? ElementType::bf16 : ElementType::f16;
}

std::int64_t aligned(std::int64_t words) { return ceil_div(words, kQuadWords) * kQuadWords; }

std::int64_t panel_bytes(const ExpandedTiles& tiles) {
  return std::int64_t{tiles.warp_rows()} * tiles.panel_cols * kHalfBytes + kWideAccessBytes;
}

int registers_of(const ExpandedTiles& tiles) {
  constexpr int kOthers = 56;
  const int staged = static_cast<int>(ceil_div(tiles.octets * (kSide / 2) * tiles.chunk_cols(), tiles.threads())) * 2;
  return tiles.warp_tiles * tiles.octets * 4 + tiles.octets * 4 + staged + kOthers;
}

int resident_of(const ExpandedTiles& tiles, const Linear& op, int list_quads, const ArchSpec& arch) {
  return resident_blocks(tiles.shared_bytes(op, list_quads), registers_of(tiles), tiles.threads(), arch);
}

// A nonzero as a list has it.
struct Listed {
  std::uint32_t place = 0;  // byte of the panel
  float value = 0;
};

// The nonzeros of a panel: those that a warp stores at the same time lie in different banks, as far as that goes.
class ListOrder {
 public:
  explicit ListOrder(std::span<const Listed> listed) {
    constexpr std::uint32_t kBankBytes = 4;
    for (const Listed& each : listed) banks_[each.place / kBankBytes % kBanks].push_back(each);
  }

  // Quads, filled up with places behind the panel.
  std::vector<Listed> run(std::uint32_t behind) {
    std::vector<Listed> sequence;
    for (bool is_left = true; is_left;) {
      is_left = false;
      std::array<std::size_t, kBanks> order{};
      for (std::size_t i = 0; i < kBanks; ++i) order[i] = i;
      std::ranges::stable_sort(order, std::greater{}, [&](std::size_t bank) { return banks_[bank].size(); });
      for (const std::size_t bank : order) {
        if (banks_[bank].empty()) continue;
        sequence.push_back(banks_[bank].back());
        banks_[bank].pop_back();
        is_left = true;
      }
    }
    const std::size_t quads =
        static_cast<std::size_t>(ceil_div(static_cast<std::int64_t>(sequence.size()), kQuadWords));
    for (std::size_t i = 0; sequence.size() < quads * kQuadWords; ++i) {
      sequence.push_back({behind + static_cast<std::uint32_t>(i * kHalfBytes), 0});
    }
    // What lanes store together is the same word of their quads.
    std::vector<Listed> list(sequence.size());
    std::size_t taken = 0;
    for (std::size_t first = 0; first < quads; first += kWarpSize) {
      const std::size_t lanes = std::min<std::size_t>(kWarpSize, quads - first);
      for (std::size_t word = 0; word < kQuadWords; ++word) {
        for (std::size_t lane = 0; lane < lanes; ++lane) list[(first + lane) * kQuadWords + word] = sequence[taken++];
      }
    }
    return list;
  }

 private:
  static constexpr std::size_t kBanks = 32;
  std::array<std::vector<Listed>, kBanks> banks_;
};

class ExpandedPacker {
 public:
  ExpandedPacker(const ExpandedTiles& tiles, const Linear& op, FactorType factors)
      : tiles_(tiles), op_(op), factors_(factors), element_(element_of(factors)) {}

  std::vector<std::uint32_t> run() {
    const std::int64_t table = aligned(tiles_.table_words(op_));
    words_.resize(static_cast<std::size_t>(tiles_.blocks(op_) * table + tiles_.sets(op_) * tiles_.block_rows()));
    std::ranges::transform(op_.bias, words_.begin() + static_cast<std::ptrdiff_t>(tiles_.blocks(op_) * table),
                           [](float bias) { return std::bit_cast<std::uint32_t>(bias); });
    lists_ = static_cast<std::int64_t>(words_.size());
    for (std::int64_t block = 0; block < tiles_.blocks(op_); ++block) {
      for (int warp = 0; warp < tiles_.warps(); ++warp) {
        const std::int64_t entry = block * table + warp * tiles_.chunks(op_);
        for (std::int64_t chunk = 0; chunk < tiles_.chunks(op_); ++chunk) {
          const std::uint32_t first = quads();
          const std::int64_t of_row = (block % tiles_.cluster * tiles_.chunks(op_) + chunk) * tiles_.split_warps;
          append(block / tiles_.cluster * tiles_.block_rows() +
                     std::int64_t{warp / tiles_.split_warps} * tiles_.warp_rows(),
                 (of_row + warp % tiles_.split_warps) * tiles_.panel_cols);
          words_[static_cast<std::size_t>(entry + chunk)] = (quads() - first) << kFirstBits | first;
        }
      }
    }
    return std::move(words_);
  }

 private:
  std::uint32_t quads() const {
    return static_cast<std::uint32_t>((static_cast<std::int64_t>(words_.size()) - lists_) / kQuadWords);
  }

  void append(std::int64_t first_row, std::int64_t first_col) {
    std::vector<Listed> listed;
    for (int row = 0; row < tiles_.warp_rows() && first_row + row < op_.out_features; ++row) {
      for (int col = 0; col < tiles_.panel_cols && first_col + col < op_.in_features; ++col) {
        const float value = rounded(
            factors_, op_.weights[static_cast<std::size_t>((first_row + row) * op_.in_features + first_col + col)]);
        if (value == 0) continue;
        const int place = (row / kSide * tiles_.panel_cols + col) * kSide + row % kSide;
        listed.push_back({static_cast<std::uint32_t>(place * kHalfBytes), value});
      }
    }
    const auto behind = static_cast<std::uint32_t>(panel_bytes(tiles_) - kWideAccessBytes);
    for (const Listed& each : ListOrder(listed).run(behind)) {
      constexpr int kHalfBits = 16;
      words_.push_back(each.place << kHalfBits | to_half(element_, each.value));
    }
  }

  const ExpandedTiles& tiles_;
  const Linear& op_;
  FactorType factors_;
  ElementType element_;
  std::vector<std::uint32_t> words_;
  std::int64_t lists_ = 0;  // the word at which they begin
};

}  // namespace

int ExpandedTiles::threads() const { return warps() * kWarpSize; }
int ExpandedTiles::warp_rows() const { return warp_tiles * kTileRows16; }
int ExpandedTiles::images() const { return octets * kSide; }
std::int64_t ExpandedTiles::sets(const Linear& op) const { return ceil_div(op.out_features, block_rows()); }
std::int64_t ExpandedTiles::chunks(const Linear& op) const {
  return ceil_div(ceil_div(op.in_features, chunk_cols()), cluster);
}

std::int64_t ExpandedTiles::shared_bytes(const Linear& op, int list_quads) const {
  const std::int64_t lists = std::int64_t{warps()} * kListSlots * list_quads * kWideAccessBytes;
  const std::int64_t panels = std::int64_t{warps()} * kPanels * panel_bytes(*this);
  const std::int64_t inputs = std::int64_t{2} * octets * chunk_cols() * kWideAccessBytes;
  const std::int64_t part = std::int64_t{row_warps} * warp_tiles * octets * kSumQuadBytes;
  const std::int64_t sums = split_warps * cluster == 1 ? 0 : split_warps * part;
  return kSharedReserveBytes + aligned(table_words(op)) * kWordBytes + std::max(lists + panels + inputs, sums) +
         part / cluster * (cluster - 1);
}

PanelCounts::PanelCounts(const Linear& op, FactorType factors)
    : rows_(ceil_div(op.out_features, kCellRows)),
      cols_(ceil_div(op.in_features, kCellCols)),
      cells_(static_cast<std::size_t>(rows_ * cols_)) {
  // What is smaller than half of the smallest number that the type has becomes zero.
  for (std::int64_t row = 0; row < op.out_features; ++row) {
    const float* weights = op.weights.data() + row * op.in_features;
    std::uint16_t* cells = cells_.data() + row / kCellRows * cols_;
    for (std::int64_t col = 0; col < op.in_features; ++col) {
      if (weights[col] == 0 || rounded(factors, weights[col]) == 0) continue;
      ++cells[col / kCellCols];
      ++nonzeros_;
    }
  }
}

ListQuads PanelCounts::quads(const ExpandedTiles& tiles) const {
  ListQuads quads;
  const std::int64_t of_panel = tiles.panel_cols / kCellCols;
  for (std::int64_t row = 0; row < rows_; row += tiles.warp_tiles) {
    for (std::int64_t col = 0; col < cols_; col += of_panel) {
      std::int64_t nonzeros = 0;
      for (std::int64_t r = row; r < std::min(rows_, row + tiles.warp_tiles); ++r) {
        for (std::int64_t c = col; c < std::min(cols_, col + of_panel); ++c) {
          nonzeros += cells_[static_cast<std::size_t>(r * cols_ + c)];
        }
      }
      const std::int64_t of_list = ceil_div(nonzeros, kQuadWords);
      quads.all += of_list;
      quads.longest = std::max(quads.longest, static_cast<int>(of_list));
    }
  }
  quads.longest = std::max(quads.longest, 1);
  return quads;
}

bool can_hold(FactorType factors, const Linear& op) {
  return std::ranges::none_of(op.weights, [&](float weight) { return std::isinf(rounded(factors, weight)); });
}

bool fits(const ExpandedTiles& tiles, const Linear& op, int list_quads, const ArchSpec& arch) {
  const bool has_tiles = tiles.warp_tiles == 1 || tiles.warp_tiles == 2 || tiles.warp_tiles == 4;
  return has_tiles && tiles.panel_cols % kCellCols == 0 && tiles.panel_cols <= 256 &&
         tiles.octets <= kMostExpandedOctets && tiles.warps() <= kMostExpandedWarps && list_quads <= kMostListQuads &&
         std::int64_t{tiles.octets} * (kSide / 2) * tiles.chunk_cols() <= std::int64_t{kMostItems} * tiles.threads() &&
         can_share_sums(tiles.cluster, arch) && registers_of(tiles) <= arch.max_registers_per_thread &&
         tiles.shared_bytes(op, list_quads) <= arch.max_shared_per_block &&
         resident_of(tiles, op, list_quads, arch) >= 1;
}

double predict(const ExpandedTiles& tiles, const Linear& op, const ListQuads& quads, int batch, const ArchSpec& arch) {
  // Clocks of a multiprocessor, fitted to 16 kernels of two layers for 32 images on an H100. A chunk: what its warps
  // wait for each other, and for each 16 x 32 weights, nonzero, and feature of eight images.
  constexpr double kChunk = 1060, kCell = 13.5, kNonzero = 0.16, kFeature = 1.35;
  constexpr double kOutsideUs = 3.5;  // the table, the first lists, and adding up
  const double blocks = static_cast<double>(tiles.blocks(op) * ceil_div(batch, tiles.images()));
  const auto at_once =
      static_cast<double>(tiles.cluster == 1 ? arch.multiprocessors
                                             : arch.clustered_blocks.at(static_cast<std::size_t>(tiles.cluster) - 1));
  const double of_multiprocessor = std::ceil(blocks / at_once);
  const double resident = std::min<double>(of_multiprocessor, std::max(1, resident_of(tiles, op, quads.longest, arch)));
  const double cells = static_cast<double>(tiles.warps()) * tiles.warp_tiles * (tiles.panel_cols / kCellCols);
  const auto block_chunks = static_cast<double>(tiles.chunks(op));
  const double nonzeros =
      static_cast<double>(quads.all) * kQuadWords / (static_cast<double>(tiles.blocks(op)) * block_chunks);
  const double busy =
      cells * kCell + nonzeros * kNonzero + static_cast<double>(tiles.chunk_cols()) * tiles.octets * kFeature;
  const double rounds = std::ceil(of_multiprocessor / resident);
  const double us = clocks_us(rounds * block_chunks * (kChunk + resident * busy), arch) + rounds * kOutsideUs;
  const double bytes = static_cast<double>(quads.all * kWideAccessBytes * ceil_div(batch, tiles.images()));
  return launch_time_us({.busy_us = std::max(us, clocks_us(bytes / arch.device_bytes_per_clock, arch)),
                         .blocks = of_multiprocessor,
                         .resident = resident,
                         .waits = 2},
                        arch);
}

std::vector<ExpandedTiles> choose_expanded(const Linear& op, const PanelCounts& counts, int batch,
                                           const ArchSpec& arch) {
  std::vector<std::pair<double, ExpandedTiles>> found;
  ExpandedTiles tiles;
  const int most_octets = static_cast<int>(std::min<std::int64_t>(ceil_div(batch, kSide), kMostExpandedOctets));
  for (const int warp_tiles : {1, 2, 4}) {
    for (const int cols : {32, 64, 128}) {
      tiles.warp_tiles = warp_tiles;
      tiles.panel_cols = cols;
      tiles.octets = static_cast<int>(ceil_div(ceil_div(batch, kSide), ceil_div(ceil_div(batch, kSide), most_octets)));
      const ListQuads quads = counts.quads(tiles);
      for (const int row_warps : {1, 2, 4, 8, 16}) {
        for (const int split_warps : {1, 2, 4, 8, 16}) {
          for (const int cluster : {1, 2, 4, 8}) {
            tiles.row_warps = row_warps;
            tiles.split_warps = split_warps;
            tiles.cluster = cluster;
            if (tiles.warps() < 4 || !fits(tiles, op, quads.longest, arch)) continue;
            found.emplace_back(predict(tiles, op, quads, batch, arch), tiles);
          }
        }
      }
    }
  }
  std::ranges::stable_sort(found, {}, &std::pair<double, ExpandedTiles>::first);
  std::vector<ExpandedTiles> result;
  for (const auto& [us, each] : found) result.push_back(each);
  return result;
}

std::int64_t expanded_words(const ExpandedTiles& tiles, const Linear& op, std::int64_t quads) {
  return tiles.blocks(op) * aligned(tiles.table_words(op)) + tiles.sets(op) * tiles.block_rows() + quads * kQuadWords;
}

std::vector<std::uint32_t> pack_expanded(const ExpandedTiles& tiles, const Linear& op, FactorType factors) {
  return ExpandedPacker(tiles, op, factors).run();
}

}  // namespace burin
