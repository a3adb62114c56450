// The input patch of a tile, with its halo and zeros around the image, copied word by word.
//
// For conv_baked.cu, which defines the plan's constants, the holes and what a thread keeps before.
#pragma once

#include "templates/device.h"

BURIN_DEVICE u32 patch_positions() { return tile_images() * patch_rows() * patch_cols(); }
BURIN_DEVICE u32 positions_per_thread() { return (patch_positions() + block_threads() - 1) / block_threads(); }

BURIN_DEVICE u32 word_of_column(u32 col) { return col % column_phases() * phase_words() + col / column_phases(); }

// Indices are unsigned, so that dividing by a constant is a multiplication.
BURIN_DEVICE Position locate_position(const Tile* tile, u32 index) {
  const u32 patch = patch_rows() * patch_cols();
  const i32 image = index / patch;
  const u32 within = index % patch;
  const i32 row = within / patch_cols();
  const i32 col = within % patch_cols();
  const i32 y = tile->first_row * stride_rows() - pad_top() + row;
  const i32 x = tile->first_col * stride_cols() - pad_left() + col;
  const bool valid = index < patch_positions() && tile->first_image + image < tile->batch && 0 <= y && y < in_rows() &&
                     0 <= x && x < in_cols();
  Position position;
  position.source =
      valid ? tile->input + (tile->first_image + image) * static_cast<i64>(in_image_words()) + (y * in_cols() + x)
            : tile->input;
  position.target = shared_start() + (image * image_pitch() + row * row_pitch() + word_of_column(col)) * kWordBytes;
  position.valid = valid;
  return position;
}

// Starts the copies of all channels of one stage.
BURIN_PIECE void burin_piece_fill(const Tile* tile) {
  if (positions_per_thread() <= kHeldPositions) {
#pragma unroll
    for (u32 i = 0; i < kHeldPositions; ++i) {
      const u32 index = i * block_threads() + tile->thread;
      if (i < positions_per_thread() && index < patch_positions()) {
        burin_hole_copies(tile->held[i].source, tile->held[i].target, tile->held[i].valid);
      }
    }
  } else {
    for (u32 index = tile->thread; index < patch_positions(); index += block_threads()) {
      const Position position = locate_position(tile, index);
      burin_hole_copies(position.source, position.target, position.valid);
    }
  }
}

BURIN_PIECE void burin_piece_copy_channel(const float* source, u32 target, u32 valid, i64 channel_bytes,
                                          u32 slot_bytes) {
  burin_dev_copy_async(target, slot_bytes, source, channel_bytes, valid);
}

// Evenly spaced channels to evenly spaced slots. A loop: code is fetched more slowly than it runs.
BURIN_PIECE void burin_piece_copy_channels(const float* source, u32 target, u32 valid, i64 channel_bytes,
                                           u32 slot_bytes, i64 channel_step, u32 slot_step, u32 count) {
  const float* from = source + channel_bytes / kWordBytes;
  u32 to = target + slot_bytes;
  u32 left = count;
#pragma nounroll
  for (; left >= kCopiesAtOnce; left -= kCopiesAtOnce) {
    for (u32 i = 0; i < kCopiesAtOnce; ++i) {
      burin_dev_copy_async(to, 0, from, 0, valid);
      from += channel_step / kWordBytes;
      to += slot_step;
    }
  }
  for (u32 i = 0; i < count % kCopiesAtOnce; ++i) {
    burin_dev_copy_async(to, 0, from, 0, valid);
    from += channel_step / kWordBytes;
    to += slot_step;
  }
}
