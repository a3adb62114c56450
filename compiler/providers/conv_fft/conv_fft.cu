// conv_fft: a convolution by fast Fourier transforms. A tile reads a patch of side() x side() inputs, which is one
// period of a two-dimensional signal; what its filter makes of it are the tile's outputs where the filter does not
// reach beyond the patch, and these alone are kept. Points are complex numbers (transformed_tiles.h).
//
// A row of a patch is a polynomial of real numbers, of which all values at the roots of x^side = -1 are needed. They
// come in conjugate pairs, so one of each pair will do: those with x^(side / 2) = i, where the polynomial is one of
// side / 2 complex numbers. So no point is real, as two of each row's would be at the roots of x^side = 1, and all are
// multiplied alike. The signal then changes its sign from one period to the next, which no output that is kept sees.
// A column is a polynomial of complex numbers, with its values at the roots of x^side = 1.
//
// A thread transforms rows of a patch in registers, then another one a column of what is in shared memory by then; at
// the end columns and then rows of the sums.
#define BURIN_TEMPLATE_DEF "compiler/providers/conv_fft/conv_fft.def"
#include "templates/kernels/transformed_tiles.h"

constexpr i32 kMaxSide = kMostSide, kMaxBins = kMaxSide / 2;
constexpr u32 kMaxThreadRows = 4, kParts = 2, kMaxResultQuads = 4;

BURIN_DEVICE u32 point_words() { return kParts; }
BURIN_DEVICE u32 result_pitch() { return divide_up(tile_cols(), kQuadWords) * kQuadWords; }
BURIN_DEVICE u32 row_quads() { return result_pitch() / kQuadWords; }
BURIN_DEVICE i32 bins() { return side() / 2; }  // of a row
// The word of a point: its bin in each row of the transform.
BURIN_DEVICE u32 word_at(i32 row, u32 bin, u32 part) { return (row * bins() + bin) * kParts + part; }

// ---- values of a polynomial, in place
// Angles are multiples of a 16th of half a turn, constants.
constexpr u32 kQuarterTurn = 8, kHalfTurn = 16;
constexpr double kCosines[] = {1,
                               0.98078528040323044913,
                               0.92387953251128675613,
                               0.83146961230254523708,
                               0.70710678118654752440,
                               0.55557023301960222474,
                               0.38268343236508977173,
                               0.19509032201612826785,
                               0};
// Angles here are less than half a turn.
template <u32 kAngle>
constexpr double kRootCosine = kAngle <= kQuarterTurn ? kCosines[kAngle] : -kCosines[kHalfTurn - kAngle];
template <u32 kAngle>
constexpr double kRootSine = kCosines[kAngle <= kQuarterTurn ? kQuarterTurn - kAngle : kAngle - kQuarterTurn];

struct Complex {
  float re, im;
};

// low + c high and low - c high, where c has the angle, which is less than half a turn. The product with c is that with
// (1, ratio) or (ratio, 1), whichever has the larger factor before it.
template <u32 kAngle>
BURIN_DEVICE void split_pair(Complex& low, Complex& high) {
  const Complex a = low, b = high;
  if constexpr (kAngle == 0) {
    low = {a.re + b.re, a.im + b.im};
    high = {a.re - b.re, a.im - b.im};
  } else if constexpr (kAngle == kQuarterTurn) {
    low = {a.re - b.im, a.im + b.re};
    high = {a.re + b.im, a.im - b.re};
  } else {
    constexpr bool kIsFlat = kAngle <= kQuarterTurn / 2 || kAngle >= kHalfTurn - kQuarterTurn / 2;
    constexpr double kLarger = kIsFlat ? kRootCosine<kAngle> : kRootSine<kAngle>;
    constexpr float kFactor = static_cast<float>(kLarger);
    constexpr float kRatio = static_cast<float>((kIsFlat ? kRootSine<kAngle> : kRootCosine<kAngle>) / kLarger);
    const Complex turned = kIsFlat ? Complex{__builtin_fmaf(-kRatio, b.im, b.re), __builtin_fmaf(kRatio, b.re, b.im)}
                                   : Complex{__builtin_fmaf(kRatio, b.re, -b.im), __builtin_fmaf(kRatio, b.im, b.re)};
    low = {__builtin_fmaf(kFactor, turned.re, a.re), __builtin_fmaf(kFactor, turned.im, a.im)};
    high = {__builtin_fmaf(-kFactor, turned.re, a.re), __builtin_fmaf(-kFactor, turned.im, a.im)};
  }
}
// Twice what split_pair() made it of.
template <u32 kAngle>
BURIN_DEVICE void join_pair(Complex& low, Complex& high) {
  const Complex sum = {low.re + high.re, low.im + high.im}, turned = {low.re - high.re, low.im - high.im};
  low = sum;
  if constexpr (kAngle == 0) {
    high = turned;
  } else if constexpr (kAngle == kQuarterTurn) {
    high = {turned.im, -turned.re};
  } else {
    constexpr float kRe = static_cast<float>(kRootCosine<kAngle>), kIm = static_cast<float>(kRootSine<kAngle>);
    high = {__builtin_fmaf(kIm, turned.im, kRe * turned.re), __builtin_fmaf(-kIm, turned.re, kRe * turned.im)};
  }
}

