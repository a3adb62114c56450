// The kernels of the operators beside the convolutions: for each the plan, and the weights as the kernel reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/element_type.h"
#include "ir/network.h"
#include "ir/operator_plan.h"

namespace burin {

// Where a tensor lies: in each image of a buffer, whose images are `image_words` apart, from `offset` on. 0: the tensor
// has a buffer of its own.
struct BufferPlace {
  std::int64_t image_words = 0;
  std::int64_t offset = 0;
};

struct OperatorRequest {
  int batch = 1;                         // what the kernels are tuned for; they are correct for any
  std::string arch = "sm_90";            // whose limits they keep
  std::vector<BufferPlace> inputs = {};  // in the order of the operator's; none: all have buffers of their own
  BufferPlace output = {};
  // What the weights of fully connected layers are in memory, f32 or f16, which they are rounded to; biases and
  // arithmetic are FP32.
  ElementType linear_storage = ElementType::f32;
};

struct PlannedOperator {
  OperatorPlan plan;
  // Which of the operator's inputs the kernel's input and second input are; -1: none.
  int input = 0, second = -1;
  std::vector<std::uint32_t> weights;  // plan.weight_words words, as plain memory
  double predicted_us = 0;             // of a convolution, one launch with the batch that it is planned for
};

// The kernels that compute `op` together, in any order: one, or for a concat one for each input. The network must be
// one that verify() finds no fault with. Throws Error(unsupported) for an unknown architecture, for what no template
// computes, and for weights that are too large for `linear_storage`; convolutions have functions of their own
// (plan_convolution.h, compiler/compile.h).
std::vector<PlannedOperator> plan_operator(const Network& network, const Operator& op,
                                           const OperatorRequest& request = {});

// Copies the words of `from` to those of `to`, which has as many, in runs of the same length.
PlannedOperator plan_move(const OperatorTensor& from, const OperatorTensor& to, const OperatorRequest& request = {});

// Whether the output may take the place of an input that lies in memory as the output does: each thread has read what
// it writes over, and nobody reads it after that.
bool may_overwrite_input(const OperatorPlan& plan);

// Makes the kernel apply `function` to each value before it stores it. False where its template cannot, or already
// applies another.
bool fuse_function(OperatorPlan& plan, const Elementwise& function);

}  // namespace burin
