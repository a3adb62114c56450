// conv_gathered_rows: a convolution on tensor cores, whose factors are rounded to halves or to TF32 and whose tensors
// are FP32 in nchw. As in conv_gathered only those columns are multiplied that have a nonzero in a set of output
// channels; here an octet is eight outputs side by side in a row of an image.
//
// A block has `row_warps` x `warp_tiles` x 16 output channels and a tile of `tile_rows` rows of `tile_octets` octets.
// It stages what the tile needs of `split_channels` input channels once, rounded: for each channel and each column of
// the filter a copy, shifted and with the stride left out, so that every octet of every column lies side by side. The
// blocks of a cluster have the other channels. Then each warp multiplies its octets with the steps of its split; the
// sums of splits and of the cluster's blocks are added up at the end, in their order.
//
// Weights: for each set of output channels (of a group of the convolution, then the next), for each split of the input
// channels, a panel (conv_gathered/steps.h); a column's word is the byte where the first output's octet lies. Behind
// the panels, for each row of each set: the output channel, and its bias. Rows that have none have kNoChannel.
//
// Behind a pool a tile holds whole windows, and begins where one does: what lies in windows of two tiles is multiplied
// in both. The tile's values lie in shared memory, and what windows make of them is all that is stored.
//
// With `skip_dead` the columns of channels that are zero all over the tile are left out as well (live_steps.h).
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_gathered_rows/conv_gathered_rows.def"
#include "templates/kernels/conv_pool.h"
#include "templates/kernels/function.h"
#include "templates/kernels/residual.h"
#include "templates/kernels/split_sums.h"
constexpr u32 kOctetPixels = 8, kOctetPairs = 4;
#include "compiler/providers/conv_gathered_rows/live_steps.h"

constexpr u32 kMaxFilterCols = 7;
constexpr u32 kMaxSpan = 16;  // columns of the input that two outputs side by side read
constexpr u32 kItemsAtOnce = 4;
enum { kPanelGate, kRowsGate, kGatesUsed };

// ---- sizes, all constants
BURIN_DEVICE u32 cluster_splits() { return cluster_blocks(); }
BURIN_DEVICE u32 tile_cols() { return tile_octets() * kOctetPixels; }
// What is stored of a tile: without a pool its pixels, each a window.
BURIN_DEVICE u32 stored_rows() { return (tile_rows() - pool_rows()) / pool_stride_rows() + 1; }
BURIN_DEVICE u32 stored_cols() { return (tile_cols() - pool_cols()) / pool_stride_cols() + 1; }
BURIN_DEVICE u32 tiles_across() { return divide_up(out_cols(), stored_cols()); }
BURIN_DEVICE u32 tiles() { return tiles_across() * divide_up(out_rows(), stored_rows()); }
BURIN_DEVICE u32 sets() { return image_blocks() / (cluster_splits() * tiles()); }
BURIN_DEVICE u32 out_plane() { return out_rows() * out_cols(); }
BURIN_DEVICE u32 conv_plane() { return conv_rows() * conv_cols(); }
BURIN_DEVICE u32 in_plane() { return in_rows() * in_cols(); }
// What lies between the rows that a filter of one row reads is left out.
BURIN_DEVICE bool compact() { return kernel_rows() == 1; }
BURIN_DEVICE u32 patch_step_rows() { return compact() ? stride_rows() : 1; }
BURIN_DEVICE u32 octet_step_rows() { return compact() ? 1 : stride_rows(); }
BURIN_DEVICE u32 copy_bytes() {
  return patch_rows() * tile_octets() * octet_bytes();
}  // of a channel, for a filter column
BURIN_DEVICE u32 channel_bytes() { return channel_pitch() * octet_bytes(); }
BURIN_DEVICE u32 sum_warps() { return row_warps() * octet_warps(); }

