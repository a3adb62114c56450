// conv_zero_skip: a convolution that leaves out the zeros of its input. The weights are data, all of them.
//
// A warp has some pixels of an image: neighbours in the order of the plane, or those of a pool's window. Of its columns
// (an input channel, a row and a column of the filter) it looks through 32 for each of `runs` at once, a lane each, and
// lists those of which some pixel reads a nonzero: what the pixels read, and where the column's weights lie. Then it
// multiplies what is on the list, lanes side by side on the output channels. So a zero costs its part of looking
// through, once for all output channels of the tile, and its weights are not even loaded. While a list is multiplied,
// what the next one is made from is loaded. No warp waits for another one until the end, where the sums of those with
// the same pixels are added up, in a fixed order, by the block or by the blocks of a cluster.
//
// A zero is left out whatever it would be multiplied by: weights are finite, so its products are zeros. NaN is no zero.
//
// Weights: for each group of the convolution, for each tile of its output channels, a row of the tile's width for each
// column. Then the biases.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_zero_skip/conv_zero_skip.def"
#include "templates/kernels/conv_pool.h"
#include "templates/kernels/function.h"
#include "templates/kernels/residual.h"

constexpr u32 kMaxPixels = 9, kMaxOutputQuads = 4, kMaxRuns = 4, kMaxSplitWarps = 32, kMaxClusterBlocks = 8;
constexpr u32 kQuadBytes = kQuadWords * kWordBytes;
constexpr u32 kBankPadding = kQuadWords;  // words, so that pixels of several warps lie in different banks

// ---- sizes, all constants
BURIN_DEVICE u32 out_lanes() { return kWarpThreads / column_lanes(); }
BURIN_DEVICE u32 tile_outputs() { return out_lanes() * kQuadWords * output_quads(); }
BURIN_DEVICE u32 output_tiles() { return divide_up(group_outputs(), tile_outputs()); }
BURIN_DEVICE u32 taps() { return kernel_rows() * kernel_cols(); }
BURIN_DEVICE u32 columns() { return group_channels() * taps(); }
BURIN_DEVICE u32 conv_plane() { return conv_rows() * conv_cols(); }
BURIN_DEVICE u32 out_plane() { return out_rows() * out_cols(); }
BURIN_DEVICE u32 in_plane() { return in_rows() * in_cols(); }
BURIN_DEVICE u32 sets() { return pools() ? out_plane() : divide_up(conv_plane(), pixels()); }  // of a warp's pixels
BURIN_DEVICE u32 set_blocks() { return divide_up(sets(), pixel_warps()); }
BURIN_DEVICE u32 groups() { return image_blocks() / (set_blocks() * output_tiles() * cluster_blocks()); }
// A list is made of so many columns at once.
BURIN_DEVICE u32 list_columns() { return runs() * kWarpThreads; }
BURIN_DEVICE u32 split_columns() {
  return divide_up(divide_up(columns(), kWarpThreads), split_warps() * cluster_blocks()) * kWarpThreads;
}

// A list is filled up with zeros to a multiple of what all lanes multiply at once.
BURIN_DEVICE u32 list_step() { return at_once() * column_lanes(); }
// In shared memory each warp has a list: what the pixels read, `pitch` words for each column, then the places of the
// weights. Behind the lists are the sums: of each split warp, of the pixels of each warp, for each pixel the tile's
// outputs.
BURIN_DEVICE u32 pitch() {
  return pixels() <= 2 ? static_cast<u32>(pixels()) : divide_up(pixels(), kQuadWords) * kQuadWords;
}
BURIN_DEVICE u32 list_entries() { return list_columns() + kWarpThreads; }
BURIN_DEVICE u32 list_bytes() { return list_entries() * (pitch() + 1) * kWordBytes; }
BURIN_DEVICE u32 list_of(u32 warp) { return kSharedStart + warp * list_bytes(); }
BURIN_DEVICE u32 places_of(u32 list) { return list + list_entries() * pitch() * kWordBytes; }
BURIN_DEVICE u32 sums_start() { return list_of(pixel_warps() * split_warps()); }
BURIN_DEVICE u32 set_words() { return pixels() * tile_outputs() + kBankPadding; }
BURIN_DEVICE u32 part_bytes() { return pixel_warps() * set_words() * kWordBytes; }

// ---- where block, warp and lane stand
BURIN_DEVICE u32 rank() { return block_of_image() % cluster_blocks(); }
BURIN_DEVICE u32 output_tile() { return block_of_image() / cluster_blocks() % output_tiles(); }
BURIN_DEVICE u32 group() { return block_of_image() / (cluster_blocks() * output_tiles()) % groups(); }
BURIN_DEVICE u32 set_block() { return block_of_image() / (cluster_blocks() * output_tiles() * groups()); }

