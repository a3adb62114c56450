// conv_warpgroup_rows: a convolution of few images on the tensor cores of warpgroups, whose factors are rounded to
// halves or to TF32. What it reads, and what it writes and adds, is FP32 in nchw, or halves in nchw8 or nhwc8, or in
// TF32 FP32 in nhwc4. All weights are multiplied.
//
// A block has `row_groups` x 64 output channels and a tile of `pixel_groups` x `group_rows` rows of `tile_cols` pixels
// of the convolution, with whole windows of the pool, if there is one: it may filter, as a depthwise convolution does.
// The block goes through chunks (filter_parts.h) of its input channels; the blocks of a cluster have the other
// channels, and add up their sums at the end. While a chunk is multiplied, its threads stage the next one's
// activations, rounded, or copied where they are halves: places of 16 bytes hold eight channels of a pixel (four in
// TF32), and the pixels of padded rows follow each other. So the pixels of a warpgroup are columns of one matrix, with
// those between its rows, whose sums are not used, and what another position of the filter reads begins some places
// further on. Where pixels are strided, those that a position reads have a plane of their own. Other warps, behind the
// warpgroups, may stage the activations: then those that multiply wait for nothing but what they multiply.
//
// Weights: for each set of output channels (of a group of the convolution, then the next), for each block of the
// cluster, for each chunk, with all parts of the filter, for each 64 rows, a panel; then the bias of each row of the
// sets; then, for a pool that filters, the filter of each row of the sets and its bias, and what fills up four words. A
// panel: for each step, 64 rows by 32 bytes as burin_dev_group_multiply_columns_f16() has them.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_warpgroup_rows/conv_warpgroup_rows.def"
#include "templates/kernels/cluster_sums.h"
#include "templates/kernels/conv_pool.h"
#include "templates/kernels/filter_parts.h"
#include "templates/kernels/function.h"
#include "templates/kernels/residual.h"

constexpr u32 kGroupWarps = 4, kGroupRows = 64, kWarpRows = 16;
constexpr u32 kOctetPixels = 8, kMaxOctets = 32;
constexpr u32 kStepBytes = 2048, kPlaceBytes = 16;
constexpr u32 kMostPlaceChannels = 8, kStepPlaces = 2;
// One is multiplied, one or two are filled, and one's products may not have ended.
constexpr u32 kMostStagedBuffers = 3, kMostCopiedBuffers = 4, kCopiesAhead = kMostCopiedBuffers - 2;
constexpr u32 kMostItems = 8;
// Where other warps stage, a buffer has a gate that says that it is filled, with weights and activations, and one that
// says that it was multiplied.
constexpr u32 kEmptyGates = 6, kMostChunksAhead = 3;
static_assert(kSumsGate > 2 * kEmptyGates, "each of six buffers has two gates");
constexpr u32 kMostFilterWords = 28, kMostFilterCols = 25, kMostPatchValues = 48;
enum { kFactorsTf32 = 3 };

// Whether the input has the places that are multiplied: eight channels of a pixel, in halves. Those of four, in floats,
// are loaded at once and rounded.
BURIN_DEVICE bool copies_places() { return in_halves() != kFloats; }
BURIN_DEVICE bool loads_places() { return !copies_places() && in_pixel_places() != 0; }
BURIN_DEVICE bool stores_places() { return out_halves() != kFloats || out_pixel_places() != 0; }

// ---- sizes, all constants
BURIN_DEVICE bool is_tf32() { return factors() == kFactorsTf32; }
BURIN_DEVICE u32 place_channels() { return is_tf32() ? 4 : kMostPlaceChannels; }
BURIN_DEVICE u32 tile_rows() { return pixel_groups() * group_rows(); }
// What a tile stores.
BURIN_DEVICE u32 stored_rows() { return (tile_rows() - pool_rows()) / pool_stride_rows() + 1; }
BURIN_DEVICE u32 stored_cols() { return (tile_cols() - pool_cols()) / pool_stride_cols() + 1; }
BURIN_DEVICE u32 tiles_across() { return divide_up(out_cols(), stored_cols()); }
BURIN_DEVICE u32 tiles() { return tiles_across() * divide_up(out_rows(), stored_rows()); }
BURIN_DEVICE u32 sets() { return image_blocks() / (cluster_blocks() * tiles()); }
BURIN_DEVICE u32 conv_plane() { return conv_rows() * conv_cols(); }
BURIN_DEVICE u32 in_plane() { return in_rows() * in_cols(); }
// Words of the input: from a channel, or the eight of a place that is copied, to the next one, and from pixel to pixel.
BURIN_DEVICE u32 channels_at_once() { return copies_places() ? kMostPlaceChannels : 1; }
BURIN_DEVICE u32 in_channel_words() {
  if (in_pixel_places() != 0) return copies_places() ? kQuadWords : 1;
  return copies_places() ? in_plane() * kQuadWords : in_plane();
}
BURIN_DEVICE u32 in_pixel_words() {
  if (in_pixel_places() != 0) return in_pixel_places() * kQuadWords;
  return copies_places() ? kQuadWords : 1;
}
BURIN_DEVICE u32 split_chunks() { return divide_up(split_channels(), chunk_channels()) * parts(); }
BURIN_DEVICE u32 chunk_places() { return chunk_channels() / place_channels(); }
BURIN_DEVICE u32 steps() { return part_positions() * (chunk_places() / kStepPlaces); }
BURIN_DEVICE u32 panel_bytes() { return steps() * kStepBytes; }
BURIN_DEVICE u32 panels_bytes() { return row_groups() * panel_bytes(); }
BURIN_DEVICE i64 bias_offset() { return static_cast<i64>(sets()) * cluster_blocks() * split_chunks() * panels_bytes(); }
BURIN_DEVICE u32 octets() { return divide_up((group_rows() - 1) * pitch() + tile_cols(), kOctetPixels); }
// Planes: of the rows that are read, so many modulo the stride; and of columns.
BURIN_DEVICE u32 plane_rows() { return at_most(stride_rows(), (part_rows() - 1) * dilation_rows() + 1); }
BURIN_DEVICE u32 plane_cols() { return at_most(stride_cols(), (part_cols() - 1) * dilation_cols() + 1); }
BURIN_DEVICE u32 channel_places() { return plane_rows() * plane_cols() * plane_pixels(); }
BURIN_DEVICE u32 next_rows() { return channel_places() * kPlaceBytes; }  // as a product has them
BURIN_DEVICE u32 staged_bytes() { return chunk_places() * next_rows(); }
BURIN_DEVICE u32 staged_buffers() {
  if (staging_warps() != 0) return at_most(split_chunks(), buffers());
  return at_most(split_chunks(), copies_places() ? kMostCopiedBuffers : kMostStagedBuffers);
}
BURIN_DEVICE bool has_whole_chunks() {
  return group_channels() == cluster_blocks() * split_channels() && split_channels() % chunk_channels() == 0;
}

