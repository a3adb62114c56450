// conv_baked: every nonzero of the layer is an instruction.
//
// A thread owns one output pixel and the accumulators of one group of output channels. A block stages the input of its
// pixel tile, a few channels at a time, in shared memory, and multiplies while the next channels arrive: either as a
// patch with halo and zeros around the image, copied word by word, or as the image's own rows in bulk copies, where
// multiply-adds that would read beyond the image are left out. What depends on the pattern is a hole:
//
//   constants   name()               plan constants, listed in conv_baked.def
//   holes       burin_hole_*         calls that the specialiser fills, per slice and per stage
//   pieces      burin_piece_*        functions that the specialiser clones into the holes with constant arguments
//
// With the half precisions a word holds the same pixel of two images, and a thread owns both. All places are counted in
// words, so that "image" means a pair of images; only loading, multiplying and writing know of the two.
//
// A channel block is what lies side by side in memory: one channel, or four with the layout nchw4.
//
// Where the layer pools its outputs, a tile is what the windows of some outputs cover, and the values go through shared
// memory (template/pool.h). Pixels of such a tile may lie before the image.
//
// Where the plan has activity maps, channels that hold nothing but zeros are skipped (template/activity.h).
//
// All threads of a block run the same code to its end: threads without a pixel still copy and wait.
#include "templates/device.h"

