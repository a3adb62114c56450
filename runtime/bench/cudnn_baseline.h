// What cuDNN needs for what a kernel computes, by our own measurement, in FP32, with TF32 allowed, and with FP16 and
// BF16 tensors, in which sums are FP32.
//
// For a dense convolution it is the fastest of the forward algorithms over both memory layouts. It is the convolution
// alone: no bias, residual or activation, which only favours cuDNN in a comparison. Of a convolution that ends with a
// pool all is there that burin's kernel does: the call that adds bias and residual and applies ReLU, and that of the
// pool behind it, together, in one graph. Pools, softmax and tensors that are moved are a call each.
// CudnnBaseline::calls says what was measured.
//
// Data are random; inputs take turns among kCudnnInputBuffers buffers.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/library_task.h"
#include "ir/named_enum.h"
#include "runtime/bench/measure.h"
#include "runtime/library/cudnn_convolution.h"

namespace burin {

inline constexpr int kCudnnInputBuffers = 4;

// How cuDNN computes.
enum class CudnnMode {
  fp32,  // float tensors, tensor cores forbidden
  tf32,  // float tensors, tensor cores allowed
  fp16,  // half tensors, tensor cores allowed
  bf16,  // bfloat16 tensors, tensor cores allowed
};
inline constexpr std::array kCudnnModes = {CudnnMode::fp32, CudnnMode::tf32, CudnnMode::fp16, CudnnMode::bf16};
constexpr EnumNames<4> names_of(CudnnMode) { return {"a mode of cuDNN", {"FP32", "TF32", "FP16", "BF16"}}; }

struct CudnnTime {
  std::string algorithm;  // "WINOGRAD_NONFUSED"; of what has one way to be done, that: "POOLING"
  std::string layout;     // "NCHW"; of tensors that are moved "STRIDED"
  double median_us = 0, p10_us = 0, p90_us = 0;
  bool graph_replay = false;  // false: the algorithm cannot be captured; timed by events around launches in a row
};

struct CudnnBaseline {
  // Absent: not asked for, or not to be had (TF32 and BF16 came with Ampere), which `note` then says.
  std::array<std::optional<CudnnTime>, kCudnnModes.size()> times;
  std::string calls;  // what was measured: "conv", "conv+bias+relu, max pool", "softmax"
  std::string note;   // what else a reader must know: padding done beforehand, why a time is absent

  std::optional<CudnnTime>& operator[](CudnnMode mode) { return times[static_cast<std::size_t>(mode)]; }
  const std::optional<CudnnTime>& operator[](CudnnMode mode) const { return times[static_cast<std::size_t>(mode)]; }
};

class Cudnn {
 public:
  // Throws Error(device) when there is no cuDNN, or it cannot serve this device.
  Cudnn(const Device& device, const std::vector<std::string>& candidates);

  std::string version() const { return handle_->library().version(); }
  const std::string& path() const { return handle_->library().path(); }

  // Measures each of `modes`; one thread at a time may call. Algorithms that refuse the task are passed over. Throws
  // Error(device) when memory is short or the device fails.
  CudnnBaseline measure(const LibraryTask& task, int batch, std::span<const CudnnMode> modes, const Stream& stream,
                        const MeasureOptions& options = {});

 private:
  class Problem;
  class ConvProblem;
  class PlainProblem;
  struct Candidate;
  std::unique_ptr<Problem> problem_of(const LibraryTask& task, int batch, ElementType element) const;
  std::vector<Candidate> screen(Problem& problem, CudnnMode mode, const Stream& stream, std::string& refusals);
  std::optional<CudnnTime> best(Problem& problem, CudnnMode mode, const Stream& stream, const MeasureOptions& options,
                                std::string& note);

  Device device_;
  std::shared_ptr<const CudnnHandle> handle_;
};

}  // namespace burin
