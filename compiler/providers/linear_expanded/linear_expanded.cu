// linear_expanded: a fully connected layer of several images on tensor cores, whose zeros are not stored. A warp brings
// the nonzeros of a panel of the weights to their places among zeros in shared memory, multiplies the panel as a dense
// one, and puts zeros in their places again. Tensors are FP32; inputs and weights are rounded to halves.
//
// A block has `row_warps` x `warp_tiles` x 16 outputs and `octets` x 8 images. It goes through the features by chunks:
// of each, every one of `split_warps` warps with the same outputs has a panel of `panel_cols` columns. The blocks of a
// cluster share out the chunks. While a chunk is multiplied, the next one's inputs are on their way, its panels are
// filled, and those of the one before are emptied: one barrier a chunk. Lists of nonzeros are copied chunks ahead.
//
// Weights, in words: for each block, a table that says for each list of each warp at which quad it begins, and how many
// it has; the biases, of each set of outputs; the lists. A list: the panel's nonzeros, each a word: the half, and above
// it its byte in the panel. The list's last quad is filled up with zeros for places behind the panel.
#define BURIN_TEMPLATE_DEF "compiler/providers/linear_expanded/linear_expanded.def"
#include "templates/kernels/function.h"
#include "templates/kernels/split_sums.h"

constexpr u32 kMaxTiles = 4, kMaxOctets = 8;
constexpr u32 kTileRows = 16, kSide = 8;  // rows, or images, that lie side by side
constexpr u32 kQuadBytes = 16;            // of eight halves
constexpr u32 kListSlots = 6;             // lists of a warp in shared memory
constexpr u32 kPanels = 3;                // one is filled, one multiplied, one emptied
constexpr u32 kListRounds = 3;            // in each of which a lane has a quad
constexpr u32 kFirstBits = 25;            // of an entry of the table: where the list begins; above it, its quads
constexpr u32 kMaxItems = 16;             // words of a chunk that a thread stages
constexpr u32 kSidePairs = kSide / 2;
constexpr u32 kProductCols = 16, kRowsCols = 32;  // of a product, and of a load of rows

// ---- sizes, all constants
BURIN_DEVICE u32 aligned(u32 words) { return divide_up(words, kQuadWords) * kQuadWords; }
BURIN_DEVICE u32 warps() { return row_warps() * split_warps(); }
BURIN_DEVICE u32 warp_rows() { return warp_tiles() * kTileRows; }
BURIN_DEVICE u32 block_rows() { return row_warps() * warp_rows(); }
BURIN_DEVICE u32 sets() { return image_blocks() / cluster_blocks(); }
BURIN_DEVICE u32 chunk_cols() { return split_warps() * panel_cols(); }
BURIN_DEVICE u32 chunks() { return divide_up(divide_up(in_features(), chunk_cols()), cluster_blocks()); }  // of a block
BURIN_DEVICE u32 table_words() { return warps() * chunks(); }
BURIN_DEVICE i64 bias_offset() { return static_cast<i64>(image_blocks()) * aligned(table_words()) * kWordBytes; }
BURIN_DEVICE i64 lists_offset() { return bias_offset() + static_cast<i64>(sets()) * block_rows() * kWordBytes; }

BURIN_DEVICE u32 panel_bytes() { return warp_rows() * panel_cols() * 2 + kQuadBytes; }  // with what lies behind it
BURIN_DEVICE u32 slot_bytes() { return list_quads() * kQuadBytes; }
BURIN_DEVICE u32 chunk_bytes() { return octets() * chunk_cols() * kQuadBytes; }
// Shared memory: the table; each warp's lists, and its panels; two chunks of inputs. Sums lie where lists were, and
// those that the other blocks of the cluster send behind all.
BURIN_DEVICE u32 lists_start() { return kSharedStart + aligned(table_words()) * kWordBytes; }
BURIN_DEVICE u32 panels_start() { return lists_start() + warps() * kListSlots * slot_bytes(); }
BURIN_DEVICE u32 inputs_start() { return panels_start() + warps() * kPanels * panel_bytes(); }

BURIN_DEVICE u32 rank_of_block() { return block_of_image() % cluster_blocks(); }
BURIN_DEVICE u32 set_of_block() { return block_of_image() / cluster_blocks(); }

struct Warp {
  u32 number, row, split, lane;
};
BURIN_DEVICE Warp warp_of_thread() {
  const u32 thread = burin_dev_thread(), warp = thread / kWarpThreads;
  return {warp, warp / split_warps(), warp % split_warps(), thread % kWarpThreads};
}

