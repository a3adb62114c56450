// What kernels over the windows of a channel share. A thread owns `thread_rows` outputs, one below the other;
// neighbours in a row are neighbours in a warp.
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
  u32 part;                     // which of an element's words
  i32 top, left;                // where the first one's window begins
};
BURIN_DEVICE u32 word_of(u32 element, u32 part) { return element * place_words() + part; }

BURIN_DEVICE WindowItem locate_item() {
  const u32 word = block_of_image() * block_threads() + burin_dev_thread();
  const u32 number = word / place_words();
  const u32 thread_places = divide_up(out_rows(), thread_rows());
  WindowItem item;
  item.exists = number < channels() * thread_places * out_cols();
  item.part = word % place_words();
  item.col = number % out_cols();
  item.first_row = number / out_cols() % thread_places * thread_rows();
  item.channel = number / (out_cols() * thread_places);
  item.top = static_cast<i32>(item.first_row) * stride_rows() - pad_top();
  item.left = static_cast<i32>(item.col) * stride_cols() - pad_left();
  return item;
}

BURIN_DEVICE void store_rows(float* output, const WindowItem& item, const Pair* results) {
  const u32 first = (item.channel * out_rows() + item.first_row) * out_cols() + item.col;
#pragma unroll
  for (i32 i = 0; i < kMaxThreadRows; ++i) {
    if (i >= thread_rows() || item.first_row + i >= static_cast<u32>(out_rows())) continue;
    store_pair(output_of(output, first_image()), word_of(first + i * out_cols(), item.part), results[i]);
  }
}
