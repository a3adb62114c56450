// A package with a network, made by hand, for the tests of the format and of the runtime. Its code is text that the
// fake driver takes for code.
//
//   image [8,14,14] -> conv1 -> a [16,14,14] -> left  -> concat [32,14,14] -> fc -> t [10] -> add -> scores [10]
//                               a            -> right ->                          shift [10] ->
//                               a            -> copy  -> features [16,14,14]
//
// left and right, convolutions that may run at the same time, write the halves of the concat; right adds a. Programs
// for 2 and 8 images; the convolutions have a kernel for each, with partial sums and counters.
#pragma once

#include "ir/package/package.h"

namespace burin_test {

inline constexpr int kSampleFeatures = 10, kSampleImageWords = 8 * 14 * 14, kSampleTensorWords = 16 * 14 * 14;

// Steps of a program, in this order, and its buffers.
enum SampleStep { kConv1, kLeft, kRight, kFc, kAdd, kCopy, kSampleSteps };
enum SampleBuffer { kImage, kShift, kScores, kFeatures, kA, kConcat, kT };

burin::Package network_package();

// A program for two images: loose FP16 in, "image", of 3x3x3, float32 in between, loose BF16 out, "scores".
inline constexpr std::int64_t kLooseBytes = 27 * 2;  // of an image
burin::Package loose_network_package();

// A program for each kernel by itself, for the batch that it was planned for. Kernels of one layer stand side by side,
// batches ascending.
void add_layer_programs(burin::Manifest& manifest);

}  // namespace burin_test
