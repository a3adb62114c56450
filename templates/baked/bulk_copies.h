// The image's own rows or planes, copied in bulk, and copies that the blocks of a cluster share.
//
// For conv_baked.cu, which defines the plan's constants, the holes and what a thread keeps before.
#pragma once

#include "../device.h"

// Whole planes of several images: each of the first warp's threads copies from one image. Else rows of one image: each
// copies channels.
BURIN_DEVICE bool whole_planes() { return tile_rows() == conv_rows(); }

BURIN_DEVICE i64 block_bytes() { return static_cast<i64>(in_rows()) * in_cols() * in_together() * kWordBytes; }

// The blocks of a cluster with the same tile and split, of different groups, need the same channels at the same time.
// Each copies its part of a stage to all of them. So a buffer is filled only when all have left it: each block has a
// gate for each of its buffers, behind those of the copies, at which all of them arrive.
constexpr u32 kPeerBit = 16, kPartBit = 24;

// The ranks that share (bits), the rank of the one to which this thread says what its block has left, and which part of
// a stage this block copies.
BURIN_DEVICE u32 locate_sharing() {
  const u32 rank = burin_dev_cluster_rank();
  const u32 first = rank % share_stride(), part = rank / share_stride();
  const u32 peer = first + burin_dev_thread() % sharers() * share_stride();
  return share_ranks() << first | peer << kPeerBit | part << kPartBit;
}

BURIN_DEVICE u32 blocks_before(u32 sharing) { return (sharing >> kPartBit) * share_blocks(); }

// Of a stage's channel blocks, those that this block copies.
BURIN_DEVICE u32 own_blocks(const Tile* tile, u32 blocks) {
  if (sharers() == 1) return blocks;
  if (blocks == sharers() * share_blocks()) return share_blocks();
  const u32 before = blocks_before(tile->sharing);
  const u32 left = blocks > before ? blocks - before : 0;
  return left < share_blocks() ? left : share_blocks();
}

BURIN_DEVICE void bulk_copy(const Tile* tile, u32 shared_base, u32 shared_offset, i64 byte_offset, u32 bytes,
                            u32 gate) {
  if (sharers() == 1) {
    burin_dev_bulk_copy(shared_base, shared_offset, tile->source, byte_offset, bytes, gate);
  } else {
    burin_dev_bulk_copy_all(shared_base, shared_offset, tile->source, byte_offset, bytes, gate,
                            tile->sharing & ((1u << kPeerBit) - 1));
  }
}

// After a barrier: the buffer that belongs to the gate is left.
BURIN_PIECE void burin_piece_leave_buffer(const Tile* tile, u32 gate) {
  if (tile->thread < sharers()) burin_dev_gate_arrive(gate, tile->sharing >> kPeerBit & 7);
}
// Before a buffer is filled again.
BURIN_PIECE void burin_piece_await_buffer(const Tile* tile, u32 gate, u32 phase) {
  if (tile->thread < kWarpThreads) burin_dev_gate_wait_blocks(gate, phase);
}

// Starts the copies of `blocks` channel blocks, whose first is `source_bytes` into an image, to a buffer.
BURIN_PIECE void burin_piece_bulk_fill(const Tile* tile, i64 source_bytes, u32 blocks, u32 buffer_bytes, u32 gate) {
  if (tile->thread >= kWarpThreads) return;
  if (tile->thread == 0) burin_dev_gate_expect(gate, tile->copies * blocks * tile->bytes);
  const u32 own = own_blocks(tile, blocks);
  if (whole_planes()) {
    if (own == 0) return;
#pragma nounroll
    for (u32 image = tile->thread; image < tile->copies; image += kWarpThreads) {
      const i64 image_bytes = static_cast<i64>(image - tile->thread) * in_image_words() * kWordBytes;
      bulk_copy(tile, tile->target + (image - tile->thread) * image_pitch() * kWordBytes, buffer_bytes,
                image_bytes + source_bytes, own * tile->bytes, gate);
    }
  } else {
#pragma nounroll
    for (u32 block = tile->thread; block < own * tile->copies; block += kWarpThreads) {
      bulk_copy(tile, tile->target + block * channel_pitch() * kWordBytes, buffer_bytes,
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