// ---- lists
// Where a list begins, in quads of the weights, and how many it has.
struct List {
  u32 first, quads;
};
BURIN_DEVICE List list_of(const Warp& warp, u32 chunk) {
  const u32 entry = burin_dev_shared_load_word(kSharedStart + (warp.number * chunks() + chunk) * kWordBytes, 0);
  return {entry % (1u << kFirstBits), entry >> kFirstBits};
}
// visit(round, number of the quad) for those of the lane.
template <typename Visit>
BURIN_DEVICE void for_each_quad_of(u32 quads, u32 lane, Visit visit) {
#pragma unroll
  for (u32 round = 0; round < kListRounds; ++round) {
    const u32 quad = round * kWarpThreads + lane;
    if (round * kWarpThreads < static_cast<u32>(list_quads()) && quad < quads) visit(round, quad);
  }
}

BURIN_DEVICE u32 slot_at(const Warp& warp, u32 number) {
  return lists_start() + (warp.number * kListSlots + number) * slot_bytes();
}
BURIN_DEVICE u32 panel_at(const Warp& warp, u32 number) {
  return panels_start() + (warp.number * kPanels + number) * panel_bytes();
}

BURIN_DEVICE void begin_list(const float* weights, const Warp& warp, u32 chunk, u32 slot) {
  if (chunk < chunks()) {
    const List list = list_of(warp, chunk);
    for_each_quad_of(list.quads, warp.lane, [&](u32, u32 quad) BURIN_INLINED {
      burin_dev_copy_async4(slot + quad * kQuadBytes, 0, weights,
                            lists_offset() + static_cast<i64>((list.first + quad) * kQuadBytes), 1);
    });
  }
  burin_dev_copy_commit();
}

// What a lane has put into a panel: where its quads' halves lie, of as many quads as the list has.
struct Filling {
  u32 quads = 0;
  u32 places[kListRounds][kQuadWords];
};
BURIN_DEVICE Filling fill_panel(const Warp& warp, u32 chunk, u32 slot, u32 panel) {
  Filling filling;
  filling.quads = list_of(warp, chunk).quads;
  for_each_quad_of(filling.quads, warp.lane, [&](u32 round, u32 quad) BURIN_INLINED {
    const u32x4 words = __builtin_bit_cast(u32x4, burin_dev_shared_load4(slot + quad * kQuadBytes, 0));
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) {
      filling.places[round][i] = panel + (words[i] >> kHalfBits);
      burin_dev_shared_store_half(filling.places[round][i], 0, words[i]);
    }
  });
  return filling;
}
BURIN_DEVICE void empty_panel(const Warp& warp, const Filling& filling) {
  for_each_quad_of(filling.quads, warp.lane, [&](u32 round, u32) BURIN_INLINED {
#pragma unroll
    for (u32 i = 0; i < kQuadWords; ++i) burin_dev_shared_store_half(filling.places[round][i], 0, 0);
  });
}

// ---- inputs: of each octet of images, the halves of a feature lie side by side, and those of the next behind them.
// A thread has two images of a feature, and what lies `block_threads` words behind them.
struct Staged {
  Pair of[kMaxItems] = {};
};
BURIN_DEVICE u32 chunk_words() { return octets() * kSidePairs * chunk_cols(); }
BURIN_DEVICE u32 pass_places() { return block_threads() / kSidePairs; }

// visit(number of the item, its images before and its features behind those of the thread's first one) for the
// thread's. Threads and columns of a chunk are powers of two.
template <typename Visit>
BURIN_DEVICE void for_each_item(Visit visit) {
#pragma unroll
  for (u32 i = 0; i < kMaxItems; ++i) {
    if (i * block_threads() >= chunk_words()) continue;
    if (chunk_words() % block_threads() != 0 && i * block_threads() + burin_dev_thread() >= chunk_words()) continue;
    visit(i, i * pass_places() / chunk_cols() * kSide, i * pass_places() % chunk_cols());
  }
}
struct Item {
  u32 image, feature;  // of the block, and of a chunk
};
BURIN_DEVICE Item first_item() {
  const u32 thread = burin_dev_thread(), place = thread / kSidePairs;
  return {place / chunk_cols() * kSide + thread % kSidePairs * 2, place % chunk_cols()};
}
BURIN_DEVICE u32 first_feature(u32 chunk) { return (rank_of_block() * chunks() + chunk) * chunk_cols(); }
BURIN_DEVICE bool has_rest() { return in_features() % (chunk_cols() * chunks() * cluster_blocks()) != 0; }

