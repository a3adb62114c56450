// The image's own rows or planes, copied in bulk.
//
// For conv_baked.cu, which defines the plan's constants, the holes and what a thread keeps before.
#pragma once

#include "templates/device.h"

// Whole planes of several images: each of the first warp's threads copies from one image. Else rows of one image: each
// copies channels.
BURIN_DEVICE bool whole_planes() { return tile_rows() == conv_rows(); }

BURIN_DEVICE i64 block_bytes() { return static_cast<i64>(in_rows()) * in_cols() * in_together() * kWordBytes; }

// Starts the copies of `blocks` channel blocks, whose first is `source_bytes` into an image, to a buffer.
BURIN_PIECE void burin_piece_bulk_fill(const Tile* tile, i64 source_bytes, u32 blocks, u32 buffer_bytes, u32 gate) {
  if (tile->thread >= kWarpThreads) return;
  if (tile->thread == 0) burin_dev_gate_expect(gate, tile->copies * blocks * tile->bytes);
  if (whole_planes()) {
#pragma nounroll
    for (u32 image = tile->thread; image < tile->copies; image += kWarpThreads) {
      const i64 image_bytes = static_cast<i64>(image - tile->thread) * in_image_words() * kWordBytes;
      burin_dev_bulk_copy(tile->target + (image - tile->thread) * image_pitch() * kWordBytes, buffer_bytes,
                          tile->source, image_bytes + source_bytes, blocks * tile->bytes, gate);
    }
  } else {
#pragma nounroll
    for (u32 block = tile->thread; block < blocks * tile->copies; block += kWarpThreads) {
      burin_dev_bulk_copy(tile->target + block * channel_pitch() * kWordBytes, buffer_bytes, tile->source,
                          block * block_bytes() + source_bytes, tile->bytes, gate);
    }
  }
}

// The first stages of a slice, into as many buffers.
BURIN_DEVICE void fill_first_buffers(const Tile* tile, u32 first_block, u32 blocks) {
  u32 left = blocks, stage = 0;
#pragma nounroll
  for (; stage < stages_ahead() && left > 0; ++stage) {
    const u32 now = left < stage_blocks() ? left : stage_blocks();
    burin_piece_bulk_fill(tile, (first_block + stage * stage_blocks()) * block_bytes(), now, stage * stage_bytes(),
                          stage);
    left -= now;
  }
}
