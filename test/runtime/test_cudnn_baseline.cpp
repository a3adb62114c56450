#include "runtime/bench/cudnn_baseline.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <optional>

#include "ir/error.h"
#include "test/catch.h"
#include "test/runtime/fake_cudnn.h"
#include "test/runtime/fake_driver.h"

using burin::ConvShape;
using burin::Cudnn;
using burin::CudnnBaseline;
using burin::CudnnMode;
using burin::Device;
using burin::Stream;
using burin_test::Contains;
using burin_test::FakeCudnnState;
using burin_test::FakeDriver;
using Refuses = FakeCudnnState::Refuses;

namespace {

constexpr double kMicrosecondsPerLaunch = 5;  // FakeDriver's
constexpr int kSlow = 50;
constexpr std::size_t kFp32 = 0, kTf32 = 1, kFp16 = 2, kBf16 = 3, kNchw = 0, kNhwc = 1;

// The fake library's state, as new; every algorithm is slow.
FakeCudnnState& fresh_state() {
  void* library = ::dlopen(BURIN_FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  auto* const get = reinterpret_cast<FakeCudnnState* (*)()>(::dlsym(library, "fake_cudnn_state"));
  REQUIRE(get != nullptr);
  FakeCudnnState& state = *get();
  const int live = state.live_objects;
  state = FakeCudnnState{};
  state.live_objects = live;
  for (auto& layout : state.algorithms) {
    for (auto& math : layout) {
      for (auto& algorithm : math) algorithm.launches = kSlow;
    }
  }
  return state;
}

ConvShape small_shape() {
  ConvShape shape;
  shape.in_channels = 4;
  shape.out_channels = 6;
  shape.kernel_h = 3;
  shape.kernel_w = 5;
  shape.in_h = 8;
  shape.in_w = 9;
  shape.pad = {.top = 1, .bottom = 1, .left = 2, .right = 2};
  return shape;
}

burin::MeasureOptions few_samples() {
  burin::MeasureOptions options;
  options.samples = 5;
  return options;
}

constexpr std::array kFloatModes = {CudnnMode::fp32, CudnnMode::tf32};

CudnnBaseline measure(const ConvShape& shape, int batch = 2, std::span<const CudnnMode> modes = kFloatModes) {
  const Device device = Device::open(0);
  const Stream stream(device);
  Cudnn cudnn(device, {BURIN_FAKE_CUDNN});
  return cudnn.measure(shape, batch, modes, stream, few_samples());
}

void refuse_all(FakeCudnnState& state, Refuses refusal) {
  for (auto& layout : state.algorithms) {
    for (auto& math : layout) {
      for (auto& algorithm : math) algorithm.refuses = refusal;
    }
  }
}

}  // namespace

TEST_CASE("cudnn: names and versions") {
  CHECK(burin::cudnn_algorithm_name(0) == "IMPLICIT_GEMM");
  CHECK(burin::cudnn_algorithm_name(1) == "IMPLICIT_PRECOMP_GEMM");
  CHECK(burin::cudnn_algorithm_name(5) == "FFT_TILING");
  CHECK(burin::cudnn_algorithm_name(7) == "WINOGRAD_NONFUSED");
  CHECK(burin::cudnn_algorithm_name(8) == "algorithm 8");
  CHECK(burin::cudnn_algorithm_name(-1) == "algorithm -1");
  CHECK(burin::to_string(burin::CudnnLayout::nhwc) == "NHWC");
  CHECK(burin::cudnn_version_text(91900) == "9.19.0");
  CHECK(burin::cudnn_version_text(90102) == "9.1.2");
  CHECK(burin::cudnn_version_text(8907) == "8.9.7");
}

TEST_CASE("cudnn: no library says what was tried and what helps") {
  CHECK_THROWS_WITH(burin::CudnnLibrary({"/nowhere/libcudnn.so.9"}),
                    Contains("/nowhere/libcudnn.so.9") && Contains("BURIN_CUDNN") && Contains("nvidia-cudnn"));
  CHECK_THROWS_WITH(burin::CudnnLibrary(std::vector<std::string>{}), Contains("no library to try"));
}

TEST_CASE("cudnn: a library that lacks functions is named with them") {
  CHECK_THROWS_WITH(burin::CudnnLibrary({BURIN_INCOMPLETE_CUDNN}), Contains("lacks cudnnGetErrorString, cudnnCreate") &&
                                                                       Contains("cudnnConvolutionForward") &&
                                                                       !Contains("cudnnGetVersion"));
}

TEST_CASE("cudnn: a library that serves is found after one that does not") {
  const burin::CudnnLibrary library({"/nowhere/libcudnn.so.9", BURIN_INCOMPLETE_CUDNN, BURIN_FAKE_CUDNN});
  CHECK(library.version() == "9.19.0");
  CHECK(library.path() == BURIN_FAKE_CUDNN);
}

TEST_CASE("cudnn: the fastest algorithm over both layouts, FP32 and TF32 apart") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  state.algorithms[kNhwc][kFp32][6].launches = 7;
  state.algorithms[kNchw][kFp32][1].launches = 9;
  state.algorithms[kNchw][kTf32][1].launches = 3;
  const CudnnBaseline baseline = measure(small_shape());
  REQUIRE(baseline[CudnnMode::fp32]);
  CHECK(baseline[CudnnMode::fp32]->algorithm == "WINOGRAD");
  CHECK(baseline[CudnnMode::fp32]->layout == "NHWC");
  CHECK(baseline[CudnnMode::fp32]->median_us == Approx(7 * kMicrosecondsPerLaunch));
  CHECK(baseline[CudnnMode::fp32]->p10_us <= baseline[CudnnMode::fp32]->median_us);
  CHECK(baseline[CudnnMode::fp32]->p90_us >= baseline[CudnnMode::fp32]->median_us);
  CHECK(baseline[CudnnMode::fp32]->graph_replay);
  REQUIRE(baseline[CudnnMode::tf32]);
  CHECK(baseline[CudnnMode::tf32]->algorithm == "IMPLICIT_PRECOMP_GEMM");
  CHECK(baseline[CudnnMode::tf32]->layout == "NCHW");
  CHECK(baseline[CudnnMode::tf32]->median_us == Approx(3 * kMicrosecondsPerLaunch));
  CHECK_FALSE(baseline[CudnnMode::fp16]);
  CHECK_FALSE(baseline[CudnnMode::bf16]);
  CHECK(baseline.note == "");
  CHECK(state.other_modes == 0);
}

