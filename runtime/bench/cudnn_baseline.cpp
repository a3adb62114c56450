#include "runtime/bench/cudnn_baseline.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <tuple>

#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/library_call.h"
#include "runtime/device_state.h"
#include "runtime/library/cudnn_calls.h"

namespace burin {
namespace {

constexpr std::size_t kMaxWorkspaceBytes = std::size_t{4} << 30;  // FFT asks for much more than a network could spare
constexpr int kScreeningSamples = 10;                             // per algorithm, to find those worth measuring well
// cuDNN plans anew at each call, for up to a millisecond, so a graph of thousands of launches would take seconds.
constexpr int kScreeningLaunches = 16;
constexpr int kMaxFinalLaunches = 200;
constexpr std::size_t kFinalists = 3;
// A single run this much longer than the shortest so far cannot win; some take seconds (one launch for each group).
constexpr double kHopelessFactor = 20;
constexpr double kHopelessFloorUs = 2000;  // below it a single run says little: planning on the host is part of it
constexpr int kFirstComputeWithTf32 = 80;  // and with BF16

struct ModeTraits {
  CudnnType type;
  CudnnMath math;
  ElementType element;
};

const ModeTraits& traits(CudnnMode mode) {
  static constexpr std::array<ModeTraits, kCudnnModes.size()> kTraits = {{
      {CudnnType::float32, CudnnMath::fp32, ElementType::f32},
      {CudnnType::float32, CudnnMath::tf32_allowed, ElementType::f32},
      {CudnnType::half, CudnnMath::tensor_cores, ElementType::f16},
      {CudnnType::bfloat16, CudnnMath::tensor_cores, ElementType::bf16},
  }};
  return kTraits.at(static_cast<std::size_t>(mode));
}

// Uniform in [-1, 1], drawn once per block and repeated: times depend on values only through power.
DeviceBuffer random_buffer(const Device& device, ElementType type, std::int64_t elements, std::uint32_t seed) {
  constexpr std::size_t kBlock = std::size_t{1} << 18;  // elements
  const std::size_t count = static_cast<std::size_t>(elements), size = static_cast<std::size_t>(bytes_of(type));
  std::vector<float> values(std::min(count + count % 2, kBlock));  // whole words of either size
  std::mt19937 random(seed);
  constexpr float kScale = 1.0F / 2147483648.0F;
  for (float& value : values) value = static_cast<float>(static_cast<std::int32_t>(random())) * kScale;
  const std::vector<float> block = pack_words(type, values);
  DeviceBuffer buffer(device, count * size);
  for (std::size_t at = 0; at < count; at += kBlock) {
    buffer.upload(block.data(), std::min(kBlock, count - at) * size, at * size);
  }
  return buffer;
}

// cuDNN pads both sides alike. Where the layer does not, the input is padded beforehand instead.
bool is_symmetric(const Padding& pad) { return pad.top == pad.bottom && pad.left == pad.right; }

ConvShape symmetric(const ConvShape& shape) {
  ConvShape padded = shape;
  if (is_symmetric(shape.pad)) return padded;
  padded.in_h += shape.pad.top + shape.pad.bottom;
  padded.in_w += shape.pad.left + shape.pad.right;
  padded.pad = {};
  return padded;
}
PooledImage symmetric(const PooledImage& pooled) {
  PooledImage padded = pooled;
  if (is_symmetric(pooled.pool.pad)) return padded;
  padded.rows += pooled.pool.pad.top + pooled.pool.pad.bottom;
  padded.cols += pooled.pool.pad.left + pooled.pool.pad.right;
  padded.pool.pad = {};
  return padded;
}

// The pool of a convolution's kernel that cuDNN has a call for. A pool that filters is a convolution of its own.
const Pool* pool_behind(const ConvShape& shape) {
  return shape.epilogue.pool && !shape.epilogue.filters() ? &*shape.epilogue.pool : nullptr;
}
PooledImage pooled_image(const ConvShape& shape) {
  return {shape.out_channels, shape.conv_h(), shape.conv_w(), *pool_behind(shape)};
}

std::string calls_text(const Pool& pool) {
  std::string text = fmt::format("{} pool", to_string(pool.kind));
  if (pool.count_padding && !(pool.pad == Padding{})) text += " with padding";
  return text;
}
std::string calls_text(const LibraryTask& task) {
  if (const auto* pooled = std::get_if<PooledImage>(&task)) {
    return averages_whole(pooled->pool, pooled->rows, pooled->cols) ? "global average" : calls_text(pooled->pool);
  }
  if (const auto* softmax = std::get_if<SoftmaxImage>(&task)) {
    return softmax->pixels == 1 ? "softmax" : "softmax of channels";
  }
  if (std::holds_alternative<MovedTensor>(task)) return "transform";
  const auto& shape = std::get<ConvShape>(task);
  const Pool* pool = pool_behind(shape);
  if (pool == nullptr) return "conv";
  const Epilogue& end = shape.epilogue;
  return fmt::format("conv{}{}{}, {}", end.bias ? "+bias" : "", end.residual ? "+residual" : "",
                     is_relu(end.function) ? "+relu" : "", calls_text(*pool));
}

// What the calls leave out or do beforehand, each a sentence.
std::vector<std::string> notes_of(const LibraryTask& task) {
  const std::string padded =
      "cuDNN cannot pad the sides differently: its input was padded beforehand, which is not timed";
  std::vector<std::string> notes;
  if (const auto* pooled = std::get_if<PooledImage>(&task)) {
    if (!is_symmetric(pooled->pool.pad)) notes.push_back(padded);
  }
  const auto* shape = std::get_if<ConvShape>(&task);
  if (shape == nullptr) return notes;
  const Epilogue& end = shape->epilogue;
  const Pool* pool = pool_behind(*shape);
  if (!is_symmetric(shape->pad) || (pool != nullptr && !is_symmetric(pool->pad))) notes.push_back(padded);
  if (end.filters()) notes.push_back("the depthwise convolution that burin's kernel ends with is not in cuDNN's time");
  if (pool != nullptr && end.function && !is_relu(end.function)) {
    notes.push_back(fmt::format("cuDNN's call that fuses has no {}: its time is without", describe(*end.function)));
  }
  return notes;
}

void append(std::string& text, const std::string& sentence) {
  if (!text.empty()) text += "; ";
  text += sentence;
}

// The same statistics without a graph, for what cannot be captured: events around launches in a row.
Measurement measure_in_a_row(const Device& device, const Stream& stream,
                             const std::function<void(CUstream_st*, int)>& enqueue, int samples, int launches) {
  std::vector<double> times;
  Event begin(device);
  Event end(device);
  for (int sample = 0; sample < samples; ++sample) {
    begin.record(stream);
    for (int i = 0; i < launches; ++i) enqueue(stream, i);
    end.record(stream);
    end.synchronize();
    times.push_back(end.microseconds_since(begin) / launches);
  }
  return summarize(std::move(times), launches);
}

}  // namespace

// What is measured on the device, with tensors of one element type. Values are random, so one set of buffers serves
// both layouts. There is a choice of algorithms, of which each may be captured or not.
class Cudnn::Problem {
 public:
  Problem(const Device& device, std::shared_ptr<const CudnnHandle> handle, ElementType element)
      : device_(device), handle_(std::move(handle)), element_(element) {}
  virtual ~Problem() = default;
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  virtual std::vector<CudnnLayout> layouts() const { return {CudnnLayout::nchw, CudnnLayout::nhwc}; }
  virtual std::string layout_name(CudnnLayout layout) const { return std::string(to_string(layout)); }
  virtual int algorithms() const = 0;
  virtual std::string algorithm_name(int algorithm) const = 0;
  // To be called before the following, which are of what was described last.
  virtual void describe(CudnnLayout layout, CudnnMode mode) = 0;
  virtual CudnnStatus workspace_bytes(int algorithm, std::size_t& bytes) const = 0;
  virtual CudnnStatus enqueue(CUstream_st* stream, int turn, int algorithm, std::size_t workspace_bytes) const = 0;
  virtual const char* call() const = 0;