// Where the window of a set begins.
BURIN_DEVICE i32 window_row(u32 set) {
  return static_cast<i32>(set / out_cols()) * pool_stride_rows() - pool_pad_top();
}
BURIN_DEVICE i32 window_col(u32 set) {
  return static_cast<i32>(set % out_cols()) * pool_stride_cols() - pool_pad_left();
}

// A pixel of the convolution.
struct Pixel {
  i32 row, col;
  bool exists;
};
BURIN_DEVICE Pixel pixel_of(u32 set, u32 number) {
  if (pools()) {
    const i32 row = window_row(set) + number / pool_cols(), col = window_col(set) + number % pool_cols();
    return {row, col, set < sets() && is_pixel(row, col)};
  }
  const u32 place = set * pixels() + number;
  return {static_cast<i32>(place / conv_cols()), static_cast<i32>(place % conv_cols()), place < conv_plane()};
}

// ---- looking through columns
// Where the filter's first position lies on the image for each pixel: far outside for one that does not exist.
struct Places {
  i32 row[kMaxPixels], col[kMaxPixels];
};
BURIN_DEVICE Places places_of_set(u32 set) {
  constexpr i32 kFarOutside = -(1 << 28);
  Places places;
#pragma unroll
  for (u32 p = 0; p < kMaxPixels; ++p) {
    if (p >= static_cast<u32>(pixels())) continue;
    const Pixel pixel = pixel_of(set, p);
    places.row[p] = pixel.exists ? pixel.row * stride_rows() - pad_top() : kFarOutside;
    places.col[p] = pixel.col * stride_cols() - pad_left();
  }
  return places;
}

// What the pixels read of a lane's column in each run.
struct Looked {
  float of[kMaxRuns][kMaxPixels];
};

// Looks from the column `first` on; what is not before `end` counts as zeros.
BURIN_DEVICE void look(const float* image, const Places& places, u32 set, u32 first, u32 end, Looked& looked) {
  const u32 lane = burin_dev_thread() % kWarpThreads;
#pragma unroll
  for (u32 run = 0; run < kMaxRuns; ++run) {
    if (run >= static_cast<u32>(runs())) continue;
    const u32 column = first + run * kWarpThreads + lane, channel = column / taps(), tap = column % taps();
    const bool exists = column < end;
    if (quad_loads()) {
      f32x4 values = {0, 0, 0, 0};
      if (exists && set < sets())
        values = burin_dev_global_load4(image, bytes_of(channel * in_plane() + set * kQuadWords));
#pragma unroll
      for (u32 p = 0; p < kQuadWords; ++p) looked.of[run][p] = values[p];
      continue;
    }
    const i32 row = tap / kernel_cols() * dilation_rows(), col = tap % kernel_cols() * dilation_cols();
#pragma unroll
    for (u32 p = 0; p < kMaxPixels; ++p) {
      if (p >= static_cast<u32>(pixels())) continue;
      const i32 y = places.row[p] + row, x = places.col[p] + col;
      const bool inside = exists && static_cast<u32>(y) < static_cast<u32>(in_rows()) &&
                          static_cast<u32>(x) < static_cast<u32>(in_cols());
      looked.of[run][p] = 0;
      if (inside) looked.of[run][p] = burin_dev_global_load(image, bytes_of(channel * in_plane() + y * in_cols() + x));
    }
  }
}

// ---- lists
BURIN_DEVICE void store_entry(u32 list, u32 entry, const float (&values)[kMaxPixels], u32 place) {
  const u32 at = list + entry * pitch() * kWordBytes;
#pragma unroll
  for (u32 p = 0; p < kMaxPixels; p += kQuadWords) {
    if (p >= static_cast<u32>(pixels())) continue;
    if (pitch() < kQuadWords) {
#pragma unroll
      for (u32 i = 0; i < 2; ++i) {
        if (i < pitch()) burin_dev_shared_store(at, i * kWordBytes, values[i]);
      }
      continue;
    }
    f32x4 quad = {0, 0, 0, 0};
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) {
      if (p + i < static_cast<u32>(pixels())) quad[i] = values[p + i];
    }
    burin_dev_shared_store4(at, p * kWordBytes, quad);
  }
  burin_dev_shared_store_word(places_of(list) + entry * kWordBytes, 0, place);
}

