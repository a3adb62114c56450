// Precision: what a kernel computes with, and in what it keeps its tensors.
#pragma once

#include <array>

#include "ir/named_enum.h"

namespace burin {

// Whatever the precision, splits are added, and bias, residual and activation applied, in FP32.
enum class Precision {
  fp32,    // FP32 throughout
  fp16,    // tensors in FP16; weights, products and sums in FP32
  bf16,    // tensors in BF16; weights, products and sums in FP32
  fp16x2,  // tensors and weights in FP16; multiply-adds of two halves at once, each rounded to FP16; their sums go over
           // to FP32 ones every so many terms (BakedPlan::promote_every)
  tf32,    // tensors in FP32; kernels may round inputs and weights to TF32 before they are multiplied (FactorType), and
           // add up in FP32
};

inline constexpr std::array kPrecisions = {Precision::fp32, Precision::fp16, Precision::bf16, Precision::fp16x2,
                                           Precision::tf32};

constexpr EnumNames<5> names_of(Precision) { return {"a precision", {"fp32", "fp16", "bf16", "fp16x2", "tf32"}}; }

// Whether two values make a 4-byte word: those of the same place in two images (TensorLayout::n2chw).
constexpr bool is_half(Precision precision) { return precision != Precision::fp32 && precision != Precision::tf32; }

}  // namespace burin