  ElementType element() const { return element_; }
  void reserve_workspace(std::size_t bytes) {
    if (bytes <= workspace_.bytes()) return;
    workspace_ = DeviceBuffer();  // first, so that both need not fit
    workspace_ = DeviceBuffer(device_, bytes);
  }

  // A launch of an algorithm, for what measures; `turn` says which of the inputs it reads.
  std::function<void(CUstream_st*, int)> launch_of(int algorithm, std::size_t bytes) const {
    return [this, algorithm, bytes](CUstream_st* target, int turn) {
      check_cudnn(handle_->table(), enqueue(target, turn, algorithm, bytes), call());
    };
  }

  // Graph replay where the algorithm can be captured; `graph_replay` says whether it was.
  Measurement time(int algorithm, std::size_t bytes, const Stream& stream, const MeasureOptions& options,
                   bool& graph_replay) const {
    constexpr int kLaunchesInARow = 20;
    const auto launch = launch_of(algorithm, bytes);
    graph_replay = true;
    try {
      return burin::measure(device_, stream, launch, options);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;
    }
    graph_replay = false;
    return measure_in_a_row(device_, stream, launch, options.samples, kLaunchesInARow);
  }

 protected:
  const std::shared_ptr<const CudnnHandle>& handle() const { return handle_; }
  void make_inputs(std::int64_t elements) {
    for (std::uint32_t i = 0; i < kCudnnInputBuffers; ++i) {
      inputs_.push_back(random_buffer(device_, element_, elements, i));
    }
  }
  const void* input(int turn) const {
    return inputs_[static_cast<std::size_t>(turn % kCudnnInputBuffers)].data<void>();
  }
  void* workspace() const { return workspace_.data<void>(); }
  DeviceBuffer buffer_of(std::int64_t elements) const {
    return {device_, static_cast<std::size_t>(elements) * static_cast<std::size_t>(bytes_of(element_))};
  }
  DeviceBuffer random_of(std::int64_t elements) const {
    return random_buffer(device_, element_, elements, kCudnnInputBuffers);
  }

