// Each driver call of a whole session fails in turn: the error names the call, and everything taken is given back.

#include "runtime/bench/measure.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/network.hpp"
#include "runtime/burin/runtime.h"
#include "runtime/burin/runtime.hpp"
#include "test/catch.h"
#include "test/package/sample_network.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/sample_package.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

// Everything the C++ API does with a driver.
void whole_session(const SampleCode& code) {
  const Device device = Device::open(0);
  const auto described =
      sample_package(code, [](std::vector<Kernel>& kernels) { kernels.push_back(sample_box_kernel("conv3")); });
  const LoadedPackage package(device, described, "sample", {.eager = true});
  const LoadedKernel kernel = package.kernel("conv1", 8);
  const Workspace workspace(device, kernel.workspace_size(8));
  const std::vector<float> values(16, 1.0F);
  DeviceBuffer input(device, std::span<const float>(values));
  DeviceBuffer output(device, 64);
  output.fill(0xff);
  const Stream stream(device);
  const LaunchIo io{input.data(), output.data(), nullptr, 8};
  kernel.launch(stream, io, workspace);
  package.kernel("conv3", 4).launch(stream, io);
  stream.synchronize();
  const Graph graph = Graph::capture(stream, [&](CUstream_st* target) { kernel.launch(target, io, workspace); });
  graph.launch(stream);
  device.synchronize();
  const auto enqueue = [&](CUstream_st* target, int) { kernel.launch(target, io, workspace); };
  measure(device, stream, enqueue, {.launches_per_graph = 2, .samples = 2, .warmup = 1});
  output.to_vector<float>();
}

// The same of a network.
void network_session() {
  const Device device = Device::open(0);
  const LoadedPackage package(device, std::make_shared<Package>(network_package()), "sample");
  const LoadedNetwork network(package);
  const DeviceBuffer image(device, 10 * kSampleImageWords * 4), shift(device, 10 * kSampleFeatures * 4);
  const DeviceBuffer scores(device, 10 * kSampleFeatures * 4), features(device, 10 * kSampleTensorWords * 4);
  const NetworkIo io{{image.data(), shift.data()}, {scores.data(), features.data()}, 10};
  const Stream stream(device);
  for (const bool programmatic : {false, true}) {
    const NetworkRun run = network.bind(io, {.programmatic = programmatic});
    run.launch(stream);
    run.launch_step(0, stream);
  }
  stream.synchronize();
}

// Runs `session` with its first, second, ... call failing until it has no more calls; returns how many it has.
template <typename Session>
int fail_each_call(Session session) {
  for (int n = 1;; ++n) {
    FakeDriver fake;
    fake.fail_at = n;
    const std::optional<Thrown> thrown = thrown_by(session);
    const std::string& call = fake.failed_call();
    INFO("call " << n << ", " << call << ": " << (thrown ? thrown->text : "no error"));
    CHECK(fake.live() == std::vector<std::string>{});
    if (call.empty()) {
      CHECK_FALSE(thrown);
      return n - 1;
    }
    if (thrown) {
      CHECK(thrown->kind == ErrorKind::device);
      CHECK(thrown->has(call + " failed: CUDA_ERROR_OUT_OF_MEMORY (2)"));
    } else {
      // Only what gives back fails silently: that call itself, or making its context current.
      const bool before_release = call == "cuCtxPushCurrent" && FakeDriver::is_release(fake.call_after_failure());
      CHECK((FakeDriver::is_release(call) || before_release));
    }
  }
}

}  // namespace

TEST_CASE("failures: each_call_in_turn, cubin") {
  const int calls = fail_each_call([] { whole_session({{"sm_90"}, {}}); });
  CHECK(calls > 150);
}

TEST_CASE("failures: each_call_in_turn, jit") {
  const int calls = fail_each_call([] { whole_session({{}, {"sm_75"}}); });
  CHECK(calls > 150);
}

TEST_CASE("failures: each_call_in_turn, network") {
  const int calls = fail_each_call(network_session);
  CHECK(calls > 150);
}

TEST_CASE("failures: nothing_is_left_behind_by_success") {
  FakeDriver fake;
  whole_session({});
  CHECK(fake.live() == std::vector<std::string>{});
  CHECK(fake.calls_of("cuModuleLoadDataEx") == fake.calls_of("cuModuleUnload"));
  CHECK(fake.calls_of("cuMemAlloc") == fake.calls_of("cuMemFree"));
  CHECK(fake.calls_of("cuEventCreate") == fake.calls_of("cuEventDestroy"));
  network_session();
  CHECK(fake.live() == std::vector<std::string>{});
}
