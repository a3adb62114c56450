// conv_gathered: a convolution of halves on tensor cores. For a set of output channels only those columns of the matrix
// of weights are multiplied that have a nonzero in it; a column is an input channel and a position of the filter. What
// the columns are multiplied with is gathered for nothing: each lane of a warp gives the address of one column's row of
// eight images to the instruction that loads 32 rows.
//
// A block has `row_warps` x `warp_tiles` x 16 output channels, and tiles, one after the other: a tile is a rectangle of
// pixels of eight images. It takes the input channels of a tile in chunks, whole octets of eight that lie side by side;
// while one is multiplied, those after it are copied, those of the next tile, too. A warp multiplies `warp_tiles` x 16
// channels with `warp_pixels` pixels, 32 columns a step; the steps of a chunk are shared out to `split_warps` warps,
// which add up their sums at the end.
//
// Behind a pool a tile holds whole windows, and begins where one does: what lies in windows of two tiles is multiplied
// in both. The tile's values lie in shared memory, in FP32, and what windows make of them is all that is stored.
//
// Weights: for each set of output channels (of a group of the convolution, then the next), for each chunk, a panel
// (steps.h). A column's word is the byte of the chunk where the first pixel's row lies, or of the chunk before with
// kCarried. Behind the panels, for each row of each set: the output channel, and its bias. Rows that have none have
// kNoChannel, or a channel that fills up the last octet and is zero.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_gathered/conv_gathered.def"
#include "templates/kernels/conv_pool.h"
#include "templates/kernels/function.h"
#include "templates/kernels/places.h"
#include "templates/kernels/residual.h"
BURIN_DEVICE i32 warp_octets() { return warp_pixels(); }
BURIN_DEVICE i32 factors() { return half_values(); }
#include "compiler/providers/conv_gathered/steps.h"

constexpr u32 kMaxSlots = 32;
constexpr u32 kSchedulers = 4;  // of a multiprocessor, which have warps in turn
constexpr u32 kOctetImages = 8, kOctetChannels = 8, kOctetBytes = 16;
constexpr u32 kImagesBytes = kOctetImages * kWordBytes;    // of a value in eight images, in FP32
constexpr u32 kPixelBytes = kOctetChannels * kOctetBytes;  // of eight channels
constexpr u32 kCarried = 0x80000000;

// ---- sizes, all constants
BURIN_DEVICE u32 tile_pixels() { return tile_rows() * tile_cols(); }
// What is stored of a tile: without a pool its pixels, each a window.
BURIN_DEVICE u32 stored_rows() { return (tile_rows() - pool_rows()) / pool_stride_rows() + 1; }
BURIN_DEVICE u32 stored_cols() { return (tile_cols() - pool_cols()) / pool_stride_cols() + 1; }
BURIN_DEVICE u32 tiles_across() { return divide_up(out_cols(), stored_cols()); }
BURIN_DEVICE u32 image_tiles() { return tiles_across() * divide_up(out_rows(), stored_rows()); }
BURIN_DEVICE u32 tiles() { return octets() * image_tiles(); }  // that blocks share
BURIN_DEVICE u32 sets() { return image_blocks() / set_blocks(); }
BURIN_DEVICE u32 chunks() { return divide_up(group_channels(), chunk_channels()); }
BURIN_DEVICE u32 ahead() { return buffers() - (carries() ? 2 : 1); }  // chunks that are copied while one is multiplied
BURIN_DEVICE u32 patch_pixels() { return patch_rows() * patch_cols(); }
BURIN_DEVICE u32 in_plane_bytes() { return in_rows() * in_cols() * kPixelBytes; }  // of eight channels
BURIN_DEVICE u32 out_plane() { return out_rows() * out_cols(); }
BURIN_DEVICE u32 conv_plane() { return conv_rows() * conv_cols(); }
// Input rows and columns from one of the patch to the next, and patch rows and columns from one output to the next.
BURIN_DEVICE u32 patch_step_rows() { return compact() ? stride_rows() : 1; }
BURIN_DEVICE u32 patch_step_cols() { return compact() ? stride_cols() : 1; }
BURIN_DEVICE u32 pixel_step_rows() { return compact() ? 1 : stride_rows(); }
BURIN_DEVICE u32 pixel_step_cols() { return compact() ? 1 : stride_cols(); }