TEST_CASE("cudnn: FP16 and BF16 tensors, summed in FP32 on tensor cores") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  state.algorithms[kNhwc][kFp16][1].launches = 2;
  state.algorithms[kNchw][kBf16][7].launches = 3;
  state.algorithms[kNchw][kTf32][0].launches = 4;
  constexpr std::array kModes = {CudnnMode::fp16, CudnnMode::bf16, CudnnMode::tf32};
  const CudnnBaseline baseline = measure(small_shape(), 2, kModes);
  REQUIRE(baseline[CudnnMode::fp16]);
  CHECK(baseline[CudnnMode::fp16]->algorithm == "IMPLICIT_PRECOMP_GEMM");
  CHECK(baseline[CudnnMode::fp16]->layout == "NHWC");
  CHECK(baseline[CudnnMode::fp16]->median_us == Approx(2 * kMicrosecondsPerLaunch));
  REQUIRE(baseline[CudnnMode::bf16]);
  CHECK(baseline[CudnnMode::bf16]->algorithm == "WINOGRAD_NONFUSED");
  CHECK(baseline[CudnnMode::bf16]->median_us == Approx(3 * kMicrosecondsPerLaunch));
  REQUIRE(baseline[CudnnMode::tf32]);
  CHECK(baseline[CudnnMode::tf32]->median_us == Approx(4 * kMicrosecondsPerLaunch));
  CHECK_FALSE(baseline[CudnnMode::fp32]);
  CHECK(baseline.note == "");
  CHECK(state.other_modes == 0);
  for (const CudnnMode mode : burin::kCudnnModes) CHECK(baseline[mode].has_value() == (mode != CudnnMode::fp32));
}

