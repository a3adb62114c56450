// conv_dense: a convolution whose weights are data: the product of a matrix of weights and one of activations, which is
// gathered from the image as it is copied to shared memory.
//
// A block has a tile of output channels (of one group of the convolution) and of pixels (of its images, one image's
// behind the other's). It takes the reduction in chunks: `chunk_channels` input channels, one row of the filter,
// `chunk_cols` of its columns; filled up with rows of zeros to `chunk_depth`, of which each split has an equal own.
// While a chunk is multiplied, those after it are copied. A thread has up to 16 outputs and 8 pixels of one split; what
// the splits have is added up at the end.
//
// Behind a pool a tile has all pixels that a rectangle of windows reads, of each of the block's images: what lies in
// windows of two tiles is computed in both. What is pooled lies in shared memory, and is stored nowhere else.
//
// Weights: for each tile of output channels, for each chunk, `chunk_depth` rows of the tile's width. Then the biases.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_dense/conv_dense.def"
#include "templates/kernels/function.h"
#include "templates/kernels/register_tiles.h"
#include "templates/kernels/residual.h"
#include "templates/kernels/window_rectangle.h"

constexpr i32 kMaxOutputQuads = 4, kMaxPixelQuads = 2;
constexpr u32 kResultsAtOnce = 8;  // of a thread, whose residuals are loaded together

// ---- sizes, all constants
BURIN_DEVICE u32 tile_outputs() { return kQuadWords * output_quads() * output_threads(); }
BURIN_DEVICE u32 tile_pixels() { return kQuadWords * pixel_quads() * pixel_threads(); }
BURIN_DEVICE u32 output_tiles() { return divide_up(group_outputs(), tile_outputs()); }
BURIN_DEVICE u32 image_pixels() { return conv_rows() * conv_cols(); }
BURIN_DEVICE u32 pixel_tiles() {
  return pools() ? rectangles() : divide_up(block_images() * image_pixels(), tile_pixels());
}
BURIN_DEVICE u32 rectangle_pixels() { return pixel_rows() * pixel_cols(); }
BURIN_DEVICE u32 groups() { return image_blocks() / (output_tiles() * pixel_tiles()); }
BURIN_DEVICE u32 in_plane() { return in_rows() * in_cols(); }
BURIN_DEVICE u32 chunks() {
  return divide_up(group_channels(), chunk_channels()) * kernel_rows() * divide_up(kernel_cols(), chunk_cols());
}
// Shared memory: for each buffer the chunk's weights, then its activations.
BURIN_DEVICE u32 weight_words() { return chunk_depth() * tile_outputs(); }
BURIN_DEVICE u32 buffer_bytes() { return chunk_depth() * (tile_outputs() + tile_pixels()) * kWordBytes; }

// ---- where the block stands: neighbours share their pixels
BURIN_DEVICE u32 output_tile() { return block_of_image() % output_tiles(); }
BURIN_DEVICE u32 pixel_tile() { return block_of_image() / output_tiles() % pixel_tiles(); }
BURIN_DEVICE u32 group() { return block_of_image() / (output_tiles() * pixel_tiles()); }

// One of the tile's pixels.
struct Pixel {
  u32 image;  // of all
  u32 place;  // in its plane
  bool exists;
};
BURIN_DEVICE u32 rectangle_of_block() { return pixel_tile(); }
BURIN_DEVICE Pixel pixel_of_windows(u32 index, i32 batch) {
  const u32 image = index / rectangle_pixels(), within = index - image * rectangle_pixels();
  const i32 row = first_pixel_row() + static_cast<i32>(within / pixel_cols());
  const i32 col = first_pixel_col() + static_cast<i32>(within % pixel_cols());
  const bool exists =
      image < static_cast<u32>(block_images()) && is_pixel(row, col) && first_image() + image < static_cast<u32>(batch);
  return {first_image() + image, exists ? static_cast<u32>(row * conv_cols() + col) : 0, exists};
}
BURIN_DEVICE Pixel pixel_at(u32 index, i32 batch) {
  if (pools()) return pixel_of_windows(index, batch);
  const u32 of_block = pixel_tile() * tile_pixels() + index;
  const u32 image = block_images() == 1 ? 0 : of_block / image_pixels();
  const u32 place = of_block - image * image_pixels();
  const bool exists = image < static_cast<u32>(block_images()) && place < image_pixels() &&
                      first_image() + image < static_cast<u32>(batch);
  return {first_image() + image, place, exists};
}