 private:
  Device device_;
  std::shared_ptr<const CudnnHandle> handle_;
  ElementType element_;
  std::vector<DeviceBuffer> inputs_;
  DeviceBuffer workspace_;
};

// A convolution, and the pool behind it where there is one.
class Cudnn::ConvProblem : public Problem {
 public:
  ConvProblem(const Device& device, const std::shared_ptr<const CudnnHandle>& handle, const ConvShape& layer, int batch,
              ElementType tensors)
      : Problem(device, handle, tensors),
        shape_(symmetric(layer)),
        batch_(batch),
        weights_(random_of(shape_.weight_elements())),
        sums_(buffer_of(shape_.conv_elements() * batch)) {
    make_inputs(shape_.input_elements() * batch);
    if (!pooled()) return;
    const PooledImage image = symmetric(pooled_image(shape_));
    // A pool whose input is padded beforehand reads more than the convolution has written.
    sums_ = buffer_of(std::int64_t{image.channels} * image.rows * image.cols * batch);
    output_ = buffer_of(shape_.output_elements() * batch);
    bias_ = random_of(shape_.out_channels);  // the call that fuses adds one in any case
    if (shape_.epilogue.residual) residual_ = random_of(shape_.conv_elements() * batch);
  }

  int algorithms() const override { return kCudnnForwardAlgorithms; }
  std::string algorithm_name(int algorithm) const override { return cudnn_algorithm_name(algorithm); }
  const char* call() const override { return pooled() ? "a convolution and its pool" : "cudnnConvolutionForward"; }

  void describe(CudnnLayout layout, CudnnMode mode) override {
    convolution_.emplace(handle(), CudnnProblem{.shape = shape_,
                                                .batch = batch_,
                                                .layout = layout,
                                                .type = traits(mode).type,
                                                .math = traits(mode).math,
                                                .with_epilogue = pooled()});
    if (!pooled()) return;
    pool_ = cudnn_pool(handle(), symmetric(pooled_image(shape_)),
                       {.images = batch_, .layout = layout, .type = traits(mode).type});
  }

  CudnnStatus workspace_bytes(int algorithm, std::size_t& bytes) const override {
    return convolution_->workspace_bytes(algorithm, bytes);
  }

  CudnnStatus enqueue(CUstream_st* stream, int turn, int algorithm, std::size_t bytes) const override {
    const CudnnStatus status = convolution_->enqueue(stream, algorithm,
                                                     {.input = input(turn),
                                                      .weights = weights_.data<void>(),
                                                      .bias = bias_.data<void>(),
                                                      .residual = residual_.data<void>(),
                                                      .output = sums_.data<void>(),
                                                      .workspace = workspace(),
                                                      .workspace_bytes = bytes});
    if (status != kCudnnSuccess || !pooled()) return status;
    return pool_(stream, sums_.data<void>(), output_.data<void>());
  }

 private:
  bool pooled() const { return pool_behind(shape_) != nullptr; }