// Shared memory: what is said of the rows; all panels, if the block keeps them; what windows are made of, eight values
// for each row and pixel, if there is a pool; for each buffer the chunk's activations, then its panel, if not; the
// exchanges; where splits are added up. A block with one tile has no copies under way when it comes to the exchange,
// which then lies where the buffers do, but for one with a residual, which is copied there beforehand.
BURIN_DEVICE u32 kept_start() { return kSharedStart + to_banks(block_rows() * kRowBytes); }
BURIN_DEVICE u32 kept_bytes() { return keeps_panels() ? to_banks(chunks() * panel_bytes()) : 0; }
BURIN_DEVICE u32 exchange_pitch() { return tile_pixels() | 1; }  // octets; odd, so that eight rows are in eight banks
BURIN_DEVICE u32 windows_start() { return kept_start() + kept_bytes(); }
BURIN_DEVICE u32 windows_bytes() { return pools() ? to_banks(block_rows() * exchange_pitch() * kImagesBytes) : 0; }
BURIN_DEVICE u32 buffers_start() { return windows_start() + windows_bytes(); }
BURIN_DEVICE u32 chunk_octets() { return chunk_channels() / kOctetChannels; }
BURIN_DEVICE u32 group_octets() { return divide_up(group_channels(), kOctetChannels); }
BURIN_DEVICE u32 patch_bytes() { return patch_pixels() * kPixelBytes; }  // of eight channels
BURIN_DEVICE u32 activation_bytes() { return chunk_octets() * patch_bytes(); }
BURIN_DEVICE u32 buffer_bytes() { return to_banks(activation_bytes() + (keeps_panels() ? 0 : panel_bytes())); }
BURIN_DEVICE bool has_one_tile() { return static_cast<u32>(set_blocks()) >= tiles(); }
BURIN_DEVICE u32 buffers_end() { return buffers_start() + buffers() * buffer_bytes(); }
BURIN_DEVICE u32 exchange_bytes() { return to_banks(block_rows() * exchange_pitch() * kOctetBytes); }
BURIN_DEVICE u32 splits_bytes() { return (split_warps() - 1) * block_rows() * tile_pixels() * 2 * kOctetBytes; }
BURIN_DEVICE u32 exchanges_start() {
  if (!has_one_tile()) return buffers_end();
  if (!residual()) return buffers_start();
  // The residual is there before the splits are added up.
  return splits_bytes() < buffers() * buffer_bytes() ? buffers_end() : buffers_start() + to_banks(splits_bytes());
}
BURIN_DEVICE u32 splits_start() {
  if (has_one_tile()) return buffers_start();
  return exchanges_start() + (residual() ? exchanges() * exchange_bytes() : 0);
}

// ---- where the block stands: neighbours share their pixels
BURIN_DEVICE u32 set_of_block() { return block_of_image() % sets(); }
BURIN_DEVICE u32 group_of_block() { return set_of_block() / output_blocks(); }
BURIN_DEVICE u32 first_tile() { return block_of_image() / sets(); }

struct Tile {
  u32 image;             // the first of eight
  u32 out_row, out_col;  // the first that is stored
  u32 row, col;          // the first pixel: padding of the pool lies before 0
};
BURIN_DEVICE Tile tile_at(u32 number) {
  const u32 of_image = number % image_tiles();
  const u32 row = of_image / tiles_across() * stored_rows(), col = of_image % tiles_across() * stored_cols();
  return {first_image() + number / image_tiles() * kOctetImages, row, col, row * pool_stride_rows() - pool_pad_top(),
          col * pool_stride_cols() - pool_pad_left()};
}

