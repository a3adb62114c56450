// Which tensors of a graph lie within others, so that Concat, Reshape and Identity move nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/network.h"

namespace burin {

// A Reshape's output lies where its input does. An input of a Concat lies in the concat's output, at its channels'
// offset, unless it is an input or output of the network, lies in another concat already (or in this one), the concat
// is along an inner axis, or a convolution reads it too, which takes only whole tensors. Such an input is copied there.
// Nothing here depends on the batch: kernels know offsets and strides as constants.
class Placement {
 public:
  explicit Placement(const Network& network);

  // The tensor whose buffer this one lies in: itself for most.
  int root(int tensor) const;
  // Elements of one image from the root's beginning.
  std::int64_t offset(int tensor) const;
  // Whether the concat's input, by its position, lies in the output, so that it need not be copied.
  bool is_in_place(int op, std::size_t input) const;

 private:
  bool can_lie_in_concat(const Network& network, int tensor, int concat) const;
  void place(int tensor, int in, std::int64_t offset);

  std::vector<int> in_;                      // of each tensor, that it lies in; -1: a root
  std::vector<std::int64_t> offset_;         // there
  std::vector<bool> argument_;               // of roots: whether the tensor comes from the caller, or goes to it
  std::vector<std::vector<int>> readers_;    // of each tensor, operators
  std::vector<std::vector<int>> members_;    // of roots, all tensors that lie there
  std::vector<std::vector<bool>> in_place_;  // of each operator, its inputs
};

}  // namespace burin