// A pool that filters has so many words for each row of a block, which has them in shared memory.
BURIN_DEVICE u32 filter_positions() { return pool_rows() * pool_cols(); }
BURIN_DEVICE u32 filter_words() {
  return pool_filters() ? divide_up(filter_positions() + 1, kQuadWords) * kQuadWords : 0;
}
BURIN_DEVICE u32 filters_bytes() {
  return divide_up(row_groups() * kGroupRows * filter_words() * kWordBytes, kSharedStart) * kSharedStart;
}

// Shared memory: filters; buffers of weights, then of activations; in place of the buffers, the sums; then those that
// the other blocks of the cluster send; then the residual; then what a pool that filters makes, where
// places are written.
BURIN_DEVICE u32 filters_start() { return kSharedStart; }
BURIN_DEVICE u32 sums_start() { return filters_start() + filters_bytes(); }
BURIN_DEVICE u32 panels_start() { return sums_start(); }
BURIN_DEVICE u32 staged_start() { return panels_start() + buffers() * panels_bytes(); }

// ---- where the block stands: a cluster's blocks follow each other, then the sets of a tile
BURIN_DEVICE u32 split_of_block() { return block_of_image() % cluster_blocks(); }
BURIN_DEVICE u32 set_of_block() { return block_of_image() / cluster_blocks() % sets(); }
BURIN_DEVICE u32 first_channel() { return split_of_block() * split_channels(); }  // of the convolution's group
BURIN_DEVICE u32 channel_chunks() {
  if (has_whole_chunks()) return split_chunks() / parts();
  return divide_up(at_most(split_channels(), group_channels() - first_channel()), chunk_channels());
}

struct Tile {
  u32 out_row, out_col;  // of what is stored
  i32 row, col;          // of the convolution's pixels: padding of the pool lies before the first one
};
BURIN_DEVICE Tile tile_of_block() {
  const u32 number = block_of_image() / cluster_blocks() / sets();
  const u32 row = number / tiles_across() * stored_rows(), col = number % tiles_across() * stored_cols();
  return {row, col, static_cast<i32>(row * pool_stride_rows()) - pool_pad_top(),
          static_cast<i32>(col * pool_stride_cols()) - pool_pad_left()};
}

BURIN_DEVICE Corner corner_of(const Tile& tile) {
  return {tile.row * stride_rows() - pad_top(), tile.col * stride_cols() - pad_left()};
}
BURIN_DEVICE FilterParts parts_of(const Tile& tile) {
  return parts_that_read(corner_of(tile), (tile_rows() - 1) * stride_rows() + (part_rows() - 1) * dilation_rows() + 1,
                         (tile_cols() - 1) * stride_cols() + (part_cols() - 1) * dilation_cols() + 1);
}

// The warpgroups come first.
BURIN_DEVICE u32 staging_threads() { return staging_warps() != 0 ? staging_warps() * kWarpThreads : block_threads(); }
BURIN_DEVICE u32 multiplying_warps() { return row_groups() * pixel_groups() * kGroupWarps; }
BURIN_DEVICE u32 multiplying_threads() { return multiplying_warps() * kWarpThreads; }

struct Warp {
  u32 row_group, pixel_group, of_group, lane;
};
BURIN_DEVICE Warp warp_at(u32 number, u32 lane) {
  const u32 group = number / kGroupWarps;
  return {group % row_groups(), group / row_groups(), number % kGroupWarps, lane};
}

// ---- weights: no other kernel's output
BURIN_DEVICE void copy_panels(const float* weights, const FilterParts& inside, u32 chunk) {
  const Chunk of = chunk_at(inside, chunk);
  const u32 buffer = chunk % buffers();
  const u32 number =
      (set_of_block() * cluster_blocks() + split_of_block()) * split_chunks() + of.channels * parts() + of.part;
  burin_dev_gate_expect(buffer, panels_bytes());
  burin_dev_bulk_copy(panels_start() + buffer * panels_bytes(), 0, weights, static_cast<i64>(number) * panels_bytes(),
                      panels_bytes(), buffer);
}

// ---- staging
// What a thread stages at once: the channels of a place.
struct Item {
  bool exists, inside;
  u32 channel;  // the first, of the chunk's
  u32 word;     // of the chunk's channels
  u32 place;    // byte of the chunk
};
// `corner`: of the chunk's part of the filter.
BURIN_DEVICE Item item_at(u32 index, const Corner& corner) {
  const u32 pixel = index % plane_pixels(), plane = index / plane_pixels() % (plane_rows() * plane_cols());
  const i32 y = corner.row + static_cast<i32>(pixel / pitch() * stride_rows() + plane / plane_cols());
  const i32 x = corner.col + static_cast<i32>(pixel % pitch() * stride_cols() + plane % plane_cols());
  Item item;
  item.exists = index < chunk_places() * channel_places();
  item.inside = item.exists && static_cast<u32>(y) < static_cast<u32>(in_rows()) &&
                static_cast<u32>(x) < static_cast<u32>(in_cols());
  item.channel = index / channel_places() * place_channels();
  const u32 pixel_of_plane = y * in_cols() + x;
  item.word = item.channel / channels_at_once() * in_channel_words() + pixel_of_plane * in_pixel_words();
  item.place = index * kPlaceBytes;
  return item;
}
struct Channels {
  float of[kMostPlaceChannels];
};
BURIN_DEVICE bool is_channel(u32 of_split) {
  return of_split < static_cast<u32>(split_channels()) &&
         first_channel() + of_split < static_cast<u32>(group_channels());
}
// `image`: from the first channel of the block on; `first`: of the chunk. From one channel to the next it is a
// constant.
BURIN_DEVICE void load_item(const float* image, u32 first, const Item& item, Channels& values) {
  const float* channels = image + static_cast<i64>(first) * in_channel_words();
  if (loads_places()) {
    const bool inside = item.inside && (has_whole_chunks() || is_channel(first + item.channel));
    const f32x4 place = burin_dev_global_load4(channels, inside ? bytes_of(item.word) : 0);
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) values.of[i] = inside ? place[i] : 0.0f;
    return;
  }
