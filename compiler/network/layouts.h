// Layouts between operators: what one kernel writes, all that read it must be able to read.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/network.h"
#include "ir/tensor_layout.h"

namespace burin {

// What an operator's kernel can read as its first input and write, independently of each other, best first. A second
// input lies as the output does: both are reached by the same thread.
struct LayoutChoice {
  std::vector<TensorLayout> reads = {TensorLayout::nchw};
  std::vector<TensorLayout> writes = {TensorLayout::nchw};
};
using LayoutsOf = std::function<LayoutChoice(const Operator&)>;

// The layout of each tensor. Tensors of one group of `tied` share a buffer and lie alike; where there are several in
// it, it is nchw, as are the network's inputs and outputs, tensors that are no images, and what an operator without a
// kernel (Concat, Reshape, Identity) reads or writes. Of what is left to choose, that is taken which the first writer
// likes best. Throws Error(unsupported) that names the tensors, their writers and readers where no layout suits all.
std::vector<TensorLayout> agree_on_layouts(const Network& network, const std::vector<std::vector<int>>& tied,
                                           const LayoutsOf& layouts_of);

}  // namespace burin