  ConvShape shape_;
  int batch_;
  DeviceBuffer weights_, bias_, residual_, sums_, output_;
  std::optional<CudnnConvolution> convolution_;
  CudnnCall pool_;
};

// What is one call from one tensor to another.
class Cudnn::PlainProblem : public Problem {
 public:
  PlainProblem(const Device& device, const std::shared_ptr<const CudnnHandle>& handle, LibraryTask task, int batch,
               ElementType tensors)
      : Problem(device, handle, tensors), task_(std::move(task)), batch_(batch) {
    if (const auto* pooled = std::get_if<PooledImage>(&task_)) {
      const PooledImage image = symmetric(*pooled);
      make_inputs(std::int64_t{image.channels} * image.rows * image.cols * batch);
      output_ =
          buffer_of(image.channels * pooled_rows(image.pool, image.rows) * pooled_cols(image.pool, image.cols) * batch);
      task_ = image;
    } else if (const auto* softmax = std::get_if<SoftmaxImage>(&task_)) {
      make_inputs(softmax->channels * softmax->pixels * batch);
      output_ = buffer_of(softmax->channels * softmax->pixels * batch);
    } else {
      const auto& moved = std::get<MovedTensor>(task_);
      make_inputs(spanned(moved, &MovedAxis::in_step));
      output_ = buffer_of(spanned(moved, &MovedAxis::out_step));
    }
  }

  std::vector<CudnnLayout> layouts() const override {
    if (is_moved()) return {CudnnLayout::nchw};
    return Problem::layouts();
  }
  std::string layout_name(CudnnLayout layout) const override {
    return is_moved() ? "STRIDED" : Problem::layout_name(layout);
  }
  int algorithms() const override { return 1; }
  std::string algorithm_name(int) const override {
    return is_moved() ? "TRANSFORM" : std::holds_alternative<SoftmaxImage>(task_) ? "SOFTMAX" : "POOLING";
  }
  const char* call() const override {
    return is_moved()                                    ? "cudnnTransformTensor"
           : std::holds_alternative<SoftmaxImage>(task_) ? "cudnnSoftmaxForward"
                                                         : "cudnnPoolingForward";
  }
  void describe(CudnnLayout layout, CudnnMode mode) override {
    const CudnnTensors tensors{.images = batch_, .layout = layout, .type = traits(mode).type};
    if (const auto* pooled = std::get_if<PooledImage>(&task_)) {
      call_ = cudnn_pool(handle(), *pooled, tensors);
    } else if (const auto* softmax = std::get_if<SoftmaxImage>(&task_)) {
      call_ = cudnn_softmax(handle(), *softmax, tensors);
    } else {
      call_ = cudnn_transform(handle(), std::get<MovedTensor>(task_), tensors.type);
    }
  }
  CudnnStatus workspace_bytes(int, std::size_t& bytes) const override {
    bytes = 0;
    return kCudnnSuccess;
  }
  CudnnStatus enqueue(CUstream_st* stream, int turn, int, std::size_t) const override {
    return call_(stream, input(turn), output_.data<void>());
  }

 private:
  static std::int64_t spanned(const MovedTensor& moved, std::int64_t MovedAxis::* step) {
    std::int64_t last = 0;
    for (const MovedAxis& axis : moved.axes) last += (axis.extent - 1) * (axis.*step);
    return last + 1;
  }
  bool is_moved() const { return std::holds_alternative<MovedTensor>(task_); }

  LibraryTask task_;
  int batch_;
  DeviceBuffer output_;
  CudnnCall call_;
};

struct Cudnn::Candidate {
  int algorithm = 0;
  CudnnLayout layout = CudnnLayout::nchw;
  std::size_t workspace_bytes = 0;
  double screened_us = 0;
};

Cudnn::Cudnn(const Device& device, const std::vector<std::string>& candidates)
    : device_(device), handle_(device_.state()->libraries->cudnn(candidates)) {}

std::unique_ptr<Cudnn::Problem> Cudnn::problem_of(const LibraryTask& task, int batch, ElementType element) const {
  if (const auto* shape = std::get_if<ConvShape>(&task)) {
    return std::make_unique<ConvProblem>(device_, handle_, *shape, batch, element);
  }
  return std::make_unique<PlainProblem>(device_, handle_, task, batch, element);
}

// Runs every algorithm in both layouts; fastest first. `refusals` counts those that do not serve the shape.
std::vector<Cudnn::Candidate> Cudnn::screen(Problem& problem, CudnnMode mode, const Stream& stream,
                                            std::string& refusals) {
  const CudnnTable& table = handle_->table();
  std::vector<Candidate> candidates;
  double shortest_us = std::numeric_limits<double>::infinity();
  for (const CudnnLayout layout : problem.layouts()) {
    try {
      problem.describe(layout, mode);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;
      append(refusals, fmt::format("{}: {}", problem.layout_name(layout), error.what()));
      continue;
    }
    for (int algorithm = 0; algorithm < problem.algorithms(); ++algorithm) {
      Candidate candidate{.algorithm = algorithm, .layout = layout};
      const auto refuse = [&](const std::string& reason) {
        append(refusals,
               fmt::format("{} {}: {}", problem.layout_name(layout), problem.algorithm_name(algorithm), reason));
      };
      if (const CudnnStatus status = problem.workspace_bytes(algorithm, candidate.workspace_bytes);
          status != kCudnnSuccess) {
        refuse(table.get_error_string(status));
        continue;
      }
      if (candidate.workspace_bytes > kMaxWorkspaceBytes) {
        refuse(fmt::format("wants {} bytes of workspace", candidate.workspace_bytes));
        continue;
      }
      problem.reserve_workspace(candidate.workspace_bytes);
      // Outside of any capture first: an algorithm may load code or allocate when it runs for the first time.
      if (const CudnnStatus status = problem.enqueue(stream, 0, algorithm, candidate.workspace_bytes);
          status != kCudnnSuccess) {
        refuse(table.get_error_string(status));
        continue;
      }
      stream.synchronize();
      // From the first to the last moment of one run; the host's planning is part of it.
      const auto launch = problem.launch_of(algorithm, candidate.workspace_bytes);
      const double once_us = measure_in_a_row(device_, stream, launch, 1, 1).median_us;
      shortest_us = std::min(shortest_us, once_us);
      if (once_us > std::max(kHopelessFactor * shortest_us, kHopelessFloorUs)) {
        refuse(fmt::format("hopeless: {:.0f} us", once_us));
        continue;
      }
      bool graph_replay = false;
      MeasureOptions options;
      options.samples = kScreeningSamples;
      options.launches_per_graph = kScreeningLaunches;
      candidate.screened_us =
          problem.time(algorithm, candidate.workspace_bytes, stream, options, graph_replay).median_us;
      candidates.push_back(candidate);
    }
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.screened_us, a.layout, a.algorithm) < std::tie(b.screened_us, b.layout, b.algorithm);
  });
  return candidates;
}