#pragma unroll
  for (u32 i = 0; i < kMostPlaceChannels; ++i) {
    if (i >= place_channels()) continue;
    const u32 channel = first + item.channel + i;
    const bool inside = item.inside && (has_whole_chunks() || is_channel(channel));
    values.of[i] = inside ? burin_dev_global_load(channels + i * in_channel_words(), bytes_of(item.word)) : 0.0f;
  }
}
BURIN_DEVICE float staged_word(const Channels& values, u32 number) {
  if (is_tf32()) return float_of(burin_dev_tf32(values.of[number]));
  return packed(values.of[2 * number], values.of[2 * number + 1], factors());
}
BURIN_DEVICE void store_item(u32 buffer, const Item& item, const Channels& values) {
  if (!item.exists) return;
  f32x4 words;
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) words[i] = staged_word(values, i);
  burin_dev_shared_store4(staged_start() + buffer * staged_bytes() + item.place, 0, words);
}
BURIN_DEVICE u32 batches() { return divide_up(chunk_places() * channel_places(), items() * staging_threads()); }

struct Batch {
  Channels of[kMostItems];
};
// Where a chunk is staged, which of the block's channels it has, and where its part of the filter begins to read.
struct Staging {
  u32 buffer, first_channel;
  Corner corner;
};
BURIN_DEVICE Staging staging_of(const Tile& tile, const FilterParts& inside, u32 number) {
  const Chunk chunk = chunk_at(inside, number);
  return {number % staged_buffers(), chunk.channels * chunk_channels(), corner_of(corner_of(tile), chunk)};
}
// One of the threads that stage has it.
BURIN_DEVICE Item item_of_batch(u32 thread, u32 batch, u32 number, const Staging& staging) {
  return item_at((batch * items() + number) * staging_threads() + thread, staging.corner);
}
BURIN_DEVICE void load_batch(const float* image, u32 thread, const Staging& staging, u32 batch, Batch& values) {
#pragma unroll
  for (u32 i = 0; i < kMostItems; ++i) {
    if (i >= items()) continue;
    load_item(image, staging.first_channel, item_of_batch(thread, batch, i, staging), values.of[i]);
  }
}
BURIN_DEVICE void store_batch(u32 thread, const Staging& staging, u32 batch, const Batch& values) {
#pragma unroll
  for (u32 i = 0; i < kMostItems; ++i) {
    if (i < items()) store_item(staging.buffer, item_of_batch(thread, batch, i, staging), values.of[i]);
  }
}
// From a batch on.
BURIN_DEVICE void stage_batches(const float* image, u32 thread, const Staging& staging, u32 first) {
#pragma nounroll
  for (u32 batch = first; batch < batches(); ++batch) {
    Batch values;
    load_batch(image, thread, staging, batch, values);
    store_batch(thread, staging, batch, values);
  }
}

// Copies a chunk of an input that is in places, as they are. `image`: as load_item() has it.
BURIN_DEVICE void copy_chunk(const float* image, u32 thread, const Staging& staging) {
  const float* places = image + static_cast<i64>(staging.first_channel / channels_at_once()) * in_channel_words();
  const u32 first = staged_start() + staging.buffer * staged_bytes();
#pragma unroll 4
  for (u32 index = thread; index < chunk_places() * channel_places(); index += staging_threads()) {
    const Item item = item_at(index, staging.corner);
    const u32 channel = staging.first_channel + item.channel;
    const bool exists = item.inside && (has_whole_chunks() || is_channel(channel));
    burin_dev_copy_async4(first + item.place, 0, places, exists ? bytes_of(item.word) : 0, exists ? 1 : 0);
  }
}

// ---- products
struct Sums {
  float of[kMaxOctets * 4];
};

// The byte of a chunk where what a step multiplies begins, of the tile's first pixel.
BURIN_DEVICE u32 step_place(u32 step) {
  const u32 position = step % part_positions();
  const u32 row = position / part_cols() * dilation_rows(), col = position % part_cols() * dilation_cols();
  const u32 plane = row % stride_rows() * plane_cols() + col % stride_cols();
  const u32 pixel = row / stride_rows() * pitch() + col / stride_cols();
  return step / part_positions() * kStepPlaces * next_rows() + (plane * plane_pixels() + pixel) * kPlaceBytes;
}

BURIN_DEVICE void multiply_chunk(Sums& sums, u32 chunk, const Warp& warp) {
  const u32 panel = panels_start() + chunk % buffers() * panels_bytes() + warp.row_group * panel_bytes();
  const u32 patch = staged_start() + chunk % staged_buffers() * staged_bytes() +
                    warp.pixel_group * group_rows() * pitch() * kPlaceBytes;
#pragma unroll
  for (u32 step = 0; step < steps(); ++step) {
    const u32 at = step * kStepBytes, place = step_place(step);
    if (is_tf32()) {
      burin_dev_group_multiply_columns_tf32(sums.of, octets(), panel, at, patch, place, next_rows());
    } else if (factors() == kBf16) {
      burin_dev_group_multiply_columns_bf16(sums.of, octets(), panel, at, patch, place, next_rows());
    } else {
      burin_dev_group_multiply_columns_f16(sums.of, octets(), panel, at, patch, place, next_rows());
    }
  }
  burin_dev_group_commit();
}

// ---- sums: a lane's are two pixels side by side of a channel, and of the eighth channel after it

BURIN_DEVICE u32 first_output() {  // of the convolution's group
  return set_of_block() % output_blocks() * row_groups() * kGroupRows;
}
BURIN_DEVICE u32 channel_of(u32 row) {
  return set_of_block() / output_blocks() * group_outputs() + first_output() + row;
}
BURIN_DEVICE u32 first_row(const Warp& warp) {  // of the block, that is the lane's
  return warp.row_group * kGroupRows + warp.of_group * kWarpRows + warp.lane / 4;
}

