#include "compiler/providers/conv_warpgroup/packing.h"

#include <algorithm>
#include <bit>
#include <map>

#include "compiler/providers/template_provider.h"

namespace burin {
namespace {

constexpr int kFourColumns = 4, kStoredOfFour = 2;

class PanelSplitter {
 public:
  PanelSplitter(int channels, int positions) : channels_(channels), positions_(positions) {
    split_.fours.resize(static_cast<std::size_t>(channels / kFourColumns) * positions * kGroupRows);
  }

  SplitPanel run(const std::vector<PanelWeight>& weights) {
    std::map<std::size_t, std::vector<PanelWeight>> fours;
    for (const PanelWeight& weight : weights) fours[place_of(weight)].push_back(weight);
    for (auto& [place, four] : fours) {
      while (four.size() > kStoredOfFour) set_apart(four);
      store(split_.fours[place], four);
    }
    return std::move(split_);
  }

 private:
  std::size_t place_of(const PanelWeight& weight) const {
    return (static_cast<std::size_t>(weight.position) * (channels_ / kFourColumns) + weight.channel / kFourColumns) *
               kGroupRows +
           weight.row;
  }
  int column_of(const PanelWeight& weight) const { return weight.channel * positions_ + weight.position; }

  // One whose column the warp gathers anyway, if there is one.
  void set_apart(std::vector<PanelWeight>& four) {
    SplitPanel::Rest& rest = split_.rest[static_cast<std::size_t>(four.front().row / kWarpRows)];
    const auto is_gathered = [&](const PanelWeight& weight) {
      return std::ranges::find(rest.columns, column_of(weight)) != rest.columns.end();
    };
    auto chosen = std::ranges::find_if(four, is_gathered);
    if (chosen == four.end()) {
      chosen = std::prev(four.end());
      rest.columns.push_back(column_of(*chosen));
    }
    rest.weights.push_back(*chosen);
    four.erase(chosen);
  }

  static void store(SplitPanel::Four& stored, const std::vector<PanelWeight>& four) {
    if (four.size() == kStoredOfFour) {
      stored = {{four[0].channel % kFourColumns, four[1].channel % kFourColumns}, {four[0].value, four[1].value}};
      return;
    }
    // Beside one nonzero a zero is stored, at another place.
    const int place = four.front().channel % kFourColumns;
    const bool is_last = place == kFourColumns - 1;
    stored.places = is_last ? std::array{0, place} : std::array{place, kFourColumns - 1};
    stored.values[is_last ? 1 : 0] = four.front().value;
  }

  int channels_, positions_;
  SplitPanel split_;
};

class PanelWriter {
 public:
  PanelWriter(const ConvShape& shape, const WarpgroupTiles& tiles, int rest_limit, ElementType element)
      : shape_(shape),
        tiles_(tiles),
        element_(element),
        positions_(tiles.part_rows * tiles.part_cols),
        words_(static_cast<std::size_t>(tiles.panel_bytes(shape, rest_limit)) / kWordBytes),
        rest_limit_(rest_limit) {}

  std::vector<std::uint32_t> run(const std::vector<PanelWeight>& weights) {
    if (tiles_.sparse == 0) {
      for (const PanelWeight& weight : weights) {
        put(step_of(weight.channel, weight.position, kStoredColumns), weight.row, weight.channel % kStoredColumns,
            weight.value);
      }
      return std::move(words_);
    }
    const SplitPanel split = split_two_of_four(weights, tiles_.chunk_channels, positions_);
    std::size_t at = 0;
    for (int position = 0; position < positions_; ++position) {
      for (int four = 0; four < tiles_.chunk_channels / kFourColumns; ++four) {
        for (int row = 0; row < kGroupRows; ++row) put_four(position, four, row, split.fours[at++]);
      }
    }
    for (int warp = 0; warp < kGroupWarps; ++warp) put_rest(warp, split.rest[static_cast<std::size_t>(warp)]);
    return std::move(words_);
  }

 private:
  int step_of(int channel, int position, int step_channels) const {
    return channel / step_channels * positions_ + position;
  }
  void put_half(std::size_t byte, float value) {
    const std::uint32_t bits = half_word(element_, value, 0);
    words_[byte / kWordBytes] |= byte % kWordBytes == 0 ? bits : bits << 16;
  }
  void put(int step, int row, int column, float value) {
    put_half(
        static_cast<std::size_t>(step) * kStepBytes + row / 8 * 256 + column / 8 * 128 + row % 8 * 16 + column % 8 * 2,
        value);
  }

