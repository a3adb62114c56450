#include "runtime/bench/cudnn_baseline.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <vector>

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

CudnnBaseline measure(const burin::LibraryTask& task, int batch = 2, std::span<const CudnnMode> modes = kFloatModes) {
  const Device device = Device::open(0);
  const Stream stream(device);
  Cudnn cudnn(device, {BURIN_FAKE_CUDNN});
  return cudnn.measure(task, batch, modes, stream, few_samples());
}

constexpr std::array kFp32Alone = {CudnnMode::fp32};

// A convolution that ends with bias, ReLU and the largest of 2x2 values.
ConvShape pooled_shape() {
  ConvShape shape = small_shape();
  shape.epilogue.bias = true;
  shape.epilogue.function = burin::Elementwise{burin::ElementFunction::relu};
  shape.epilogue.pool = burin::Pool{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  return shape;
}

burin::PooledImage small_pool() {
  return {4, 8, 9, {.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 1, .pad = {1, 1, 0, 0}}};
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

TEST_CASE("cudnn: a convolution that pools is measured with bias, relu and pool, in one graph") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  state.algorithms[kNchw][kFp32][6].launches = 7;
  state.pool.does.launches = 3;
  const CudnnBaseline baseline = measure(pooled_shape(), 2, kFp32Alone);
  CHECK(baseline.calls == "conv+bias+relu, max pool");
  CHECK(baseline.note == "");
  REQUIRE(baseline[CudnnMode::fp32]);
  CHECK(baseline[CudnnMode::fp32]->algorithm == "WINOGRAD");
  CHECK(baseline[CudnnMode::fp32]->graph_replay);
  CHECK(baseline[CudnnMode::fp32]->median_us == Approx((7 + 3) * kMicrosecondsPerLaunch));
  CHECK(state.fused_runs > 0);
  CHECK(state.fused_runs == std::accumulate(state.runs.begin(), state.runs.end(), 0));
  CHECK(state.pool.runs == state.fused_runs);
  CHECK(state.pool.settings == std::vector<int>{0, 1, 2, 2, 0, 0, 2, 2});
  CHECK(state.pool.input == std::vector<int>{2, 6, 8, 9});
  CHECK(state.pool.output == std::vector<int>{2, 6, 4, 4});
  CHECK(state.live_objects == 0);
}

TEST_CASE("cudnn: a convolution that pools halves, with a residual") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  ConvShape shape = pooled_shape();
  shape.epilogue.residual = true;
  constexpr std::array kHalf = {CudnnMode::fp16};
  const CudnnBaseline baseline = measure(shape, 2, kHalf);
  CHECK(baseline.calls == "conv+bias+residual+relu, max pool");
  REQUIRE(baseline[CudnnMode::fp16]);
  CHECK(state.pool.type == 2);
  CHECK(state.other_modes == 0);
}

TEST_CASE("cudnn: what ends in a pool and in nothing else needs no call that fuses") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  ConvShape shape = small_shape();
  shape.epilogue.pool = burin::Pool{
      .kind = burin::PoolKind::average, .kernel_h = 2, .kernel_w = 2, .pad = {1, 1, 1, 1}, .count_padding = true};
  const CudnnBaseline baseline = measure(shape, 2, kFp32Alone);
  CHECK(baseline.calls == "conv, average pool with padding");
  REQUIRE(baseline[CudnnMode::fp32]);
  CHECK(state.fused_runs == 0);
  CHECK(state.pool.settings == std::vector<int>{1, 1, 2, 2, 1, 1, 1, 1});
}

TEST_CASE("cudnn: what its call that fuses does not do is said") {
  FakeDriver driver;
  fresh_state();
  ConvShape shape = pooled_shape();
  shape.epilogue.function = burin::Elementwise{burin::ElementFunction::silu};
  const CudnnBaseline baseline = measure(shape, 2, kFp32Alone);
  CHECK(baseline.calls == "conv+bias, max pool");
  CHECK_THAT(baseline.note, Contains("has no silu"));
  REQUIRE(baseline[CudnnMode::fp32]);
  CHECK(baseline[CudnnMode::fp32]->algorithm == "IMPLICIT_PRECOMP_GEMM");  // the only one without an activation
}

TEST_CASE("cudnn: a pool that filters stays out of its time") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  ConvShape shape = pooled_shape();
  shape.epilogue.pool->kind = burin::PoolKind::filter;
  const CudnnBaseline baseline = measure(shape, 2, kFp32Alone);
  CHECK(baseline.calls == "conv");
  CHECK_THAT(baseline.note, Contains("depthwise"));
  CHECK(state.pool.runs == 0);
  CHECK(state.fused_runs == 0);
}