// Shared memory: what is said of the rows; the panel; the lists, if dead channels are left out; the staged activations,
// and in their place the sums; then those that the other blocks of the cluster send. Behind sums of splits, or where
// the activations are, lie the values that windows are made of: for each row of the block those of the tile's pixels.
BURIN_DEVICE u32 panel_start() { return kSharedStart + to_banks(block_rows() * kRowBytes); }
BURIN_DEVICE u32 lists_start() { return panel_start() + to_banks(panel_bytes()); }
BURIN_DEVICE u32 staged_start() { return lists_start() + to_banks(lists_bytes()); }

// ---- where the block stands: a cluster's blocks follow each other, then the sets of a tile
BURIN_DEVICE u32 split_of_block() { return block_of_image() % cluster_splits(); }
BURIN_DEVICE u32 set_of_block() { return block_of_image() / cluster_splits() % sets(); }

struct Tile {
  u32 out_row, out_col;  // the first that is stored
  i32 row, col;          // the first pixel: padding of the pool lies before 0
};
BURIN_DEVICE Tile tile_of_block() {
  const u32 number = block_of_image() / cluster_splits() / sets();
  const u32 row = number / tiles_across() * stored_rows(), col = number % tiles_across() * stored_cols();
  return {row, col, static_cast<i32>(row * pool_stride_rows()) - pool_pad_top(),
          static_cast<i32>(col * pool_stride_cols()) - pool_pad_left()};
}

// ---- weights: no other kernel's output
BURIN_DEVICE void begin_weights(const float* weights) {
  const u32 panels = sets() * cluster_splits(), bytes_of_rows = block_rows() * kRowBytes;
  const i64 panel = static_cast<i64>(set_of_block() * cluster_splits() + split_of_block()) * panel_bytes();
  const i64 rows = static_cast<i64>(panels) * panel_bytes() + set_of_block() * bytes_of_rows;
  burin_dev_gate_expect(kRowsGate, bytes_of_rows);
  burin_dev_bulk_copy(kSharedStart, 0, weights, rows, bytes_of_rows, kRowsGate);
  burin_dev_gate_expect(kPanelGate, panel_bytes());
  burin_dev_bulk_copy(panel_start(), 0, weights, panel, panel_bytes(), kPanelGate);
}

// ---- staging
// The row of the input that a row of the patch is, and the channel that the first one of the block is.
struct Source {
  const float* image;
  u32 first_channel, channels;
  i32 top, left;  // of the patch
};
BURIN_DEVICE Source source_of(const float* input, const Tile& tile) {
  const u32 begin = split_of_block() * split_channels();
  const u32 group = set_of_block() / output_blocks();
  return {input_of(input, first_image()), group * group_channels() + begin,
          at_most(split_channels(), group_channels() - begin), tile.row * stride_rows() - pad_top(),
          tile.col * stride_cols() - pad_left()};
}

BURIN_DEVICE u32 packed_word(float first, float second) {
  return factors() == kBf16 ? burin_dev_bf16_pack(first, second) : burin_dev_f16_pack(first, second);
}

// What a thread stages at once: `per_row` items of each row of the patch.
struct Item {
  bool exists, inside;  // the block's channels, and the image's rows
  u32 number;           // in its row
  u32 row;              // words of the input before the row
  u32 place;            // of the row in shared memory
};
BURIN_DEVICE Item item_at(const Source& source, u32 index, u32 per_row) {
  const u32 row = index / per_row % patch_rows(), channel = index / per_row / patch_rows();
  const i32 y = source.top + static_cast<i32>(row * patch_step_rows());
  Item item;
  item.exists = channel < source.channels;
  item.inside = item.exists && static_cast<u32>(y) < static_cast<u32>(in_rows());
  item.number = index % per_row;
  item.row = (source.first_channel + channel) * in_plane() + y * in_cols();
  item.place = staged_start() + channel * channel_bytes() + row * (tile_octets() * octet_bytes());
  return item;
}

