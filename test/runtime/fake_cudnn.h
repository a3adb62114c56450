// A cuDNN that takes as long as a test says, on the clock of the fake driver, and computes on the host where the test
// wants it to, when the stream or the graph runs.
#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <vector>

namespace burin_test {

struct FakeCudnnState {
  enum class Refuses { nothing, workspace_query, forward, capture };
  struct Algorithm {
    int launches = 1;  // of the fake driver: what it takes
    Refuses refuses = Refuses::nothing;
    std::size_t workspace_bytes = 0;
  };
  using Algorithms = std::array<Algorithm, 8>;
  // [layout 0 NCHW, 1 NHWC][burin::CudnnMode: 0 FP32, 1 TF32, 2 FP16, 3 BF16]
  std::array<std::array<Algorithms, 4>, 2> algorithms;
  int create_status = 0;
  bool computes = false;

  // what it saw
  std::array<int, 8> runs{};  // of each algorithm
  int live_objects = 0;
  int other_modes = 0;  // launches whose types and math are none of the four
  std::set<const void*> inputs;
  std::array<int, 4> input_dims{};  // of the last convolution: n, c, h, w
  std::array<int, 4> filter_dims{};
  std::array<int, 4> output_dims{};
  std::array<int, 6> geometry{};  // pad, stride, dilation; h, w each
  int groups = 0;
  int fused_runs = 0;  // of `runs`, those with bias, residual and activation
  int last_mode = 0;   // as of `algorithms`
  bool too_small_workspace = false;

  // The graph API: the engines that are proposed, by number; one that refuses its workspace query gives no plan.
  std::vector<Algorithm> engines = std::vector<Algorithm>(2);
  std::vector<int> engine_runs;  // the numbers of those that ran

  // Calls from one tensor to another, and what they were told last.
  struct Plain {
    Algorithm does = {};
    int runs = 0;
    int type = -1, layout = -1;      // of both tensors; -1: they differ
    std::vector<int> input, output;  // extents
    std::vector<int> input_strides, output_strides;
    std::vector<int> settings;  // of a pool: mode, NaN, window, pad, stride; of softmax: algorithm, mode
  };
  Plain pool, softmax, transform;
};

}  // namespace burin_test