TEST_CASE("cudnn: pools of all kinds") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  state.pool.does.launches = 4;
  burin::PooledImage pooled = small_pool();
  const CudnnBaseline largest = measure(pooled, 3, kFp32Alone);
  CHECK(largest.calls == "max pool");
  REQUIRE(largest[CudnnMode::fp32]);
  CHECK(largest[CudnnMode::fp32]->median_us == Approx(4 * kMicrosecondsPerLaunch));
  CHECK(largest[CudnnMode::fp32]->algorithm == "POOLING");
  CHECK(largest[CudnnMode::fp32]->graph_replay);
  CHECK(state.pool.settings == std::vector<int>{0, 1, 3, 2, 1, 0, 2, 1});
  CHECK(state.pool.input == std::vector<int>{3, 4, 8, 9});
  CHECK(state.pool.output == std::vector<int>{3, 4, 4, 8});
  pooled.pool.kind = burin::PoolKind::average;
  CHECK(measure(pooled, 3, kFp32Alone).calls == "average pool");
  CHECK(state.pool.settings.front() == 2);
  pooled.pool.count_padding = true;
  CHECK(measure(pooled, 3, kFp32Alone).calls == "average pool with padding");
  CHECK(state.pool.settings.front() == 1);
  constexpr std::array kBfloat = {CudnnMode::bf16};
  pooled = {4, 8, 9, {.kind = burin::PoolKind::average, .kernel_h = 8, .kernel_w = 9}};
  const CudnnBaseline global = measure(pooled, 3, kBfloat);
  CHECK(global.calls == "global average");
  CHECK(global[CudnnMode::bf16]);
  CHECK(state.pool.type == 9);
  CHECK(state.pool.output == std::vector<int>{3, 4, 1, 1});
  CHECK(state.live_objects == 0);
}

TEST_CASE("cudnn: the output of a pool that is rounded up has the windows that it has") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  const burin::PooledImage pooled{
      4, 8, 8, {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .round_up = true}};
  CHECK(measure(pooled, 1, kFp32Alone)[CudnnMode::fp32]);
  CHECK(state.pool.output == std::vector<int>{1, 4, 4, 4});
}

TEST_CASE("cudnn: pools that it cannot pad, or has none for") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  burin::PooledImage pooled = small_pool();
  pooled.pool.pad = {0, 1, 0, 0};
  const CudnnBaseline padded = measure(pooled, 1, kFp32Alone);
  CHECK(padded[CudnnMode::fp32]);
  CHECK_THAT(padded.note, Contains("padded beforehand"));
  CHECK(state.pool.input == std::vector<int>{1, 4, 9, 9});
  const int runs = state.pool.runs;
  pooled = small_pool();
  pooled.pool.dilation_h = 2;
  const CudnnBaseline dilated = measure(pooled, 1, kFp32Alone);
  CHECK_FALSE(dilated[CudnnMode::fp32]);
  CHECK_THAT(dilated.note, Contains("no pool with dilation"));
  CHECK(state.pool.runs == runs);
}

TEST_CASE("cudnn: softmax of an image, and of the channels of each pixel") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  state.softmax.does.launches = 2;
  const CudnnBaseline flat = measure(burin::SoftmaxImage{1000, 1}, 5, kFp32Alone);
  CHECK(flat.calls == "softmax");
  REQUIRE(flat[CudnnMode::fp32]);
  CHECK(flat[CudnnMode::fp32]->median_us == Approx(2 * kMicrosecondsPerLaunch));
  CHECK(state.softmax.settings == std::vector<int>{1, 0});
  CHECK(state.softmax.input == std::vector<int>{5, 1000, 1, 1});
  const CudnnBaseline channels = measure(burin::SoftmaxImage{21, 4096}, 2, kFp32Alone);
  CHECK(channels.calls == "softmax of channels");
  CHECK(state.softmax.settings == std::vector<int>{1, 1});
  CHECK(state.softmax.output == std::vector<int>{2, 21, 4096, 1});
}

TEST_CASE("cudnn: values that are moved have the steps that they have") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  state.transform.does.launches = 6;
  const burin::MovedTensor moved{{{64, 49, 1}, {49, 1, 64}}};
  constexpr std::array kHalf = {CudnnMode::fp16};
  const CudnnBaseline baseline = measure(moved, 2, kHalf);
  CHECK(baseline.calls == "transform");
  REQUIRE(baseline[CudnnMode::fp16]);
  CHECK(baseline[CudnnMode::fp16]->layout == "STRIDED");
  CHECK(baseline[CudnnMode::fp16]->median_us == Approx(6 * kMicrosecondsPerLaunch));
  CHECK(state.transform.type == 2);
  CHECK(state.transform.input == std::vector<int>{1, 1, 64, 49});
  CHECK(state.transform.output == std::vector<int>{1, 1, 64, 49});
  CHECK(state.transform.input_strides == std::vector<int>{3136, 3136, 49, 1});
  CHECK(state.transform.output_strides == std::vector<int>{64, 64, 1, 64});
}

TEST_CASE("cudnn: more axes than it has, and what it refuses, are noted") {
  FakeDriver driver;
  FakeCudnnState& state = fresh_state();
  burin::MovedTensor moved;
  for (int i = 0; i < 9; ++i) moved.axes.push_back({2, 1 << i, 1 << (8 - i)});
  const CudnnBaseline many = measure(moved, 1, kFp32Alone);
  CHECK_FALSE(many[CudnnMode::fp32]);
  CHECK_THAT(many.note, Contains("at most 8 axes"));
  state.softmax.does.refuses = Refuses::forward;
  const CudnnBaseline refused = measure(burin::SoftmaxImage{10, 1}, 1, kFp32Alone);
  CHECK_FALSE(refused[CudnnMode::fp32]);
  CHECK_THAT(refused.note, Contains("NHWC SOFTMAX: CUDNN_STATUS_NOT_SUPPORTED"));
  state.pool.does.refuses = Refuses::capture;
  const CudnnBaseline in_a_row = measure(small_pool(), 1, kFp32Alone);
  REQUIRE(in_a_row[CudnnMode::fp32]);
  CHECK_FALSE(in_a_row[CudnnMode::fp32]->graph_replay);
  CHECK(state.live_objects == 0);
}