TEST_CASE("cudnn: tensors take their type's bytes") {
  FakeDriver driver;
  fresh_state();
  const std::size_t values = static_cast<std::size_t>(small_shape().input_elements()) * 2;
  const auto count = [&](std::size_t bytes) { return std::ranges::count(driver.allocations(), bytes); };
  constexpr std::array kHalf = {CudnnMode::fp16};
  measure(small_shape(), 2, kHalf);
  CHECK(count(values * 2) == burin::kCudnnInputBuffers);
  CHECK(count(values * 4) == 0);
  measure(small_shape(), 2);
  CHECK(count(values * 2) == burin::kCudnnInputBuffers);
  CHECK(count(values * 4) == burin::kCudnnInputBuffers);
}

TEST_CASE("cudnn: a half mode that no algorithm serves is named") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  for (auto& layout : state.algorithms) {
    for (auto& algorithm : layout[kBf16]) algorithm.refuses = Refuses::forward;
  }
  constexpr std::array kModes = {CudnnMode::bf16, CudnnMode::tf32};
  const CudnnBaseline baseline = measure(small_shape(), 1, kModes);
  CHECK_FALSE(baseline[CudnnMode::bf16]);
  CHECK(baseline[CudnnMode::tf32]);
  CHECK_THAT(baseline.note, Contains("serves this layer in BF16") && !Contains("TF32"));
}

TEST_CASE("cudnn: the layer is described as it is") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  ConvShape shape = small_shape();
  shape.groups = 2;
  shape.stride_h = 2;
  shape.dilation_w = 2;
  measure(shape, 3);
  CHECK(state.input_dims == std::array<int, 4>{3, 4, 8, 9});
  CHECK(state.filter_dims == std::array<int, 4>{6, 2, 3, 5});
  CHECK(state.output_dims == std::array<int, 4>{3, 6, shape.out_h(), shape.out_w()});
  CHECK(state.geometry == std::array<int, 6>{1, 2, 2, 1, 1, 2});
  CHECK(state.groups == 2);
  CHECK(state.inputs.size() == burin::kCudnnInputBuffers);
}

TEST_CASE("cudnn: different padding of the sides is done beforehand, and said") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  ConvShape shape = small_shape();
  shape.pad = {.top = 0, .bottom = 1, .left = 2, .right = 2};
  const CudnnBaseline baseline = measure(shape);
  CHECK(baseline[CudnnMode::fp32]);
  CHECK_THAT(baseline.note, Contains("padded beforehand"));
  CHECK(state.input_dims == std::array<int, 4>{2, 4, 9, 13});
  CHECK(state.output_dims == std::array<int, 4>{2, 6, shape.out_h(), shape.out_w()});
  CHECK(state.geometry[0] == 0);
  CHECK(state.geometry[1] == 0);
}

TEST_CASE("cudnn: algorithms that refuse are passed over, early or late") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  refuse_all(state, Refuses::workspace_query);
  state.algorithms[kNchw][kFp32][0] = {1, Refuses::forward, 0};
  state.algorithms[kNchw][kFp32][2] = {4, Refuses::nothing, 0};
  const CudnnBaseline baseline = measure(small_shape());
  REQUIRE(baseline[CudnnMode::fp32]);
  CHECK(baseline[CudnnMode::fp32]->algorithm == "GEMM");
  CHECK_FALSE(baseline[CudnnMode::tf32]);
  CHECK_THAT(baseline.note, Contains("no algorithm of cuDNN serves this layer in TF32") &&
                                Contains("NHWC WINOGRAD: CUDNN_STATUS_NOT_SUPPORTED"));
}