// ---- copies
// A thread copies a channel of eight, and of it the same pixels of the patch in every chunk: of one octet of channels
// in so many, or several of each octet. Neighbours have channels side by side, then pixels: what they copy is whole
// lines.
BURIN_DEVICE u32 pixel_lanes() { return block_threads() / kOctetChannels; }
BURIN_DEVICE u32 octet_lanes() { return patch_pixels() < pixel_lanes() ? pixel_lanes() / patch_pixels() : 1; }
BURIN_DEVICE u32 slots() { return divide_up(patch_pixels(), pixel_lanes()); }

// The thread's part of all copies.
struct Copier {
  u32 thread_bytes;  // of a run that all threads copy
  u32 channel;       // which of eight
  u32 lane;          // which octet of so many
  u32 pixel;         // of the patch, the first; others are pixel_lanes() apart
  u32 target;        // byte of a buffer, of the first pixel
};
BURIN_DEVICE Copier copier_of_thread() {
  const u32 thread = burin_dev_thread(), pixel = thread / kOctetChannels;
  Copier copier;
  copier.thread_bytes = thread * kQuadBytes;
  copier.channel = thread % kOctetChannels;
  copier.lane = slots() == 1 ? pixel / patch_pixels() : 0;
  copier.pixel = slots() == 1 ? pixel % patch_pixels() : pixel;
  copier.target = copier.lane * patch_bytes() + copier.pixel * kPixelBytes + copier.channel * kOctetBytes;
  return copier;
}

// Where the thread finds its pixels of a tile.
struct Sources {
  const float* octets;   // the first that it copies
  i32 place[kMaxSlots];  // bytes, of an octet
  u32 inside;            // a bit for each: whether the pixel is one of the image
};
BURIN_DEVICE Sources sources_of(const Copier& copier, const float* input, const Tile& tile) {
  Sources sources;
  const u32 octet = group_of_block() * (group_channels() / kOctetChannels) + copier.lane;
  sources.octets = input_of(input, tile.image) + static_cast<i64>(octet) * (in_plane_bytes() / kWordBytes);
  sources.inside = 0;
#pragma unroll
  for (u32 i = 0; i < kMaxSlots; ++i) {
    if (i >= slots()) continue;
    const u32 pixel = copier.pixel + i * pixel_lanes();
    const i32 y = static_cast<i32>(tile.row * stride_rows() + pixel / patch_cols() * patch_step_rows()) - pad_top();
    const i32 x = static_cast<i32>(tile.col * stride_cols() + pixel % patch_cols() * patch_step_cols()) - pad_left();
    const bool inside =
        static_cast<u32>(y) < static_cast<u32>(in_rows()) && static_cast<u32>(x) < static_cast<u32>(in_cols());
    sources.inside |= static_cast<u32>(inside) << i;
    sources.place[i] =
        (y * in_cols() + x) * static_cast<i32>(kPixelBytes) + static_cast<i32>(copier.channel * kOctetBytes);
  }
  return sources;
}

BURIN_DEVICE void copy_run(const Copier& copier, u32 target, const float* source, u32 bytes) {
  const u32 step = block_threads() * kQuadBytes;
#pragma unroll
  for (u32 first = 0; first < bytes; first += step) {
    if (first + step > bytes && copier.thread_bytes >= bytes - first) continue;
    burin_dev_copy_async4(target + copier.thread_bytes, first, source, static_cast<i64>(copier.thread_bytes) + first,
                          1);
  }
}
BURIN_DEVICE const float* panels_of_block(const float* weights) {
  return weights + static_cast<i64>(set_of_block() * chunks()) * (panel_bytes() / kWordBytes);
}
BURIN_DEVICE void copy_panel(const Copier& copier, const float* panels, u32 chunk, u32 buffer) {
  if (keeps_panels()) return;
  copy_run(copier, buffer + activation_bytes(), panels + static_cast<i64>(chunk) * (panel_bytes() / kWordBytes),
           panel_bytes());
}