  void put_four(int position, int four, int row, const SplitPanel::Four& stored) {
    constexpr int kStepFours = 8;
    const int step = step_of(four, position, kStepFours), in_step = four % kStepFours;
    for (int i = 0; i < kStoredOfFour; ++i)
      put(step, row, in_step * kStoredOfFour + i, stored.values[static_cast<std::size_t>(i)]);
    // The lane has places of a row in its low half, and in its high one those of the row eight below.
    const int lane = row % 8 * 4 + step % 2 * 2 + in_step / 4;
    const std::size_t word = static_cast<std::size_t>(tiles_.steps(shape_)) * kStepBytes / kWordBytes +
                             static_cast<std::size_t>(step / 2 * kGroupWarps + row / kWarpRows) * kWarpSize + lane;
    const auto places = static_cast<std::uint32_t>(stored.places[0] | stored.places[1] << 2);
    words_[word] |= places << (row % kWarpRows / 8 * 16 + in_step % 4 * 4);
  }

  void put_rest(int warp, const SplitPanel::Rest& rest) {
    const std::int64_t places = ceil_div(tiles_.steps(shape_), 2) * kGroupRows * 2 * kWordBytes;
    const std::size_t counts = (static_cast<std::size_t>(tiles_.steps(shape_)) * kStepBytes + places) / kWordBytes;
    words_[counts + static_cast<std::size_t>(warp)] = static_cast<std::uint32_t>(rest.steps());
    const std::size_t first =
        counts + kGroupWarps + static_cast<std::size_t>(warp) * rest_limit_ * kRestStepBytes / kWordBytes;
    constexpr std::size_t kColumnsAt = std::size_t{kWarpSize} * 4;  // behind the weights
    const auto step_at = [&](std::size_t column) {
      return first + column / kRestColumns * (kRestStepBytes / kWordBytes);
    };
    for (std::size_t i = 0; i < rest.columns.size(); ++i) {
      words_[step_at(i) + kColumnsAt + i % kRestColumns] = column_place(rest.columns[i]);
    }
    for (const PanelWeight& weight : rest.weights) {
      const int column = weight.channel * positions_ + weight.position;
      const auto i = static_cast<std::size_t>(std::ranges::find(rest.columns, column) - rest.columns.begin());
      const std::size_t k = i % kRestColumns, row = static_cast<std::size_t>(weight.row % kWarpRows);
      const std::size_t lane = row % 8 * 4 + k % 8 / 2, word = row / 8 + k / 8 * 2;
      put_half((step_at(i) + lane * 4 + word) * kWordBytes + k % 2 * 2, weight.value);
    }
  }

  // The byte of the chunk where the column's first pixel lies.
  std::uint32_t column_place(int column) const {
    const int channel = column / positions_, position = column % positions_;
    const int row = position / tiles_.part_cols * shape_.dilation_h / tiles_.step_rows(shape_);
    const int col = position % tiles_.part_cols * shape_.dilation_w / tiles_.step_cols(shape_);
    const int pixel = row * tiles_.patch_cols(shape_) + col;
    const int octet_pixels = tiles_.patch_rows(shape_) * tiles_.patch_cols(shape_);
    return static_cast<std::uint32_t>((channel / kOctetChannels * octet_pixels + pixel) * kLineBytes +
                                      channel % kOctetChannels * (kLineBytes / kOctetChannels));
  }