// Two outputs side by side: columns of the input from `stride_cols` x 2 x their number on.
BURIN_DEVICE u32 span() { return (kernel_cols() - 1) * dilation_cols() + stride_cols() + 1; }
BURIN_DEVICE bool is_read(u32 col) {
  bool read = false;
#pragma unroll
  for (u32 s = 0; s < kMaxFilterCols; ++s) {
    if (s >= static_cast<u32>(kernel_cols())) continue;
    read |= col == s * dilation_cols() || col == s * dilation_cols() + stride_cols();
  }
  return read;
}
struct Span {
  float of[kMaxSpan];
};
BURIN_DEVICE void load_span(const Source& source, const Item& item, Span& values) {
  const i32 left = source.left + static_cast<i32>(item.number * 2 * stride_cols());
#pragma unroll
  for (u32 i = 0; i < kMaxSpan; ++i) {
    if (i >= span() || !is_read(i)) continue;
    const i32 x = left + static_cast<i32>(i);
    const bool inside = item.inside && static_cast<u32>(x) < static_cast<u32>(in_cols());
    values.of[i] = inside ? burin_dev_global_load(source.image, bytes_of(item.row + x)) : 0.0f;
  }
}
BURIN_DEVICE void stage_span(const Item& item, const Span& values) {
#pragma unroll
  for (u32 s = 0; s < kMaxFilterCols; ++s) {
    if (s >= static_cast<u32>(kernel_cols())) continue;
    const u32 first = s * dilation_cols();
    const float one = values.of[first], other = values.of[first + stride_cols()];
    const u32 place = item.place + item.number * (octet_bytes() / kOctetPairs);
    if (is_tf32()) {
      burin_dev_shared_store_word(place, s * copy_bytes(), burin_dev_tf32(one));
      burin_dev_shared_store_word(place, s * copy_bytes() + kWordBytes, burin_dev_tf32(other));
    } else {
      burin_dev_shared_store_word(place, s * copy_bytes(), packed_word(one, other));
    }
  }
}

// An octet: the fours of columns around it that are read, the first of which begins four before it.
constexpr u32 kFours = 4, kFourCols = 4;
struct Fours {
  f32x4 of[kFours];
};
// Where, in these columns, a filter column finds an output of the octet.
BURIN_DEVICE u32 four_col(u32 s, u32 pixel) { return kFourCols + pixel + s * dilation_cols() - pad_left(); }
BURIN_DEVICE bool is_read_four(u32 four) {
  bool read = false;
#pragma unroll
  for (u32 s = 0; s < kMaxFilterCols; ++s) {
    if (s >= static_cast<u32>(kernel_cols())) continue;
    read |= four_col(s, 0) / kFourCols <= four && four <= four_col(s, kOctetPixels - 1) / kFourCols;
  }
  return read;
}
BURIN_DEVICE void load_fours(const Source& source, const Item& item, Fours& values) {
  const i32 left =
      source.left + pad_left() + static_cast<i32>(item.number * kOctetPixels) - static_cast<i32>(kFourCols);
#pragma unroll
  for (u32 i = 0; i < kFours; ++i) {
    if (!is_read_four(i)) continue;
    const i32 x = left + static_cast<i32>(i * kFourCols);
    const bool inside = item.inside && static_cast<u32>(x) < static_cast<u32>(in_cols());
    const f32x4 zeros = {0, 0, 0, 0};
    values.of[i] = inside ? burin_dev_global_load4(source.image, bytes_of(item.row + x)) : zeros;
  }
}
BURIN_DEVICE void stage_fours(const Item& item, const Fours& values) {
#pragma unroll
  for (u32 s = 0; s < kMaxFilterCols; ++s) {
    if (s >= static_cast<u32>(kernel_cols())) continue;
    const auto value = [&](u32 pixel) BURIN_INLINED {
      const u32 col = four_col(s, pixel);
      return values.of[col / kFourCols][col % kFourCols];
    };
#pragma unroll
    for (u32 quad = 0; quad < octet_bytes() / kQuadBytes; ++quad) {
      f32x4 words;
#pragma unroll
      for (u32 i = 0; i < kQuadWords; ++i) {
        words[i] = float_of(is_tf32() ? burin_dev_tf32(value(quad * kQuadWords + i))
                                      : packed_word(value(2 * i), value(2 * i + 1)));
      }
      burin_dev_shared_store4(item.place + item.number * octet_bytes(), s * copy_bytes() + quad * kQuadBytes, words);
    }
  }
}

