// What kernels over the windows of a channel share. A thread owns `thread_rows` places of outputs, one below the other;
// neighbours in a row are neighbours in a warp.
#pragma once

#include "places.h"

constexpr i32 kMaxThreadRows = 4;

// No window of so many rows, or columns, of outputs reaches beyond the image; of rows a thread may compute some beyond
// the last.
BURIN_DEVICE bool inside_rows(i32 computed) {
  return pad_top() == 0 && (computed - 1) * stride_rows() + (kernel_rows() - 1) * dilation_rows() < in_rows();
}
BURIN_DEVICE i32 computed_rows() { return divide_up(out_rows(), thread_rows()) * thread_rows(); }
BURIN_DEVICE bool inside_cols(i32 computed) {
  return pad_left() == 0 && (computed - 1) * stride_cols() + (kernel_cols() - 1) * dilation_cols() < in_cols();
}

struct WindowItem {
  bool exists;
  u32 channel, first_row, col;  // of the outputs
  i32 top, left;                // where the first one's window begins
};
BURIN_DEVICE WindowItem locate_item() {
  const u32 number = block_of_image() * block_threads() + burin_dev_thread();
  const u32 row_groups = divide_up(out_rows(), thread_rows());
  const PlacePosition at = position_of(number, row_groups, out_cols());
  WindowItem item;
  item.exists = at.channel < filled(channels());
  item.col = at.col;
  item.first_row = at.row * thread_rows();
  item.channel = at.channel;
  item.top = static_cast<i32>(item.first_row) * stride_rows() - pad_top();
  item.left = static_cast<i32>(item.col) * stride_cols() - pad_left();
  return item;
}

// What the item reads at a row and a column of the input, or zeros; and where its output number `i` lies.
BURIN_DEVICE Values values_at(const float* image, u32 channel, i32 row, i32 col, bool inside = true) {
  return load_place(image, place_at(channel, row * in_cols() + col, in_rows() * in_cols()), inside);
}
BURIN_DEVICE u32 place_written(const WindowItem& item, i32 i) {
  return place_at(item.channel, (item.first_row + i) * out_cols() + item.col, out_rows() * out_cols());
}

BURIN_DEVICE void store_rows(float* output, const WindowItem& item, const Values* results) {
#pragma unroll
  for (i32 i = 0; i < kMaxThreadRows; ++i) {
    if (i >= thread_rows() || item.first_row + i >= static_cast<u32>(out_rows())) continue;
    const Values result = is_filling(item.channel) ? same_values(0) : results[i];
    store_place(output_of(output, first_image()), place_written(item, i), result);
  }
}