  const ConvShape& shape_;
  const WarpgroupTiles& tiles_;
  ElementType element_;
  int positions_;
  std::vector<std::uint32_t> words_;
  int rest_limit_;
};

// visit(group of the convolution, first row in it, chunk) for each panel, in their order.
template <typename Visit>
void for_each_panel(const ConvShape& shape, const WarpgroupTiles& tiles, Visit visit) {
  for (int group = 0; group < shape.groups; ++group) {
    for (int set = 0; set < tiles.output_blocks(shape); ++set) {
      for (int chunk = 0; chunk < tiles.chunks(shape); ++chunk) {
        for (int i = 0; i < tiles.row_groups; ++i) visit(group, (set * tiles.row_groups + i) * kGroupRows, chunk);
      }
    }
  }
}

}  // namespace

int SplitPanel::Rest::steps() const { return static_cast<int>(ceil_div(std::ssize(columns), kRestColumns)); }

int SplitPanel::rest_steps() const {
  int most = 0;
  for (const Rest& each : rest) most = std::max(most, each.steps());
  return most;
}

SplitPanel split_two_of_four(const std::vector<PanelWeight>& weights, int channels, int positions) {
  return PanelSplitter(channels, positions).run(weights);
}

std::vector<PanelWeight> panel_weights(const ConvLayer& layer, const ConvShape& shape, const WarpgroupTiles& tiles,
                                       int group, int first_row, int chunk) {
  std::vector<PanelWeight> weights;
  const int parts = count_parts(tiles.part(), shape);
  const int first_channel = chunk / parts * tiles.chunk_channels;
  const int channels = std::min(tiles.chunk_channels, shape.channels_per_group() - first_channel);
  const int rows = std::min(kGroupRows, shape.outputs_per_group() - first_row);
  for (int row = 0; row < rows; ++row) {
    const int output = group * shape.outputs_per_group() + first_row + row;
    for (int c = 0; c < channels; ++c) {
      for (int r = 0; r < shape.kernel_h; ++r) {
        for (int s = 0; s < shape.kernel_w; ++s) {
          const float value = layer.weight(output, first_channel + c, r, s);
          const PartPosition at = part_position(tiles.part(), shape, r, s);
          if (value != 0 && at.part == chunk % parts) weights.push_back({row, c, at.position, value});
        }
      }
    }
  }
  return weights;
}

int rest_limit(const ConvLayer& layer, const ConvShape& shape, const WarpgroupTiles& tiles) {
  int most = 0;
  if (tiles.sparse == 0) return most;
  for_each_panel(shape, tiles, [&](int group, int first_row, int chunk) {
    const auto weights = panel_weights(layer, shape, tiles, group, first_row, chunk);
    most = std::max(most,
                    split_two_of_four(weights, tiles.chunk_channels, tiles.part_rows * tiles.part_cols).rest_steps());
  });
  return most;
}

MultipliedColumns count_columns(const ConvLayer& layer, const ConvShape& shape, const WarpgroupTiles& tiles) {
  const int positions = tiles.part_rows * tiles.part_cols, parts = count_parts(tiles.part(), shape);
  MultipliedColumns count;
  for_each_panel(shape, tiles, [&](int group, int first_row, int chunk) {
    if (first_row >= shape.outputs_per_group()) return;  // it fills up the last set
    const int channels =
        std::min(tiles.chunk_channels, shape.channels_per_group() - chunk / parts * tiles.chunk_channels);
    count.columns += std::int64_t{channels} * positions;
    count.slots += std::int64_t{tiles.steps(shape)} * kGroupRows * kStoredColumns;
    if (tiles.sparse == 0) return;
    const auto weights = panel_weights(layer, shape, tiles, group, first_row, chunk);
    for (const SplitPanel::Rest& rest : split_two_of_four(weights, tiles.chunk_channels, positions).rest) {
      count.slots += std::int64_t{rest.steps()} * kWarpRows * kRestColumns;
    }
  });
  count.live = count.columns;
  return count;
}

std::int64_t packed_words(const ConvShape& shape, const WarpgroupTiles& tiles, int rest_limit) {
  const std::int64_t sets = tiles.sets(shape);
  return sets * tiles.chunks(shape) * tiles.row_groups * tiles.panel_bytes(shape, rest_limit) / kWordBytes +
         sets * tiles.block_rows();
}

std::vector<std::uint32_t> pack_warpgroup(const ConvLayer& layer, const ConvShape& shape, const WarpgroupTiles& tiles,
                                          int rest_limit, ElementType element) {
  std::vector<std::uint32_t> words;
  words.reserve(static_cast<std::size_t>(packed_words(shape, tiles, rest_limit)));
  for_each_panel(shape, tiles, [&](int group, int first_row, int chunk) {
    const auto panel =
        PanelWriter(shape, tiles, rest_limit, element).run(panel_weights(layer, shape, tiles, group, first_row, chunk));
    words.insert(words.end(), panel.begin(), panel.end());
  });
  for (int set = 0; set < tiles.sets(shape); ++set) {
    const int group = set / tiles.output_blocks(shape);
    for (int i = 0; i < tiles.block_rows(); ++i) {
      const int row = set % tiles.output_blocks(shape) * tiles.block_rows() + i;
      const bool exists = shape.epilogue.bias && row < shape.outputs_per_group();
      const int output = group * shape.outputs_per_group() + row;
      words.push_back(std::bit_cast<std::uint32_t>(exists ? layer.bias[static_cast<std::size_t>(output)] : 0.0F));
    }
  }
  return words;
}

}  // namespace burin