// ---- copies
// Where the next chunk to copy begins.
struct Chunk {
  u32 channel, row, col;
};
BURIN_DEVICE void advance(Chunk& chunk) {
  chunk.col += chunk_cols();
  if (chunk.col < static_cast<u32>(kernel_cols())) return;
  chunk.col = 0;
  if (++chunk.row < static_cast<u32>(kernel_rows())) return;
  chunk.row = 0;
  chunk.channel += chunk_channels();
}

BURIN_DEVICE void copy_weights(const float* weights, u32 chunk, u32 buffer) {
  const u32 panel = (group() * output_tiles() + output_tile()) * chunks() + chunk;
  copy_panel(weights + static_cast<i64>(panel) * weight_words(), weight_words(), buffer);
}

// The column of activations that a thread copies: one pixel, or four that lie next to each other.
struct Column {
  i64 place;     // byte of the input at which the filter's first position reads its first channel, if it is inside
  i32 row, col;  // of the image: may be outside
  u32 first;     // of the chunk's rows
  bool exists;
};
BURIN_DEVICE u32 columns() { return tile_pixels() / vector(); }
BURIN_DEVICE u32 rows_at_once() { return block_threads() / columns(); }

BURIN_DEVICE Column column_of(i32 batch) {
  const u32 thread = burin_dev_thread();
  const Pixel pixel = pixel_at(thread % columns() * vector(), batch);
  Column column;
  column.row = static_cast<i32>(pixel.place / conv_cols()) * stride_rows() - pad_top();
  column.col = static_cast<i32>(pixel.place % conv_cols()) * stride_cols() - pad_left();
  const i32 in_channel = column.row * in_cols() + column.col;
  const u32 first_channel = group() * group_channels() * in_plane();
  const i64 image = static_cast<i64>(pixel.image) * in_image_words() + first_channel;
  column.place = (image + in_channel) * kWordBytes;
  column.first = thread / columns();
  column.exists = pixel.exists && column.first < rows_at_once();
  return column;
}

BURIN_DEVICE bool is_inside(i32 position, i32 extent) { return static_cast<u32>(position) < static_cast<u32>(extent); }

BURIN_DEVICE void copy_activations(const float* input, const Column& column, const Chunk& chunk, u32 buffer) {
  if (column.first >= rows_at_once()) return;
  const u32 dilated_row = chunk.row * dilation_rows(), dilated_col = chunk.col * dilation_cols();
  const i64 start = column.place + bytes_of(chunk.channel * in_plane() + dilated_row * in_cols() + dilated_col);
  const bool row_inside = !padded() || is_inside(column.row + dilated_row, in_rows());
  const u32 base = buffer + weight_words() * kWordBytes +
                   (column.first * tile_pixels() + burin_dev_thread() % columns() * vector()) * kWordBytes;
#pragma unroll
  for (u32 first = 0; first < static_cast<u32>(chunk_depth()); first += rows_at_once()) {
    const u32 row = first + column.first;
    const bool all = first + rows_at_once() <= static_cast<u32>(chunk_depth());
    if (!all && row >= static_cast<u32>(chunk_depth())) continue;
    const u32 channel = row / chunk_cols(), col = row % chunk_cols();
    const bool exists = channel < static_cast<u32>(chunk_channels()) &&
                        chunk.channel + channel < static_cast<u32>(group_channels()) &&
                        chunk.col + col < static_cast<u32>(kernel_cols());
    const u32 dilated = col * dilation_cols();
    const bool inside = row_inside && (!padded() || is_inside(column.col + dilated_col + dilated, in_cols()));
    const u32 valid = exists && inside && column.exists;
    const i64 place = start + bytes_of(channel * in_plane() + dilated);
    if (vector() == kQuadWords) {
      burin_dev_copy_async4(base, first * tile_pixels() * kWordBytes, input, place, valid);
    } else {
      burin_dev_copy_async(base, first * tile_pixels() * kWordBytes, input, place, valid);
    }
  }
}

