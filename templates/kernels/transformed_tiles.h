// Convolutions of step 1 whose patches and filters are transformed, so that fewer numbers need to be multiplied. A tile
// of outputs reads a patch of side() x side() inputs, whose transform has as many words: the points, of one word or, of
// complex numbers, two. What is multiplied are points of the same place, added up over the channels; the sums,
// transformed back, are the outputs of the tile.
//
// A block has block_tiles() tiles (of its images, one image's behind the other's) and block_outputs() outputs. It takes
// the channels in slices: its threads transform the patches of a slice, and leave them in shared memory; then a thread
// multiplies, for some of the points, some tiles by some outputs. Meanwhile the next patches are loaded and the next
// weights copied. The blocks of a cluster have other channels each, and add up what they have.
//
// Behind a pool a block has the tiles that a rectangle of windows reads, of each of its images. What is pooled lies in
// shared memory, and is stored nowhere else.
//
// Weights: for each block's outputs, for each slice, for each word of the points, for each channel, a row of
// block_outputs() words. Then the biases. A template defines BURIN_TEMPLATE_DEF and the sizes below.
#pragma once

#include "templates/kernels/cluster_sums.h"
#include "templates/kernels/function.h"
#include "templates/kernels/register_tiles.h"
#include "templates/kernels/residual.h"
#include "templates/kernels/window_rectangle.h"

constexpr u32 kMaxPoints = 4, kMaxOutputQuads = 4, kMaxTileQuads = 2;

// What a template says, all constants: the rows and columns of a patch, the words of a point, and how far the rows of a
// tile lie apart where its results lie in quads.
BURIN_DEVICE i32 side();
BURIN_DEVICE u32 point_words();
BURIN_DEVICE u32 result_pitch();

// ---- sizes, all constants
BURIN_DEVICE i32 tile_rows() { return side() - kernel_rows() + 1; }
BURIN_DEVICE i32 tile_cols() { return side() - kernel_cols() + 1; }
BURIN_DEVICE u32 patch_words() { return side() * side(); }
BURIN_DEVICE u32 point_groups() { return patch_words() / point_words() / points(); }
BURIN_DEVICE u32 block_tiles() { return kQuadWords * tile_quads() * tile_threads(); }
BURIN_DEVICE u32 block_outputs() { return kQuadWords * output_quads() * output_threads(); }
BURIN_DEVICE u32 output_blocks() { return divide_up(out_channels(), block_outputs()); }
BURIN_DEVICE u32 in_plane() { return in_rows() * in_cols(); }
BURIN_DEVICE u32 conv_plane() { return conv_rows() * conv_cols(); }
BURIN_DEVICE u32 tiles_across() { return divide_up(conv_cols(), tile_cols()); }
BURIN_DEVICE u32 image_tiles() { return divide_up(conv_rows(), tile_rows()) * tiles_across(); }
BURIN_DEVICE u32 slices() { return divide_up(in_channels(), slice_channels()); }
BURIN_DEVICE u32 block_slices() { return divide_up(slices(), cluster_blocks()); }
BURIN_DEVICE u32 slice_patches() { return slice_channels() * block_tiles(); }
// Shared memory: two buffers, each of a slice's weights and patches; at the end, in their place, the sums of all
// points, behind them the quads of outputs that the blocks of a cluster add up or windows are made of, and what other
// blocks send.
BURIN_DEVICE u32 slice_weight_words() { return patch_words() * slice_channels() * block_outputs(); }
BURIN_DEVICE u32 buffer_bytes() { return (slice_weight_words() + patch_words() * slice_patches()) * kWordBytes; }
BURIN_DEVICE u32 items() { return block_outputs() * block_tiles(); }
BURIN_DEVICE u32 item_quads() { return tile_rows() * result_pitch() / kQuadWords; }
BURIN_DEVICE u32 sums_bytes() { return patch_words() * items() * kWordBytes; }
BURIN_DEVICE u32 results_bytes() { return item_quads() * items() * kSumQuadBytes; }
BURIN_DEVICE u32 results_start() { return kSharedStart + sums_bytes(); }