BURIN_DEVICE void copy_activations(const Copier& copier, const Sources& sources, u32 chunk, u32 buffer) {
  const u32 first = chunk * chunk_octets();
  const float* octets = sources.octets + static_cast<i64>(first) * (in_plane_bytes() / kWordBytes);
#pragma unroll
  for (u32 i = 0; i < kMaxSlots; ++i) {
    if (i >= slots()) continue;
    const bool has_pixel =
        slots() == 1 ? copier.lane < octet_lanes() : copier.pixel + i * pixel_lanes() < patch_pixels();
    if (!has_pixel) continue;
#pragma unroll
    for (u32 octet = 0; octet < chunk_octets(); octet += octet_lanes()) {
      const bool sure = octet + octet_lanes() <= chunk_octets() && group_octets() % chunk_octets() == 0;
      const bool exists =
          sure || (octet + copier.lane < chunk_octets() && first + octet + copier.lane < group_octets());
      if (!exists) continue;
      burin_dev_copy_async4(buffer + copier.target, i * pixel_lanes() * kPixelBytes + octet * patch_bytes(), octets,
                            static_cast<i64>(sources.place[i]) + static_cast<i64>(octet) * in_plane_bytes(),
                            sources.inside >> i & 1);
    }
  }
}

// ---- products
struct Warp {
  u32 row, pixel, split, lane;  // of the block's warps
};
BURIN_DEVICE Warp warp_of_thread() {
  const u32 thread = burin_dev_thread(), warp = thread / kWarpThreads;
  return {warp / (split_warps() * pixel_warps()), warp / split_warps() % pixel_warps(), warp % split_warps(),
          thread % kWarpThreads};
}

// Where a pixel of the tile begins in the patch of eight channels. Those of a warp are a part of a row, or whole rows:
// so the distance of each from the warp's first one is a constant.
BURIN_DEVICE u32 place_of_pixel(u32 pixel) {
  return (pixel / tile_cols() * pixel_step_rows() * patch_cols() + pixel % tile_cols() * pixel_step_cols()) *
         kPixelBytes;
}

// Where the warp's first pixel lies in the chunk that is multiplied, and in the one before it.
struct Patch {
  u32 now, before;
};
BURIN_DEVICE u32 column_in(const Patch& patch, u32 column) {
  if (!carries()) return patch.now + column;
  return (column & kCarried) != 0 ? patch.before + (column & ~kCarried) : patch.now + column;
}

// ---- the end of a tile
// The sums of all splits go to the first one's warps.
BURIN_DEVICE void add_splits(const Warp& warp, Sums& sums) {
  if (split_warps() == 1) return;
  const u32 warps = row_warps() * pixel_warps(), own = warp.row * pixel_warps() + warp.pixel;
  const u32 warp_bytes = warp_tiles() * warp_pixels() * kWarpQuadBytes;
  const u32 place = splits_start() + own * warp_bytes + warp.lane * kQuadBytes;
  const auto offset = [](u32 tile, u32 pixel) BURIN_INLINED { return (tile * warp_pixels() + pixel) * kWarpQuadBytes; };
  if (warp.split > 0) {
    const u32 part = place + (warp.split - 1) * warps * warp_bytes;
    for_each_sum([&](u32 tile, u32 pixel)
                     BURIN_INLINED { burin_dev_shared_store4(part, offset(tile, pixel), sums.of[tile][pixel]); });
  }
  burin_dev_barrier();
  if (warp.split == 0) {
#pragma unroll
    for (u32 split = 1; split < static_cast<u32>(split_warps()); ++split) {
      for_each_sum([&](u32 tile, u32 pixel) BURIN_INLINED {
        sums.of[tile][pixel] += burin_dev_shared_load4(place, (split - 1) * warps * warp_bytes + offset(tile, pixel));
      });
    }
  }
  burin_dev_barrier();
}