// ---- sums
using Sums = TileSums<kMaxOutputQuads, kMaxPixelQuads>;

// A thread's first outputs and pixels of the tile, and its split. Quads lie a whole row of threads apart, so that
// neighbours load neighbouring words.
struct ThreadTile {
  u32 split, output, pixel;
  bool exists;
};
BURIN_DEVICE ThreadTile tile_of_thread() {
  const u32 thread = burin_dev_thread(), threads = output_threads() * pixel_threads();
  const u32 in_split = thread % threads;
  return {thread / threads, in_split / pixel_threads() * kQuadWords, in_split % pixel_threads() * kQuadWords,
          thread < threads * splits()};
}

BURIN_DEVICE void multiply(const ThreadTile& own, u32 buffer, Sums& sums) {
  const u32 rows = chunk_depth() / splits();
  const u32 weights = buffer + (own.split * rows * tile_outputs() + own.output) * kWordBytes;
  const u32 pixels =
      buffer + (weight_words() + own.split * rows * tile_pixels() + own.pixel) * static_cast<u32>(kWordBytes);
  constexpr u32 kQuadBytes = kQuadWords * kWordBytes;
  add_products(
      sums, output_quads(), pixel_quads(), rows,
      [&](u32 row, f32x4(&quads)[kMaxOutputQuads]) BURIN_INLINED {
        load_quads(weights, row * tile_outputs() * kWordBytes, output_threads() * kQuadBytes, output_quads(), quads);
      },
      [&](u32 row, f32x4(&quads)[kMaxPixelQuads]) BURIN_INLINED {
        load_quads(pixels, row * tile_pixels() * kWordBytes, pixel_threads() * kQuadBytes, pixel_quads(), quads);
      });
}

// Leaves them in shared memory: for each split a row of the tile's pixels for each of its outputs.
BURIN_DEVICE void leave(const ThreadTile& own, const Sums& sums) {
  const u32 first = own.split * tile_outputs() + own.output;
  const u32 base = kSharedStart + (first * tile_pixels() + own.pixel) * kWordBytes;
  leave_sums(sums, output_quads(), pixel_quads(), output_threads() * kQuadWords, pixel_threads() * kQuadWords,
             tile_pixels(), base, 0);
}

// Whether the tile has an output at `step + mine`, where `mine` is less than a step.
BURIN_DEVICE bool is_output(u32 step, u32 mine) {
  const bool in_tile = step + block_threads() / tile_pixels() <= tile_outputs() || step + mine < tile_outputs();
  return in_tile && output_tile() * tile_outputs() + step + mine < static_cast<u32>(group_outputs());
}

// A thread's results are those of one pixel, some outputs apart. Behind a pool they stay where the first split's sums
// lie.
BURIN_DEVICE void finish(const float* weights, const float* other, float* output, i32 batch) {
  const u32 outputs_at_once = block_threads() / tile_pixels(), thread = burin_dev_thread();
  const u32 mine = thread / tile_pixels(), column = thread % tile_pixels();
  const Pixel pixel = pixel_at(column, batch);
  if (mine >= outputs_at_once || !pixel.exists) return;
  const u32 sums = kSharedStart + (mine * tile_pixels() + column) * kWordBytes;
  const u32 first = output_tile() * tile_outputs() + mine;  // of the group
  const float* biases = weights + static_cast<i64>(groups() * output_tiles() * chunks()) * weight_words();
  const u32 channel = group() * group_outputs() + first;
  float* to = output_of(output, pixel.image);
  const float* added = residual_of(other, pixel.image);
#pragma unroll
  for (u32 start = 0; start < tile_outputs(); start += kResultsAtOnce * outputs_at_once) {
    float results[kResultsAtOnce], residuals[kResultsAtOnce];
#pragma unroll
    for (u32 i = 0; i < kResultsAtOnce; ++i) {
      const u32 step = start + i * outputs_at_once;
      const bool exists = is_output(step, mine);
      results[i] = residuals[i] = 0;
      if (!exists) continue;
      if (has_bias()) results[i] = burin_dev_global_load(biases, bytes_of(channel + step));
      if (residual()) {
        residuals[i] = burin_dev_global_load(added, bytes_of((channel + step) * image_pixels() + pixel.place));
      }
    }
#pragma unroll
    for (u32 i = 0; i < kResultsAtOnce; ++i) {
      const u32 step = start + i * outputs_at_once;
      const bool exists = is_output(step, mine);
      if (!exists) continue;
      float sum = 0;
#pragma unroll
      for (u32 split = 0; split < static_cast<u32>(splits()); ++split) {
        sum += burin_dev_shared_load(sums, (split * tile_outputs() + step) * tile_pixels() * kWordBytes);
      }
      const float result = end_of_sum(sum + results[i], residuals[i]);
      if (pools()) {
        burin_dev_shared_store(sums, step * tile_pixels() * kWordBytes, result);
      } else {
        burin_dev_global_store(to, bytes_of((channel + step) * image_pixels() + pixel.place), result);
      }
    }
  }
}