// Sums begin with the bias; of a cluster's blocks, those of the first one.
struct Bias {
  float of[2];  // of the lane's channels
};
BURIN_DEVICE Bias load_bias(const float* weights, const Warp& warp) {
  const u32 row = set_of_block() * row_groups() * kGroupRows + first_row(warp);
  Bias bias = {{0, 0}};
  if (split_of_block() != 0) return bias;
#pragma unroll
  for (u32 half = 0; half < 2; ++half) {
    bias.of[half] = burin_dev_global_load(weights, bias_offset() + bytes_of(row + half * 8));
  }
  return bias;
}
BURIN_DEVICE void begin_sums(Sums& sums, const Bias& bias) {
#pragma unroll
  for (u32 i = 0; i < kMaxOctets * 4; ++i) {
    if (i < octets() * 4) sums.of[i] = bias.of[i / 2 % 2];
  }
}

// At the end they lie in shared memory, in place of what was multiplied: for each output channel of the block a row of
// the pixels of all warpgroups. Rows are so far apart that lanes store to different banks, as far as they can.
BURIN_DEVICE u32 group_words() { return octets() * kOctetPixels; }
BURIN_DEVICE u32 row_words() {
  const u32 words = pixel_groups() * group_words();
  return words / kOctetPixels % 2 == 0 ? words + kOctetPixels : words;
}
BURIN_DEVICE u32 word_of_pixel(u32 row, u32 col) {
  return row / group_rows() * group_words() + row % group_rows() * pitch() + col;
}
BURIN_DEVICE u32 place_of_sum(u32 row, u32 pixel_row, u32 pixel_col) {
  return sums_start() + (row * row_words() + word_of_pixel(pixel_row, pixel_col)) * kWordBytes;
}
// Windows of a pool overlap, so that what is applied to the sums is so before; with a residual, when that is added.
BURIN_DEVICE float kept(float sum) { return pools() && !residual() ? apply(sum) : sum; }
// All of a row is sent to other blocks of a cluster.
BURIN_DEVICE void fill_rows(u32 thread) {
  const u32 pixels = pixel_groups() * group_words(), quads = (row_words() - pixels) / kQuadWords;
  const f32x4 zeros = {0, 0, 0, 0};
#pragma nounroll
  for (u32 quad = thread; quad < row_groups() * kGroupRows * quads; quad += block_threads()) {
    const u32 word = quad / quads * row_words() + pixels + quad % quads * kQuadWords;
    burin_dev_shared_store4(sums_start() + word * kWordBytes, 0, zeros);
  }
}
BURIN_DEVICE void share_sums(const Sums& sums, const Warp& warp) {
  const u32 first = sums_start() +
                    (first_row(warp) * row_words() + warp.pixel_group * group_words() + warp.lane % 4 * 2) * kWordBytes;
#pragma unroll
  for (u32 i = 0; i < kMaxOctets * 4; ++i) {
    if (i >= octets() * 4) continue;
    const u32 word = i / 2 % 2 * 8 * row_words() + i / 4 * kOctetPixels + i % 2;
    const float sum = sums.of[i];
    burin_dev_shared_store(first, word * kWordBytes, cluster_blocks() > 1 ? sum : kept(sum));
  }
}

// Each of a cluster's blocks adds up the sums of some rows, and stores what becomes of them.
BURIN_DEVICE u32 block_rows() { return row_groups() * kGroupRows; }
BURIN_DEVICE u32 rows_of_share() { return block_rows() / cluster_blocks(); }
BURIN_DEVICE u32 first_row_of_share() { return split_of_block() * rows_of_share(); }
BURIN_DEVICE u32 share_start() { return sums_start() + first_row_of_share() * row_words() * kWordBytes; }
// So many rows of the share are output channels.
BURIN_DEVICE u32 existing_rows() {
  const i32 left = group_outputs() - static_cast<i32>(first_output() + first_row_of_share());
  return left < 0 ? 0 : at_most(left, rows_of_share());
}
BURIN_DEVICE u32 sums_bytes() { return block_rows() * row_words() * kWordBytes; }
BURIN_DEVICE u32 received_start() {
  const u32 multiplied = buffers() * panels_bytes() + staged_buffers() * staged_bytes();
  return sums_start() + (multiplied > sums_bytes() ? multiplied : sums_bytes());
}
BURIN_DEVICE ClusterSums cluster_sums() {
  return {sums_start(), received_start(), sums_bytes() / kSumQuadBytes, split_of_block()};
}
// Windows overlap, so that sums are added up before.
BURIN_DEVICE void add_up_blocks(const ClusterSums& sums, u32 thread) {
#pragma unroll 4
  for (u32 quad = thread; quad < share_quads(sums); quad += block_threads()) {
    const f32x4 sum = sum_of_blocks(sums, quad), all = {kept(sum[0]), kept(sum[1]), kept(sum[2]), kept(sum[3])};
    burin_dev_shared_store4(own_sums(sums) + quad * kSumQuadBytes, 0, all);
  }
}
// A sum of the share, which begins at `share`; without a pool, the blocks of a cluster have parts of it.
BURIN_DEVICE float sum_at(u32 share, u32 row, u32 word) {
  const u32 byte = (row * row_words() + word) * kWordBytes;
  float sum = burin_dev_shared_load(share + byte, 0);
  if (pools()) return sum;
#pragma unroll
  for (u32 i = 0; i + 1 < static_cast<u32>(cluster_blocks()); ++i) {
    sum += burin_dev_shared_load(received_start() + byte, i * share_bytes(cluster_sums()));
  }
  return sum;
}

