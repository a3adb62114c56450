// Task: what one kernel must compute: a step of a program, and where its tensors lie. Providers propose candidates for
// tasks; nothing that they need of the network stands anywhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/activation_zeros.h"
#include "ir/element_type.h"
#include "ir/factor_type.h"
#include "ir/kernel.h"
#include "ir/network.h"
#include "ir/precision.h"

namespace burin {

struct Task {
  std::string name;                               // the operator's; of a copy, that of its tensor
  std::string kind;                               // kind_name() of the operator, or kCopyKind
  const Operator* op = nullptr;                   // null: the values are copied as they are
  std::string description;                        // what it computes, in words (ir/network.h)
  const ConvLayer* layer = nullptr;               // of a convolution
  std::vector<std::vector<std::int64_t>> inputs;  // shapes of one image
  std::vector<std::int64_t> output;
  std::vector<KernelTensor> reads;  // where the inputs lie, aligned as far as their places allow
  KernelTensor writes;

  int batch = 1;                               // that the kernel is to be fast for; it is correct for any
  std::vector<std::string> archs = {"sm_90"};  // whose limits it keeps
  Precision precision = Precision::fp32;       // of a convolution
  // What a convolution that reads or writes FP32 tensors may round its inputs and weights to.
  FactorType factors = FactorType::f32;
  std::optional<ActivationZeros> zeros = {};  // of a convolution's input, where they are known
  bool activity_maps = false;                 // it skips what its input's map calls dead, and marks its output's
  // What the weights of a fully connected layer are in memory, f32 or f16, which they are rounded to; biases and
  // arithmetic are FP32.
  ElementType linear_storage = ElementType::f32;

  bool is_copy() const { return op == nullptr; }
  OperatorFormats formats() const { return {reads.front().format(), writes.format()}; }
  // What kind of operator it is; null where it is of another kind.
  template <typename Kind>
  const Kind* get() const {
    return op == nullptr ? nullptr : std::get_if<Kind>(&op->kind);
  }
};

// The architecture that every kernel must run on: PTX is made for it.
std::string lowest_arch(const std::vector<std::string>& archs);

std::int64_t values_of(const std::vector<std::int64_t>& shape, std::size_t first_axis = 0);

// Nonzeros among the weights of its convolution or fully connected layer; 0 for others.
std::int64_t nonzeros_of(const Task& task);

// Functions of a user's that its kernel computes, each once.
std::vector<SharedFunction> functions_of(const Task& task);

// The convolution that a library's call computes: its own, or what its fully connected layer is as one.
ConvShape called_shape(const Task& task);
// The same with its weights.
ConvLayer called_layer(const Task& task);
// What a kernel with a call says of it, beside its weights; nothing: it is not fully connected.
std::optional<CalledLinear> called_linear(const Task& task);

// Its fully connected layer with the weights rounded to what they are stored as: small ones may become zeros. Throws
// Error(unsupported) for a weight that is too large.
Linear stored_linear(const Task& task);

// A tensor in `layout` of its own memory, images one after the other.
KernelTensor whole_tensor(TensorRole role, const std::vector<std::int64_t>& shape, ElementType element,
                          TensorLayout layout);

// What is computed, in words and numbers: the text of the stage `layer`.
std::string print(const Task& task);

}  // namespace burin
