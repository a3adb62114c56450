// What the templates share that multiply gathered columns on tensor cores: panels of steps, and the products of a step.
//
// A warp multiplies `warp_tiles` x 16 output channels with `warp_octets` octets, each of which is eight values side by
// side in shared memory: halves, 32 columns a step, or words in TF32, 16 columns a step. What a lane loads and holds of
// a step is as much.
//
// A panel, for a set of output channels and a chunk of input channels: how many steps each row of warps has, filled up
// to whole quads of words; for each row of warps, the steps. A step: the weights as the lanes hold them, the places of
// those that are stored, if sparse, and for each column a word that says where its first octet lies: of halves in their
// order, a word for each lane; in TF32 the columns l % 4, 4 + l % 4 and so on of lane l side by side.
//
// A template includes this behind function.h, and has the constants `warp_tiles`, `warp_octets`, `row_warps`,
// `split_warps`, `step_limit`, `sparse` and `factors`.
#pragma once

#include "templates/kernels/template_kernel.h"

constexpr u32 kMaxTiles = 4, kMaxOctets = 14;
constexpr u32 kTileRows = 16;  // of a tile of tensor cores
constexpr u32 kQuadBytes = 16;
constexpr u32 kBankBytes = 128;  // of all banks of shared memory
constexpr u32 kWarpWordBytes = kWarpThreads * kWordBytes, kWarpQuadBytes = kWarpThreads * kQuadBytes;
constexpr u32 kRowBytes = 8;  // of what is said of an output channel: its number, and its bias
constexpr u32 kNoChannel = 0xFFFFFFFF;
enum { kTf32 = kBf16 + 1 };  // ir/factor_type.h

BURIN_DEVICE u32 to_banks(u32 bytes) { return divide_up(bytes, kBankBytes) * kBankBytes; }

// ---- sizes, all constants
BURIN_DEVICE bool is_tf32() { return factors() == kTf32; }
BURIN_DEVICE u32 octet_bytes() { return is_tf32() ? 32 : 16; }
BURIN_DEVICE u32 lane_columns() { return is_tf32() ? 4 : 1; }  // whose octets' places a lane says
BURIN_DEVICE u32 block_rows() { return row_warps() * warp_tiles() * kTileRows; }
BURIN_DEVICE u32 step_weight_quads() { return sparse() ? warp_tiles() : 2 * warp_tiles(); }
BURIN_DEVICE u32 step_place_words() { return sparse() ? divide_up(warp_tiles(), 2) : 0; }
BURIN_DEVICE u32 places_offset() { return step_weight_quads() * kWarpQuadBytes; }
BURIN_DEVICE u32 columns_offset() { return places_offset() + step_place_words() * kWarpWordBytes; }
BURIN_DEVICE u32 column_bytes() { return is_tf32() ? kWarpWordBytes / 2 : kWarpWordBytes; }
BURIN_DEVICE u32 step_bytes() { return columns_offset() + column_bytes(); }
BURIN_DEVICE u32 steps_offset() { return divide_up(row_warps(), kQuadWords) * kQuadBytes; }
BURIN_DEVICE u32 panel_bytes() { return steps_offset() + row_warps() * step_limit() * step_bytes(); }

// ---- products
struct Sums {
  f32x4 of[kMaxTiles][kMaxOctets];
};
// visit(tile, octet) for each of the warp's.
template <typename Visit>
BURIN_DEVICE void for_each_sum(Visit visit) {
#pragma unroll
  for (u32 tile = 0; tile < kMaxTiles; ++tile) {
#pragma unroll
    for (u32 octet = 0; octet < kMaxOctets; ++octet) {
      if (tile < static_cast<u32>(warp_tiles()) && octet < static_cast<u32>(warp_octets())) visit(tile, octet);
    }
  }
}

struct Step {
  u32x4 weights[2 * kMaxTiles];
  u32 places[kMaxTiles / 2];
  u32x4 columns;  // lane_columns() of them
};
BURIN_DEVICE u32x4 bits_of(f32x4 words) { return __builtin_bit_cast(u32x4, words); }

BURIN_DEVICE void load_step(u32 place, u32 lane, Step& step) {
  if (is_tf32()) {
    step.columns = bits_of(burin_dev_shared_load4(place + lane % 4 * kQuadBytes, columns_offset()));
  } else {
    step.columns[0] = burin_dev_shared_load_word(place + lane * kWordBytes, columns_offset());
  }
#pragma unroll
  for (u32 i = 0; i < 2 * kMaxTiles; ++i) {
    if (i >= step_weight_quads()) continue;
    step.weights[i] = bits_of(burin_dev_shared_load4(place + lane * kQuadBytes, i * kWarpQuadBytes));
  }
#pragma unroll
  for (u32 i = 0; i < kMaxTiles / 2; ++i) {
    if (i >= step_place_words()) continue;
    step.places[i] = burin_dev_shared_load_word(place + lane * kWordBytes, places_offset() + i * kWarpWordBytes);
  }
}