// The exchange: words of two images come from the lanes that have them as sums, and all eight images of a pixel go to
// one lane. For each row of the block, for each pixel of the tile, eight halves.
//
// visit(byte of the exchange, whether it is stored, its channel, its place in the image) for each of the thread's rows
// and pixels. Neighbours have eight rows of a pixel, which are channels side by side where no others are as alike.
constexpr u32 kOctetsAtOnce = 8;
template <typename Visit>
BURIN_DEVICE void for_each_octet(const Tile& tile, u32 exchange, Visit visit) {
  const u32 thread = burin_dev_thread();
  const u32 octets = block_rows() * tile_pixels();
#pragma unroll kOctetsAtOnce
  for (u32 first = 0; first < octets; first += block_threads()) {
    const u32 octet = first + thread;
    if (first + block_threads() > octets && octet >= octets) continue;
    const u32 eight = octet / kOctetChannels, pixel = eight % tile_pixels();
    const u32 block_row = eight / tile_pixels() * kOctetChannels + octet % kOctetChannels;
    const u32 row = tile.row + pixel / tile_cols(), col = tile.col + pixel % tile_cols();
    const u32 channel = burin_dev_shared_load_word(kSharedStart + block_row * kRowBytes, 0);
    visit(exchange + (block_row * exchange_pitch() + pixel) * kOctetBytes, channel != kNoChannel && is_pixel(row, col),
          channel, place_at(channel, row * conv_cols() + col, conv_plane()));
  }
}

// A tile's residual goes to the exchange while the tile is multiplied, or the one before it.
BURIN_DEVICE void copy_residual(u32 number, u32 exchange, const float* other, i32 batch) {
  if (number >= tiles()) return;
  const Tile tile = tile_at(number);
  if (tile.image >= static_cast<u32>(batch)) return;
  const float* added = residual_of(other, tile.image);
  for_each_octet(tile, exchange, [&](u32 place, bool exists, u32, u32 octet) BURIN_INLINED {
    burin_dev_copy_async4(place, 0, added, exists ? static_cast<i64>(octet) * kOctetBytes : 0, exists);
  });
}

// What the windows of a tile make of a row's values in eight images.
BURIN_DEVICE void store_windows(const Tile& tile, float* made) {
  const u32 windows = stored_rows() * stored_cols();
#pragma nounroll
  for (u32 item = burin_dev_thread(); item < block_rows() * windows; item += block_threads()) {
    const u32 eight = item / kOctetChannels, window = eight % windows;
    const u32 block_row = eight / windows * kOctetChannels + item % kOctetChannels;
    const u32 row = window / stored_cols(), col = window % stored_cols();
    const u32 y = tile.out_row + row, x = tile.out_col + col;
    const u32 channel = burin_dev_shared_load_word(kSharedStart + block_row * kRowBytes, 0);
    if (channel == kNoChannel || y >= static_cast<u32>(out_rows()) || x >= static_cast<u32>(out_cols())) continue;
    const u32 top = row * pool_stride_rows(), left = col * pool_stride_cols();
    const u32 first = windows_start() + (block_row * exchange_pitch() + top * tile_cols() + left) * kImagesBytes;
    float results[kOctetImages];
#pragma unroll
    for (u32 image = 0; image < kOctetImages; ++image) results[image] = pool_start(pool_averages());
    for_each_pixel_of_window(tile.row + top, tile.col + left, [&](u32 r, u32 s, bool inside) BURIN_INLINED {
      const u32 place = first + (r * tile_cols() + s) * kImagesBytes;
#pragma unroll
      for (u32 quad = 0; quad < kOctetImages; quad += kQuadWords) {
        const f32x4 values = burin_dev_shared_load4(place, quad * kWordBytes);
#pragma unroll
        for (u32 i = 0; i < kQuadWords; ++i) {
          results[quad + i] = pool_with(pool_averages(), results[quad + i], values[i], inside);
        }
      }
    });
    f32x4 words;
#pragma unroll
    for (u32 pair = 0; pair < kOctetImages / 2; ++pair) {
      const float low = end_of_window(tile.row + top, tile.col + left, results[2 * pair]);
      const float high = end_of_window(tile.row + top, tile.col + left, results[2 * pair + 1]);
      words[pair] = is_filling(channel) ? 0 : packed(low, high, out_halves());
    }
    burin_dev_global_store4(made, static_cast<i64>(place_at(channel, y * out_cols() + x, out_plane())) * kOctetBytes,
                            words);
  }
}