// Several items are loaded before the first of them is stored.
template <typename Values, typename Load, typename Stage>
BURIN_DEVICE void stage_items(const Source& source, u32 per_row, Load load, Stage stage) {
  const u32 items = split_channels() * patch_rows() * per_row;
#pragma nounroll
  for (u32 first = burin_dev_thread(); first < items; first += kItemsAtOnce * block_threads()) {
    Item at[kItemsAtOnce];
    Values values[kItemsAtOnce];
#pragma unroll
    for (u32 i = 0; i < kItemsAtOnce; ++i) {
      at[i] = item_at(source, first + i * block_threads(), per_row);
      load(at[i], values[i]);
    }
#pragma unroll
    for (u32 i = 0; i < kItemsAtOnce; ++i) {
      if (at[i].exists) stage(at[i], values[i]);
    }
  }
}
BURIN_DEVICE void stage_patch(const Source& source) {
  if (vector()) {
    stage_items<Fours>(
        source, tile_octets(), [&](const Item& item, Fours& values) BURIN_INLINED { load_fours(source, item, values); },
        [](const Item& item, const Fours& values) BURIN_INLINED { stage_fours(item, values); });
  } else {
    stage_items<Span>(
        source, tile_octets() * kOctetPairs,
        [&](const Item& item, Span& values) BURIN_INLINED { load_span(source, item, values); },
        [](const Item& item, const Span& values) BURIN_INLINED { stage_span(item, values); });
  }
}

// ---- products
struct Warp {
  u32 row, octet, split, lane;  // of the block's warps
};
BURIN_DEVICE u32 number_of_sums(const Warp& warp) { return warp.row * octet_warps() + warp.octet; }
BURIN_DEVICE Warp warp_of_thread() {
  const u32 thread = burin_dev_thread(), warp = thread / kWarpThreads;
  return {warp / (split_warps() * octet_warps()), warp / split_warps() % octet_warps(), warp % split_warps(),
          thread % kWarpThreads};
}
// Where an octet of the tile begins in a column's copy. Those of a warp are a part of a row, or whole rows: so the
// distance of each from the warp's first one is a constant.
BURIN_DEVICE u32 place_of(u32 octet) {
  return (octet / tile_octets() * octet_step_rows() * tile_octets() + octet % tile_octets()) * octet_bytes();
}

// ---- sums
// A lane's sums of a tile of tensor cores: two outputs side by side of one channel, and of the eighth one after it.
struct Place {
  u32 sums, tile, octet, lane;  // of the warps with sums, and within its own
};
BURIN_DEVICE SplitSums split_sums() {
  return {staged_start(), staged_start() + split_channels() * channel_bytes(), sum_warps(),
          static_cast<u32>(warp_tiles() * warp_octets())};
}