// Of images that there are not, nothing is loaded: what they have is not stored.
BURIN_DEVICE void load_chunk(const float* image, const Item& item, u32 images, u32 chunk, Staged& staged) {
  const u32 feature = first_feature(chunk) + item.feature;
  for_each_item([&](u32 i, u32 more_images, u32 more_features) BURIN_INLINED {
    const u32 wanted = feature + more_features;
    if (has_rest() && wanted >= static_cast<u32>(in_features())) {
      staged.of[i] = {0, 0};
      return;
    }
    const i64 place = static_cast<i64>(more_images) * in_image_words() * kWordBytes + bytes_of(more_features);
    const float* first = image + feature;
    if (item.image + more_images < images) staged.of[i].first = burin_dev_global_load(first, place);
    if (item.image + more_images + 1 < images) {
      staged.of[i].second = burin_dev_global_load(first, place + static_cast<i64>(in_image_words()) * kWordBytes);
    }
  });
}
BURIN_DEVICE void store_chunk(u32 inputs, const Staged& staged) {
  const u32 first = inputs + burin_dev_thread() * kWordBytes;
  for_each_item([&](u32 i, u32, u32) BURIN_INLINED {
    burin_dev_shared_store(first, i * block_threads() * kWordBytes,
                           packed(staged.of[i].first, staged.of[i].second, factors()));
  });
}

// ---- products
struct Sums {
  f32x4 of[kMaxTiles][kMaxOctets];
};
template <typename Visit>
BURIN_DEVICE void for_each_sum(Visit visit) {
#pragma unroll
  for (u32 tile = 0; tile < kMaxTiles; ++tile) {
#pragma unroll
    for (u32 octet = 0; octet < kMaxOctets; ++octet) {
      if (tile < static_cast<u32>(warp_tiles()) && octet < static_cast<u32>(octets())) visit(tile, octet);
    }
  }
}
BURIN_DEVICE f32x4 product(u32x4 a, u32 b0, u32 b1, f32x4 sums) {
  return factors() == kBf16 ? burin_dev_multiply_bf16(a, b0, b1, sums) : burin_dev_multiply_f16(a, b0, b1, sums);
}

BURIN_DEVICE void multiply_panel(const Warp& warp, u32 filled, u32 staged, Sums& sums) {
  // In a panel the halves of a column of eight rows lie side by side. A load gives a product its 16 rows and columns.
  const u32 panel = filled + (warp.lane / 8 % 2 * panel_cols() + warp.lane / 16 * 8 + warp.lane % 8) * kQuadBytes;
  const u32 inputs = staged + (warp.split * panel_cols() + warp.lane) * kQuadBytes;
#pragma unroll
  for (u32 col = 0; col < static_cast<u32>(panel_cols()); col += kRowsCols) {
    u32x4 b[kMaxOctets];
#pragma unroll
    for (u32 octet = 0; octet < kMaxOctets; ++octet) {
      if (octet >= static_cast<u32>(octets())) continue;
      b[octet] = burin_dev_shared_load_rows(inputs, (octet * chunk_cols() + col) * kQuadBytes);
    }
#pragma unroll
    for (u32 half = 0; half < kRowsCols / kProductCols; ++half) {
#pragma unroll
      for (u32 tile = 0; tile < kMaxTiles; ++tile) {
        if (tile >= static_cast<u32>(warp_tiles())) continue;
        const u32x4 a =
            burin_dev_shared_load_rows(panel, (2 * tile * panel_cols() + col + half * kProductCols) * kQuadBytes);
#pragma unroll
        for (u32 octet = 0; octet < kMaxOctets; ++octet) {
          if (octet >= static_cast<u32>(octets())) continue;
          f32x4& sum = sums.of[tile][octet];
          sum = product(a, b[octet][2 * half], b[octet][2 * half + 1], sum);
        }
      }
    }
  }
}

// ---- the end
// A lane's quad: two images of an output, and of the eighth one after it.
BURIN_DEVICE void store_quad(float* output, const float* weights, i32 batch, const SumPlace& place, f32x4 sums) {
  const u32 tile = place.quad / octets(), octet = place.quad % octets();
  const u32 row = (place.sum_warp * warp_tiles() + tile) * kTileRows + place.lane / 4;
  const u32 image = first_image() + octet * kSide + place.lane % 4 * 2;
#pragma unroll
  for (u32 half = 0; half < 2; ++half) {
    const u32 of_set = row + half * kSide, wanted = set_of_block() * block_rows() + of_set;
    if (wanted >= static_cast<u32>(out_features())) continue;
    const float bias = burin_dev_global_load(weights, bias_offset() + bytes_of(wanted));
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      if (image + i >= static_cast<u32>(batch)) continue;
      burin_dev_global_store(output_of(output, image + i), bytes_of(wanted), apply(sums[half * 2 + i] + bias));
    }
  }
}