TEST_CASE("cudnn: too large a workspace is refused, others get what they ask for") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  state.algorithms[kNchw][kFp32][4] = {1, Refuses::nothing, std::size_t{64} << 30};
  state.algorithms[kNchw][kFp32][5] = {2, Refuses::nothing, 1 << 20};
  state.algorithms[kNhwc][kFp32][1] = {3, Refuses::nothing, 1 << 10};
  const CudnnBaseline baseline = measure(small_shape());
  REQUIRE(baseline[CudnnMode::fp32]);
  CHECK(baseline[CudnnMode::fp32]->algorithm == "FFT_TILING");
  CHECK_FALSE(state.too_small_workspace);
}

TEST_CASE("cudnn: what cannot be captured is timed in a row") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  state.algorithms[kNchw][kFp32][3] = {2, Refuses::capture, 0};
  const CudnnBaseline baseline = measure(small_shape());
  REQUIRE(baseline[CudnnMode::fp32]);
  CHECK(baseline[CudnnMode::fp32]->algorithm == "DIRECT");
  CHECK_FALSE(baseline[CudnnMode::fp32]->graph_replay);
  CHECK(baseline[CudnnMode::fp32]->median_us == Approx(2 * kMicrosecondsPerLaunch));
}

TEST_CASE("cudnn: what takes far longer than others is not measured to the end") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  for (auto& layout : state.algorithms) {
    for (auto& math : layout) math[4].launches = 100 * kSlow;
  }
  const CudnnBaseline baseline = measure(small_shape());
  CHECK(baseline[CudnnMode::fp32]);
  constexpr int kRunsBeforeItIsDropped = 2;
  CHECK(state.runs[4] == 4 * kRunsBeforeItIsDropped);
  CHECK(state.runs[3] > state.runs[4]);
}

TEST_CASE("cudnn: no TF32 and no BF16 before Ampere") {
  FakeDriver driver;
  driver.devices = {{.name = "Fake T4", .major = 7, .minor = 5, .shared_per_block = 65536}};
  fresh_state();
  const CudnnBaseline baseline = measure(small_shape(), 2, burin::kCudnnModes);
  CHECK(baseline[CudnnMode::fp32]);
  CHECK_FALSE(baseline[CudnnMode::tf32]);
  CHECK(baseline[CudnnMode::fp16]);
  CHECK_FALSE(baseline[CudnnMode::bf16]);
  CHECK_THAT(baseline.note, Contains("sm_75 has no TF32; sm_75 has no BF16"));
}

TEST_CASE("cudnn: everything is given back") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  measure(small_shape());
  CHECK(state.live_objects == 0);
  CHECK(driver.live().empty());
}

TEST_CASE("cudnn: each driver call failing in turn gives an error or a baseline, and everything is given back") {
  FakeCudnnState& state = fresh_state();
  refuse_all(state, Refuses::workspace_query);  // one candidate: fewer calls
  state.algorithms[kNchw][kFp32][0] = {4, Refuses::nothing, 512};
  int calls = 0;
  {
    FakeDriver driver;
    measure(small_shape());
    calls = driver.calls();
  }
  REQUIRE(calls > 100);
  int failed = 0;
  for (int number = 1; number <= calls; number += number < 200 ? 1 : 7) {
    FakeDriver driver;
    driver.fail_at = number;
    try {
      measure(small_shape());
    } catch (const burin::Error& error) {
      ++failed;
      REQUIRE(error.kind() == burin::ErrorKind::device);
    }
    INFO("call " << number << ", " << driver.failed_call());
    REQUIRE(state.live_objects == 0);
    REQUIRE(driver.live().empty());
  }
  CHECK(failed > 0);
}

TEST_CASE("cudnn: a handle that cannot be made names library and device") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  state.create_status = 5000;
  const Device device = Device::open(0);
  CHECK_THROWS_WITH(Cudnn(device, {BURIN_FAKE_CUDNN}), Contains("cudnnCreate failed: CUDNN_STATUS_EXECUTION_FAILED") &&
                                                           Contains("9.19.0") && Contains("Fake H200"));
}

TEST_CASE("cudnn: a batch of none") {
  FakeDriver driver;
  fresh_state();
  CHECK_THROWS_WITH(measure(small_shape(), 0), Contains("batch of 0"));
}