// Threads have a pixel of so many, and go through rows of the share: neighbours access what follows each other. The
// pixels are in so many parts, of which a thread has one of each, that it has the fewest turns.
struct Walk {
  u32 pixels, rows;  // at once
};
BURIN_DEVICE Walk walk_over(u32 pixels, u32 all_rows) {
  constexpr u32 kMostParts = 8;
  Walk best = {0, 0};
  u32 fewest = 0xFFFFFFFF;
#pragma unroll
  for (u32 parts = 1; parts <= kMostParts; ++parts) {
    const u32 at_once = divide_up(pixels, parts);
    if (at_once > block_threads()) continue;
    const u32 rows = at_most(block_threads() / at_once, all_rows);
    const u32 turns = parts * divide_up(all_rows, rows);
    if (turns >= fewest) continue;
    fewest = turns;
    best = {at_once, rows};
  }
  return best;
}
// begin(pixel) says where the pixel is, which `exists` or not; then visit(that, row of the share), or, where `together`
// rows are visited at once, the first of them.
template <typename Begin, typename Visit>
BURIN_DEVICE void for_each_pixel(u32 pixels, u32 together, u32 thread, Begin begin, Visit visit) {
  const Walk walk = walk_over(pixels, rows_of_share() / together);
  const u32 rows = divide_up(existing_rows(), together);
  if (thread >= walk.pixels * walk.rows) return;
#pragma nounroll
  for (u32 pixel = thread % walk.pixels; pixel < pixels; pixel += walk.pixels) {
    const auto place = begin(pixel);
    if (!place.exists) continue;
#pragma unroll 4
    for (u32 row = thread / walk.pixels; row < rows; row += walk.rows) visit(place, row * together);
  }
}

// A pixel of the convolution.
struct Pixel {
  u32 word;      // of a row of sums
  u32 of_plane;  // of the convolution's
  bool exists;
};
BURIN_DEVICE Pixel pixel_at(const Tile& tile, u32 number) {
  const u32 row = number / tile_cols(), col = number % tile_cols();
  const i32 y = tile.row + static_cast<i32>(row), x = tile.col + static_cast<i32>(col);
  return {word_of_pixel(row, col), static_cast<u32>(y * conv_cols() + x), is_pixel(y, x)};
}

// The residual of the share is on its way while chunks are multiplied, to where sums have their place in a row.
BURIN_DEVICE u32 residual_start() {
  const u32 received = cluster_blocks() > 1 ? (cluster_blocks() - 1) * share_bytes(cluster_sums()) : 0;
  return received_start() + received;
}
// Rows that are finished at once: those of a place; and what they take of a pixel.
BURIN_DEVICE u32 rows_together() {
  if (!stores_places()) return 1;
  return out_halves() == kFloats ? kQuadWords : kMostPlaceChannels;
}
// Whether no place of the output has channels that fill it up.
BURIN_DEVICE bool fills_places() { return group_outputs() % rows_together() == 0; }
BURIN_DEVICE u32 row_bytes_together() { return stores_places() ? kPlaceBytes : kWordBytes; }
// `row`: the first of as many as are together; likewise below.
BURIN_DEVICE u32 place_of_residual(u32 row, u32 word) {
  return residual_start() + (row / rows_together() * row_words() + word) * row_bytes_together();
}
// Where rows of a plane, in words, begin: those of a place follow each other for each pixel.
BURIN_DEVICE u32 word_of_plane(u32 row, u32 plane, u32 pixel) {
  if (!stores_places()) return row * plane + pixel;
  const u32 place = row / rows_together();
  return (out_pixel_places() != 0 ? pixel * out_pixel_places() + place : place * plane + pixel) * kQuadWords;
}
BURIN_DEVICE i64 share_of_tensor(u32 plane) { return word_of_plane(channel_of(first_row_of_share()), plane, 0); }
BURIN_DEVICE void copy_residual(const float* other, const Tile& tile, u32 thread) {
  const float* share = other + share_of_tensor(conv_plane());
  for_each_pixel(
      tile_rows() * tile_cols(), rows_together(), thread,
      [&](u32 number) BURIN_INLINED { return pixel_at(tile, number); },
      [&](const Pixel& pixel, u32 row) BURIN_INLINED {
        const u32 place = place_of_residual(row, pixel.word);
        const i64 from = bytes_of(word_of_plane(row, conv_plane(), pixel.of_plane));
        if (stores_places()) {
          burin_dev_copy_async4(place, 0, share, from, 1);
        } else {
          burin_dev_copy_async(place, 0, share, from, 1);
        }
      });
}
struct Together {
  float of[kMostPlaceChannels];  // of as many rows as are together
};
BURIN_DEVICE Together residuals_at(u32 row, u32 word) {
  const u32 place = place_of_residual(row, word);
  if (!stores_places()) return {{burin_dev_shared_load(place, 0)}};
  const Values values = values_of(burin_dev_shared_load4(place, 0), out_halves());
  Together all;
#pragma unroll
  for (u32 i = 0; i < rows_together(); ++i) {
    if (out_halves() == kFloats) {
      all.of[i] = values.first[i % kQuadWords];
    } else {
      all.of[i] = i % 2 == 0 ? values.first[i / 2] : values.second[i / 2];
    }
  }
  return all;
}
BURIN_DEVICE Together finished(u32 share, u32 row, u32 word) {
  Together added = {{0}}, all;
  if (residual()) added = residuals_at(row, word);
#pragma unroll
  for (u32 i = 0; i < rows_together(); ++i) {
    const float sum = sum_at(share, row + i, word);
    all.of[i] = residual() ? end_of_sum(sum, added.of[i]) : apply(sum);
  }
  return all;
}
// Behind which there is a pool.
BURIN_DEVICE void finish_pixels(const Tile& tile, u32 thread) {
  const u32 share = share_start();
  for_each_pixel(
      tile_rows() * tile_cols(), rows_together(), thread,
      [&](u32 number) BURIN_INLINED { return pixel_at(tile, number); },
      [&](const Pixel& pixel, u32 row) BURIN_INLINED {
        const Together all = finished(share, row, pixel.word);
#pragma unroll
        for (u32 i = 0; i < rows_together(); ++i) {
          burin_dev_shared_store(share + ((row + i) * row_words() + pixel.word) * kWordBytes, 0, all.of[i]);
        }
      });
}

