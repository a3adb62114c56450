// conv_winograd: a convolution with 3x3 filters by Winograd's algorithm. A tile of tile() x tile() outputs reads a
// patch of side() x side() inputs. Patch and filter are transformed, which makes side()^2 numbers of each: the points.
// What is multiplied are points of the same place, added up over the channels; the sums, transformed back, are the
// outputs. For 2x2 outputs that takes 16 products in place of 36, for 4x4 outputs 36 in place of 144.
//
// The transforms are those of polynomials that are multiplied by their values: at 0, 1, -1 and infinity for 2x2
// outputs, at 0, a, -a, b, -b and infinity for 4x4. With a = 5/8 and b = 3/2 the roundings matter half as much as with
// 1 and 2.
//
// A block has block_tiles() tiles (of its images, one image's behind the other's) and block_outputs() outputs. It takes
// the channels in slices: each thread transforms the patch of a tile and a channel, and leaves it in shared memory;
// then a thread multiplies, for some of the points, some tiles by some outputs. Meanwhile the next patches are loaded
// and the next weights copied. The blocks of a cluster have other channels each, and add up what they have.
//
// Weights: for each block's outputs, for each slice, for each point, for each channel, a row of block_outputs() words.
// Then the biases.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_winograd/conv_winograd.def"
#include "templates/kernels/cluster_sums.h"
#include "templates/kernels/function.h"
#include "templates/kernels/register_tiles.h"
#include "templates/kernels/residual.h"

constexpr i32 kMaxTile = 4, kMaxSide = 6, kMaxPoints = 4, kMaxOutputQuads = 4, kMaxTileQuads = 2;
// winograd_transform.cpp has the same.
constexpr float kNear = 5.0f / 8, kFar = 3.0f / 2;
constexpr float kNear2 = kNear * kNear, kFar2 = kFar * kFar;

// ---- sizes, all constants
BURIN_DEVICE i32 side() { return tile() + kernel_rows() - 1; }
BURIN_DEVICE u32 patch_points() { return side() * side(); }
BURIN_DEVICE u32 point_groups() { return patch_points() / points(); }
BURIN_DEVICE u32 block_tiles() { return kQuadWords * tile_quads() * tile_threads(); }
BURIN_DEVICE u32 block_outputs() { return kQuadWords * output_quads() * output_threads(); }
BURIN_DEVICE u32 output_blocks() { return divide_up(out_channels(), block_outputs()); }
BURIN_DEVICE u32 in_plane() { return in_rows() * in_cols(); }
BURIN_DEVICE u32 out_plane() { return out_rows() * out_cols(); }
BURIN_DEVICE u32 tile_cols() { return divide_up(out_cols(), tile()); }
BURIN_DEVICE u32 image_tiles() { return divide_up(out_rows(), tile()) * tile_cols(); }
BURIN_DEVICE u32 slices() { return divide_up(in_channels(), slice_channels()); }
BURIN_DEVICE u32 block_slices() { return divide_up(slices(), cluster_blocks()); }
// Shared memory: two buffers, each of a slice's weights and patches; at the end, in their place, the sums of all
// points, behind them the quads of outputs that the blocks of a cluster add up, and what other blocks send.
BURIN_DEVICE u32 weight_words() { return patch_points() * slice_channels() * block_outputs(); }
BURIN_DEVICE u32 patch_words() { return patch_points() * slice_channels() * block_tiles(); }
BURIN_DEVICE u32 buffer_bytes() { return (weight_words() + patch_words()) * kWordBytes; }
BURIN_DEVICE u32 items() { return block_outputs() * block_tiles(); }
BURIN_DEVICE u32 item_quads() { return tile() * tile() / kQuadWords; }
BURIN_DEVICE u32 sums_bytes() { return patch_points() * items() * kWordBytes; }
BURIN_DEVICE u32 results_bytes() { return item_quads() * items() * kSumQuadBytes; }

// ---- where the block stands: the blocks of a cluster follow each other, then those that share their tiles
BURIN_DEVICE u32 rank() { return block_of_image() % cluster_blocks(); }
BURIN_DEVICE u32 output_block() { return block_of_image() / cluster_blocks() % output_blocks(); }
BURIN_DEVICE u32 tile_block() { return block_of_image() / (cluster_blocks() * output_blocks()); }

// One of the block's tiles.
struct Tile {
  u32 image;     // of all
  u32 row, col;  // of its first output
  bool exists;
};
BURIN_DEVICE Tile tile_at(u32 index, i32 batch) {
  const u32 of_images = tile_block() * block_tiles() + index;
  const u32 image = block_images() == 1 ? 0 : of_images / image_tiles();
  const u32 place = of_images - image * image_tiles();
  const bool exists = image < static_cast<u32>(block_images()) && place < image_tiles() &&
                      first_image() + image < static_cast<u32>(batch);
  return {first_image() + image, place / tile_cols() * tile(), place % tile_cols() * tile(), exists};
}