// ---- where the block stands: the blocks of a cluster follow each other, then those that share their tiles
BURIN_DEVICE u32 rank() { return block_of_image() % cluster_blocks(); }
BURIN_DEVICE u32 output_block() { return block_of_image() / cluster_blocks() % output_blocks(); }
BURIN_DEVICE u32 tile_block() { return block_of_image() / (cluster_blocks() * output_blocks()); }

// ---- the tiles of a block's windows, behind a pool
BURIN_DEVICE u32 rectangle_of_block() { return tile_block(); }
BURIN_DEVICE u32 rectangle_cols() { return divide_up(pixel_cols(), tile_cols()); }
BURIN_DEVICE u32 rectangle_tiles() { return divide_up(pixel_rows(), tile_rows()) * rectangle_cols(); }

// One of the block's tiles.
struct Tile {
  u32 image;     // of all
  u32 row, col;  // of its first output; behind a pool, padding lies before 0
  bool exists;
};
BURIN_DEVICE Tile tile_of_windows(u32 index, i32 batch) {
  const u32 image = index / rectangle_tiles(), place = index % rectangle_tiles();
  return {first_image() + image, first_pixel_row() + place / rectangle_cols() * tile_rows(),
          first_pixel_col() + place % rectangle_cols() * tile_cols(),
          image < static_cast<u32>(block_images()) && first_image() + image < static_cast<u32>(batch)};
}
BURIN_DEVICE Tile tile_at(u32 index, i32 batch) {
  if (pools()) return tile_of_windows(index, batch);
  const u32 of_images = tile_block() * block_tiles() + index;
  const u32 image = block_images() == 1 ? 0 : of_images / image_tiles();
  const u32 place = of_images - image * image_tiles();
  const bool exists = image < static_cast<u32>(block_images()) && place < image_tiles() &&
                      first_image() + image < static_cast<u32>(batch);
  return {first_image() + image, place / tiles_across() * tile_rows(), place % tiles_across() * tile_cols(), exists};
}

// ---- patches
// What a thread loads of a patch: of one tile, and in each slice of one channel.
struct Source {
  i64 place;    // byte of the input at which the first channel's patch begins, if it is inside
  u32 inside;   // which rows and columns of a patch lie inside the image, a bit each; none where there is no patch
  u32 channel;  // of the slice
};
constexpr i32 kMostSide = 16;
constexpr u32 kColumnBits = kMostSide;  // behind the bits of the rows
BURIN_DEVICE bool has_whole_slices() { return in_channels() % slice_channels() == 0; }
BURIN_DEVICE u32 bits_inside(i32 first, i32 extent) {
  u32 bits = 0;
#pragma unroll
  for (i32 i = 0; i < kMostSide; ++i) {
    if (i >= side()) continue;
    bits |= static_cast<u32>(static_cast<u32>(first + i) < static_cast<u32>(extent)) << i;
  }
  return bits;
}
// Patch `number` of a slice: for each channel, those of the tiles.
BURIN_DEVICE Source source_of(u32 number, bool exists, i32 batch) {
  const Tile tile = tile_at(number % block_tiles(), batch);
  const i32 row = static_cast<i32>(tile.row) - pad_top(), col = static_cast<i32>(tile.col) - pad_left();
  Source source;
  source.channel = number / block_tiles();
  const i64 image = static_cast<i64>(tile.image) * in_image_words() + source.channel * in_plane();
  source.place = (image + row * in_cols() + col) * kWordBytes;
  const u32 inside = bits_inside(row, in_rows()) | bits_inside(col, in_cols()) << kColumnBits;
  source.inside = exists && tile.exists ? inside : 0;
  return source;
}
// What of it lies inside in a slice: nothing where there is no such channel.
BURIN_DEVICE u32 inside_of(const Source& source, u32 slice) {
  const bool exists = has_whole_slices() || slice * slice_channels() + source.channel < static_cast<u32>(in_channels());
  return exists ? source.inside : 0;
}
BURIN_DEVICE i64 place_of(const Source& source, u32 slice) {
  return source.place + bytes_of(slice * slice_channels() * in_plane());
}
// A row's value at column `col`, or zero where it is not inside: `cols` are the bits of those that are, for a row that
// is not there none.
BURIN_DEVICE float load_value(const float* input, u32 cols, i32 col, i64 row_place) {
  return burin_dev_global_load_if(cols & 1U << col, input, row_place + col * kWordBytes);
}
// Where the first word of a patch lies in a slice's buffer, which has for each word of the points, for each channel, a
// row of the tiles; and how far the next word is.
BURIN_DEVICE u32 patch_place(u32 buffer, u32 number) { return buffer + (slice_weight_words() + number) * kWordBytes; }
BURIN_DEVICE u32 next_patch_word() { return slice_patches() * kWordBytes; }

