// What cuDNN needs for a dense convolution: the fastest of its forward algorithms by our own measurement, over both
// memory layouts, for FP32 and with TF32 allowed.
//
// It is the convolution alone: no bias, residual or activation, which only favours cuDNN in a comparison. Data are
// random; inputs take turns among kCudnnInputBuffers buffers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/conv_layer.h"
#include "runtime/bench/cudnn_library.h"
#include "runtime/bench/measure.h"

namespace burin {

inline constexpr int kCudnnInputBuffers = 4;

struct CudnnTime {
  std::string algorithm;  // "WINOGRAD_NONFUSED"
  std::string layout;     // "NCHW"
  double median_us = 0, p10_us = 0, p90_us = 0;
  bool graph_replay = false;  // false: the algorithm cannot be captured; timed by events around launches in a row
};

struct CudnnBaseline {
  std::optional<CudnnTime> fp32;  // tensor cores forbidden
  std::optional<CudnnTime> tf32;  // allowed; absent before Ampere, which has none
  std::string note;               // what else a reader must know: padding done beforehand, why a time is absent
};

class Cudnn {
 public:
  // Throws Error(device) when there is no cuDNN, or it cannot serve this device.
  explicit Cudnn(const Device& device, const std::vector<std::string>& candidates = default_cudnn_candidates());
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  std::string version() const { return library_.version(); }
  const std::string& path() const { return library_.path(); }

  // From one thread at a time. Algorithms that refuse the shape are passed over. Throws Error(device) when memory is
  // short or the device fails.
  CudnnBaseline measure(const ConvShape& shape, int batch, const Stream& stream, const MeasureOptions& options = {});

 private:
  struct Problem;
  struct Candidate;
  std::vector<Candidate> screen(Problem& problem, CudnnMath math, const Stream& stream, std::string& refusals);
  std::optional<CudnnTime> best(Problem& problem, CudnnMath math, const Stream& stream, const MeasureOptions& options,
                                std::string& note);

  Device device_;
  CudnnLibrary library_;
  CudnnObject handle_ = nullptr;
};

}  // namespace burin
