// copy: padding, transposes, picks, and what of a concatenation cannot be written in place by those who make it.
//
// The box is `extent`; an element lies in the output at the sum of index * out_stride; in the input at the sum of
// (index - before) * in_stride and `origin` where each index - before is in [0, in_extent), and is `copy_value`
// elsewhere. A stride of the input may be negative or 0.
//
// A thread has `steps` pieces, a block's width apart, which it loads before it stores any. Where both sides are one run
// ("flat") a piece has one or four words; else it is one element of the box of six axes, the last one fastest.
//
// Where words that are neighbours in the output are none in the input (`tile_in` is not 0), a block has a tile: of
// `tile_in` elements along `in_axis`, whose neighbours are neighbours in the input, and of `tile_out` along the last
// axis, whose neighbours are those in the output. It goes through shared memory, so that both sides are accessed in
// runs, of one or four words at once. Nothing of such a box is outside the input.
#define BURIN_TEMPLATE_DEF "compiler/providers/copy/copy.def"
#include "templates/kernels/pieces.h"

struct Axis {
  u32 extent, in_extent, before;
  i32 in_stride;
  u32 out_stride;
};
constexpr u32 kLastAxis = 5;

BURIN_DEVICE Axis axis(u32 number) {
#define BURIN_AXIS(n)                                                                                       \
  if (number == n)                                                                                          \
    return {static_cast<u32>(extent##n()), static_cast<u32>(in_extent##n()), static_cast<u32>(before##n()), \
            in_stride##n(), static_cast<u32>(out_stride##n())};
  BURIN_AXIS(0)
  BURIN_AXIS(1)
  BURIN_AXIS(2)
  BURIN_AXIS(3)
  BURIN_AXIS(4)
#undef BURIN_AXIS
  return {static_cast<u32>(extent5()), static_cast<u32>(in_extent5()), static_cast<u32>(before5()), in_stride5(),
          static_cast<u32>(out_stride5())};
}

struct Element {
  u32 source, target;
  bool inside;
};

BURIN_DEVICE Element first_element() { return {static_cast<u32>(origin()), 0, true}; }

BURIN_DEVICE void add_axis(Element& element, u32 index, const Axis& axis) {
  const u32 from = index - axis.before;  // below 0: beyond any extent
  element.inside &= from < axis.in_extent;
  element.source += from * static_cast<u32>(axis.in_stride);
  element.target += index * axis.out_stride;
}

// Adds an axis of what is left of an element's number, of which it is the fastest one.
BURIN_DEVICE void add_fastest(Element& element, u32& rest, u32 number) {
  add_axis(element, rest % axis(number).extent, axis(number));
  rest /= axis(number).extent;
}

BURIN_DEVICE Element locate(u32 item) {
  Element element = first_element();
  add_fastest(element, item, 5);
  add_fastest(element, item, 4);
  add_fastest(element, item, 3);
  add_fastest(element, item, 2);
  add_fastest(element, item, 1);
  add_axis(element, item, axis(0));
  return element;
}

BURIN_DEVICE void move_elements(const float* from, float* to) {
  f32x4 values[kMaxSteps];
  u32 targets[kMaxSteps];
  move_pieces(
      [&](i32 i, u32 word) BURIN_INLINED {
        if (flat()) {
          targets[i] = word;
          values[i] = load(vector(), from, bytes_of(word));
          return;
        }
        const Element element = locate(word);
        const float value = burin_dev_global_load(from, bytes_of(element.inside ? element.source : 0));
        const float outside = in_halves() == kFloats ? copy_value() : packed(copy_value(), copy_value(), in_halves());
        const bool filling = is_filling_word(element.target);
        values[i] = {filling ? 0.0f : element.inside ? value : outside, 0, 0, 0};
        targets[i] = element.target;
      },
      [&](i32 i, u32 word) BURIN_INLINED { store(vector(), to, bytes_of(targets[i]), values[i]); });
}

// ---- tiles

constexpr u32 kMostTilePieces = 16;  // of a thread

struct Tile {
  u32 in, out;    // where it begins, along the axes of both runs
  Element first;  // of what it has: what the other axes come to
};

// Neighbouring blocks write neighbouring parts of a run.
BURIN_DEVICE Tile tile_of_block() {
  const u32 out_tiles = divide_up(axis(kLastAxis).extent, tile_out());
  const u32 in_tiles = divide_up(axis(in_axis()).extent, tile_in());
  u32 rest = block_of_image();
  Tile tile;
  tile.first = first_element();
  tile.out = rest % out_tiles * tile_out();
  rest /= out_tiles;
  tile.in = rest % in_tiles * tile_in();
  rest /= in_tiles;
  const auto add_other = [&](u32 number) BURIN_INLINED {
    if (number != static_cast<u32>(in_axis())) add_fastest(tile.first, rest, number);
  };
  add_other(4);
  add_other(3);
  add_other(2);
  add_other(1);
  add_other(0);
  return tile;
}

// Piece `i` of the thread, where a tile is cut into pieces of `words` along one of the runs, row by row of `row`
// elements. Where rows are as long as the axis, those of neighbouring rows are neighbours in memory, too.
struct TilePiece {
  u32 along, row;
  bool exists;
};
BURIN_DEVICE u32 tile_pieces(u32 words) { return tile_in() * tile_out() / words; }
BURIN_DEVICE bool has_piece(u32 words, u32 i) { return i * block_threads() < tile_pieces(words); }
BURIN_DEVICE TilePiece tile_piece(u32 words, u32 row, u32 i) {
  const u32 piece = i * block_threads() + burin_dev_thread(), row_pieces = row / words;
  const bool whole = tile_pieces(words) % block_threads() == 0;
  return {piece % row_pieces * words, piece / row_pieces, whole || piece < tile_pieces(words)};
}
BURIN_DEVICE TilePiece in_piece(u32 i) { return tile_piece(in_vector(), tile_in(), i); }
BURIN_DEVICE TilePiece out_piece(u32 i) { return tile_piece(out_vector(), tile_out(), i); }

// Elements of the tile lie in shared memory as they do in the input; with an odd pitch columns are in different banks.
BURIN_DEVICE u32 tile_pitch() { return tile_in() | 1; }
BURIN_DEVICE u32 tile_byte(u32 in, u32 out) { return kSharedStart + (out * tile_pitch() + in) * kWordBytes; }

BURIN_DEVICE void move_tile(const float* from, float* to) {
  const Tile tile = tile_of_block();
  const Axis in = axis(in_axis()), out = axis(kLastAxis);
  f32x4 values[kMostTilePieces];
  // The last words of the box stand for those beyond them.
#pragma unroll
  for (u32 i = 0; i < kMostTilePieces; ++i) {
    if (!has_piece(in_vector(), i)) continue;
    const TilePiece piece = in_piece(i);
    Element element = tile.first;
    add_axis(element, at_most(tile.in + piece.along, in.extent - in_vector()), in);
    add_axis(element, at_most(tile.out + piece.row, out.extent - 1), out);
    values[i] = load(in_vector(), from, bytes_of(element.source));
  }
#pragma unroll
  for (u32 i = 0; i < kMostTilePieces; ++i) {
    if (!has_piece(in_vector(), i)) continue;
    const TilePiece piece = in_piece(i);
    if (!piece.exists) continue;
#pragma unroll
    for (u32 j = 0; j < kQuadWords; ++j) {
      if (j >= static_cast<u32>(in_vector())) continue;
      burin_dev_shared_store(tile_byte(piece.along, piece.row), j * kWordBytes, values[i][j]);
    }
  }
  burin_dev_barrier();
#pragma unroll
  for (u32 i = 0; i < kMostTilePieces; ++i) {
    if (!has_piece(out_vector(), i)) continue;
    const TilePiece piece = out_piece(i);
    const u32 row = piece.exists ? piece.row : 0;
#pragma unroll
    for (u32 j = 0; j < kQuadWords; ++j) {
      if (j >= static_cast<u32>(out_vector())) continue;
      values[i][j] = burin_dev_shared_load(tile_byte(row, piece.along), j * tile_pitch() * kWordBytes);
    }
  }
#pragma unroll
  for (u32 i = 0; i < kMostTilePieces; ++i) {
    if (!has_piece(out_vector(), i)) continue;
    const TilePiece piece = out_piece(i);
    const u32 along_in = tile.in + piece.row, along_out = tile.out + piece.along;
    if (!piece.exists || along_in >= in.extent || along_out >= out.extent) continue;
    Element element = tile.first;
    add_axis(element, along_in, in);
    add_axis(element, along_out, out);
    store(out_vector(), to, bytes_of(element.target), values[i]);
  }
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32) {
  burin_dev_await_launch();
  const float* from = input_of(input, first_image());
  float* to = output_of(output, first_image());
  if (tile_in() > 0) {
    move_tile(from, to);
  } else {
    move_elements(from, to);
  }
}
