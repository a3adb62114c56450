// Tiles of pixels, which blocks share and have one after the other, for kernels of tensors whose channels and images
// lie side by side in lines: a thread fills buffers with chunks (filter_parts.h), also of the next tile: their patch of
// the image as boxes, with zeros beside the image, and their weights, which lie in panels. Gates say when a buffer is
// filled and when it is empty.
//
// Weights are panels_bytes() for each set of output channels (of a group of the convolution, then the next), for each
// chunk, with all parts of the filter. A tile has tile_rows() x tile_cols() of what is stored, which a template says
// before it includes this.
#pragma once

#include "conv_pool.h"
#include "filter_parts.h"
#include "places.h"

constexpr u32 kOctetChannels = 8;  // that lie side by side
constexpr u32 kLineBytes = 128;    // eight channels of a pixel of the images that lie side by side
constexpr u32 kEmptyGates = 4;     // the first of them; before them are those of filled buffers

// What a template says: a multiple of a line, at which boxes begin; barriers that all threads of the block pass at the
// end of each tile, when all its buffers are empty.
BURIN_DEVICE u32 panels_bytes();
BURIN_DEVICE u32 buffer_alignment();
BURIN_DEVICE u32 tile_barriers();

// ---- sizes, all constants
BURIN_DEVICE u32 tiles_across() { return divide_up(out_cols(), tile_cols()); }
BURIN_DEVICE u32 image_tiles() { return tiles_across() * divide_up(out_rows(), tile_rows()); }
BURIN_DEVICE u32 tiles() { return image_groups() * image_tiles(); }  // that blocks share
BURIN_DEVICE u32 sets() { return image_blocks() / set_blocks(); }
BURIN_DEVICE u32 chunk_octets() { return chunk_channels() / kOctetChannels; }
BURIN_DEVICE u32 group_octets() { return divide_up(group_channels(), kOctetChannels); }
BURIN_DEVICE u32 channel_chunks() { return divide_up(group_octets(), chunk_octets()); }
BURIN_DEVICE u32 chunks() { return channel_chunks() * parts(); }
BURIN_DEVICE u32 patch_pixels() { return patch_rows() * patch_cols(); }
BURIN_DEVICE u32 octet_bytes() { return patch_pixels() * kLineBytes; }
// From one pixel to the next, of the patch.
BURIN_DEVICE u32 pixel_step_rows() { return stride_rows() / step_rows(); }
BURIN_DEVICE u32 pixel_step_cols() { return stride_cols() / step_cols(); }
BURIN_DEVICE u32 pixel_bytes() { return pixel_step_cols() * kLineBytes; }
BURIN_DEVICE u32 activation_bytes() { return chunk_octets() * octet_bytes(); }
BURIN_DEVICE u32 aligned(u32 bytes) { return divide_up(bytes, buffer_alignment()) * buffer_alignment(); }
BURIN_DEVICE u32 buffer_bytes() { return aligned(activation_bytes() + panels_bytes()); }
BURIN_DEVICE u32 buffer_at(u32 number) { return aligned(kSharedStart) + number * buffer_bytes(); }

// The byte of a chunk where what a step multiplies lies, from a pixel's first line on: steps are those of all positions
// of the part of the filter, then of so many octets of channels further.
BURIN_DEVICE u32 step_place(u32 step, u32 step_octets) {
  const u32 position = step % part_positions();
  return (position / part_cols() * (dilation_rows() / step_rows()) * patch_cols() +
          position % part_cols() * (dilation_cols() / step_cols())) *
             kLineBytes +
         step / part_positions() * step_octets * octet_bytes();
}

// ---- where the block stands: neighbours share their pixels
BURIN_DEVICE u32 set_of_block() { return block_of_image() % sets(); }
BURIN_DEVICE u32 group_of_block() { return set_of_block() / output_blocks(); }  // of the convolution
BURIN_DEVICE u32 first_tile() { return block_of_image() / sets(); }

struct Tile {
  u32 image;             // the first of those side by side
  u32 out_row, out_col;  // of what is stored
  i32 row, col;          // of the convolution's pixels: padding of the pool lies before the first one
};
BURIN_DEVICE Tile tile_at(u32 number) {
  const u32 of_image = number % image_tiles();
  const u32 row = of_image / tiles_across() * tile_rows(), col = of_image % tiles_across() * tile_cols();
  return {first_image() + number / image_tiles() * in_word_images(), row, col,
          static_cast<i32>(row * pool_stride_rows()) - pool_pad_top(),
          static_cast<i32>(col * pool_stride_cols()) - pool_pad_left()};
}
BURIN_DEVICE bool exists(u32 number, i32 batch) {
  return number < tiles() && first_image() + number / image_tiles() * in_word_images() < static_cast<u32>(batch);
}