struct Output {
  u32 top, left;  // of its window, in the tile
  u32 of_plane;
  bool exists;
};
BURIN_DEVICE Output output_at(const Tile& tile, u32 number) {
  const u32 row = number / stored_cols(), col = number % stored_cols();
  const u32 y = tile.out_row + row, x = tile.out_col + col;
  return {row * pool_stride_rows(), col * pool_stride_cols(), y * out_cols() + x,
          y < static_cast<u32>(out_rows()) && x < static_cast<u32>(out_cols())};
}
BURIN_DEVICE float pooled(const Tile& tile, const Output& of, u32 share, u32 share_row) {
  return pool_of_window(tile.row + static_cast<i32>(of.top), tile.col + static_cast<i32>(of.left),
                        [&](u32 r, u32 s)
                            BURIN_INLINED { return sum_at(share, share_row, word_of_pixel(of.top + r, of.left + s)); });
}
BURIN_DEVICE Together values_of(const Tile& tile, const Output& of, u32 share, u32 share_row) {
  if (!pools()) return finished(share, share_row, word_of_pixel(of.top, of.left));
  Together all;
#pragma unroll
  for (u32 i = 0; i < rows_together(); ++i) all.of[i] = pooled(tile, of, share, share_row + i);
  return all;
}
// Rows beyond `rows` fill up a place: they are zeros.
BURIN_DEVICE void store_place(float* output, u32 word, const Together& all, u32 rows) {
  f32x4 words;
#pragma unroll
  for (u32 i = 0; i < kQuadWords; ++i) {
    if (out_halves() == kFloats) {
      words[i] = fills_places() || i < rows ? all.of[i] : 0;
      continue;
    }
    const bool first = fills_places() || 2 * i < rows, second = fills_places() || 2 * i + 1 < rows;
    words[i] = packed(first ? all.of[2 * i] : 0, second ? all.of[2 * i + 1] : 0, out_halves());
  }
  burin_dev_global_store4(output, bytes_of(word), words);
}
BURIN_DEVICE void store_outputs(const Tile& tile, u32 thread, float* output) {
  const u32 plane = out_rows() * out_cols(), share = share_start(), rows = existing_rows();
  float* outputs = output + share_of_tensor(plane);
  for_each_pixel(
      stored_rows() * stored_cols(), rows_together(), thread,
      [&](u32 number) BURIN_INLINED { return output_at(tile, number); },
      [&](const Output& of, u32 row) BURIN_INLINED {
        const Together all = values_of(tile, of, share, row);
        const u32 word = word_of_plane(row, plane, of.of_plane);
        if (stores_places()) {
          store_place(outputs, word, all, rows - row);
        } else {
          burin_dev_global_store(outputs, bytes_of(word), all.of[0]);
        }
      });
}

// ---- a pool that filters: a thread has windows one below the other, which share rows, of several channels

// Loads those of the rows of the share; they are no other kernel's output.
BURIN_DEVICE void load_filters(const float* weights, u32 thread) {
  const u32 words = rows_of_share() * filter_words();
  const u32 first = (set_of_block() * block_rows() + first_row_of_share()) * filter_words();
  const i64 start = bias_offset() + bytes_of(sets() * block_rows());
  for (u32 quad = thread; quad < words / kQuadWords; quad += block_threads()) {
    const f32x4 filter = burin_dev_global_load4(weights, start + bytes_of(first + quad * kQuadWords));
    burin_dev_shared_store4(filters_start() + quad * kQuadWords * kWordBytes, 0, filter);
  }
}
// A plan that nobody proposes may name more than an array has places for.
BURIN_DEVICE u32 patch_rows(u32 windows) {
  return at_most((windows - 1) * pool_stride_rows() + pool_rows(), kMostPatchValues);
}
BURIN_DEVICE u32 filter_cols() { return at_most(pool_cols(), kMostFilterCols); }
BURIN_DEVICE u32 filter_place(u32 place) { return at_most(place, kMostFilterWords - 1); }
BURIN_DEVICE u32 strips_of(u32 windows) {  // of a channel, each of so many windows at most
  return divide_up(stored_rows(), windows) * stored_cols();
}
BURIN_DEVICE u32 windows_of_thread() {
  const auto may_have = [](u32 windows) BURIN_INLINED {
    return stored_rows() > windows / 2 && rows_of_share() * strips_of(windows) >= block_threads() &&
           patch_rows(windows) * pool_cols() <= kMostPatchValues;
  };
  return may_have(4) ? 4 : may_have(2) ? 2 : 1;
}
struct FilteredPixel {
  u32 number;  // of those that the tile stores
  Output of;
  bool exists = of.exists;
};
struct Filter {
  float of[kMostFilterWords];
};
BURIN_DEVICE Filter load_filter(u32 row_of_share) {
  Filter filter;
#pragma unroll
  for (u32 quad = 0; quad < at_most(filter_words(), kMostFilterWords) / kQuadWords; ++quad) {
    const f32x4 words = burin_dev_shared_load4(filters_start() + row_of_share * filter_words() * kWordBytes,
                                               quad * kQuadWords * kWordBytes);
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) filter.of[quad * kQuadWords + i] = words[i];
  }
  return filter;
}

struct Strip {
  u32 first, col;  // of what the tile stores
};
// Values of the rows and columns that the windows of a strip read. What lies below the tile is some other value: no
// window that is stored reads it.
struct Patch {
  float of[kMostPatchValues][kMostFilterCols];
};
BURIN_DEVICE Patch load_patch(const Tile& tile, const Strip& strip, u32 windows, u32 of_block) {
  Patch patch;
#pragma unroll
  for (u32 r = 0; r < patch_rows(windows); ++r) {
    const u32 row = strip.first * pool_stride_rows() + r, existing = at_most(row, tile_rows() - 1);
    const i32 y = tile.row + static_cast<i32>(row);
#pragma unroll
    for (u32 s = 0; s < filter_cols(); ++s) {
      const u32 col = strip.col * pool_stride_cols() + s;
      const i32 x = tile.col + static_cast<i32>(col);
      const float value = burin_dev_shared_load(place_of_sum(of_block, existing, col), 0);
      const bool inside = (!windows_leave_rows() || static_cast<u32>(y) < static_cast<u32>(conv_rows())) &&
                          (!windows_leave_cols() || static_cast<u32>(x) < static_cast<u32>(conv_cols()));
      patch.of[r][s] = inside ? value : 0.0f;
    }
  }
  return patch;
}
BURIN_DEVICE float filtered(const Patch& patch, const Filter& filter, u32 window) {
  float result = filter.of[filter_place(filter_positions())];
#pragma unroll
  for (u32 r = 0; r < patch_rows(1); ++r) {
    const u32 row = at_most(window * pool_stride_rows() + r, kMostPatchValues - 1);
#pragma unroll
    for (u32 s = 0; s < filter_cols(); ++s) {
      result = __builtin_fmaf(patch.of[row][s], filter.of[filter_place(r * pool_cols() + s)], result);
    }
  }
  return apply(filtered_function(), filtered_alpha(), filtered_beta(), result);
}

