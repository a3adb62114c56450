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
#include "runtime/device_state.h"

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
ConvShape symmetric(const ConvShape& shape) {
  ConvShape padded = shape;
  if (shape.pad.top == shape.pad.bottom && shape.pad.left == shape.pad.right) return padded;
  padded.in_h += shape.pad.top + shape.pad.bottom;
  padded.in_w += shape.pad.left + shape.pad.right;
  padded.pad = {};
  return padded;
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

// The layer on the device, with tensors of one element type. Values are random, so one set of buffers serves both
// layouts.
struct Cudnn::Problem {
  const Device& device;
  std::shared_ptr<const CudnnHandle> handle;
  const CudnnTable& table;
  ConvShape shape;
  int batch;
  ElementType element;
  std::vector<DeviceBuffer> inputs;
  DeviceBuffer weights, output, workspace;
  std::optional<CudnnConvolution> convolution;  // as it was described last

  Problem(const Device& on, const std::shared_ptr<const CudnnHandle>& by, const ConvShape& layer, int images,
          ElementType tensors)
      : device(on),
        handle(by),
        table(by->table()),
        shape(symmetric(layer)),
        batch(images),
        element(tensors),
        weights(random_buffer(on, tensors, shape.weight_elements(), kCudnnInputBuffers)),
        output(on, static_cast<std::size_t>(shape.conv_elements()) * static_cast<std::size_t>(images) *
                       static_cast<std::size_t>(bytes_of(tensors))) {
    for (std::uint32_t i = 0; i < kCudnnInputBuffers; ++i) {
      inputs.push_back(random_buffer(on, tensors, shape.input_elements() * images, i));
    }
  }

  void describe(CudnnLayout layout, CudnnMode mode) {
    convolution.emplace(
        handle,
        CudnnProblem{
            .shape = shape, .batch = batch, .layout = layout, .type = traits(mode).type, .math = traits(mode).math});
  }

  CudnnStatus workspace_bytes(int algorithm, std::size_t& bytes) const {
    return convolution->workspace_bytes(algorithm, bytes);
  }

  CudnnStatus enqueue(CUstream_st* stream, int turn, int algorithm, std::size_t bytes) const {
    const DeviceBuffer& input = inputs[static_cast<std::size_t>(turn % kCudnnInputBuffers)];
    return convolution->enqueue(stream, algorithm,
                                {.input = input.data<void>(),
                                 .weights = weights.data<void>(),
                                 .output = output.data<void>(),
                                 .workspace = workspace.data<void>(),
                                 .workspace_bytes = bytes});
  }

  // A launch of an algorithm, for what measures; `turn` says which of the inputs it reads.
  std::function<void(CUstream_st*, int)> launch_of(int algorithm, std::size_t bytes) const {
    return [this, algorithm, bytes](CUstream_st* target, int turn) {
      check_cudnn(table, enqueue(target, turn, algorithm, bytes), "cudnnConvolutionForward");
    };
  }

  // Graph replay where the algorithm can be captured; `graph_replay` says whether it was.
  Measurement time(int algorithm, std::size_t bytes, const Stream& stream, const MeasureOptions& options,
                   bool& graph_replay) const {
    constexpr int kLaunchesInARow = 20;
    const auto launch = launch_of(algorithm, bytes);
    graph_replay = true;
    try {
      return burin::measure(device, stream, launch, options);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;
    }
    graph_replay = false;
    return measure_in_a_row(device, stream, launch, options.samples, kLaunchesInARow);
  }
};

struct Cudnn::Candidate {
  int algorithm = 0;
  CudnnLayout layout = CudnnLayout::nchw;
  std::size_t workspace_bytes = 0;
  double screened_us = 0;
};

Cudnn::Cudnn(const Device& device, const std::vector<std::string>& candidates)
    : device_(device), handle_(device_.state()->libraries->cudnn(candidates)) {}

// Runs every algorithm in both layouts; fastest first. `refusals` counts those that do not serve the shape.
std::vector<Cudnn::Candidate> Cudnn::screen(Problem& problem, CudnnMode mode, const Stream& stream,
                                            std::string& refusals) {
  const CudnnTable& table = handle_->table();
  std::vector<Candidate> candidates;
  double shortest_us = std::numeric_limits<double>::infinity();
  for (const CudnnLayout layout : {CudnnLayout::nchw, CudnnLayout::nhwc}) {
    problem.describe(layout, mode);
    for (int algorithm = 0; algorithm < kCudnnForwardAlgorithms; ++algorithm) {
      Candidate candidate{.algorithm = algorithm, .layout = layout};
      const auto refuse = [&](const std::string& reason) {
        append(refusals, fmt::format("{} {}: {}", to_string(layout), cudnn_algorithm_name(algorithm), reason));
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
      if (candidate.workspace_bytes > problem.workspace.bytes()) {
        problem.workspace = DeviceBuffer();  // first, so that both need not fit
        problem.workspace = DeviceBuffer(device_, candidate.workspace_bytes);
      }
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
    time.algorithm = cudnn_algorithm_name(candidate.algorithm);
    time.layout = to_string(candidate.layout);
    time.median_us = measured.median_us;
    time.p10_us = measured.p10_us;
    time.p90_us = measured.p90_us;
    if (!fastest || time.median_us < fastest->median_us) fastest = std::move(time);
  }
  return fastest;
}

CudnnBaseline Cudnn::measure(const ConvShape& shape, int batch, std::span<const CudnnMode> modes, const Stream& stream,
                             const MeasureOptions& options) {
  if (batch < 1) fail(ErrorKind::usage, "a batch of {} images: at least 1 is needed", batch);
  CudnnBaseline baseline;
  if (!(symmetric(shape).pad == shape.pad)) {
    append(baseline.note,
           "cuDNN cannot pad the sides differently: its input was padded beforehand, which is not timed");
  }
  std::unique_ptr<Problem> problem;
  for (const CudnnMode mode : modes) {
    if ((mode == CudnnMode::tf32 || mode == CudnnMode::bf16) && device_.info().compute() < kFirstComputeWithTf32) {
      append(baseline.note, fmt::format("{} has no {}", device_.info().arch(), to_string(mode)));
      continue;
    }
    const ElementType element = traits(mode).element;
    if (!problem || problem->element != element) {
      problem.reset();  // first, so that both need not fit
      problem = std::make_unique<Problem>(device_, handle_, shape, batch, element);
    }
    baseline[mode] = best(*problem, mode, stream, options, baseline.note);
  }
  return baseline;
}

}  // namespace burin