// A sum: its number among the lane's, its channel's bias, whether it is a pixel of the image, then which word of that,
// and which row and pixel of the block.
struct Pixel {
  u32 sum;
  float bias;
  bool inside;
  u32 word, block_row, of_tile;
};
// visit(pixel) for each whose row has a channel.
template <typename Visit>
BURIN_DEVICE void for_each_pixel(const Tile& tile, const Place& place, Visit visit) {
  const u32 octet = place.sums % octet_warps() * warp_octets() + place.octet;
  const u32 tile_row = octet / tile_octets(), tile_col = octet % tile_octets() * kOctetPixels + place.lane % 4 * 2;
  const i32 row = tile.row + static_cast<i32>(tile_row), col = tile.col + static_cast<i32>(tile_col);
  const u32 first_row = (place.sums / octet_warps() * warp_tiles() + place.tile) * kTileRows + place.lane / 4;
#pragma unroll
  for (u32 half = 0; half < 2; ++half) {
    const u32 block_row = first_row + half * 8, said = kSharedStart + block_row * kRowBytes;
    const u32 channel = burin_dev_shared_load_word(said, 0);
    if (channel == kNoChannel || (!pools() && row >= conv_rows())) continue;
    const float bias = burin_dev_shared_load(said, kWordBytes);
    const u32 word = channel * conv_plane() + row * conv_cols() + col, of_tile = tile_row * tile_cols() + tile_col;
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      const bool inside = pools() ? is_pixel(row, col + i) : col + static_cast<i32>(i) < conv_cols();
      visit(Pixel{half * 2 + i, bias, inside, word + i, block_row, of_tile + i});
    }
  }
}

// Residuals are what sums begin with, so that they are on their way while the input is staged; but for those that are
// added last.
BURIN_DEVICE bool begins_with_residual() { return residual() && !residual_last(); }
BURIN_DEVICE void begin_sums(const Tile& tile, const Warp& warp, const float* other, Sums& sums) {
  for_each_sum([&](u32 row, u32 octet) BURIN_INLINED { sums.of[row][octet] = {0, 0, 0, 0}; });
  if (!begins_with_residual() || warp.split != 0 || split_of_block() != 0) return;
  for_each_sum([&](u32 row, u32 octet) BURIN_INLINED {
    f32x4& sum = sums.of[row][octet];
    for_each_pixel(tile, {number_of_sums(warp), row, octet, warp.lane}, [&](const Pixel& pixel) BURIN_INLINED {
      if (pixel.inside) sum[pixel.sum] = burin_dev_global_load(other, bytes_of(pixel.word));
    });
  });
}

// ---- windows
BURIN_DEVICE u32 windows_start() {
  return split_warps() == 1 ? staged_start() : staged_start() + split_warps() * part_bytes(split_sums());
}
BURIN_DEVICE u32 window_pitch() { return ((tile_rows() * tile_octets()) | 1) * kOctetPixels; }  // of a row, in words
BURIN_DEVICE u32 window_value(u32 block_row, u32 of_tile) {
  return windows_start() + (block_row * window_pitch() + of_tile) * kWordBytes;
}

// Neighbouring threads have neighbouring windows.
BURIN_DEVICE void store_windows(const Tile& tile, float* output) {
  const u32 windows = stored_rows() * stored_cols();
#pragma nounroll
  for (u32 item = burin_dev_thread(); item < block_rows() * windows; item += block_threads()) {
    const u32 block_row = item / windows, row = item % windows / stored_cols(), col = item % windows % stored_cols();
    const u32 channel = burin_dev_shared_load_word(kSharedStart + block_row * kRowBytes, 0);
    if (channel == kNoChannel || tile.out_row + row >= static_cast<u32>(out_rows()) ||
        tile.out_col + col >= static_cast<u32>(out_cols()))
      continue;
    const u32 first_row = row * pool_stride_rows(), first_col = col * pool_stride_cols();
    const u32 first = window_value(block_row, first_row * tile_cols() + first_col);
    const float made = pool_of_window(
        tile.row + static_cast<i32>(first_row), tile.col + static_cast<i32>(first_col),
        [&](u32 r, u32 s) BURIN_INLINED { return burin_dev_shared_load(first, (r * tile_cols() + s) * kWordBytes); });
    const u32 pixel = (tile.out_row + row) * out_cols() + tile.out_col + col;
    burin_dev_global_store(output, bytes_of(channel * out_plane() + pixel), made);
  }
}

