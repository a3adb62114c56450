// resample: a sum of some pixels of a channel for each output, weighted by row and by column. A thread has one output;
// neighbours in a row are neighbours in a warp.
//
// Weights: for each row of the output the rows that it is made of, as indices, then the weights of these; the same of
// columns. An index below 0 is outside the image: the output is then `outside`.
#define BURIN_TEMPLATE_DEF "compiler/providers/resample/resample.def"
#include "templates/kernels/places.h"

// Tables of indices and weights, in words from the beginning of the weights.
struct Table {
  u32 indices, weights;
};
BURIN_DEVICE Table table_of(u32 begin, i32 extent, i32 taps, u32 at) {
  return {begin + at * taps, begin + static_cast<u32>(extent * taps) + at * taps};
}
BURIN_DEVICE i32 index_in(const float* weights, u32 word) {
  return __builtin_bit_cast(i32, burin_dev_global_load(weights, bytes_of(word)));
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float* weights, i32) {
  const u32 word = block_of_image() * block_threads() + burin_dev_thread(), part = word % place_words();
  const PlacePosition at = position_of(word / place_words(), out_rows(), out_cols());
  burin_dev_await_launch();
  if (at.channel >= filled(channels())) return;
  const float* image = input_of(input, first_image());
  const Table rows = table_of(0, out_rows(), row_taps(), at.row);
  const Table cols = table_of(static_cast<u32>(2 * out_rows() * row_taps()), out_cols(), col_taps(), at.col);
  const bool inside = index_in(weights, rows.indices) >= 0 && index_in(weights, cols.indices) >= 0;
  Pair sum = {0, 0};
  for (i32 r = 0; inside && r < row_taps(); ++r) {
    const u32 row = index_in(weights, rows.indices + r) * in_cols();
    Pair of_row = {0, 0};
    for (i32 c = 0; c < col_taps(); ++c) {
      const u32 pixel = row + index_in(weights, cols.indices + c);
      const Pair value = load_pair(image, word_of(place_at(at.channel, pixel, in_rows() * in_cols()), part));
      const float weight = burin_dev_global_load(weights, bytes_of(cols.weights + c));
      of_row = {__builtin_fmaf(weight, value.first, of_row.first), __builtin_fmaf(weight, value.second, of_row.second)};
    }
    const float weight = burin_dev_global_load(weights, bytes_of(rows.weights + r));
    sum = {__builtin_fmaf(weight, of_row.first, sum.first), __builtin_fmaf(weight, of_row.second, sum.second)};
  }
  if (!inside) sum = {outside(), outside()};
  if (is_filling(at.channel)) sum = {0, 0};
  const u32 place = place_at(at.channel, at.row * out_cols() + at.col, out_rows() * out_cols());
  store_pair(output_of(output, first_image()), word_of(place, part), sum);
}