// A polynomial modulo x^kSize - e^(i angle), whose coefficients become its values at that one's roots; in the order of
// fft_transform.cpp. It is what remains of it modulo x^(kSize / 2) - c and x^(kSize / 2) + c, where c is the root of
// e^(i angle).
template <u32 kSize, u32 kAngle>
BURIN_DEVICE void split(Complex* values) {
  if constexpr (kSize > 1) {
    constexpr u32 kHalf = kSize / 2, kRoot = kAngle / 2;
#pragma unroll
    for (u32 i = 0; i < kHalf; ++i) split_pair<kRoot>(values[i], values[i + kHalf]);
    split<kHalf, kRoot>(values);
    split<kHalf, kRoot + kHalfTurn>(values + kHalf);
  }
}
// Back from values, times kSize.
template <u32 kSize, u32 kAngle>
BURIN_DEVICE void join(Complex* values) {
  if constexpr (kSize > 1) {
    constexpr u32 kHalf = kSize / 2, kRoot = kAngle / 2;
    join<kHalf, kRoot>(values);
    join<kHalf, kRoot + kHalfTurn>(values + kHalf);
#pragma unroll
    for (u32 i = 0; i < kHalf; ++i) join_pair<kRoot>(values[i], values[i + kHalf]);
  }
}

// A row has two real numbers in each complex one: those half a row apart.
struct Row {
  Complex of[kMaxBins];
};
struct Column {
  Complex of[kMaxSide];
};
BURIN_DEVICE void transform(Row& row) {
  if (side() == kMaxSide) {
    split<kMaxBins, kQuarterTurn>(row.of);
  } else {
    split<kMaxBins / 2, kQuarterTurn>(row.of);
  }
}
BURIN_DEVICE void transform_back(Row& row) {
  if (side() == kMaxSide) {
    join<kMaxBins, kQuarterTurn>(row.of);
  } else {
    join<kMaxBins / 2, kQuarterTurn>(row.of);
  }
}
BURIN_DEVICE void transform(Column& column) {
  if (side() == kMaxSide) {
    split<kMaxSide, 0>(column.of);
  } else {
    split<kMaxSide / 2, 0>(column.of);
  }
}
BURIN_DEVICE void transform_back(Column& column) {
  if (side() == kMaxSide) {
    join<kMaxSide, 0>(column.of);
  } else {
    join<kMaxSide / 2, 0>(column.of);
  }
}

// ---- columns in shared memory: the words of a point lie `step` bytes apart, a constant
BURIN_DEVICE void load_column(u32 base, u32 step, Column& column) {
#pragma unroll
  for (i32 row = 0; row < kMaxSide; ++row) {
    if (row >= side()) continue;
    column.of[row].re = burin_dev_shared_load(base, word_at(row, 0, 0) * step);
    column.of[row].im = burin_dev_shared_load(base, word_at(row, 0, 1) * step);
  }
}
BURIN_DEVICE void store_column(u32 base, u32 step, i32 rows, const Column& column) {
#pragma unroll
  for (i32 row = 0; row < kMaxSide; ++row) {
    if (row >= rows) continue;
    burin_dev_shared_store(base, word_at(row, 0, 0) * step, column.of[row].re);
    burin_dev_shared_store(base, word_at(row, 0, 1) * step, column.of[row].im);
  }
}