// ---- sums
// A thread's first point, output and tile. Its points lie as many apart as there are groups of threads; its quads a
// whole row of threads, so that neighbours load neighbouring words.
struct Share {
  u32 point, output, tile;
  bool exists;
};
BURIN_DEVICE Share share_of_thread() {
  const u32 thread = burin_dev_thread(), threads = output_threads() * tile_threads();
  const u32 in_group = thread % threads;
  return {thread / threads, in_group / tile_threads() * kQuadWords, in_group % tile_threads() * kQuadWords,
          thread < threads * point_groups()};
}
// How many words a thread's points lie apart.
BURIN_DEVICE u32 word_step() { return point_groups() * point_words(); }

// Where what a thread multiplies lies: the first words of its first point, in the first channel of a slice.
struct Factors {
  u32 weights, patches;
};
BURIN_DEVICE Factors factors_of(const Share& own, u32 buffer) {
  const u32 first_row = own.point * point_words() * slice_channels();
  return {buffer + (first_row * block_outputs() + own.output) * kWordBytes,
          buffer + (slice_weight_words() + first_row * block_tiles() + own.tile) * static_cast<u32>(kWordBytes)};
}
// Word `word` from there on, in a channel.
BURIN_DEVICE void load_weights(const Factors& factors, u32 word, u32 channel, f32x4 (&quads)[kMaxOutputQuads]) {
  const u32 row = word * slice_channels() + channel;
  load_quads(factors.weights, row * block_outputs() * kWordBytes, output_threads() * kQuadWords * kWordBytes,
             output_quads(), quads);
}
BURIN_DEVICE void load_points(const Factors& factors, u32 word, u32 channel, f32x4 (&quads)[kMaxTileQuads]) {
  const u32 row = word * slice_channels() + channel;
  load_quads(factors.patches, row * block_tiles() * kWordBytes, tile_threads() * kQuadWords * kWordBytes, tile_quads(),
             quads);
}

// A thread's sums of one word of a point.
using WordSums = TileSums<kMaxOutputQuads, kMaxTileQuads>;
// Leaves them in shared memory: for each word of the points, for each output, a row of the tiles; `word` counts from
// the thread's first one.
BURIN_DEVICE void leave(const Share& own, const WordSums& sums, u32 word) {
  const u32 base =
      kSharedStart + (own.point * point_words() * items() + own.output * block_tiles() + own.tile) * kWordBytes;
  leave_sums(sums, output_quads(), tile_quads(), output_threads() * kQuadWords, tile_threads() * kQuadWords,
             block_tiles(), base, word * items() * kWordBytes);
}

BURIN_DEVICE void copy_weights(const float* weights, u32 slice, u32 buffer) {
  const float* from = weights + static_cast<i64>(output_block() * slices() + slice) * slice_weight_words();
  copy_panel(from, slice_weight_words(), buffer);
}

// The slices that a block has.
struct Slices {
  u32 begin, end;
};
// Begins to copy the first weights: no kernel before this one writes any.
BURIN_DEVICE Slices begin_slices(const float* weights) {
  const u32 begin = rank() * block_slices(), end = at_most(begin + block_slices(), slices());
  if (begin < end) copy_weights(weights, begin, kSharedStart);
  burin_dev_copy_commit();
  return {begin, end};
}
// Goes through them: load(slice) loads what leave(buffer) then leaves in a slice's buffer, whose weights are there when
// multiply(buffer) is called.
template <typename Load, typename Leave, typename Multiply>
BURIN_DEVICE void walk_slices(Slices own, const float* weights, Load load, Leave leave, Multiply multiply) {
  const u32 begin = own.begin, end = own.end;
  u32 filled = kSharedStart, empty = kSharedStart + buffer_bytes();
  burin_dev_await_launch();
  if (begin < end) load(begin);
#pragma nounroll
  for (u32 slice = begin; slice < end; ++slice) {
    leave(filled);
    burin_dev_copy_wait(0);
    burin_dev_barrier();
    if (slice + 1 < end) {
      copy_weights(weights, slice + 1, empty);
      load(slice + 1);
    }
    burin_dev_copy_commit();
    multiply(filled);
    const u32 next = empty;
    empty = filled;
    filled = next;
  }
  burin_dev_barrier();
}

