// A cuDNN that computes nothing: each algorithm takes as long as the test says, on the clock of the fake driver.
#pragma once

#include <array>
#include <cstddef>
#include <set>

namespace burin_test {

struct FakeCudnnState {
  enum class Refuses { nothing, workspace_query, forward, capture };
  struct Algorithm {
    int launches = 1;  // of the fake driver: what it takes
    Refuses refuses = Refuses::nothing;
    std::size_t workspace_bytes = 0;
  };
  using Algorithms = std::array<Algorithm, 8>;
  // [layout 0 NCHW, 1 NHWC][0: TF32 allowed, 1: FP32]
  std::array<std::array<Algorithms, 2>, 2> algorithms;
  int create_status = 0;

  // what it saw
  std::array<int, 8> runs{};  // of each algorithm
  int live_objects = 0;
  int set_math_to_other = 0;  // maths that are neither
  std::set<const void*> inputs;
  std::array<int, 4> input_dims{};  // of the last convolution: n, c, h, w
  std::array<int, 4> filter_dims{};
  std::array<int, 4> output_dims{};
  std::array<int, 6> geometry{};  // pad, stride, dilation; h, w each
  int groups = 0;
  bool too_small_workspace = false;
};

}  // namespace burin_test
