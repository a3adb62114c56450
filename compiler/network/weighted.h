// A convolution or a linear layer, as far as both are the same: filters over input channels, bias, function.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/network.h"

namespace burin {

// A view: the layer it looks at must stay where it is.
class Weighted {
 public:
  // Nothing for operators of other kinds.
  static std::optional<Weighted> of(Network& network, Operator& op);

  int outputs() const { return linear_ ? linear_->out_features : layer_->shape.out_channels; }
  int inputs() const { return linear_ ? linear_->in_features : layer_->shape.in_channels; }
  int inputs_per_output() const { return linear_ ? linear_->in_features : layer_->shape.channels_per_group(); }
  // The input channel that the c-th of an output's windows multiplies.
  int input_channel(int k, int c) const { return linear_ ? c : layer_->shape.input_channel(k, c); }
  // The weights of one output for one input channel.
  std::span<const float> window(int k, int c) const { return {weights().data() + offset(k, c), window_size()}; }
  std::span<float> window(int k, int c) { return {weights().data() + offset(k, c), window_size()}; }

  std::vector<float>& weights() { return linear_ ? linear_->weights : layer_->weights; }
  const std::vector<float>& weights() const { return linear_ ? linear_->weights : layer_->weights; }

  double bias(int k) const;
  // Left out when all are zero and there was none. False, and nothing done, when one is beyond float.
  bool set_bias(const std::vector<double>& bias);

  bool has_padding() const { return !linear_ && layer_->shape.pad != Padding{}; }
  bool has_residual() const { return !linear_ && layer_->shape.epilogue.residual; }
  bool adds_residual_last() const { return !linear_ && layer_->shape.epilogue.residual_last; }
  // Null: it has none.
  const Pool* pool() const { return linear_ || !layer_->shape.epilogue.pool ? nullptr : &*layer_->shape.epilogue.pool; }
  // That its sums go through.
  const std::optional<Elementwise>& function() const {
    return linear_ ? linear_->function : layer_->shape.epilogue.function;
  }
  void set_function(const Elementwise& function) {
    (linear_ ? linear_->function : layer_->shape.epilogue.function) = function;
  }

 private:
  std::size_t window_size() const {
    return linear_
               ? 1
               : static_cast<std::size_t>(layer_->shape.kernel_h) * static_cast<std::size_t>(layer_->shape.kernel_w);
  }
  std::size_t offset(int k, int c) const {
    return (static_cast<std::size_t>(k) * static_cast<std::size_t>(inputs_per_output()) + static_cast<std::size_t>(c)) *
           window_size();
  }

  Linear* linear_ = nullptr;  // one of the two
  ConvLayer* layer_ = nullptr;
};

}  // namespace burin