// Stores what windows make of the results, neighbours in a row by neighbouring threads.
BURIN_DEVICE void store_windows(float* output, i32 batch) {
  const u32 of_image = window_rows() * window_cols(), of_output = block_images() * of_image;
#pragma nounroll
  for (u32 item = burin_dev_thread(); item < tile_outputs() * of_output; item += block_threads()) {
    const u32 number = item / of_output, image = item % of_output / of_image, window = item % of_image;
    const u32 row = window / window_cols(), col = window % window_cols();
    const u32 y = first_window_row() + row, x = first_window_col() + col;
    const u32 of_group = output_tile() * tile_outputs() + number;
    if (y >= static_cast<u32>(out_rows()) || x >= static_cast<u32>(out_cols())) continue;
    if (of_group >= static_cast<u32>(group_outputs()) || first_image() + image >= static_cast<u32>(batch)) continue;
    const u32 top = row * pool_stride_rows(), left = col * pool_stride_cols();
    const u32 pixel = number * tile_pixels() + image * rectangle_pixels() + top * pixel_cols() + left;
    const float result = pool_of_window(first_pixel_row() + static_cast<i32>(top),
                                        first_pixel_col() + static_cast<i32>(left), [&](u32 r, u32 s) BURIN_INLINED {
                                          return burin_dev_shared_load(kSharedStart + pixel * kWordBytes,
                                                                       (r * pixel_cols() + s) * kWordBytes);
                                        });
    const u32 channel = group() * group_outputs() + of_group;
    burin_dev_global_store(output_of(output, first_image() + image),
                           bytes_of((channel * out_rows() + y) * out_cols() + x), result);
  }
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32 batch) {
  const u32 ahead = buffers() - 1;  // chunks that are under way while one is multiplied
#pragma unroll
  for (u32 i = 0; i < ahead; ++i) {
    if (i < chunks()) copy_weights(weights, i, kSharedStart + i * buffer_bytes());
  }
  const Column column = column_of(batch);
  const ThreadTile own = tile_of_thread();
  Sums sums;
  clear(sums);
  burin_dev_await_launch();
  Chunk next = {0, 0, 0};
#pragma unroll
  for (u32 i = 0; i < ahead; ++i) {
    if (i < chunks()) {
      copy_activations(input, column, next, kSharedStart + i * buffer_bytes());
      advance(next);
    }
    burin_dev_copy_commit();
  }
  u32 filled = kSharedStart, empty = kSharedStart + ahead * buffer_bytes();
  const u32 last_buffer = kSharedStart + ahead * buffer_bytes();
#pragma nounroll
  for (u32 chunk = 0; chunk < chunks(); ++chunk) {
    burin_dev_copy_wait(ahead - 1);
    burin_dev_barrier();
    if (chunk + ahead < chunks()) {
      copy_weights(weights, chunk + ahead, empty);
      copy_activations(input, column, next, empty);
      advance(next);
    }
    burin_dev_copy_commit();
    if (own.exists) multiply(own, filled, sums);
    empty = filled;
    filled = filled == last_buffer ? kSharedStart : filled + buffer_bytes();
  }
  burin_dev_copy_wait(0);
  burin_dev_barrier();
  if (own.exists) leave(own, sums);
  burin_dev_barrier();
  finish(weights, other, output, batch);
  if (!pools()) return;
  burin_dev_barrier();
  store_windows(output, batch);
}