BURIN_DEVICE Corner corner_of(const Tile& tile) {
  return {static_cast<i32>(tile.row * stride_rows()) - pad_top(),
          static_cast<i32>(tile.col * stride_cols()) - pad_left()};
}
BURIN_DEVICE FilterParts parts_of(const Tile& tile) {
  return parts_that_read(corner_of(tile), patch_rows() * step_rows(), patch_cols() * step_cols());
}
BURIN_DEVICE u32 chunks_of(const FilterParts& inside) { return channel_chunks() * count_of(inside); }

// The buffer that is filled or emptied next, and how often all have been before.
struct Turn {
  u32 buffer = 0, round = 0;
};
BURIN_DEVICE Turn after(Turn turn) {
  if (turn.buffer + 1 < static_cast<u32>(buffers())) return {turn.buffer + 1, turn.round};
  return {0, turn.round + 1};
}

BURIN_DEVICE u32 before(const Turn& turn) { return (turn.buffer == 0 ? buffers() : turn.buffer) - 1; }

// Each of so many warps releases a buffer when it has emptied it. All threads of the block call it.
BURIN_DEVICE void init_gates(u32 thread, u32 warps) {
  if (thread == 0) {
#pragma unroll
    for (u32 buffer = 0; buffer < static_cast<u32>(buffers()); ++buffer) {
      burin_dev_gate_init(buffer);
      burin_dev_gate_init_released(kEmptyGates + buffer, warps);
    }
  }
  burin_dev_barrier();
}

// ---- filling
BURIN_DEVICE void copy_panels(const float* weights, const Chunk& chunk, const Turn& turn) {
  const u32 number = chunk.channels * parts() + chunk.part;
  burin_dev_gate_expect(turn.buffer, activation_bytes() + panels_bytes());
  burin_dev_bulk_copy(buffer_at(turn.buffer), activation_bytes(), weights,
                      (static_cast<i64>(set_of_block()) * chunks() + number) * panels_bytes(), panels_bytes(),
                      turn.buffer);
}
// Behind the tensor's last octet there are zeros, and behind a group's last one the next group's, which may be no
// numbers: there a box ends with the group, and what is beyond is taken from behind the tensor.
BURIN_DEVICE void copy_patch(const TensorBox& box, const Tile& tile, const Chunk& chunk, const Turn& turn) {
  const Corner corner = corner_of(corner_of(tile), chunk);
#pragma nounroll
  for (u32 i = 0; i < chunk_octets(); i += box_octets()) {
    const u32 octet = chunk.channels * chunk_octets() + i, groups = sets() / output_blocks();
    const u32 of_tensor = (octet < group_octets() ? group_of_block() : groups) * group_octets() + octet;
    burin_dev_box_copy(buffer_at(turn.buffer) + i * octet_bytes(), 0, &box, corner.col, corner.row,
                       static_cast<i32>(of_tensor), static_cast<i32>(tile.image / in_word_images()), turn.buffer);
  }
}

BURIN_DEVICE void pass_barriers() {
  if (tile_barriers() == 0) return;
  burin_dev_warp_barrier();  // the filling lane comes later
#pragma nounroll
  for (u32 i = 0; i < tile_barriers(); ++i) burin_dev_barrier();
}
// One lane of the warp fills; where tiles end with barriers, the others pass them with it.
BURIN_DEVICE void fill(const TensorBox& box, const float* weights, i32 batch, u32 lane) {
  // No kernel before this one writes weights: the first are copied before the launch is awaited.
  const FilterParts first_parts = parts_of(tile_at(first_tile()));
  const u32 early = exists(first_tile(), batch) ? at_most(buffers(), chunks_of(first_parts)) : 0;
  if (lane == 0) {
    burin_dev_prefetch_box(&box);
    for (u32 i = 0; i < early; ++i) copy_panels(weights, chunk_at(first_parts, i), {i, 0});
  }
  burin_dev_await_launch();
  if (lane != 0 && tile_barriers() == 0) return;
  Turn turn;
#pragma nounroll
  for (u32 number = first_tile(); exists(number, batch); number += set_blocks()) {
    const Tile tile = tile_at(number);
    const FilterParts inside = parts_of(tile);
    const u32 chunks = chunks_of(inside);
    // As many chunks as there are buffers are on their way while the tile before ends.
    const u32 ahead = at_most(buffers(), chunks);
#pragma nounroll
    for (u32 i = 0; i < chunks; ++i) {
      if (lane == 0) {
        const Chunk chunk = chunk_at(inside, i);
        if (turn.round > 0) burin_dev_gate_sleep(kEmptyGates + turn.buffer, (turn.round - 1) % 2);
        const bool is_early = turn.round == 0 && turn.buffer < early;
        if (!is_early) copy_panels(weights, chunk, turn);
        copy_patch(box, tile, chunk, turn);
      }
      turn = after(turn);
      if (number != first_tile() && i + 1 == ahead) pass_barriers();
    }
  }
  if (exists(first_tile(), batch)) pass_barriers();
}