BURIN_DEVICE f32x4 product(u32x4 a, u32 b0, u32 b1, f32x4 sums) {
  if (is_tf32()) return burin_dev_multiply_tf32(a, b0, b1, sums);
  return factors() == kBf16 ? burin_dev_multiply_bf16(a, b0, b1, sums) : burin_dev_multiply_f16(a, b0, b1, sums);
}
BURIN_DEVICE f32x4 sparse_product(u32x4 a, u32x4 b, f32x4 sums, u32 places, u32 pair) {
  if (is_tf32()) return burin_dev_multiply_sparse_tf32(a, b, sums, places, pair);
  return factors() == kBf16 ? burin_dev_multiply_sparse_bf16(a, b, sums, places, pair)
                            : burin_dev_multiply_sparse_f16(a, b, sums, places, pair);
}

// The lane's part of an octet of each column: of halves, lanes give each other what they load; in TF32 each loads its
// own words, and `columns` are the places of these.
BURIN_DEVICE u32x4 load_rows(u32x4 columns, u32 offset) {
  if (!is_tf32()) return burin_dev_shared_load_rows(columns[0], offset);
  u32x4 rows;
#pragma unroll
  for (u32 i = 0; i < 4; ++i) rows[i] = burin_dev_shared_load_word(columns[i], offset);
  return rows;
}

// Rows of a step are loaded so many octets before they are multiplied, those of the next step, too.
constexpr u32 kRowsAhead = 2;
BURIN_DEVICE u32 rows_ahead() { return static_cast<u32>(warp_octets()) < kRowsAhead ? warp_octets() : kRowsAhead; }
struct Rows {
  u32x4 of[kRowsAhead];
};
template <typename PlaceOf>
BURIN_DEVICE Rows first_rows(u32x4 columns, PlaceOf place_of) {
  Rows rows;
#pragma unroll
  for (u32 i = 0; i < kRowsAhead; ++i) {
    if (i < rows_ahead()) rows.of[i] = load_rows(columns, place_of(i));
  }
  return rows;
}

// column_at(word of a column): where its first octet lies; place_of(octet): where the warp's octet lies from there,
// which is a constant. `rows`: the first of the step, and then those of the one behind it.
template <typename PlaceOf>
BURIN_DEVICE void multiply(const Step& step, u32x4 columns, bool has_next, u32x4 next_columns, PlaceOf place_of,
                           Rows& rows, Sums& sums) {
#pragma unroll
  for (u32 octet = 0; octet < kMaxOctets; ++octet) {
    if (octet >= static_cast<u32>(warp_octets())) continue;
    const u32x4 now = rows.of[0];
    if (rows_ahead() == kRowsAhead) rows.of[0] = rows.of[1];
    u32x4& last = rows.of[rows_ahead() - 1];
    const u32 loaded = octet + rows_ahead();
    if (loaded < static_cast<u32>(warp_octets())) {
      last = load_rows(columns, place_of(loaded));
    } else if (has_next) {
      last = load_rows(next_columns, place_of(loaded - warp_octets()));
    }
#pragma unroll
    for (u32 tile = 0; tile < kMaxTiles; ++tile) {
      if (tile >= static_cast<u32>(warp_tiles())) continue;
      f32x4& sum = sums.of[tile][octet];
      if (sparse()) {
        sum = sparse_product(step.weights[tile], now, sum, step.places[tile / 2], tile % 2);
      } else {
        sum = product(step.weights[2 * tile], now[0], now[1], sum);
        sum = product(step.weights[2 * tile + 1], now[2], now[3], sum);
      }
    }
  }
}

template <typename ColumnAt>
BURIN_DEVICE u32x4 columns_of(const Step& step, ColumnAt column_at) {
  u32x4 columns = {};
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    if (i < lane_columns()) columns[i] = column_at(step.columns[i]);
  }
  return columns;
}

// Steps from `first` on, every `stride`-th, up to `end`: load(number, step) fills a step in, and the next one's weights
// are loaded before a step is multiplied.
template <typename Load, typename ColumnAt, typename PlaceOf>
BURIN_DEVICE void multiply_some(u32 first, u32 end, u32 stride, Load load, ColumnAt column_at, PlaceOf place_of,
                                Sums& sums) {
  if (first >= end) return;
  Step step;
  load(first, step);
  u32x4 columns = columns_of(step, column_at);
  Rows rows = first_rows(columns, place_of);
#pragma nounroll
  for (u32 number = first + stride; number < end; number += stride) {
    Step next;
    load(number, next);
    const u32x4 next_columns = columns_of(next, column_at);
    multiply(step, columns, true, next_columns, place_of, rows, sums);
    step = next;
    columns = next_columns;
  }
  multiply(step, columns, false, columns, place_of, rows, sums);
}

BURIN_DEVICE u32 steps_of_panel(u32 panel, u32 row_warp) {
  return burin_dev_shared_load_word(panel + row_warp * kWordBytes, 0);
}
BURIN_DEVICE u32 step_at(u32 panel, u32 row_warp, u32 number) {
  return panel + steps_offset() + (row_warp * step_limit() + number) * step_bytes();
}

// The steps of a panel that are those of a row of warps and a split.
template <typename ColumnAt, typename PlaceOf>
BURIN_DEVICE void multiply_steps(u32 panel, u32 row_warp, u32 split, u32 lane, ColumnAt column_at, PlaceOf place_of,
                                 Sums& sums) {
  const u32 steps = steps_of_panel(panel, row_warp);
  u32 place = step_at(panel, row_warp, split);
  const auto load = [&](u32, Step& step) BURIN_INLINED {
    load_step(place, lane, step);
    place += split_warps() * step_bytes();
  };
  multiply_some(split, steps, split_warps(), load, column_at, place_of, sums);
}