// ---- results: an item is one output of one tile
struct Item {
  Tile tile;
  u32 channel;
  bool exists;
};
BURIN_DEVICE Item item_at(u32 number, i32 batch) {
  const Tile tile = tile_at(number % block_tiles(), batch);
  const u32 channel = output_block() * block_outputs() + number / block_tiles();
  return {tile, channel, tile.exists && channel < static_cast<u32>(out_channels())};
}
BURIN_DEVICE float bias_of(const float* weights, const Item& item) {
  const float* biases = weights + static_cast<i64>(output_blocks() * slices()) * slice_weight_words();
  return has_bias() ? burin_dev_global_load(biases, bytes_of(item.channel)) : 0;
}

// Where the results of a tile's quad `quad` lie in the convolution's image; rows lie result_pitch() apart.
struct Places {
  i64 of[kQuadWords];
  bool exists[kQuadWords];
};
BURIN_DEVICE Places places_of(const Item& item, u32 quad) {
  const u32 first = item.channel * conv_plane() + item.tile.row * conv_cols() + item.tile.col;
  Places places;
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    const u32 row = (quad * kQuadWords + i) / result_pitch(), col = (quad * kQuadWords + i) % result_pitch();
    places.of[i] = bytes_of(first + row * conv_cols() + col);
    places.exists[i] = col < static_cast<u32>(tile_cols()) && is_pixel(item.tile.row + row, item.tile.col + col);
  }
  return places;
}
// What bias, residual and function make of a quad's sums; `added` is the image's residual.
BURIN_DEVICE f32x4 ended(const Places& places, f32x4 sums, float bias, const float* added) {
  float residuals[kQuadWords];
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    residuals[i] = 0;
    if (residual() && places.exists[i]) residuals[i] = burin_dev_global_load(added, places.of[i]);
  }
  f32x4 results;
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) results[i] = end_of_sum(sums[i] + bias, residuals[i]);
  return results;
}

// Quad `quad` of a tile.
BURIN_DEVICE void finish_quad(const Item& item, u32 quad, f32x4 sums, float bias, const float* other, float* output) {
  const float* added = residual_of(other, item.tile.image);
  float* to = output_of(output, item.tile.image);
  const u32 first = item.channel * conv_plane() + item.tile.row * conv_cols() + item.tile.col;
  if (vector() == kQuadWords) {
    const u32 row_quads = result_pitch() / kQuadWords, row = quad / row_quads, col = quad % row_quads * kQuadWords;
    if (item.tile.row + row >= static_cast<u32>(conv_rows())) return;
    if (row_quads > 1 && item.tile.col + col >= static_cast<u32>(conv_cols())) return;
    const i64 place = bytes_of(first + row * conv_cols() + col);
    f32x4 residuals = {0, 0, 0, 0}, results;
    if (residual()) residuals = burin_dev_global_load4(added, place);
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) results[i] = end_of_sum(sums[i] + bias, residuals[i]);
    burin_dev_global_store4(to, place, results);
    return;
  }
  const Places places = places_of(item, quad);
  const f32x4 results = ended(places, sums, bias, added);
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    if (places.exists[i]) burin_dev_global_store(to, places.of[i], results[i]);
  }
}

// Where a quad of item `number` lies in shared memory: tiles side by side, whose quads neighbours store and load, and
// all of an output together, so that each block of a cluster adds up all of some outputs.
BURIN_DEVICE u32 result_place(u32 number, u32 quad) {
  const u32 place = (number / block_tiles() * item_quads() + quad) * block_tiles() + number % block_tiles();
  return results_start() + place * kSumQuadBytes;
}