// Lists what is no zero of what was looked through from `first` on. Gives the entries of the list, a multiple of its
// step.
BURIN_DEVICE u32 make_list(u32 list, u32 first, const Looked& looked) {
  const u32 lane = burin_dev_thread() % kWarpThreads, row_bytes = tile_outputs() * kWordBytes;
  u32 entries = 0;
#pragma unroll
  for (u32 run = 0; run < kMaxRuns; ++run) {
    if (run >= static_cast<u32>(runs())) continue;
    bool live = false;
#pragma unroll
    for (u32 p = 0; p < kMaxPixels; ++p) {
      if (p < static_cast<u32>(pixels())) live = live || looked.of[run][p] != 0;
    }
    const u32 lanes = burin_dev_ballot(live);
    const u32 before = __builtin_popcount(lanes & ((1u << lane) - 1));
    if (live) store_entry(list, entries + before, looked.of[run], (first + run * kWarpThreads + lane) * row_bytes);
    entries += __builtin_popcount(lanes);
  }
  const u32 filled = divide_up(entries, list_step()) * list_step();
  const float zeros[kMaxPixels] = {};
  if (entries + lane < filled) store_entry(list, entries + lane, zeros, 0);
  return filled;
}

// ---- sums
struct Sums {
  f32x4 of[kMaxPixels][kMaxOutputQuads];
};

struct Entry {
  float values[kMaxPixels];
  f32x4 weights[kMaxOutputQuads];
};

// `panel`: the tile's weights from the lane's first quad on.
BURIN_DEVICE void load_entry(u32 list, u32 number, const float* panel, Entry& entry) {
  const u32 place = burin_dev_shared_load_word(places_of(list) + number * kWordBytes, 0);
  const u32 at = list + number * pitch() * kWordBytes;
#pragma unroll
  for (u32 q = 0; q < kMaxOutputQuads; ++q) {
    if (q >= static_cast<u32>(output_quads())) continue;
    entry.weights[q] = burin_dev_global_load4(panel, static_cast<i64>(place) + q * out_lanes() * kQuadBytes);
  }
#pragma unroll
  for (u32 p = 0; p < kMaxPixels; p += kQuadWords) {
    if (p >= static_cast<u32>(pixels())) continue;
    if (pitch() < kQuadWords) {
#pragma unroll
      for (u32 i = 0; i < 2; ++i) {
        if (i < pitch()) entry.values[i] = burin_dev_shared_load(at, i * kWordBytes);
      }
      continue;
    }
    const f32x4 quad = burin_dev_shared_load4(at, p * kWordBytes);
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) {
      if (p + i < static_cast<u32>(pixels())) entry.values[p + i] = quad[i];
    }
  }
}

BURIN_DEVICE void add_products(const Entry& entry, u32 pixel, Sums& sums) {
#pragma unroll
  for (u32 q = 0; q < kMaxOutputQuads; ++q) {
    if (q >= static_cast<u32>(output_quads())) continue;
#pragma unroll
    for (u32 k = 0; k < kQuadWords; ++k) {
      sums.of[pixel][q][k] = __builtin_fmaf(entry.values[pixel], entry.weights[q][k], sums.of[pixel][q][k]);
    }
  }
}

BURIN_DEVICE void multiply(u32 list, u32 entries, const float* panel, Sums& sums) {
  constexpr u32 kMostAtOnce = 8;
  const u32 column_lane = burin_dev_thread() % kWarpThreads / out_lanes();
#pragma nounroll
  for (u32 first = column_lane; first < entries; first += list_step()) {
    Entry some[kMostAtOnce];
#pragma unroll
    for (u32 i = 0; i < kMostAtOnce; ++i) {
      if (i < static_cast<u32>(at_once())) load_entry(list, first + i * column_lanes(), panel, some[i]);
    }
#pragma unroll
    for (u32 i = 0; i < kMostAtOnce; ++i) {
      if (i >= static_cast<u32>(at_once())) continue;
#pragma unroll
      for (u32 p = 0; p < kMaxPixels; ++p) {
        if (p >= static_cast<u32>(pixels())) continue;
        if (!exact() || some[i].values[p] != 0) add_products(some[i], p, sums);
      }
    }
  }
}

// Adds up what the lanes with the same outputs have, and leaves it in shared memory.
BURIN_DEVICE void leave(u32 pixel_warp, u32 split_warp, Sums& sums) {
  const u32 lane = burin_dev_thread() % kWarpThreads;
  const u32 start = sums_start() + split_warp * part_bytes() + pixel_warp * set_words() * kWordBytes;
#pragma unroll
  for (u32 p = 0; p < kMaxPixels; ++p) {
    if (p >= static_cast<u32>(pixels())) continue;
#pragma unroll
    for (u32 q = 0; q < kMaxOutputQuads; ++q) {
      if (q >= static_cast<u32>(output_quads())) continue;
#pragma unroll
      for (u32 k = 0; k < kQuadWords; ++k) {
#pragma unroll
        for (u32 distance = kWarpThreads / 2; distance > 0; distance /= 2) {
          if (distance >= out_lanes()) sums.of[p][q][k] += burin_dev_shuffle_xor(sums.of[p][q][k], distance);
        }
      }
      const u32 word = p * tile_outputs() + q * out_lanes() * kQuadWords;
      if (lane < out_lanes()) burin_dev_shared_store4(start + lane * kQuadBytes, word * kWordBytes, sums.of[p][q]);
    }
  }
}