// ---- patches: a thread has rows of one of them, row_threads() apart
BURIN_DEVICE u32 row_threads() { return at_most(block_threads() / slice_patches(), side()); }
BURIN_DEVICE u32 thread_rows() { return divide_up(side(), row_threads()); }
BURIN_DEVICE i32 first_row() { return burin_dev_thread() / slice_patches(); }
struct Rows {
  Row of[kMaxThreadRows];
};
BURIN_DEVICE bool has_row(u32 number) {
  return static_cast<u32>(first_row()) < row_threads() &&
         first_row() + static_cast<i32>(number * row_threads()) < side();
}
BURIN_DEVICE void load_rows(const float* input, const Source& source, u32 slice, Rows& rows) {
  const u32 inside = inside_of(source, slice);
  const i64 place = place_of(source, slice) + static_cast<i64>(first_row() * in_cols()) * kWordBytes;
#pragma unroll
  for (u32 i = 0; i < kMaxThreadRows; ++i) {
    if (i >= thread_rows()) continue;
    const i32 step = i * row_threads(), row = first_row() + step;
    const u32 cols = has_row(i) && (inside >> row & 1) != 0 ? inside >> kColumnBits : 0;
    const i64 row_place = place + step * in_cols() * kWordBytes;
#pragma unroll
    for (i32 bin = 0; bin < kMaxBins; ++bin) {
      if (bin >= bins()) continue;
      rows.of[i].of[bin] = {load_value(input, cols, bin, row_place), load_value(input, cols, bin + bins(), row_place)};
    }
  }
}
BURIN_DEVICE void leave_rows(Rows& rows, u32 buffer) {
  const u32 base =
      patch_place(buffer, burin_dev_thread() % slice_patches()) + word_at(first_row(), 0, 0) * next_patch_word();
#pragma unroll
  for (u32 i = 0; i < kMaxThreadRows; ++i) {
    if (i >= thread_rows() || !has_row(i)) continue;
    transform(rows.of[i]);
    const i32 step = i * row_threads();
#pragma unroll
    for (i32 bin = 0; bin < kMaxBins; ++bin) {
      if (bin >= bins()) continue;
      burin_dev_shared_store(base, word_at(step, bin, 0) * next_patch_word(), rows.of[i].of[bin].re);
      burin_dev_shared_store(base, word_at(step, bin, 1) * next_patch_word(), rows.of[i].of[bin].im);
    }
  }
}
BURIN_DEVICE void transform_columns(u32 buffer) {
#pragma nounroll
  for (u32 number = burin_dev_thread(); number < slice_patches() * bins(); number += block_threads()) {
    const u32 bin = number / slice_patches();
    const u32 base = patch_place(buffer, number % slice_patches()) + word_at(0, bin, 0) * next_patch_word();
    Column column;
    load_column(base, next_patch_word(), column);
    transform(column);
    store_column(base, next_patch_word(), side(), column);
  }
}

// ---- sums: real and imaginary parts of each point
struct Sums {
  WordSums of[kMaxPoints][kParts];
};

BURIN_DEVICE void multiply(const Share& own, u32 buffer, Sums& sums) {
  const Factors factors = factors_of(own, buffer);
#pragma unroll
  for (u32 channel = 0; channel < static_cast<u32>(slice_channels()); ++channel) {
#pragma unroll
    for (u32 point = 0; point < kMaxPoints; ++point) {
      if (point >= static_cast<u32>(points())) continue;
      f32x4 weights[kParts][kMaxOutputQuads], tiles[kParts][kMaxTileQuads], minus[kMaxOutputQuads];
#pragma unroll
      for (u32 part = 0; part < kParts; ++part) {
        load_weights(factors, point * word_step() + part, channel, weights[part]);
        load_points(factors, point * word_step() + part, channel, tiles[part]);
      }
#pragma unroll
      for (u32 quad = 0; quad < kMaxOutputQuads; ++quad) {
        if (quad < static_cast<u32>(output_quads())) minus[quad] = -weights[1][quad];
      }
      WordSums(&to)[kParts] = sums.of[point];
      add_product(to[0], output_quads(), tile_quads(), weights[0], tiles[0]);
      add_product(to[1], output_quads(), tile_quads(), weights[0], tiles[1]);
      add_product(to[0], output_quads(), tile_quads(), minus, tiles[1]);
      add_product(to[1], output_quads(), tile_quads(), weights[1], tiles[0]);
    }
  }
}

