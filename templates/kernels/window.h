// What kernels over the windows of a channel share. A thread owns `thread_rows` outputs, one below the other;
// neighbours in a row are neighbours in a warp. Where an element has several words, a thread owns one of them.
#pragma once

#include "template_kernel.h"

constexpr i32 kMaxThreadRows = 4;

// No window reaches beyond the image; with `computed` rows, counting those that a thread computes beyond the last.
BURIN_DEVICE bool inside_rows(i32 computed) {
  return pad_top() == 0 && (computed - 1) * stride_rows() + (kernel_rows() - 1) * dilation_rows() < in_rows();
}
BURIN_DEVICE i32 computed_rows() { return divide_up(out_rows(), thread_rows()) * thread_rows(); }
BURIN_DEVICE bool inside_cols() {
  return pad_left() == 0 && (out_cols() - 1) * stride_cols() + (kernel_cols() - 1) * dilation_cols() < in_cols();
}

BURIN_DEVICE i32 nearest(i32 at, i32 extent) { return at < 0 ? 0 : at >= extent ? extent - 1 : at; }

struct WindowItem {
  bool exists;
  u32 channel, first_row, col;  // of the outputs
  u32 word;                     // of each element
  i32 top, left;                // where the first one's window begins
};

BURIN_DEVICE WindowItem locate_item() {
  const u32 number = block_of_image() * block_threads() + burin_dev_thread();
  const u32 thread_places = divide_up(out_rows(), thread_rows());
  WindowItem item;
  const u32 row_words = out_cols() * out_element_words();
  item.exists = number < channels() * thread_places * row_words;
  item.word = number % out_element_words();
  item.col = number % row_words / out_element_words();
  item.first_row = number / row_words % thread_places * thread_rows();
  item.channel = number / (row_words * thread_places);
  item.top = static_cast<i32>(item.first_row) * stride_rows() - pad_top();
  item.left = static_cast<i32>(item.col) * stride_cols() - pad_left();
  return item;
}

BURIN_DEVICE void store_rows(float* output, const WindowItem& item, const Pair* results) {
  const u32 row_words = out_cols() * out_element_words();
  const u32 word =
      (item.channel * out_rows() + item.first_row) * row_words + item.col * out_element_words() + item.word;
#pragma unroll
  for (i32 i = 0; i < kMaxThreadRows; ++i) {
    if (i >= thread_rows() || item.first_row + i >= static_cast<u32>(out_rows())) continue;
    store_pair(output_of(output, first_image()), word + i * row_words, results[i]);
  }
}