// Ends a quad of item `number`: it is stored, or behind a pool left where its windows are made.
BURIN_DEVICE void end_quad(const Item& item, u32 number, u32 quad, f32x4 sums, float bias, const float* other,
                           float* output) {
  if (pools()) {
    burin_dev_shared_store4(result_place(number, quad), 0,
                            ended(places_of(item, quad), sums, bias, residual_of(other, item.tile.image)));
  } else {
    finish_quad(item, quad, sums, bias, other, output);
  }
}

// Gives a quad of item `number` to what the blocks of a cluster add up; a block that has all channels ends it.
BURIN_DEVICE void give_quad(const Item& item, u32 number, u32 quad, f32x4 outputs, float bias, const float* other,
                            float* output) {
  if (cluster_blocks() > 1) {
    burin_dev_shared_store4(result_place(number, quad), 0, outputs);
  } else {
    end_quad(item, number, quad, outputs, bias, other, output);
  }
}

// Stores what windows make of the outputs that the block has, neighbours in a row by neighbouring threads.
BURIN_DEVICE void store_windows(float* output, i32 batch) {
  const u32 of_image = window_rows() * window_cols(), of_output = block_images() * of_image;
  const u32 own_outputs = block_outputs() / cluster_blocks();
#pragma nounroll
  for (u32 window = burin_dev_thread(); window < own_outputs * of_output; window += block_threads()) {
    const u32 of_block = rank() * own_outputs + window / of_output, image = window % of_output / of_image;
    const u32 row = window % of_image / window_cols(), col = window % of_image % window_cols();
    const u32 y = first_window_row() + row, x = first_window_col() + col;
    const u32 channel = output_block() * block_outputs() + of_block;
    if (y >= static_cast<u32>(out_rows()) || x >= static_cast<u32>(out_cols())) continue;
    if (channel >= static_cast<u32>(out_channels()) || first_image() + image >= static_cast<u32>(batch)) continue;
    const u32 first_tile = of_block * block_tiles() + image * rectangle_tiles();
    const u32 top = row * pool_stride_rows(), left = col * pool_stride_cols();
    const float result = pool_of_window(
        first_pixel_row() + static_cast<i32>(top), first_pixel_col() + static_cast<i32>(left),
        [&](u32 r, u32 s) BURIN_INLINED {
          const u32 pixel_row = top + r, pixel_col = left + s;
          const u32 tile = first_tile + pixel_row / tile_rows() * rectangle_cols() + pixel_col / tile_cols();
          const u32 word = pixel_row % tile_rows() * result_pitch() + pixel_col % tile_cols();
          return burin_dev_shared_load(result_place(tile, word / kQuadWords), word % kQuadWords * kWordBytes);
        });
    burin_dev_global_store(output_of(output, first_image() + image),
                           bytes_of((channel * out_rows() + y) * out_cols() + x), result);
  }
}

// Adds up what the blocks of a cluster have, and finishes it; behind a pool, what all blocks have left.
BURIN_DEVICE void finish_block(const float* weights, const float* other, float* output, i32 batch) {
  if (cluster_blocks() > 1) {
    const u32 copied = 2 * buffer_bytes(), left = sums_bytes() + results_bytes(), thread = burin_dev_thread();
    const ClusterSums all = {results_start(), kSharedStart + (copied > left ? copied : left), item_quads() * items(),
                             rank()};
    exchange_sums(all, thread);
#pragma nounroll
    for (u32 number = thread; number < share_quads(all); number += block_threads()) {
      const u32 of_block = rank() * share_quads(all) + number;
      const u32 of_output = item_quads() * block_tiles(), quad = of_block % of_output / block_tiles();
      const u32 of_items = of_block / of_output * block_tiles() + of_block % block_tiles();
      const Item item = item_at(of_items, batch);
      if (item.exists) {
        end_quad(item, of_items, quad, sum_of_blocks(all, number), bias_of(weights, item), other, output);
      }
    }
  }
  if (pools()) {
    burin_dev_barrier();
    store_windows(output, batch);
  }
  if (cluster_blocks() > 1) burin_dev_cluster_meet();
}