// ---- transforms of a row or a column, in place
BURIN_DEVICE void transform(float (&d)[kMaxSide]) {
  if (tile() == 2) {
    const float v[] = {d[2] - d[0], d[2] + d[1], d[2] - d[1], d[3] - d[1]};
#pragma unroll
    for (i32 i = 0; i < 4; ++i) d[i] = v[i];
    return;
  }
  const float near_even = __builtin_fmaf(-kFar2, d[2], d[4]), near_odd = __builtin_fmaf(-kFar2, d[1], d[3]);
  const float far_even = __builtin_fmaf(-kNear2, d[2], d[4]), far_odd = __builtin_fmaf(-kNear2, d[1], d[3]);
  const float v[] = {__builtin_fmaf(kNear2 * kFar2, d[0], __builtin_fmaf(-(kNear2 + kFar2), d[2], d[4])),
                     __builtin_fmaf(kNear, near_odd, near_even),
                     __builtin_fmaf(-kNear, near_odd, near_even),
                     __builtin_fmaf(kFar, far_odd, far_even),
                     __builtin_fmaf(-kFar, far_odd, far_even),
                     __builtin_fmaf(kNear2 * kFar2, d[1], __builtin_fmaf(-(kNear2 + kFar2), d[3], d[5]))};
#pragma unroll
  for (i32 i = 0; i < kMaxSide; ++i) d[i] = v[i];
}
// The sums of side() points become tile() outputs.
BURIN_DEVICE void transform_back(float (&m)[kMaxSide]) {
  const float near_sum = m[1] + m[2], near_difference = m[1] - m[2];
  if (tile() == 2) {
    m[1] = near_difference + m[3];
    m[0] += near_sum;
    return;
  }
  const float far_sum = m[3] + m[4], far_difference = m[3] - m[4];
  m[0] += near_sum + far_sum;
  m[1] = __builtin_fmaf(kFar, far_difference, kNear * near_difference);
  m[2] = __builtin_fmaf(kFar2, far_sum, kNear2 * near_sum);
  m[3] = __builtin_fmaf(kFar2 * kFar, far_difference, __builtin_fmaf(kNear2 * kNear, near_difference, m[5]));
}

struct Patch {
  float of[kMaxSide][kMaxSide];
};

// Rows become what `change` makes of them, then columns; of these as many as `rows` says.
template <typename Change>
BURIN_DEVICE void change_both_ways(Patch& patch, i32 rows, Change change) {
#pragma unroll
  for (i32 col = 0; col < kMaxSide; ++col) {
    if (col >= side()) continue;
    float line[kMaxSide];
#pragma unroll
    for (i32 row = 0; row < kMaxSide; ++row) line[row] = row < side() ? patch.of[row][col] : 0;
    change(line);
#pragma unroll
    for (i32 row = 0; row < kMaxSide; ++row) patch.of[row][col] = line[row];
  }
#pragma unroll
  for (i32 row = 0; row < kMaxSide; ++row) {
    if (row < rows) change(patch.of[row]);
  }
}

// ---- copies and loads
BURIN_DEVICE void copy_weights(const float* weights, u32 slice, u32 buffer) {
  const float* from = weights + static_cast<i64>(output_block() * slices() + slice) * weight_words();
  copy_panel(from, weight_words(), buffer);
}