// ---- the end
// All splits' parts of a sum, in their order.
BURIN_DEVICE float collect(u32 place) {
  float sum = 0;
#pragma unroll
  for (u32 block = 0; block < kMaxClusterBlocks; ++block) {
    if (block >= static_cast<u32>(cluster_blocks())) continue;
#pragma unroll
    for (u32 part = 0; part < kMaxSplitWarps; ++part) {
      if (part >= static_cast<u32>(split_warps())) continue;
      sum += cluster_blocks() == 1 ? burin_dev_shared_load(place, part * part_bytes())
                                   : burin_dev_cluster_load(place, part * part_bytes(), block);
    }
  }
  return sum;
}

// A thread has all pixels of a warp's set, of an output channel. It takes them one by one: where many parts are added
// up, their code is not there for each.
BURIN_DEVICE void finish_set(u32 pixel_warp, u32 output, const float* weights, const float* other, float* to) {
  const u32 set = set_block() * pixel_warps() + pixel_warp, of_group = output_tile() * tile_outputs() + output;
  if (set >= sets() || of_group >= static_cast<u32>(group_outputs())) return;
  const u32 channel = group() * group_outputs() + of_group;
  const i64 panels = static_cast<i64>(groups() * output_tiles()) * columns() * tile_outputs();
  const float bias = has_bias() ? burin_dev_global_load(weights + panels, bytes_of(channel)) : 0.0f;
  const u32 place = sums_start() + (pixel_warp * set_words() + output) * kWordBytes;
  float pooled = pool_start(pool_averages());
#pragma unroll
  for (u32 p = 0; p < static_cast<u32>(pixels()); ++p) {
    const Pixel pixel = pixel_of(set, p);
    const u32 word = channel * conv_plane() + pixel.row * conv_cols() + pixel.col;
    float added = 0;
    if (residual() && pixel.exists) {
      added = burin_dev_global_load(residual_of(other, first_image()), bytes_of(word));
    }
    const float result = end_of_sum(collect(place + p * tile_outputs() * kWordBytes) + bias, added);
    if (pools()) {
      pooled = pool_with(pool_averages(), pooled, result, pixel.exists);
    } else if (pixel.exists) {
      burin_dev_global_store(to, bytes_of(word), result);
    }
  }
  if (!pools()) return;
  const u32 word = channel * out_plane() + set;
  const float made = pool_averages() ? mean_of_window(window_row(set), window_col(set), pooled) : pooled;
  burin_dev_global_store(to, bytes_of(word), made);
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32) {
  const u32 thread = burin_dev_thread(), warp = thread / kWarpThreads, lane = thread % kWarpThreads;
  const u32 pixel_warp = warp % pixel_warps(), split_warp = warp / pixel_warps();
  const u32 set = set_block() * pixel_warps() + pixel_warp, list = list_of(warp);
  const u32 begin = (rank() * split_warps() + split_warp) * split_columns();
  const u32 end = at_most(begin + split_columns(), columns());
  const i64 panel = static_cast<i64>(group() * output_tiles() + output_tile()) * columns() * tile_outputs();
  const float* weights_of_lane = weights + panel + lane % out_lanes() * kQuadWords;
  const Places places = places_of_set(set);
  Sums sums;
#pragma unroll
  for (u32 p = 0; p < kMaxPixels; ++p) {
#pragma unroll
    for (u32 q = 0; q < kMaxOutputQuads; ++q) sums.of[p][q] = {0, 0, 0, 0};
  }
  burin_dev_await_launch();
  const float* image = input_of(input, first_image()) + group() * group_channels() * in_plane();
  Looked looked;
  look(image, places, set, begin, end, looked);
#pragma nounroll
  for (u32 first = begin; first < end; first += list_columns()) {
    const u32 entries = make_list(list, first, looked);
    burin_dev_warp_barrier();
    look(image, places, set, first + list_columns(), end, looked);
    multiply(list, entries, weights_of_lane, sums);
    burin_dev_warp_barrier();
  }
  leave(pixel_warp, split_warp, sums);
  if (cluster_blocks() > 1) {
    burin_dev_cluster_barrier();
  } else {
    burin_dev_barrier();
  }
  // Neighbouring threads have neighbouring pixels.
#pragma nounroll
  for (u32 item = rank() * block_threads() + thread; item < pixel_warps() * tile_outputs();
       item += cluster_blocks() * block_threads()) {
    finish_set(item % pixel_warps(), item / pixel_warps(), weights, other, output_of(output, first_image()));
  }
  if (cluster_blocks() > 1) burin_dev_cluster_barrier();
}