BURIN_DEVICE void finish(const Tile& tile, const Warp& warp, Sums& sums, u32 exchange, float* output) {
  add_splits(warp, sums);
  if (warp.split == 0) {
    const u32 first_row = warp.row * warp_tiles() * kTileRows + warp.lane / 4, pair = warp.lane % 4;
    const u32 first_octet = first_row * exchange_pitch() + warp.pixel * warp_pixels();
    const u32 start = exchange + first_octet * kOctetBytes + pair * kWordBytes;
    const u32 value_start = windows_start() + first_octet * kImagesBytes + 2 * pair * kWordBytes;
#pragma unroll
    for (u32 half = 0; half < 2 * kMaxTiles; ++half) {
      if (half >= 2 * static_cast<u32>(warp_tiles())) continue;
      const float bias = burin_dev_shared_load(kSharedStart + first_row * kRowBytes, half * 8 * kRowBytes + kWordBytes);
#pragma unroll
      for (u32 pixel = 0; pixel < kMaxOctets; ++pixel) {
        if (pixel >= static_cast<u32>(warp_pixels())) continue;
        const f32x4 sum = sums.of[half / 2][pixel];
        const u32 offset = (half * 8 * exchange_pitch() + pixel) * kOctetBytes;
        float first = sum[half % 2 * 2] + bias, second = sum[half % 2 * 2 + 1] + bias;
        if (residual()) {
          const float added = burin_dev_shared_load(start, offset);
          first = end_of_sum(first, low_half(added, out_halves()));
          second = end_of_sum(second, high_half(added, out_halves()));
        } else {
          first = apply(first);
          second = apply(second);
        }
        if (pools()) {
          const u32 value_offset = (half * 8 * exchange_pitch() + pixel) * kImagesBytes;
          burin_dev_shared_store(value_start, value_offset, first);
          burin_dev_shared_store(value_start, value_offset + kWordBytes, second);
        } else {
          burin_dev_shared_store(start, offset, packed(first, second, out_halves()));
        }
      }
    }
  }
  burin_dev_barrier();
  float* made = output_of(output, tile.image);
  if (pools()) {
    store_windows(tile, made);
    return;
  }
  for_each_octet(tile, exchange, [&](u32 place, bool exists, u32 channel, u32 octet) BURIN_INLINED {
    if (!exists) return;
    const f32x4 words = is_filling(channel) ? f32x4{0, 0, 0, 0} : burin_dev_shared_load4(place, 0);
    burin_dev_global_store4(made, static_cast<i64>(octet) * kOctetBytes, words);
  });
}

// What is copied next: a chunk of a tile.
struct Cursor {
  u32 tile, chunk;
  Sources sources;
};
BURIN_DEVICE bool exists(const Cursor& cursor, i32 batch) {
  return cursor.tile < tiles() && tile_at(cursor.tile).image < static_cast<u32>(batch);
}
BURIN_DEVICE void copy_next(const Copier& copier, Cursor& cursor, const float* input, const float* panels, u32 buffer,
                            i32 batch) {
  if (!exists(cursor, batch)) return;
  if (cursor.chunk == 0) cursor.sources = sources_of(copier, input, tile_at(cursor.tile));
  copy_activations(copier, cursor.sources, cursor.chunk, buffer);
  copy_panel(copier, panels, cursor.chunk, buffer);
  if (++cursor.chunk < chunks()) return;
  cursor.chunk = 0;
  cursor.tile += set_blocks();
}