// ---- results
BURIN_DEVICE void transform_columns_back() {
#pragma nounroll
  for (u32 number = burin_dev_thread(); number < items() * bins(); number += block_threads()) {
    const u32 step = items() * kWordBytes;
    const u32 base = kSharedStart + number % items() * kWordBytes + word_at(0, number / items(), 0) * step;
    Column column;
    load_column(base, step, column);
    transform_back(column);
    store_column(base, step, tile_rows(), column);
  }
}

BURIN_DEVICE void finish(const float* weights, const float* other, float* output, i32 batch) {
  transform_columns_back();
  burin_dev_barrier();
#pragma nounroll
  for (u32 number = burin_dev_thread(); number < items() * tile_rows(); number += block_threads()) {
    const u32 of_block = number % items(), row = number / items();
    const Item item = item_at(of_block, batch);
    if (cluster_blocks() == 1 && !item.exists) continue;
    const float bias = cluster_blocks() == 1 ? bias_of(weights, item) : 0;
    const u32 step = items() * kWordBytes, base = kSharedStart + of_block * kWordBytes + word_at(row, 0, 0) * step;
    Row sums;
#pragma unroll
    for (i32 bin = 0; bin < kMaxBins; ++bin) {
      if (bin >= bins()) continue;
      sums.of[bin] = {burin_dev_shared_load(base, word_at(0, bin, 0) * step),
                      burin_dev_shared_load(base, word_at(0, bin, 1) * step)};
    }
    transform_back(sums);
#pragma unroll
    for (u32 quad = 0; quad < kMaxResultQuads; ++quad) {
      if (quad >= row_quads()) continue;
      f32x4 outputs;
#pragma unroll
      for (u32 i = 0; i < kQuadWords; ++i) {
        const i32 col = quad * kQuadWords + i;
        outputs[i] = col < bins() ? sums.of[col < bins() ? col : 0].re : sums.of[col < bins() ? 0 : col - bins()].im;
      }
      give_quad(item, of_block, row * row_quads() + quad, outputs, bias, other, output);
    }
  }
  finish_block(weights, other, output, batch);
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float* other, const float* weights, i32 batch) {
  begin_cluster_sums(burin_dev_thread());
  const Slices walk = begin_slices(weights);
  const Source source =
      source_of(burin_dev_thread() % slice_patches(), static_cast<u32>(first_row()) < row_threads(), batch);
  const Share own = share_of_thread();
  Sums sums;
#pragma unroll
  for (u32 point = 0; point < kMaxPoints; ++point) {
#pragma unroll
    for (u32 part = 0; part < kParts; ++part) clear(sums.of[point][part]);
  }
  Rows rows;
  walk_slices(
      walk, weights, [&](u32 slice) BURIN_INLINED { load_rows(input, source, slice, rows); },
      [&](u32 buffer) BURIN_INLINED {
        leave_rows(rows, buffer);
        burin_dev_barrier();
        transform_columns(buffer);
      },
      [&](u32 buffer) BURIN_INLINED {
        if (own.exists) multiply(own, buffer, sums);
      });
  // It is computed anew: where the loop's condition is kept for this, the assembler spills.
  if (const Share left = share_of_thread(); left.exists) {
#pragma unroll
    for (u32 point = 0; point < kMaxPoints; ++point) {
#pragma unroll
      for (u32 part = 0; part < kParts; ++part) {
        if (point < static_cast<u32>(points())) leave(left, sums.of[point][part], point * word_step() + part);
      }
    }
  }
  burin_dev_barrier();
  finish(weights, other, output, batch);
}
