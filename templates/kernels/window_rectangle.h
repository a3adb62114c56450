// The windows that a block has behind a pool: a rectangle of window_rows() x window_cols() in each of its images, with
// all pixels of the convolution that they read.
#pragma once

#include "conv_pool.h"

// Which rectangle of the image is the block's, row by row: a template says it.
BURIN_DEVICE u32 rectangle_of_block();

BURIN_DEVICE u32 rectangles() { return divide_up(out_rows(), window_rows()) * divide_up(out_cols(), window_cols()); }
BURIN_DEVICE u32 first_window_row() {
  return rectangle_of_block() / divide_up(out_cols(), window_cols()) * window_rows();
}
BURIN_DEVICE u32 first_window_col() {
  return rectangle_of_block() % divide_up(out_cols(), window_cols()) * window_cols();
}
// Padding of the pool lies before 0.
BURIN_DEVICE i32 first_pixel_row() {
  return static_cast<i32>(first_window_row()) * pool_stride_rows() - pool_pad_top();
}
BURIN_DEVICE i32 first_pixel_col() {
  return static_cast<i32>(first_window_col()) * pool_stride_cols() - pool_pad_left();
}
BURIN_DEVICE u32 pixel_rows() { return (window_rows() - 1) * pool_stride_rows() + pool_rows(); }
BURIN_DEVICE u32 pixel_cols() { return (window_cols() - 1) * pool_stride_cols() + pool_cols(); }