// Where places are written, what is filtered goes through shared memory: for each row of the share, a word for each
// pixel that the tile stores. Rows are so far apart that neighbours lie in different banks.
BURIN_DEVICE u32 filtered_words() { return stored_rows() * stored_cols(); }
BURIN_DEVICE u32 filtered_start() {
  const u32 residuals = residual() ? share_bytes(cluster_sums()) * kQuadWords / rows_together() : 0;
  return residual_start() + residuals;
}
BURIN_DEVICE u32 place_of_filtered(u32 row, u32 pixel) {
  return filtered_start() + (row * filtered_words() + pixel) * kWordBytes;
}
BURIN_DEVICE void store_filtered_places(const Tile& tile, u32 thread, float* output) {
  const u32 plane = out_rows() * out_cols(), rows = existing_rows();
  float* outputs = output + share_of_tensor(plane);
  for_each_pixel(
      stored_rows() * stored_cols(), rows_together(), thread,
      [&](u32 number) BURIN_INLINED { return FilteredPixel{number, output_at(tile, number)}; },
      [&](const FilteredPixel& pixel, u32 row) BURIN_INLINED {
        Together all;
#pragma unroll
        for (u32 i = 0; i < rows_together(); ++i) {
          all.of[i] = row + i < rows ? burin_dev_shared_load(place_of_filtered(row + i, pixel.number), 0) : 0;
        }
        store_place(outputs, word_of_plane(row, plane, pixel.of.of_plane), all, rows - row);
      });
}

BURIN_DEVICE void store_filtered(const Tile& tile, u32 thread, float* output) {
  const u32 windows = windows_of_thread(), strips = strips_of(windows),
            strips_at_once = at_most(strips, block_threads());
  const u32 rows_at_once = block_threads() / strips_at_once, rows = existing_rows();
  if (thread >= rows_at_once * strips_at_once) return;
#pragma nounroll
  for (u32 number = thread % strips_at_once; number < strips; number += strips_at_once) {
    const Strip strip = {number / stored_cols() * windows, number % stored_cols()};
    const u32 y = tile.out_row + strip.first, x = tile.out_col + strip.col;
    if (x >= static_cast<u32>(out_cols())) continue;
#pragma unroll 2
    for (u32 row = thread / strips_at_once; row < rows; row += rows_at_once) {
      const u32 of_block = first_row_of_share() + row;
      const Filter filter = load_filter(row);
      const Patch patch = load_patch(tile, strip, windows, of_block);
      const u32 word = channel_of(of_block) * out_rows() * out_cols() + y * out_cols() + x;
#pragma unroll
      for (u32 i = 0; i < windows; ++i) {
        const float result = filtered(patch, filter, i);
        const bool exists = strip.first + i < stored_rows() && y + i < static_cast<u32>(out_rows());
        if (!exists) continue;
        if (stores_places()) {
          burin_dev_shared_store(place_of_filtered(row, (strip.first + i) * stored_cols() + strip.col), 0, result);
        } else {
          burin_dev_global_store(output, bytes_of(word + i * out_cols()), result);
        }
      }
    }
  }
}

BURIN_DEVICE void finish(const Sums& sums, const Tile& tile, const Warp& warp, u32 thread, float* output) {
  if (residual()) burin_dev_copy_wait(0);
  burin_dev_barrier();  // others may still multiply where the sums go
  if (staging_warps() == 0 || thread < multiplying_threads()) share_sums(sums, warp);
  if (cluster_blocks() > 1) {
    const ClusterSums all = cluster_sums();
    fill_rows(thread);
    exchange_sums(all, thread);
    if (pools()) add_up_blocks(all, thread);
  }
  if (cluster_blocks() == 1 || pools()) burin_dev_barrier();
  if (pools() && residual()) {
    finish_pixels(tile, thread);
    burin_dev_barrier();
  }
  if (pool_filters()) {
    store_filtered(tile, thread, output);
    if (stores_places()) {
      burin_dev_barrier();
      store_filtered_places(tile, thread, output);
    }
  } else {
    store_outputs(tile, thread, output);
  }
  if (cluster_blocks() > 1) burin_dev_cluster_meet();
}

// Chunks are staged through registers: their floats are rounded.
BURIN_DEVICE void multiply_floats(Sums& sums, const float* image, const float* other, const float* weights,
                                  const Tile& tile, const FilterParts& inside, const Warp& warp, u32 thread) {
  const u32 chunks = channel_chunks() * count_of(inside);
  stage_batches(image, thread, staging_of(tile, inside, 0), 0);
  if (residual()) copy_residual(other, tile, thread);
  burin_dev_copy_commit();
  burin_dev_group_offer();
  burin_dev_barrier();
  burin_dev_group_begin(sums.of, octets());
#pragma nounroll
  for (u32 chunk = 0; chunk < chunks; ++chunk) {
    const bool is_last = chunk + 1 == chunks;
    const Staging staging = staging_of(tile, inside, chunk + 1);
    Batch next;
    if (!is_last) load_batch(image, thread, staging, 0, next);
    burin_dev_gate_wait(chunk % buffers(), chunk / buffers() % 2);
    multiply_chunk(sums, chunk, warp);
    if (is_last) break;
    store_batch(thread, staging, 0, next);
    stage_batches(image, thread, staging, 1);
    burin_dev_group_release(1);
    burin_dev_group_offer();
    burin_dev_barrier();
    // All have done with the chunk before this one.
    if (thread == 0 && chunk > 0 && chunk - 1 + buffers() < chunks) copy_panels(weights, inside, chunk - 1 + buffers());
  }
}