BURIN_DEVICE void finish(float* output, const float* weights, i32 batch, const Warp& warp, const Sums& sums) {
  if (split_warps() == 1 && cluster_blocks() == 1) {
    for_each_sum([&](u32 tile, u32 octet) BURIN_INLINED {
      store_quad(output, weights, batch, {warp.row, tile * octets() + octet, warp.lane}, sums.of[tile][octet]);
    });
    return;
  }
  const SplitSums split = {lists_start(), inputs_start() + 2 * chunk_bytes(), static_cast<u32>(row_warps()),
                           static_cast<u32>(warp_tiles() * octets())};
  const u32 own = own_quads(split, warp.split, warp.row, warp.lane);
  for_each_sum([&](u32 tile, u32 octet) BURIN_INLINED {
    burin_dev_shared_store4(own, (tile * octets() + octet) * kSumWarpBytes, sums.of[tile][octet]);
  });
  add_up(split, rank_of_block(),
         [&](const SumPlace& at, f32x4 sum) BURIN_INLINED { store_quad(output, weights, batch, at, sum); });
}

// The table, zeros for all panels, and the first lists: no other kernel's output is read.
BURIN_DEVICE void begin(const float* weights, const Warp& warp) {
  const i64 table = static_cast<i64>(block_of_image()) * aligned(table_words()) * kWordBytes;
#pragma nounroll
  for (u32 word = burin_dev_thread(); word < table_words(); word += block_threads()) {
    burin_dev_shared_store_word(kSharedStart + word * kWordBytes, 0,
                                burin_dev_global_load_word(weights, table + bytes_of(word)));
  }
  const f32x4 zeros = {0, 0, 0, 0};
  const u32 panels = panels_start() + warp.number * kPanels * panel_bytes();
#pragma nounroll
  for (u32 byte = warp.lane * kQuadBytes; byte < kPanels * panel_bytes(); byte += kWarpThreads * kQuadBytes) {
    burin_dev_shared_store4(panels + byte, 0, zeros);
  }
  burin_dev_barrier();
#pragma unroll
  for (u32 chunk = 0; chunk + 1 < kListSlots; ++chunk) begin_list(weights, warp, chunk, slot_at(warp, chunk));
}

BURIN_DEVICE u32 slot_after(const Warp& warp, u32 slot) {
  return slot == slot_at(warp, kListSlots - 1) ? slot_at(warp, 0) : slot + slot_bytes();
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float* weights, i32 batch) {
  const Warp warp = warp_of_thread();
  begin_cluster_sums(burin_dev_thread());
  begin(weights, warp);
  burin_dev_await_launch();
  const Item item = first_item();
  const u32 images = static_cast<u32>(batch) - first_image();
  const float* image = input_of(input, first_image() + item.image);
  u32 now = inputs_start(), later = inputs_start() + chunk_bytes();
  Staged staged;
  load_chunk(image, item, images, 0, staged);
  burin_dev_copy_wait(kListSlots - 2);
  Filling emptied, filled = fill_panel(warp, 0, slot_at(warp, 0), panel_at(warp, 0));
  store_chunk(now, staged);
  Sums sums;
  for_each_sum([&](u32 tile, u32 octet) BURIN_INLINED { sums.of[tile][octet] = {0, 0, 0, 0}; });
  u32 empty = panel_at(warp, 2), panel = panel_at(warp, 0), next_panel = panel_at(warp, 1);
  u32 next_slot = slot_at(warp, 1), last_slot = slot_at(warp, kListSlots - 1);
  burin_dev_barrier();
#pragma nounroll
  for (u32 chunk = 0; chunk < chunks(); ++chunk) {
    const bool has_next = chunk + 1 < chunks();
    Filling next;
    if (has_next) load_chunk(image, item, images, chunk + 1, staged);
    burin_dev_copy_wait(kListSlots - 3);
    if (has_next) next = fill_panel(warp, chunk + 1, next_slot, next_panel);
    empty_panel(warp, emptied);
    begin_list(weights, warp, chunk + kListSlots - 1, last_slot);
    multiply_panel(warp, panel, now, sums);
    if (has_next) store_chunk(later, staged);
    burin_dev_barrier();
    emptied = filled;
    filled = next;
    const u32 before = empty;
    empty = panel;
    panel = next_panel;
    next_panel = before;
    next_slot = slot_after(warp, next_slot);
    last_slot = slot_after(warp, last_slot);
    const u32 staged_before = now;
    now = later;
    later = staged_before;
  }
  finish(output, weights, batch, warp, sums);
}