#define BURIN_CONSTANT(name, value) BURIN_PRIMITIVE i32 burin_const_##name() __attribute__((const));
#include "compiler/providers/conv_baked/conv_baked.def"
#undef BURIN_CONSTANT
#define BURIN_CONSTANT(name, value) \
  BURIN_DEVICE i32 name() { return burin_const_##name(); }
#include "compiler/providers/conv_baked/conv_baked.def"
#undef BURIN_CONSTANT

// These are of the slice that is being specialised.
BURIN_PRIMITIVE u32 burin_slice_group() __attribute__((const));
BURIN_PRIMITIVE u32 burin_slice_split() __attribute__((const));
BURIN_PRIMITIVE u32 burin_slice_first_output() __attribute__((const));  // accumulators whose sums it completes
BURIN_PRIMITIVE u32 burin_slice_outputs() __attribute__((const));
BURIN_PRIMITIVE const void* burin_slice_code() __attribute__((const));
BURIN_PRIMITIVE u32 burin_slice_code_bytes() __attribute__((const));  // an estimate
BURIN_PRIMITIVE float burin_real_alpha() __attribute__((const));
BURIN_PRIMITIVE float burin_real_beta() __attribute__((const));
BURIN_DEVICE float alpha() { return burin_real_alpha(); }
BURIN_DEVICE float beta() { return burin_real_beta(); }

#define BURIN_PIECE extern "C" __attribute__((device, used))

#include "compiler/providers/conv_baked/template/activity.h"

constexpr i32 kWordBytes = 4;
constexpr u32 kCopiesAtOnce = 4;   // of a loop over channels
constexpr u32 kHeldPositions = 4;  // patch positions per thread whose addresses stay in registers
constexpr i32 kMaxChannels = 128;  // ir/limits.h: kMaxGroupChannels
// Sums of a thread: one for each image that it owns, and a word of two that are FP16.
constexpr i32 kMaxSums = 3 * kMaxChannels;
constexpr u32 kWarpThreads = 32;

// One word of the input patch, the same for every channel.
struct Position {
  const float* source;  // in channel 0
  u32 target;           // bytes from the start of shared memory, in slot 0 of buffer 0
  u32 valid;            // 0: padding, or an image beyond the batch
};

// What a thread keeps while it multiplies.
struct Tile {
  const float* input;
  i32 batch;
  i32 first_image, first_row, first_col;  // of the output pixels
  u32 thread;
  u32 lane;                       // shared bytes of this thread's pixel: filter position (0, 0), slot 0, buffer 0
  Position held[kHeldPositions];  // only of patches
  // Only of bulk copies.
  u32 outside;  // filter rows (bits 0 and up) and columns (bits outside_column_bit() and up) that lie beyond the image
  const float* source;  // what this thread copies: an image of the tile, or the tile's rows of block 0
  u32 target;           // where its copy of slot 0 goes, in buffer 0
  u32 copies;           // images of the tile that exist; or 0: rows that exist
  u32 bytes;            // of one channel block of an image or of the rows
};

// A thread's output pixel.
struct Pixel {
  float* output;  // channel 0; null: the tile reaches beyond the image or the batch; with a pool the whole tensor
  const float* residual;
  u32 value_bits;  // bits of a stored word that belong to its images and are no signs; with a pool 0: the tile reaches
                   // beyond
};

BURIN_DEVICE bool exists(const Pixel& pixel) { return pools() ? pixel.value_bits != 0 : pixel.output != nullptr; }

// What a launch passes; the order is part of the package format.
struct Launch {
  const float* input;
  float* output;
  const float* residual;
  float* partials;
  u32* counters;
  i32 images;
  i32 batch;  // images, or pairs of images
};

// ---- holes
BURIN_PRIMITIVE void burin_hole_copies(const float* source, u32 target, u32 valid);
BURIN_PRIMITIVE void burin_hole_fill_ahead(const Tile* tile);
BURIN_PRIMITIVE void burin_hole_taps(float* sums, u32 lane, u32 outside);
BURIN_PRIMITIVE void burin_hole_prologue(const Tile* tile);
BURIN_PRIMITIVE void burin_hole_stages(const Tile* tile, float* sums);
BURIN_PRIMITIVE void burin_hole_direct(float* sums, const float* source);
BURIN_PRIMITIVE void burin_hole_clear(float* sums);
BURIN_PRIMITIVE void burin_hole_publish(float* sums, float* partials);
BURIN_PRIMITIVE void burin_hole_gather(float* sums, const float* partials);
BURIN_PRIMITIVE void burin_hole_leave(float* sums, u32 place);
BURIN_PRIMITIVE void burin_hole_collect(float* sums, u32 place, u32 first_rank);
BURIN_PRIMITIVE void burin_hole_outputs(float* sums, const Pixel* pixel, u32* live);
BURIN_PRIMITIVE void burin_hole_keep(float* sums, const Pixel* pixel, u32 place);
BURIN_PRIMITIVE void burin_hole_numbers(u32 place);
BURIN_PRIMITIVE u32 burin_hole_first_block(u32 slice);
BURIN_PRIMITIVE u32 burin_hole_blocks(u32 slice);
BURIN_PRIMITIVE void burin_hole_slices(u32 slice, u32 lane, u32 outside, const float* source, u32 target, u32 copies,
                                       u32 bytes, float* partials, u32* counters, u8* marks, i32 batch, float* output,
                                       const float* residual, u32 value_bits);

BURIN_DEVICE i32 at_most(i32 value, i32 limit) { return value < limit ? value : limit; }

#include "compiler/providers/conv_baked/template/bulk_copies.h"
#include "compiler/providers/conv_baked/template/multiply.h"
#include "compiler/providers/conv_baked/template/patch.h"
#include "compiler/providers/conv_baked/template/sums.h"

// ---- a block
BURIN_DEVICE i32 words_of_images(i32 images) { return (images + word_images() - 1) / word_images(); }

// Where the tile's pixels are, and its outputs, which are the same where the layer has no pool.
struct TileOrigin {
  i32 image, row, col;
  i32 out_row, out_col;
};

BURIN_DEVICE TileOrigin locate_origin() {
  const u32 row_tiles = (out_rows() + tile_out_rows() - 1) / tile_out_rows();
  const u32 col_tiles = (out_cols() + tile_out_cols() - 1) / tile_out_cols();
  const u32 block = burin_dev_block_x();
  const u32 within_image = block % (row_tiles * col_tiles);
  TileOrigin origin;
  origin.image = block / (row_tiles * col_tiles) * tile_images();
  origin.row = within_image / col_tiles * tile_row_step() + first_tile_row();
  origin.col = within_image % col_tiles * tile_col_step() + first_tile_col();
  origin.out_row = within_image / col_tiles * tile_out_rows();
  origin.out_col = within_image % col_tiles * tile_out_cols();
  return origin;
}

// A thread's pixel within the tile; a thread beyond the last pixel shares the last one's place.
struct TilePlace {
  i32 image, row, col;
};

BURIN_DEVICE u32 tile_pixels() { return tile_images() * tile_rows() * tile_cols(); }

BURIN_DEVICE TilePlace locate_place(u32 thread) {
  const u32 pixel = thread < tile_pixels() ? thread : tile_pixels() - 1;
  const u32 image_pixels = tile_rows() * tile_cols();
  const u32 within_image = pixel % image_pixels;
  TilePlace place;
  place.image = pixel / image_pixels;
  place.row = within_image / tile_cols();
  place.col = within_image % tile_cols();
  return place;
}

BURIN_DEVICE Tile locate_tile(const float* input, i32 batch) {
  const TileOrigin origin = locate_origin();
  Tile tile;
  tile.input = input;
  tile.batch = batch;
  tile.first_image = origin.image;
  tile.first_row = origin.row;
  tile.first_col = origin.col;
  tile.thread = burin_dev_thread();
  const TilePlace place = locate_place(tile.thread);
  tile.lane = shared_start() + (place.image * image_pitch() + place.row * stride_rows() * row_pitch() +
                                word_of_column(place.col * stride_cols())) *
                                   kWordBytes;
  if (positions_per_thread() <= kHeldPositions) {
#pragma unroll
    for (u32 i = 0; i < kHeldPositions; ++i) {
      if (i < positions_per_thread()) tile.held[i] = locate_position(&tile, i * block_threads() + tile.thread);
    }
  }
  return tile;
}

// The nearest of the image's rows and columns.
BURIN_DEVICE i32 existing_row(i32 row) {
  const i32 reached = first_tile_row() < 0 && row < 0 ? 0 : row;
  return at_most(reached, conv_rows() - 1);
}
BURIN_DEVICE i32 existing_col(i32 col) {
  const i32 reached = first_tile_col() < 0 && col < 0 ? 0 : col;
  return at_most(reached, conv_cols() - 1);
}

// This is for bulk copies. A thread whose pixel does not exist stands in for one that does.
BURIN_DEVICE Tile locate_bulk_tile(const Launch& launch) {
  const TileOrigin origin = locate_origin();
  Tile tile;
  tile.thread = burin_dev_thread();
  const TilePlace place = locate_place(tile.thread);
  const i32 images = at_most(tile_images(), launch.batch - origin.image);
  const i32 image = at_most(place.image, images - 1);
  const i32 row = existing_row(origin.row + place.row);
  const i32 y = row * stride_rows() - pad_top();
  const i32 x = place.col * stride_cols() - pad_left();
  // The first of the image's rows in a buffer, and rows between it and the buffer's start.
  const i32 first_row = whole_planes() ? 0 : origin.row * stride_rows() - pad_top();
  const i32 missing = first_row < 0 ? -first_row : 0;
  const i32 reached = at_most(patch_rows(), in_rows() - first_row) - missing;
  const i32 rows = whole_planes() ? in_rows() : reached < 0 ? 0 : reached;  // 0: the tile reads nothing but padding
  tile.lane = shared_start() + (image * image_pitch() + (y - first_row) * row_pitch() + x * in_together()) * kWordBytes;

  tile.outside = 0;
#pragma unroll
  for (i32 r = 0; r < kernel_rows(); ++r) {
    const i32 at = y + r * dilation_rows();
    if (at < 0 || at >= in_rows()) tile.outside |= 1u << r;
  }
#pragma unroll
  for (i32 s = 0; s < kernel_cols(); ++s) {
    const i32 at = x + s * dilation_cols();
    if (at < 0 || at >= in_cols()) tile.outside |= 1u << (outside_column_bit() + s);
  }

  const u32 copied_image = whole_planes() ? tile.thread : 0;
  tile.source = launch.input + static_cast<i64>(origin.image + copied_image) * in_image_words() +
                (first_row + missing) * in_cols() * in_together();
  tile.target = shared_start() + (copied_image * image_pitch() + missing * row_pitch()) * kWordBytes;
  tile.copies = whole_planes() ? images : rows > 0;
  tile.bytes = rows * in_cols() * in_together() * kWordBytes;
  return tile;
}

// The input of this thread's pixel in channel 0, of a 1x1 filter without padding. A thread without a pixel reads one
// that exists.
BURIN_DEVICE const float* locate_source(const Launch& launch) {
  const TileOrigin origin = locate_origin();
  const TilePlace place = locate_place(burin_dev_thread());
  const i32 image = at_most(origin.image + place.image, launch.batch - 1);
  const i32 row = existing_row(origin.row + place.row);
  const i32 col = existing_col(origin.col + place.col);
  return launch.input + static_cast<i64>(image) * in_image_words() +
         (row * stride_rows() * in_cols() + col * stride_cols()) * in_together();
}

BURIN_DEVICE Pixel locate_pixel(const Launch& launch) {
  const TileOrigin origin = locate_origin();
  const u32 thread = burin_dev_thread();
  const TilePlace place = locate_place(thread);
  const i32 image = origin.image + place.image;
  const i32 row = origin.row + place.row;
  const i32 col = origin.col + place.col;
  const i32 within_image = (row * conv_cols() + col) * out_together();
  const bool owned = thread < tile_pixels() && image < launch.batch && row < conv_rows() && col < conv_cols() &&
                     (first_tile_row() == 0 || row >= 0) && (first_tile_col() == 0 || col >= 0);
  Pixel pixel;
  pixel.output = owned ? launch.output + static_cast<i64>(image) * out_image_words() + within_image : nullptr;
  pixel.residual =
      has_residual() ? launch.residual + static_cast<i64>(image) * residual_image_words() + within_image : nullptr;
  constexpr u32 kBoth = 0x7FFF7FFF, kFirst = 0x00007FFF;
  pixel.value_bits = image * word_images() + 1 < launch.images ? kBoth : kFirst;
  if (pools()) {
    pixel.output = launch.output;
    pixel.value_bits = owned;
  }
  return pixel;
}

#include "compiler/providers/conv_baked/template/pool.h"

// What becomes of the complete sums of a pixel that exists.
BURIN_DEVICE void finish_pixel(float* sums, const Pixel* pixel, u32* live) {
  if (pools()) {
    burin_hole_keep(sums, pixel, values_start() + burin_dev_thread() * kWordBytes);
  } else {
    burin_hole_outputs(sums, pixel, live);
  }
}

// The code of one slice: cloned per output-channel group and split. The entry has found the thread's places, as it
// waits for the first copies anyway. What comes first is needed at once, and lies in registers; what comes last, at the
// end.
BURIN_PIECE void burin_piece_slice(u32 lane, u32 outside, const float* source, u32 target, u32 copies, u32 bytes,
                                   float* partials, u32* counters, u8* marks, i32 batch, float* output,
                                   const float* residual, u32 value_bits) {
  burin_dev_prefetch_code(burin_slice_code(), burin_slice_code_bytes(), block_threads());
  const Pixel pixel = {output, residual, value_bits};
  u32 live[kMaxMarkWords];
  clear_live(live);
  float sums[kMaxSums];
  if (bulk()) {
    Tile tile;
    tile.thread = burin_dev_thread();
    tile.lane = lane;
    tile.outside = outside;
    tile.source = source;
    tile.target = target;
    tile.copies = copies;
    tile.bytes = bytes;
    burin_hole_clear(sums);
    burin_hole_stages(&tile, sums);
  } else if (staged()) {
    const Tile tile = locate_tile(source, batch);
    burin_hole_clear(sums);
    burin_hole_prologue(&tile);
    burin_hole_stages(&tile, sums);
  } else {
    burin_hole_clear(sums);
    burin_hole_direct(sums, source);
  }

  if (clustered()) {
    burin_dev_barrier();  // the partial sums take the buffers' place
    const u32 place = partials_start() + burin_dev_thread() * kWordBytes;
    burin_hole_leave(sums, place);
    burin_dev_cluster_barrier();
    if (exists(pixel)) {
      burin_hole_collect(sums, place, rank_of_first_split());
      finish_pixel(sums, &pixel, live);
    }
    if (pools()) pool_outputs(pixel.output, batch);
    write_marks(marks, live);
    burin_dev_cluster_arrive();
    burin_dev_cluster_meet();
    burin_dev_exit();
  } else if (splits() > 1) {
    const i64 slice_words = static_cast<i64>(group_sums()) * block_threads();
    const i64 first_slice = (static_cast<i64>(burin_dev_block_x()) * group_count() + burin_slice_group()) * splits();
    float* group_partials = partials + first_slice * slice_words + burin_dev_thread();
    burin_hole_publish(sums, group_partials + burin_slice_split() * slice_words);
    if (!last_to_arrive(counters + burin_dev_block_x() * group_count() + burin_slice_group())) burin_dev_exit();
    burin_hole_clear(sums);
#pragma nounroll
    for (i32 split = 0; split < splits(); ++split) burin_hole_gather(sums, group_partials + split * slice_words);
  }
  if (pools() && splits() == 1) burin_dev_barrier();  // the values take the buffers' place
  if (exists(pixel)) finish_pixel(sums, &pixel, live);
  if (pools()) pool_outputs(pixel.output, batch);
  write_marks(marks, live);
  burin_dev_exit();
}

// What is the same for all slices is done here: this code is fetched once for the whole GPU.
BURIN_DEVICE void run_block(const Launch& launch, const u8* activity, u8* marks) {
  const u32 slice = burin_dev_block_y();
  // The grid is whole clusters; nobody waits for a block whose tile lies beyond the batch.
  if (cluster_tiles() > 1 && locate_origin().image >= launch.batch) burin_dev_exit();
  Tile tile = {};
  if (uses_activity()) clear_activity();
  if (bulk()) {
    const u32 gate = burin_dev_thread();
    if (gate < buffers()) burin_dev_gate_init(gate);
    tile = locate_bulk_tile(launch);
    burin_dev_barrier();
    burin_dev_await_launch();
    fill_first_buffers(&tile, burin_hole_first_block(slice), burin_hole_blocks(slice));
  } else {
    tile.source = staged() ? launch.input : locate_source(launch);
    burin_dev_await_launch();
  }
  if (uses_activity()) {
    if (!bulk()) burin_dev_barrier();  // the words are clear
    if (skips()) {
      const TileOrigin origin = locate_origin();
      find_live_channels(activity, launch.batch, origin.image, origin.row, origin.col,
                         burin_hole_first_live_word(slice), burin_hole_live_words(slice));
      burin_dev_barrier();
    }
  }
  const Pixel pixel = locate_pixel(launch);
  burin_hole_slices(slice, tile.lane, tile.outside, tile.source, tile.target, tile.copies, tile.bytes, launch.partials,
                    launch.counters, marks, launch.batch, pixel.output, pixel.residual, pixel.value_bits);
}

// The entries: the plan decides which is kept, under the kernel's symbol.
BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* residual, float* partials, u32* counters,
                               i32 batch) {
  run_block({input, output, residual, partials, counters, batch, words_of_images(batch)}, nullptr, nullptr);
}

BURIN_KERNEL void burin_kernel_with_activity(const float* input, float* output, const float* residual, float* partials,
                                             u32* counters, const u8* input_activity, u8* output_activity, i32 batch) {
  run_block({input, output, residual, partials, counters, batch, words_of_images(batch)}, input_activity,
            output_activity);
}