std::optional<CudnnTime> Cudnn::best(Problem& problem, CudnnMode mode, const Stream& stream,
                                     const MeasureOptions& options, std::string& note) {
  std::string refusals;
  std::vector<Candidate> candidates = screen(problem, mode, stream, refusals);
  if (candidates.empty()) {
    append(note, fmt::format("no algorithm of cuDNN serves this layer in {} ({})", to_string(mode), refusals));
    return std::nullopt;
  }
  candidates.resize(std::min(candidates.size(), kFinalists));
  std::optional<CudnnTime> fastest;
  for (const Candidate& candidate : candidates) {
    problem.describe(candidate.layout, mode);
    CudnnTime time;
    MeasureOptions final_options = options;
    if (options.launches_per_graph == 0) {
      const double wanted = kGraphMicroseconds / std::max(candidate.screened_us, 1.0);
      final_options.launches_per_graph =
          static_cast<int>(std::clamp<double>(wanted, kMinLaunchesPerGraph, kMaxFinalLaunches));
    }
    const Measurement measured =
        problem.time(candidate.algorithm, candidate.workspace_bytes, stream, final_options, time.graph_replay);
    time.algorithm = problem.algorithm_name(candidate.algorithm);
    time.layout = problem.layout_name(candidate.layout);
    time.median_us = measured.median_us;
    time.p10_us = measured.p10_us;
    time.p90_us = measured.p90_us;
    if (!fastest || time.median_us < fastest->median_us) fastest = std::move(time);
  }
  return fastest;
}

CudnnBaseline Cudnn::measure(const LibraryTask& task, int batch, std::span<const CudnnMode> modes, const Stream& stream,
                             const MeasureOptions& options) {
  if (batch < 1) fail(ErrorKind::usage, "a batch of {} images: at least 1 is needed", batch);
  CudnnBaseline baseline;
  baseline.calls = calls_text(task);
  for (const std::string& note : notes_of(task)) append(baseline.note, note);
  if (const auto* pooled = std::get_if<PooledImage>(&task)) {
    if (pooled->pool.dilation_h != 1 || pooled->pool.dilation_w != 1) {
      append(baseline.note, "cuDNN has no pool with dilation");
      return baseline;
    }
  }
  std::unique_ptr<Problem> problem;
  for (const CudnnMode mode : modes) {
    if ((mode == CudnnMode::tf32 || mode == CudnnMode::bf16) && device_.info().compute() < kFirstComputeWithTf32) {
      append(baseline.note, fmt::format("{} has no {}", device_.info().arch(), to_string(mode)));
      continue;
    }
    const ElementType element = traits(mode).element;
    if (!problem || problem->element() != element) {
      problem.reset();  // first, so that both need not fit
      problem = problem_of(task, batch, element);
    }
    baseline[mode] = best(*problem, mode, stream, options, baseline.note);
  }
  return baseline;
}

}  // namespace burin