// The patches that a thread transforms: of one tile, and in each slice of one channel.
struct Source {
  i64 place;    // byte of the input at which the first channel's patch begins, if it is inside
  u32 inside;   // which rows and columns of a patch lie inside the image, a bit each; none where there is no patch
  u32 channel;  // of the slice
};
constexpr u32 kColumnBits = 8;  // behind the bits of the rows
BURIN_DEVICE bool has_whole_slices() { return in_channels() % slice_channels() == 0; }
BURIN_DEVICE u32 bits_inside(i32 first, i32 extent) {
  u32 bits = 0;
#pragma unroll
  for (i32 i = 0; i < kMaxSide; ++i) {
    bits |= static_cast<u32>(static_cast<u32>(first + i) < static_cast<u32>(extent)) << i;
  }
  return bits;
}
BURIN_DEVICE bool has_patch() { return burin_dev_thread() < slice_channels() * block_tiles(); }
BURIN_DEVICE Source source_of(i32 batch) {
  const u32 thread = burin_dev_thread();
  const Tile tile = tile_at(thread % block_tiles(), batch);
  const i32 row = static_cast<i32>(tile.row) - pad_top(), col = static_cast<i32>(tile.col) - pad_left();
  Source source;
  source.channel = thread / block_tiles();
  const i64 image = static_cast<i64>(tile.image) * in_image_words() + source.channel * in_plane();
  source.place = (image + row * in_cols() + col) * kWordBytes;
  const u32 inside = bits_inside(row, in_rows()) | bits_inside(col, in_cols()) << kColumnBits;
  source.inside = has_patch() && tile.exists ? inside : 0;
  return source;
}
BURIN_DEVICE void load_patch(const float* input, const Source& source, u32 slice, Patch& patch) {
  const u32 channel = slice * slice_channels();
  const bool exists = has_whole_slices() || channel + source.channel < static_cast<u32>(in_channels());
  const u32 inside = exists ? source.inside : 0;
  const i64 place = source.place + bytes_of(channel * in_plane());
#pragma unroll
  for (i32 row = 0; row < kMaxSide; ++row) {
    if (row >= side()) continue;
    const u32 cols = (inside >> row & 1) != 0 ? inside >> kColumnBits : 0;
#pragma unroll
    for (i32 col = 0; col < kMaxSide; ++col) {
      if (col >= side()) continue;
      const i64 of_patch = (row * in_cols() + col) * kWordBytes;
      patch.of[row][col] = burin_dev_global_load_if(cols & 1U << col, input, place + of_patch);
    }
  }
}
// Leaves the points of a patch in a slice's buffer: for each point, for each channel, a row of the tiles.
BURIN_DEVICE void leave_patch(Patch& patch, u32 buffer) {
  if (!has_patch()) return;
  change_both_ways(patch, side(), [](float(&line)[kMaxSide]) BURIN_INLINED { transform(line); });
  const u32 base = buffer + weight_words() * kWordBytes + burin_dev_thread() * kWordBytes;
  const u32 next_point = slice_channels() * block_tiles() * kWordBytes;
#pragma unroll
  for (i32 row = 0; row < kMaxSide; ++row) {
#pragma unroll
    for (i32 col = 0; col < kMaxSide; ++col) {
      if (row >= side() || col >= side()) continue;
      burin_dev_shared_store(base, (row * side() + col) * next_point, patch.of[row][col]);
    }
  }
}

// ---- sums
struct Sums {
  TileSums<kMaxOutputQuads, kMaxTileQuads> of[kMaxPoints];
};

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

BURIN_DEVICE void multiply(const Share& own, u32 buffer, Sums& sums) {
  constexpr u32 kQuadBytes = kQuadWords * kWordBytes;
  const u32 first_row = own.point * slice_channels();
  const u32 weights = buffer + (first_row * block_outputs() + own.output) * kWordBytes;
  const u32 patches = buffer + (weight_words() + first_row * block_tiles() + own.tile) * static_cast<u32>(kWordBytes);
#pragma unroll
  for (u32 channel = 0; channel < static_cast<u32>(slice_channels()); ++channel) {
#pragma unroll
    for (u32 point = 0; point < static_cast<u32>(kMaxPoints); ++point) {
      if (point >= static_cast<u32>(points())) continue;
      const u32 row = point * point_groups() * slice_channels() + channel;
      add_products(
          sums.of[point], output_quads(), tile_quads(), 1,
          [&](u32, f32x4(&quads)[kMaxOutputQuads]) BURIN_INLINED {
            load_quads(weights, row * block_outputs() * kWordBytes, output_threads() * kQuadBytes, output_quads(),
                       quads);
          },
          [&](u32, f32x4(&quads)[kMaxTileQuads]) BURIN_INLINED {
            load_quads(patches, row * block_tiles() * kWordBytes, tile_threads() * kQuadBytes, tile_quads(), quads);
          });
    }
  }
}

// Leaves them in shared memory: for each point, for each output, a row of the tiles.
BURIN_DEVICE void leave(const Share& own, const Sums& sums) {
  const u32 base = kSharedStart + (own.point * items() + own.output * block_tiles() + own.tile) * kWordBytes;
#pragma unroll
  for (u32 point = 0; point < static_cast<u32>(kMaxPoints); ++point) {
    if (point >= static_cast<u32>(points())) continue;
    leave_sums(sums.of[point], output_quads(), tile_quads(), output_threads() * kQuadWords, tile_threads() * kQuadWords,
               block_tiles(), base, point * point_groups() * items() * kWordBytes);
  }
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

// Two rows of two outputs, or row `quad` of four.
BURIN_DEVICE void finish_quad(const Item& item, u32 quad, f32x4 sums, float bias, const float* other, float* output) {
  const float* added = residual_of(other, item.tile.image);
  float* to = output_of(output, item.tile.image);
  const u32 first = item.channel * out_plane() + item.tile.row * out_cols() + item.tile.col;
  if (vector() == kQuadWords) {
    if (item.tile.row + quad >= static_cast<u32>(out_rows())) return;
    const i64 place = bytes_of(first + quad * out_cols());
    f32x4 residuals = {0, 0, 0, 0}, results;
    if (residual()) residuals = burin_dev_global_load4(added, place);
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) results[i] = end_of_sum(sums[i] + bias, residuals[i]);
    burin_dev_global_store4(to, place, results);
    return;
  }
  bool exists[kQuadWords];
  i64 places[kQuadWords];
  float residuals[kQuadWords];
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    const u32 row = tile() == 2 ? i / 2 : quad, col = tile() == 2 ? i % 2 : i;
    places[i] = bytes_of(first + row * out_cols() + col);
    exists[i] =
        item.tile.row + row < static_cast<u32>(out_rows()) && item.tile.col + col < static_cast<u32>(out_cols());
    residuals[i] = 0;
    if (residual() && exists[i]) residuals[i] = burin_dev_global_load(added, places[i]);
  }
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    if (exists[i]) burin_dev_global_store(to, places[i], end_of_sum(sums[i] + bias, residuals[i]));
  }
}