// ---- the end of sums
BURIN_DEVICE void store_sums(const Tile& tile, const Place& place, f32x4 sums, const float* other, float* output) {
  f32x4 residuals = {0, 0, 0, 0};
  if (residual_last()) {
    for_each_pixel(tile, place, [&](const Pixel& pixel) BURIN_INLINED {
      if (pixel.inside) residuals[pixel.sum] = burin_dev_global_load(other, bytes_of(pixel.word));
    });
  }
  for_each_pixel(tile, place, [&](const Pixel& pixel) BURIN_INLINED {
    const float sum = sums[pixel.sum] + pixel.bias;
    const float value = residual_last() ? end_of_sum(sum, residuals[pixel.sum]) : apply(sum);
    if (pools()) {
      burin_dev_shared_store(window_value(pixel.block_row, pixel.of_tile), 0, value);
    } else if (pixel.inside) {
      burin_dev_global_store(output, bytes_of(pixel.word), value);
    }
  });
}

BURIN_DEVICE void finish(const Tile& tile, const Warp& warp, const Sums& sums, const float* other, float* output) {
  if (split_warps() == 1 && cluster_splits() == 1) {
    if (pools()) burin_dev_barrier();  // the values take the place of the activations
    for_each_sum([&](u32 row, u32 octet) BURIN_INLINED {
      store_sums(tile, {number_of_sums(warp), row, octet, warp.lane}, sums.of[row][octet], other, output);
    });
    return;
  }
  burin_dev_barrier();
  const SplitSums split = split_sums();
  const u32 own = own_quads(split, warp.split, number_of_sums(warp), warp.lane);
  for_each_sum([&](u32 row, u32 octet) BURIN_INLINED {
    burin_dev_shared_store4(own, (row * warp_octets() + octet) * kSumWarpBytes, sums.of[row][octet]);
  });
  add_up(split, split_of_block(), [&](const SumPlace& at, f32x4 sum) BURIN_INLINED {
    store_sums(tile, {at.sum_warp, at.quad / warp_octets(), at.quad % warp_octets(), at.lane}, sum, other, output);
  });
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32) {
  const u32 thread = burin_dev_thread();
  if (thread < kGatesUsed) burin_dev_gate_init(thread);
  begin_cluster_sums(thread);
  burin_dev_barrier();
  if (thread == 0) begin_weights(weights);
  const Warp warp = warp_of_thread();
  const Tile tile = tile_of_block();
  burin_dev_await_launch();
  Sums sums;
  const float* added = residual_of(other, first_image());
  if (begins_with_residual()) burin_dev_gate_wait(kRowsGate, 0);
  begin_sums(tile, warp, added, sums);
  const Source source = source_of(input, tile);
  stage_patch(source);
  burin_dev_barrier();
  if (!begins_with_residual()) burin_dev_gate_wait(kRowsGate, 0);
  burin_dev_gate_wait(kPanelGate, 0);
  const u32 lane_place = is_tf32() ? warp.lane / 4 * kWordBytes : 0;  // in an octet
  const u32 first = staged_start() + place_of(warp.octet * warp_octets()) + lane_place;
  const auto column_at = [&](u32 column) BURIN_INLINED { return first + column; };
  const auto octet_at = [](u32 octet) BURIN_INLINED { return place_of(octet); };
  if (skip_dead()) {
    const Lists lists = {lists_start(), panel_start(), staged_start(), channel_bytes(), kernel_cols() * copy_bytes()};
    deal(lists, {warp.row, warp.octet * split_warps() + warp.split, warp.lane}, source.channels);
    multiply_live_steps(lists, warp.row, warp.split, warp.lane, column_at, octet_at, sums);
  } else {
    multiply_steps(panel_start(), warp.row, warp.split, warp.lane, column_at, octet_at, sums);
  }
  float* to = output_of(output, first_image());
  finish(tile, warp, sums, added, to);
  if (!pools()) return;
  burin_dev_barrier();
  store_windows(tile, to);
}
