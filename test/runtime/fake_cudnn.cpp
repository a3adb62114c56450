#include "test/runtime/fake_cudnn.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "ir/element_type.h"
#include "test/runtime/fake_library.h"

using burin_test::FakeCudnnState;

namespace {

struct Object {
  std::vector<int> extents, steps;  // of a tensor, however it was set
  std::vector<int> settings;        // of a pool
  std::array<int, 4> dims{};
  int layout = 0, type = 0;
  std::array<int, 6> geometry{};
  std::array<int, 4> strides{};  // of a tensor
  int groups = 1, math = 0;
  CUstream_st* stream = nullptr;
  int kind = -1;                                  // of the graph API
  std::map<int, std::vector<std::int64_t>> told;  // integers
  std::map<int, std::vector<void*>> objects;      // other objects, and addresses
  int engine = 0;                                 // of a choice
  bool finalized = false;
  std::vector<float> factors;
};

FakeCudnnState state;

#ifndef FAKE_CUDNN_INCOMPLETE
constexpr int kSuccess = 0, kNotSupported = 3000, kExecutionFailed = 5000;
constexpr int kDefaultMath = 0, kTensorOpMath = 1, kFmaMath = 3;
constexpr int kFloat = 0, kHalf = 2, kBfloat16 = 9;
constexpr int kNoMode = -1;
constexpr int kPrecomputed = 1;  // CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM
constexpr int kRelu = 1, kIdentity = 5;

int create(void** object) {
  *object = new Object;
  ++state.live_objects;
  return kSuccess;
}

int destroy(void* object) {
  delete static_cast<Object*>(object);
  --state.live_objects;
  return kSuccess;
}

Object& at(void* object) { return *static_cast<Object*>(object); }

// Of types and math as they were set: all tensors alike, sums in float.
int mode_of(void* input, void* filter, void* convolution, void* output) {
  const int type = at(input).type, math = at(convolution).math;
  if (at(filter).type != type || at(output).type != type || at(convolution).type != kFloat) return kNoMode;
  if (at(filter).layout != at(input).layout || at(output).layout != at(input).layout) return kNoMode;
  if (type == kFloat && math == kFmaMath) return 0;
  if (type == kFloat && math == kDefaultMath) return 1;
  if (type == kHalf && math == kTensorOpMath) return 2;
  if (type == kBfloat16 && math == kTensorOpMath) return 3;
  return kNoMode;
}

const FakeCudnnState::Algorithm& algorithm_of(int mode, void* input, int algorithm) {
  return state.algorithms.at(static_cast<std::size_t>(at(input).layout))
      .at(static_cast<std::size_t>(mode))
      .at(static_cast<std::size_t>(algorithm));
}

constexpr int kChannelsLast = 1;  // CUDNN_TENSOR_NHWC
std::array<int, 4> dense(int layout, int c, int h, int w) {
  if (layout == kChannelsLast) return {c * h * w, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

// Values of a tensor of a type, one by one.
float load_value(const void* tensor, int type, std::ptrdiff_t at) {
  return burin_test::load_element(burin_test::element_of(type), tensor, at);
}
void store_value(void* tensor, int type, std::ptrdiff_t at, float value) {
  burin_test::store_element(burin_test::element_of(type), tensor, at, value);
}

// What a call was told and given.
struct Call {
  void* handle;
  void *input, *filter, *convolution, *output;
  const void *x, *weights;
  void* y;
  const void* bias = nullptr;  // of a fused call; it has a residual where `residual_factor` is not 0
  void *residual = nullptr, *activation = nullptr;
  const void* z = nullptr;
  float residual_factor = 0;
  int algorithm = 0;
};

std::function<void()> arithmetic_of(const Call& call) {
  // Descriptors may be gone, or others, when it runs.
  const Object input = at(call.input), filter = at(call.filter), convolution = at(call.convolution),
               output = at(call.output);
  const Object residual = call.residual == nullptr ? Object{} : at(call.residual);
  const bool relu = call.activation != nullptr && at(call.activation).math == kRelu;
  return [=] {
    const auto at4 = [](const std::array<int, 4>& strides, int n, int c, int h, int w) {
      return static_cast<std::ptrdiff_t>(n) * strides[0] + static_cast<std::ptrdiff_t>(c) * strides[1] +
             static_cast<std::ptrdiff_t>(h) * strides[2] + static_cast<std::ptrdiff_t>(w) * strides[3];
    };
    const int type = input.type;
    const auto [pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w] = convolution.geometry;
    const int per_group = filter.dims[1], outputs = output.dims[1] / convolution.groups;
    for (int n = 0; n < output.dims[0]; ++n)
      for (int k = 0; k < output.dims[1]; ++k)
        for (int row = 0; row < output.dims[2]; ++row)
          for (int col = 0; col < output.dims[3]; ++col) {
            double sum = call.bias == nullptr ? 0 : load_value(call.bias, type, k);
            if (call.residual_factor != 0) {
              sum += call.residual_factor * load_value(call.z, type, at4(residual.strides, n, k, row, col));
            }
            for (int c = 0; c < per_group; ++c)
              for (int r = 0; r < filter.dims[2]; ++r)
                for (int s = 0; s < filter.dims[3]; ++s) {
                  const int y = row * stride_h - pad_h + r * dilation_h, x = col * stride_w - pad_w + s * dilation_w;
                  if (y < 0 || y >= input.dims[2] || x < 0 || x >= input.dims[3]) continue;
                  sum += static_cast<double>(load_value(call.weights, type, at4(filter.strides, k, c, r, s))) *
                         load_value(call.x, type, at4(input.strides, n, k / outputs * per_group + c, y, x));
                }
            const auto value = static_cast<float>(sum);
            store_value(call.y, type, at4(output.strides, n, k, row, col), relu && value < 0 ? 0 : value);
          }
  };
}

void set_extents(void* object, std::vector<int> extents, std::vector<int> steps) {
  at(object).extents = std::move(extents);
  at(object).steps = std::move(steps);
}

// A call from one tensor to another: it takes its time, and computes nothing.
int run_plain(FakeCudnnState::Plain& plain, void* handle, void* input, const void* x, void* output, const void* y,
              std::vector<int> settings, const void* alpha, const void* beta) {
  CUstream_st& stream = *at(handle).stream;
  if (x == nullptr || y == nullptr || *static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
    return kExecutionFailed;
  if (plain.does.refuses == FakeCudnnState::Refuses::forward) return kNotSupported;
  if (plain.does.refuses == FakeCudnnState::Refuses::capture && stream.capturing) return kExecutionFailed;
  ++plain.runs;
  plain.type = at(input).type == at(output).type ? at(input).type : -1;
  plain.layout = at(input).layout == at(output).layout ? at(input).layout : -1;
  plain.input = at(input).extents;
  plain.output = at(output).extents;
  plain.input_strides = at(input).steps;
  plain.output_strides = at(output).steps;
  plain.settings = std::move(settings);
  if (stream.capturing) {
    stream.captured_launches += plain.does.launches;
    stream.captured.push_back([] {});
  } else {
    constexpr double kMicrosecondsPerPlainLaunch = 5;  // FakeDriver's
    stream.clock_us += kMicrosecondsPerPlainLaunch * plain.does.launches;
  }
  return kSuccess;
}

// ---- the graph API

constexpr int kConvolution = 1, kConvolutionForward = 10, kPlan = 5, kEngineChoice = 3;
constexpr int kDataType = 1, kBoolean = 2, kInt64 = 3, kFloatType = 4, kConvolutionMode = 7, kHeurMode = 8;
constexpr int kPointwiseMode = 14, kNode = 15;
constexpr int kPointwiseAdd = 0;

const std::vector<std::int64_t>& told(void* object, int attribute) { return at(object).told.at(attribute); }
void* other(void* object, int attribute) { return at(object).objects.at(attribute).at(0); }

// A tensor of the graph as the calls of convolutions have them.
Object as_tensor(void* node) {
  Object tensor;
  for (std::size_t i = 0; i < 4; ++i) {
    tensor.dims.at(i) = static_cast<int>(told(node, 902).at(i));
    tensor.strides.at(i) = static_cast<int>(told(node, 903).at(i));
  }
  tensor.type = static_cast<int>(told(node, 901).at(0));
  return tensor;
}

// What a graph computes: a convolution, then bias and residual, told apart by their extents, and relu.
struct FusedGraph {
  Object input, filter, convolution, output, residual, activation;
  std::int64_t bias_id = 0, residual_id = 0;
};
FusedGraph fused_graph(void* graph) {
  FusedGraph fused;
  for (void* operation : at(graph).objects.at(801)) {
    if (at(operation).kind == kConvolutionForward) {
      void* window = other(operation, 702);
      fused.input = as_tensor(other(operation, 704));
      fused.filter = as_tensor(other(operation, 703));
      fused.output = as_tensor(other(operation, 705));
      for (std::size_t i = 0; i < 2; ++i) {
        fused.convolution.geometry.at(i) = static_cast<int>(told(window, 105).at(i));
        fused.convolution.geometry.at(2 + i) = static_cast<int>(told(window, 103).at(i));
        fused.convolution.geometry.at(4 + i) = static_cast<int>(told(window, 102).at(i));
      }
      fused.convolution.groups = fused.input.dims[1] / fused.filter.dims[1];
      continue;
    }
    fused.output = as_tensor(other(operation, 753));
    if (told(other(operation, 750), 0).at(0) != kPointwiseAdd) {
      fused.activation.math = kRelu;
      continue;
    }
    void* added = other(operation, 752);
    const bool is_bias = as_tensor(added).dims[2] == 1 && as_tensor(added).dims[0] == 1 && fused.bias_id == 0;
    (is_bias ? fused.bias_id : fused.residual_id) = told(added, 906).at(0);
    if (!is_bias) fused.residual = as_tensor(added);
  }
  return fused;
}

// What both ways to run a convolution do.
int run(const Call& call, void* workspace, std::size_t workspace_bytes) {
  const int mode = mode_of(call.input, call.filter, call.convolution, call.output);
  if (mode == kNoMode) {
    ++state.other_modes;
    return kNotSupported;
  }
  const FakeCudnnState::Algorithm& wanted = algorithm_of(mode, call.input, call.algorithm);
  CUstream_st& stream = *at(call.handle).stream;
  if (wanted.refuses == FakeCudnnState::Refuses::forward) return kNotSupported;
  if (wanted.refuses == FakeCudnnState::Refuses::capture && stream.capturing) return kExecutionFailed;
  if (workspace_bytes < wanted.workspace_bytes || (wanted.workspace_bytes > 0 && workspace == nullptr)) {
    state.too_small_workspace = true;
  }
  ++state.runs.at(static_cast<std::size_t>(call.algorithm));
  state.inputs.insert(call.x);
  state.input_dims = at(call.input).dims;
  state.filter_dims = at(call.filter).dims;
  state.output_dims = at(call.output).dims;
  state.geometry = at(call.convolution).geometry;
  state.groups = at(call.convolution).groups;
  state.last_mode = mode;
  const std::function<void()> work = state.computes ? arithmetic_of(call) : [] {};
  burin_test::enqueue_call(stream, wanted.launches, work);
  return kSuccess;
}
#endif

}  // namespace

extern "C" {

FakeCudnnState* fake_cudnn_state() { return &state; }

std::size_t cudnnGetVersion() { return 91900; }

#ifndef FAKE_CUDNN_INCOMPLETE
const char* cudnnGetErrorString(int status) {
  return status == kNotSupported ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_EXECUTION_FAILED";
}
int cudnnCreate(void** handle) { return state.create_status != kSuccess ? state.create_status : create(handle); }
int cudnnDestroy(void* handle) { return destroy(handle); }
int cudnnSetStream(void* handle, CUstream_st* stream) {
  at(handle).stream = stream;
  return kSuccess;
}
int cudnnCreateTensorDescriptor(void** object) { return create(object); }
int cudnnDestroyTensorDescriptor(void* object) { return destroy(object); }
int cudnnSetTensor4dDescriptor(void* object, int layout, int type, int n, int c, int h, int w) {
  at(object).layout = layout;
  at(object).type = type;
  at(object).dims = {n, c, h, w};
  at(object).strides = dense(layout, c, h, w);
  set_extents(object, {n, c, h, w}, {});
  return kSuccess;
}
int cudnnSetTensorNdDescriptor(void* object, int type, int axes, const int* extents, const int* strides) {
  at(object).layout = 0;
  at(object).type = type;
  set_extents(object, {extents, extents + axes}, {strides, strides + axes});
  return kSuccess;
}
int cudnnCreatePoolingDescriptor(void** object) { return create(object); }
int cudnnDestroyPoolingDescriptor(void* object) { return destroy(object); }
int cudnnSetPooling2dDescriptor(void* object, int mode, int nan, int window_h, int window_w, int pad_h, int pad_w,
                                int stride_h, int stride_w) {
  at(object).settings = {mode, nan, window_h, window_w, pad_h, pad_w, stride_h, stride_w};
  return kSuccess;
}
int cudnnPoolingForward(void* handle, void* pool, const void* alpha, void* input, const void* x, const void* beta,
                        void* output, void* y) {
  return run_plain(state.pool, handle, input, x, output, y, at(pool).settings, alpha, beta);
}
int cudnnSoftmaxForward(void* handle, int algorithm, int mode, const void* alpha, void* input, const void* x,
                        const void* beta, void* output, void* y) {
  return run_plain(state.softmax, handle, input, x, output, y, {algorithm, mode}, alpha, beta);
}
int cudnnTransformTensor(void* handle, const void* alpha, void* input, const void* x, const void* beta, void* output,
                         void* y) {
  return run_plain(state.transform, handle, input, x, output, y, {}, alpha, beta);
}
int cudnnSetTensor4dDescriptorEx(void* object, int type, int n, int c, int h, int w, int n_stride, int c_stride,
                                 int h_stride, int w_stride) {
  at(object).layout = 0;
  at(object).type = type;
  at(object).dims = {n, c, h, w};
  at(object).strides = {n_stride, c_stride, h_stride, w_stride};
  return kSuccess;
}
int cudnnBackendCreateDescriptor(int kind, void** object) {
  const int status = create(object);
  at(*object).kind = kind;
  return status;
}
int cudnnBackendDestroyDescriptor(void* object) { return destroy(object); }
int cudnnBackendFinalize(void* object) {
  at(object).finalized = true;
  if (at(object).kind == kConvolutionForward && at(object).factors != std::vector<float>{1, 0}) return kNotSupported;
  if (at(object).kind == kConvolution && told(object, 104) != told(object, 105)) return kNotSupported;
  if (at(object).kind != kPlan) return kSuccess;
  const auto engine = static_cast<std::size_t>(at(other(object, 401)).engine);
  return state.engines.at(engine).refuses == FakeCudnnState::Refuses::workspace_query ? kNotSupported : kSuccess;
}
int cudnnBackendSetAttribute(void* object, int attribute, int type, std::int64_t count, const void* values) {
  const auto number = static_cast<std::size_t>(count);
  if (at(object).finalized) return kExecutionFailed;
  switch (type) {
    case kInt64: {
      const auto* integers = static_cast<const std::int64_t*>(values);
      at(object).told[attribute] = {integers, integers + number};
      return kSuccess;
    }
    case kDataType:
    case kHeurMode:
    case kPointwiseMode:
    case kConvolutionMode:
      at(object).told[attribute] = {*static_cast<const int*>(values)};
      return kSuccess;
    case kBoolean:
      at(object).told[attribute] = {*static_cast<const bool*>(values) ? 1 : 0};
      return kSuccess;
    case kFloatType:
      at(object).factors.push_back(*static_cast<const float*>(values));
      return kSuccess;
    default: {
      auto* const* objects = static_cast<void* const*>(values);
      // Engines are told of by whoever proposes them, which has to have been finalized.
      const bool is_node = type == kNode && at(object).kind != kPlan;
      if (is_node && std::any_of(objects, objects + number, [](void* node) { return !at(node).finalized; })) {
        return kExecutionFailed;
      }
      at(object).objects[attribute] = {objects, objects + number};
      return kSuccess;
    }
  }
}
int cudnnBackendGetAttribute(void* object, int attribute, int, std::int64_t most, std::int64_t* count, void* values) {
  constexpr int kResults = 202;
  if (attribute != kResults) {
    const auto engine = static_cast<std::size_t>(at(other(object, 401)).engine);
    *static_cast<std::int64_t*>(values) = static_cast<std::int64_t>(state.engines.at(engine).workspace_bytes);
    *count = 1;
    return kSuccess;
  }
  *count = static_cast<std::int64_t>(state.engines.size());
  for (int i = 0; i < std::min(most, *count); ++i) {
    Object& choice = at(static_cast<void**>(values)[i]);
    if (choice.kind != kEngineChoice) return kExecutionFailed;
    choice.engine = i;
    choice.objects[201] = at(object).objects.at(201);
  }
  return kSuccess;
}
int cudnnBackendExecute(void* handle, void* plan, void* pack) {
  void* choice = other(plan, 401);
  const int number = at(choice).engine;
  const FakeCudnnState::Algorithm& wanted = state.engines.at(static_cast<std::size_t>(number));
  CUstream_st& stream = *at(handle).stream;
  if (wanted.refuses == FakeCudnnState::Refuses::forward) return kNotSupported;
  if (wanted.refuses == FakeCudnnState::Refuses::capture && stream.capturing) return kExecutionFailed;
  FusedGraph fused = fused_graph(other(choice, 201));
  std::map<std::int64_t, void*> places;
  for (std::size_t i = 0; i < told(pack, 1000).size(); ++i) {
    places[told(pack, 1000)[i]] = at(pack).objects.at(1001).at(i);
  }
  // All that is memory has a place, and nothing else.
  for (void* operation : at(other(choice, 201)).objects.at(801)) {
    for (const int attribute : {703, 704, 705, 751, 752, 753}) {
      const auto found = at(operation).objects.find(attribute);
      if (found == at(operation).objects.end()) continue;
      void* tensor = found->second.at(0);
      if (at(tensor).told.contains(907) == places.contains(told(tensor, 906).at(0))) return kExecutionFailed;
    }
  }
  constexpr std::int64_t kInput = 1, kWeights = 2, kOutput = 5;
  state.too_small_workspace |= wanted.workspace_bytes > 0 && other(pack, 1003) == nullptr;
  state.engine_runs.push_back(number);
  state.input_dims = fused.input.dims;
  state.filter_dims = fused.filter.dims;
  Call call{.handle = handle,
            .input = &fused.input,
            .filter = &fused.filter,
            .convolution = &fused.convolution,
            .output = &fused.output,
            .x = places.at(kInput),
            .weights = places.at(kWeights),
            .y = places.at(kOutput)};
  if (fused.bias_id != 0) call.bias = places.at(fused.bias_id);
  if (fused.residual_id != 0) {
    call.residual = &fused.residual;
    call.z = places.at(fused.residual_id);
    call.residual_factor = 1;
  }
  if (fused.activation.math == kRelu) call.activation = &fused.activation;
  const std::function<void()> work = state.computes ? arithmetic_of(call) : [] {};
  burin_test::enqueue_call(stream, wanted.launches, work);
  return kSuccess;
}
int cudnnCreateFilterDescriptor(void** object) { return create(object); }
int cudnnDestroyFilterDescriptor(void* object) { return destroy(object); }
int cudnnSetFilter4dDescriptor(void* object, int type, int layout, int k, int c, int h, int w) {
  at(object).layout = layout;
  at(object).type = type;
  at(object).dims = {k, c, h, w};
  at(object).strides = dense(layout, c, h, w);
  return kSuccess;
}
int cudnnCreateConvolutionDescriptor(void** object) { return create(object); }
int cudnnDestroyConvolutionDescriptor(void* object) { return destroy(object); }
int cudnnSetConvolution2dDescriptor(void* object, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,
                                    int dilation_w, int, int type) {
  at(object).type = type;
  at(object).geometry = {pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w};
  return kSuccess;
}
int cudnnSetConvolutionGroupCount(void* object, int groups) {
  at(object).groups = groups;
  return kSuccess;
}
int cudnnSetConvolutionMathType(void* object, int math) {
  at(object).math = math;
  return kSuccess;
}
int cudnnGetConvolutionForwardWorkspaceSize(void*, void* input, void* filter, void* convolution, void* output,
                                            int algorithm, std::size_t* bytes) {
  const int mode = mode_of(input, filter, convolution, output);
  if (mode == kNoMode) {
    ++state.other_modes;
    return kNotSupported;
  }
  const FakeCudnnState::Algorithm& wanted = algorithm_of(mode, input, algorithm);
  if (wanted.refuses == FakeCudnnState::Refuses::workspace_query) return kNotSupported;
  *bytes = wanted.workspace_bytes;
  return kSuccess;
}
int cudnnConvolutionForward(void* handle, const void*, void* input, const void* x, void* filter, const void* weights,
                            void* convolution, int algorithm, void* workspace, std::size_t workspace_bytes, const void*,
                            void* output, void* y) {
  return run({.handle = handle,
              .input = input,
              .filter = filter,
              .convolution = convolution,
              .output = output,
              .x = x,
              .weights = weights,
              .y = y,
              .algorithm = algorithm},
             workspace, workspace_bytes);
}
int cudnnCreateActivationDescriptor(void** object) { return create(object); }
int cudnnDestroyActivationDescriptor(void* object) { return destroy(object); }
int cudnnSetActivationDescriptor(void* object, int mode, int, double) {
  at(object).math = mode;
  return kSuccess;
}
int cudnnConvolutionBiasActivationForward(void* handle, const void*, void* input, const void* x, void* filter,
                                          const void* weights, void* convolution, int algorithm, void* workspace,
                                          std::size_t workspace_bytes, const void* factor, void* residual,
                                          const void* z, void*, const void* bias, void* activation, void* output,
                                          void* y) {
  // As the real one: without an activation it has one algorithm.
  if (at(activation).math == kIdentity && algorithm != kPrecomputed) return kNotSupported;
  if (z == nullptr || bias == nullptr) return kExecutionFailed;
  const int status = run({.handle = handle,
                          .input = input,
                          .filter = filter,
                          .convolution = convolution,
                          .output = output,
                          .x = x,
                          .weights = weights,
                          .y = y,
                          .bias = bias,
                          .residual = residual,
                          .activation = activation,
                          .z = z,
                          .residual_factor = *static_cast<const float*>(factor),
                          .algorithm = algorithm},
                         workspace, workspace_bytes);
  if (status == kSuccess) ++state.fused_runs;
  return status;
}
#endif
}