// Chunks are copied as they are, so many ahead; each is a batch of copies, of which the last to begin before the first
// is multiplied has the residual as well.
BURIN_DEVICE void multiply_places(Sums& sums, const float* image, const float* other, const float* weights,
                                  const Tile& tile, const FilterParts& inside, const Warp& warp, u32 thread) {
  const u32 chunks = channel_chunks() * count_of(inside);
#pragma unroll
  for (u32 chunk = 0; chunk < kCopiesAhead; ++chunk) {
    if (chunk < chunks) copy_chunk(image, thread, staging_of(tile, inside, chunk));
    if (residual() && chunk + 1 == kCopiesAhead) copy_residual(other, tile, thread);
    burin_dev_copy_commit();
  }
  burin_dev_group_begin(sums.of, octets());
#pragma nounroll
  for (u32 chunk = 0; chunk < chunks; ++chunk) {
    burin_dev_copy_wait(kCopiesAhead - 1);
    if (chunk > 0) burin_dev_group_release(1);
    burin_dev_group_offer();
    burin_dev_barrier();
    // All have done with the chunk before the last.
    const u32 ahead = chunk + kCopiesAhead;
    if (ahead < chunks) copy_chunk(image, thread, staging_of(tile, inside, ahead));
    burin_dev_copy_commit();
    if (thread == 0 && chunk > 1 && chunk - 2 + buffers() < chunks) copy_panels(weights, inside, chunk - 2 + buffers());
    burin_dev_gate_wait(chunk % buffers(), chunk / buffers() % 2);
    multiply_chunk(sums, chunk, warp);
  }
}

// What the warps that stage do, of whose threads each has its share. A buffer is filled again when all have multiplied
// what it had, which they say when they multiply the next one.
BURIN_DEVICE void refill(const float* weights, const FilterParts& inside, u32 chunk, u32 thread) {
  if (chunk < static_cast<u32>(buffers())) return;
  burin_dev_gate_sleep(kEmptyGates + chunk % buffers(), (chunk / buffers() - 1) % 2);
  if (thread == 0) copy_panels(weights, inside, chunk);
}
BURIN_DEVICE void tell_filled(u32 chunk) {
  burin_dev_group_offer();
  burin_dev_gate_release(chunk % buffers());
}
// So many chunks are on their way at once. What has arrived is told of before the next buffer is waited for.
BURIN_DEVICE void fill_with_places(const float* image, const float* weights, const Tile& tile,
                                   const FilterParts& inside, u32 thread) {
  const u32 chunks = channel_chunks() * count_of(inside);
  const u32 ahead = buffers() > 1 ? at_most(buffers() - 1, kMostChunksAhead) : 1;
#pragma nounroll
  for (u32 chunk = 0; chunk < chunks + ahead; ++chunk) {
    if (chunk >= ahead) {
      burin_dev_copy_wait(ahead - 1);
      tell_filled(chunk - ahead);
    }
    if (chunk < chunks) {
      refill(weights, inside, chunk, thread);
      copy_chunk(image, thread, staging_of(tile, inside, chunk));
    }
    burin_dev_copy_commit();
  }
}
BURIN_DEVICE void fill_with_floats(const float* image, const float* weights, const Tile& tile,
                                   const FilterParts& inside, u32 thread) {
  const u32 chunks = channel_chunks() * count_of(inside);
  Batch first;
  load_batch(image, thread, staging_of(tile, inside, 0), 0, first);
#pragma nounroll
  for (u32 chunk = 0; chunk < chunks; ++chunk) {
    const Staging staging = staging_of(tile, inside, chunk);
    refill(weights, inside, chunk, thread);
    store_batch(thread, staging, 0, first);
    stage_batches(image, thread, staging, 1);
    if (chunk + 1 < chunks) load_batch(image, thread, staging_of(tile, inside, chunk + 1), 0, first);
    tell_filled(chunk);
  }
}
BURIN_DEVICE void multiply_filled(Sums& sums, const FilterParts& inside, const Warp& warp) {
  const u32 chunks = channel_chunks() * count_of(inside);
#pragma nounroll
  for (u32 chunk = 0; chunk < chunks; ++chunk) {
    burin_dev_gate_sleep(chunk % buffers(), chunk / buffers() % 2);
    // Each chunk begins anew: on one of several paths the assembler would else make every product wait for the last.
    burin_dev_group_begin(sums.of, octets());
    multiply_chunk(sums, chunk, warp);
    // Nobody waits for the last ones.
    if (chunk == 0 || chunk - 1 + buffers() >= chunks) continue;
    burin_dev_group_release(1);
    burin_dev_gate_release(kEmptyGates + (chunk - 1) % buffers());
  }
  burin_dev_group_wait(sums.of, octets(), 0);
}

BURIN_DEVICE void init_gates(u32 thread) {
  if (thread >= static_cast<u32>(buffers())) return;
  if (staging_warps() == 0) {
    burin_dev_gate_init(thread);
  } else {
    burin_dev_gate_init_filled(thread, staging_warps());
    burin_dev_gate_init_released(kEmptyGates + thread, multiplying_warps());
  }
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32) {
  const u32 thread = burin_dev_thread();
  const Tile tile = tile_of_block();
  const FilterParts inside = parts_of(tile);
  const u32 chunks = channel_chunks() * count_of(inside);
  init_gates(thread);
  begin_cluster_sums(thread);
  burin_dev_barrier();
  if (thread == (staging_warps() == 0 ? 0 : multiplying_threads())) {
#pragma nounroll
    for (u32 chunk = 0; chunk < at_most(buffers(), chunks); ++chunk) copy_panels(weights, inside, chunk);
  }
  const Warp warp = warp_at(thread / kWarpThreads, thread % kWarpThreads);
  const u32 group = set_of_block() / output_blocks();
  const u32 first = group * group_channels() + first_channel();
  const float* image =
      input_of(input, first_image()) + static_cast<i64>(first / channels_at_once()) * in_channel_words();
  const Bias bias = load_bias(weights, warp);
  if (pool_filters()) load_filters(weights, thread);
  burin_dev_await_launch();
  Sums sums;
  begin_sums(sums, bias);
  const float* added = residual_of(other, first_image());
  if (staging_warps() != 0) {
    if (residual()) copy_residual(added, tile, thread);
    burin_dev_copy_commit();
    if (thread < multiplying_threads()) {
      multiply_filled(sums, inside, warp);
    } else if (copies_places()) {
      fill_with_places(image, weights, tile, inside, thread - multiplying_threads());
    } else {
      fill_with_floats(image, weights, tile, inside, thread - multiplying_threads());
    }
  } else if (copies_places()) {
    multiply_places(sums, image, added, weights, tile, inside, warp, thread);
  } else {
    multiply_floats(sums, image, added, weights, tile, inside, warp, thread);
  }
  if (staging_warps() == 0) burin_dev_group_wait(sums.of, octets(), 0);
  finish(sums, tile, warp, thread, output_of(output, first_image()));
}
