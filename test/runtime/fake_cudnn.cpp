#include "test/runtime/fake_cudnn.h"

#include "test/runtime/fake_driver.h"

using burin_test::FakeCudnnState;

namespace {

struct Object {
  std::array<int, 4> dims{};
  int layout = 0, type = 0;
  std::array<int, 6> geometry{};
  int groups = 1, math = 0;
  CUstream_st* stream = nullptr;
};

FakeCudnnState state;

#ifndef FAKE_CUDNN_INCOMPLETE
constexpr int kSuccess = 0, kNotSupported = 3000, kExecutionFailed = 5000;
constexpr int kDefaultMath = 0, kTensorOpMath = 1, kFmaMath = 3;
constexpr int kFloat = 0, kHalf = 2, kBfloat16 = 9;
constexpr int kNoMode = -1;

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
  return kSuccess;
}
int cudnnCreateFilterDescriptor(void** object) { return create(object); }
int cudnnDestroyFilterDescriptor(void* object) { return destroy(object); }
int cudnnSetFilter4dDescriptor(void* object, int type, int layout, int k, int c, int h, int w) {
  at(object).layout = layout;
  at(object).type = type;
  at(object).dims = {k, c, h, w};
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
int cudnnConvolutionForward(void* handle, const void*, void* input, const void* x, void* filter, const void*,
                            void* convolution, int algorithm, void* workspace, std::size_t workspace_bytes, const void*,
                            void* output, void*) {
  const int mode = mode_of(input, filter, convolution, output);
  if (mode == kNoMode) {
    ++state.other_modes;
    return kNotSupported;
  }
  const FakeCudnnState::Algorithm& wanted = algorithm_of(mode, input, algorithm);
  CUstream_st& stream = *at(handle).stream;
  if (wanted.refuses == FakeCudnnState::Refuses::forward) return kNotSupported;
  if (wanted.refuses == FakeCudnnState::Refuses::capture && stream.capturing) return kExecutionFailed;
  if (workspace_bytes < wanted.workspace_bytes || (wanted.workspace_bytes > 0 && workspace == nullptr)) {
    state.too_small_workspace = true;
  }
  ++state.runs.at(static_cast<std::size_t>(algorithm));
  state.inputs.insert(x);
  state.input_dims = at(input).dims;
  state.filter_dims = at(filter).dims;
  state.output_dims = at(output).dims;
  state.geometry = at(convolution).geometry;
  state.groups = at(convolution).groups;
  if (stream.capturing) {
    stream.captured_launches += wanted.launches;
  } else {
    constexpr double kMicrosecondsPerLaunch = 5;  // FakeDriver's
    stream.clock_us += kMicrosecondsPerLaunch * wanted.launches;
  }
  return kSuccess;
}
#endif
}
