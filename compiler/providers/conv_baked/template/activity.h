// Activity maps (ir/activity_map.h): which channels of a tensor hold nothing but zeros, cell by cell.
//
// The input's map becomes bits in the block's shared memory, one for each channel, before the slice's code begins;
// there each channel's code lies behind a branch on its bit, which all threads of the block take alike. The output's
// map is put together from what each thread has stored. A launch may be without either.
//
// For conv_baked.cu, which defines the plan's constants before.
#pragma once

#include "templates/device.h"

BURIN_PRIMITIVE void burin_hole_marks(u8* cell, u32 lane);
BURIN_PRIMITIVE u32 burin_hole_first_live_word(u32 slice);
BURIN_PRIMITIVE u32 burin_hole_live_words(u32 slice);

constexpr u32 kMaskBits = 32;     // channels of a word, and threads of a warp
constexpr i32 kMaxMarkWords = 4;  // ir/limits.h: kMaxGroupChannels

BURIN_DEVICE u32 live_start() { return activity_start(); }
BURIN_DEVICE u32 marks_start() { return activity_start() + live_words() * 4; }

// Before a barrier that comes before any other use.
BURIN_DEVICE void clear_activity() {
  for (u32 word = burin_dev_thread(); word < static_cast<u32>(live_words() + mark_words()); word += block_threads()) {
    burin_dev_shared_store_word(activity_start() + word * 4, 0, 0);
  }
}

// ---- the map of the input
BURIN_DEVICE i32 within(i32 place, i32 extent) { return place < 0 ? 0 : place >= extent ? extent - 1 : place; }

// The first cell along an axis that a tile reads, and the last. What lies beyond the image counts as the nearest cell,
// which can only bring a dead channel to life.
struct Cells {
  i32 first, last;
};
// There may be fewer than are asked for: then the last one counts again.
BURIN_DEVICE i32 cell_number(Cells cells, i32 i) { return cells.first + i < cells.last ? cells.first + i : cells.last; }
BURIN_DEVICE Cells cells_from(i32 begin, i32 reach, i32 extent, i32 cell) {
  return {within(begin, extent) / cell, within(begin + reach - 1, extent) / cell};
}

// Sets the bits of a slice's channels for a tile whose first output pixel is (image, row, col). A barrier must follow.
// Without a map, everything is live.
BURIN_DEVICE void find_live_channels(const u8* map, i32 images, i32 image, i32 row, i32 col, u32 first_word,
                                     u32 words) {
  const Cells image_cells = cells_from(image, tile_images(), images, skip_images());
  const Cells row_cells = cells_from(row * stride_rows() - pad_top(), tile_reach_rows(), in_rows(), skip_rows());
  const Cells col_cells = cells_from(col * stride_cols() - pad_left(), tile_reach_cols(), in_cols(), skip_cols());
  const u32 grid_rows = (in_rows() + skip_rows() - 1) / skip_rows();
  const u32 grid_cols = (in_cols() + skip_cols() - 1) / skip_cols();
  const u32 lane = burin_dev_thread() % kMaskBits;
#pragma nounroll
  for (u32 word = burin_dev_thread() / kMaskBits; word < words; word += block_threads() / kMaskBits) {
    const u32 channel = within((first_word + word) * kMaskBits + lane, in_channels());
    u32 live = map == nullptr;
    if (map != nullptr) {
      const u32 image_cells_read = skip_cells_images(), row_cells_read = skip_cells_rows();
      const u32 col_cells_read = skip_cells_cols();
#pragma unroll 8
      for (u32 i = 0; i < image_cells_read * row_cells_read * col_cells_read; ++i) {
        const u32 in_row = i % col_cells_read, in_image = i / col_cells_read % row_cells_read;
        const i64 cell =
            (static_cast<i64>(cell_number(image_cells, i / (col_cells_read * row_cells_read))) * grid_rows +
             cell_number(row_cells, in_image)) *
                grid_cols +
            cell_number(col_cells, in_row);
        live |= burin_dev_map_load(map, cell * in_channels() + channel);
      }
    }
    burin_dev_shared_or(live_start() + word * 4, 0, live != 0 ? 1u << lane : 0u);
  }
}

// 32 bits of the slice's channels.
BURIN_PIECE u32 burin_piece_live_word(u32 word) { return burin_dev_shared_load_word(live_start(), word * 4); }

// ---- the map of the output
// What a thread has stored is any number but 0 and -0.
BURIN_DEVICE u32 is_live(float value) { return value == 0 ? 0u : 1u; }

// Only the words that are used: others would keep the array in memory.
BURIN_DEVICE void clear_live(u32* live) {
#pragma unroll
  for (i32 word = 0; word < kMaxMarkWords; ++word) {
    if (word < mark_words()) live[word] = 0;
  }
}

// Bit j of `live` stands for the block's accumulator j. All threads of the block; the words are clear before.
BURIN_DEVICE void write_marks(u8* map, const u32* live) {
  if (!marks() || map == nullptr) return;
#pragma unroll
  for (i32 word = 0; word < kMaxMarkWords; ++word) {
    if (word < mark_words()) burin_dev_shared_or(marks_start(), word * 4, live[word]);
  }
  burin_dev_barrier();
  const u32 thread = burin_dev_thread();
  if (thread < kMaskBits) burin_hole_marks(map + static_cast<i64>(burin_dev_block_x()) * out_channels(), thread);
}

// These mark those channels whose sums the block has completed.
BURIN_PIECE u32 burin_piece_mark_word(u32 word) { return burin_dev_shared_load_word(marks_start(), word * 4); }
BURIN_PIECE void burin_piece_mark(u8* cell, u32 lane, u32 bits, u32 bit, i64 channel) {
  burin_dev_map_store_if(lane == bit, cell, channel, bits >> lane & 1);
}