// Its copies were committed with those of a chunk: the first of this tile, or of the one before it.
BURIN_DEVICE void await_residual(bool is_first) {
  if (is_first || exchanges() == 1) {
    burin_dev_copy_wait(chunks() - 1 < ahead() ? chunks() - 1 : ahead());
  } else {
    burin_dev_copy_wait(2 * chunks() - 1 < ahead() ? 2 * chunks() - 1 : ahead());
  }
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32 batch) {
  const Warp warp = warp_of_thread();
  const float* panels = panels_of_block(weights);
  const float* rows = weights + static_cast<i64>(sets() * chunks()) * (panel_bytes() / kWordBytes) +
                      set_of_block() * block_rows() * (kRowBytes / kWordBytes);
  const Copier copier = copier_of_thread();
  copy_run(copier, kSharedStart, rows, block_rows() * kRowBytes);
  if (keeps_panels()) copy_run(copier, kept_start(), panels, chunks() * panel_bytes());
  Sums sums;
  for_each_sum([&](u32 tile, u32 pixel) BURIN_INLINED { sums.of[tile][pixel] = {0, 0, 0, 0}; });
  burin_dev_await_launch();
  Cursor next = {first_tile(), 0, {}};
  u32 empty = buffers_start();
  const u32 last_buffer = buffers_start() + (buffers() - 1) * buffer_bytes();
  const auto after = [&](u32 buffer)
                         BURIN_INLINED { return buffer == last_buffer ? buffers_start() : buffer + buffer_bytes(); };
#pragma unroll
  for (u32 i = 0; i < ahead(); ++i) {
    copy_next(copier, next, input, panels, empty, batch);
    burin_dev_copy_commit();
    empty = after(empty);
  }
  const u32 first_pixel = place_of_pixel(warp.pixel * warp_pixels());
  const u32 copy_turn = burin_dev_thread() / kWarpThreads / kSchedulers % 2;
  u32 filled = buffers_start(), before = last_buffer;
  u32 exchange = exchanges_start(), other_exchange = exchanges_start() + (exchanges() - 1) * exchange_bytes();
  bool is_first = true;
#pragma nounroll
  for (u32 number = first_tile(); number < tiles(); number += set_blocks()) {
    const Tile tile = tile_at(number);
    if (tile.image >= static_cast<u32>(batch)) break;
#pragma nounroll
    for (u32 chunk = 0; chunk < chunks(); ++chunk) {
      burin_dev_copy_wait(ahead() - 1);
      burin_dev_barrier();
      const u32 panel = keeps_panels() ? kept_start() + chunk * panel_bytes() : filled + activation_bytes();
      const Patch patch = {filled + first_pixel, before + first_pixel};
      // Half of the warps copy while the others multiply.
#pragma nounroll
      for (u32 turn = 0; turn < 2; ++turn) {
        if (turn == copy_turn) {
          copy_next(copier, next, input, panels, empty, batch);
          if (residual() && chunk == 0) {
            if (is_first || exchanges() == 1) copy_residual(number, exchange, other, batch);
            if (exchanges() == 2) copy_residual(number + set_blocks(), other_exchange, other, batch);
          }
          burin_dev_copy_commit();
        } else {
          multiply_steps(
              panel, warp.row, warp.split, warp.lane,
              [&](u32 column) BURIN_INLINED { return column_in(patch, column); },
              [](u32 pixel) BURIN_INLINED { return place_of_pixel(pixel); }, sums);
        }
      }
      empty = after(empty);
      before = filled;
      filled = after(filled);
    }
    if (residual()) await_residual(is_first);
    if (residual() || has_one_tile()) burin_dev_barrier();
    finish(tile, warp, sums, exchange, output);
    for_each_sum([&](u32 row, u32 pixel) BURIN_INLINED { sums.of[row][pixel] = {0, 0, 0, 0}; });
    const u32 used = exchange;
    exchange = other_exchange;
    other_exchange = used;
    is_first = false;
  }
  burin_dev_copy_wait(0);
}