BURIN_DEVICE void finish(const float* weights, const float* other, float* output, i32 batch) {
  const u32 thread = burin_dev_thread(), results = kSharedStart + sums_bytes();
  const float* biases = weights + static_cast<i64>(output_blocks() * slices()) * weight_words();
  const auto bias_of = [&](const Item& item) BURIN_INLINED {
    return has_bias() ? burin_dev_global_load(biases, bytes_of(item.channel)) : 0;
  };
#pragma nounroll
  for (u32 number = thread; number < items(); number += block_threads()) {
    const Item item = item_at(number, batch);
    if (cluster_blocks() == 1 && !item.exists) continue;
    const float bias = cluster_blocks() == 1 ? bias_of(item) : 0;
    Patch sums;
#pragma unroll
    for (i32 row = 0; row < kMaxSide; ++row) {
#pragma unroll
      for (i32 col = 0; col < kMaxSide; ++col) {
        if (row >= side() || col >= side()) continue;
        const u32 point = row * side() + col;
        sums.of[row][col] = burin_dev_shared_load(kSharedStart + number * kWordBytes, point * items() * kWordBytes);
      }
    }
    change_both_ways(sums, tile(), [](float(&line)[kMaxSide]) BURIN_INLINED { transform_back(line); });
#pragma unroll
    for (u32 quad = 0; quad < static_cast<u32>(kMaxTile); ++quad) {
      if (quad >= item_quads()) continue;
      const float(&row)[kMaxSide] = sums.of[quad];
      const f32x4 outputs =
          tile() == 2 ? f32x4{row[0], row[1], sums.of[1][0], sums.of[1][1]} : f32x4{row[0], row[1], row[2], row[3]};
      if (cluster_blocks() == 1) {
        finish_quad(item, quad, outputs, bias, other, output);
      } else {
        burin_dev_shared_store4(results + number * kSumQuadBytes, quad * items() * kSumQuadBytes, outputs);
      }
    }
  }
  if (cluster_blocks() == 1) return;
  const u32 copied = 2 * buffer_bytes(), left = sums_bytes() + results_bytes();
  const ClusterSums all = {results, kSharedStart + (copied > left ? copied : left), item_quads() * items(), rank()};
  exchange_sums(all, thread);
#pragma nounroll
  for (u32 quad = thread; quad < share_quads(all); quad += block_threads()) {
    const u32 of_block = rank() * share_quads(all) + quad;
    const Item item = item_at(of_block % items(), batch);
    if (item.exists) finish_quad(item, of_block / items(), sum_of_blocks(all, quad), bias_of(item), other, output);
  }
  burin_dev_cluster_meet();
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32 batch) {
  begin_cluster_sums(burin_dev_thread());
  const u32 begin = rank() * block_slices(), end = at_most(begin + block_slices(), slices());
  u32 filled = kSharedStart, empty = kSharedStart + buffer_bytes();
  if (begin < end) copy_weights(weights, begin, filled);
  burin_dev_copy_commit();
  const Source source = source_of(batch);
  const Share own = share_of_thread();
  Sums sums;
#pragma unroll
  for (i32 point = 0; point < kMaxPoints; ++point) clear(sums.of[point]);
  burin_dev_await_launch();
  Patch patch;
  if (begin < end) load_patch(input, source, begin, patch);
#pragma nounroll
  for (u32 slice = begin; slice < end; ++slice) {
    leave_patch(patch, filled);
    burin_dev_copy_wait(0);
    burin_dev_barrier();
    if (slice + 1 < end) {
      copy_weights(weights, slice + 1, empty);
      load_patch(input, source, slice + 1, patch);
    }
    burin_dev_copy_commit();
    if (own.exists) multiply(own, filled, sums);
    const u32 next = empty;
    empty = filled;
    filled = next;
  }
  burin_dev_barrier();
  if (own.exists) leave(own, sums);
  burin_dev_barrier();
  finish(weights, other, output, batch);
}
