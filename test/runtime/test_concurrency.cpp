// Several threads at once. Meant for ThreadSanitizer too: the fake driver takes no lock in a launch that could hide a
// race of ours.
#include <thread>

#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/network.hpp"
#include "runtime/burin/runtime.hpp"
#include "test/catch.h"
#include "test/package/sample_network.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/sample_package.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr int kThreads = 8;

template <typename Body>
void in_threads(Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("concurrency: launches_of_one_kernel_with_own_workspaces") {
  constexpr int kLaunchesPerThread = 500;
  FakeDriver fake;
  {
    const Device device = Device::open(0);
    const LoadedPackage package(device, sample_package(), "sample");
    const LoadedKernel kernel = package.kernel("conv1", 1);
    std::vector<Workspace> workspaces;
    for (int i = 0; i < kThreads; ++i) workspaces.emplace_back(device, kernel.workspace_size(kThreads));
    std::array<float, kThreads> inputs{}, outputs{};
    in_threads([&](int i) {
      const Stream stream(device);
      for (int n = 0; n < kLaunchesPerThread; ++n) {
        kernel.launch(stream, {&inputs[i], &outputs[i], nullptr, i + 1}, workspaces[i]);
      }
      stream.synchronize();
    });
    const std::vector<FakeLaunch> launches = fake.launches();
    CHECK(launches.size() == kThreads * kLaunchesPerThread);
    int mixed = 0;
    for (const FakeLaunch& launch : launches) {
      const auto i = static_cast<std::size_t>(launch.batch - 1);
      const WorkspaceView view = workspaces[i].view();
      if (launch.input != &inputs[i] || launch.output != &outputs[i] || launch.counters != view.counters ||
          launch.partials != view.partials || launch.geometry[0] != 4U * (i + 1)) {
        ++mixed;
      }
    }
    CHECK(mixed == 0);
  }
  CHECK(fake.live().empty());
}

TEST_CASE("concurrency: a_kernel_that_all_ask_for_at_once is loaded once") {
  FakeDriver fake;
  {
    const LoadedPackage package(Device::open(0), sample_package(), "sample");
    in_threads([&](int i) {
      package.kernel("conv1", 1);
      package.kernel("conv1", 1 + 8 * (i % 2));
    });
    CHECK(fake.calls_of("cuModuleLoadDataEx") == 2);
  }
  CHECK(fake.live().empty());
}

TEST_CASE("concurrency: opening_and_closing_devices") {
  FakeDriver fake;
  fake.devices.resize(2);
  in_threads([&](int i) {
    const Device device = Device::open(i % 2);
    const LoadedPackage package(device, sample_package(), "sample", {.eager = true});
    const DeviceBuffer buffer(device, 64);
  });
  CHECK(fake.live().empty());
}

TEST_CASE("concurrency: runs of one network share code and weights, and no other memory") {
  FakeDriver fake;
  {
    const Device device = Device::open(0);
    const LoadedNetwork network(LoadedPackage(device, std::make_shared<burin::Package>(network_package()), "sample"));
    in_threads([&](int i) {
      const int batch = i + 1;
      const auto memory = [&](int words) { return DeviceBuffer(device, static_cast<std::size_t>(batch * words * 4)); };
      const DeviceBuffer image = memory(kSampleImageWords), shift = memory(kSampleFeatures);
      const DeviceBuffer scores = memory(kSampleFeatures), features = memory(kSampleTensorWords);
      const NetworkRun run = network.bind({{image.data(), shift.data()}, {scores.data(), features.data()}, batch});
      const Stream stream(device);
      for (int n = 0; n < 100; ++n) run.launch(stream);
      for (int step = 0; step < run.steps(); ++step) run.launch_step(step, stream);
      stream.synchronize();
    });
    CHECK(fake.calls_of("cuModuleLoadDataEx") == 9);
    CHECK(fake.calls_of("cuGraphLaunch") == 100 * kThreads);
    const std::vector<FakeGraph> graphs = fake.graphs();
    REQUIRE(graphs.size() == kThreads);
    for (const FakeGraph& graph : graphs) CHECK(graph.nodes[kFc].weights == graphs[0].nodes[kFc].weights);
  }
  CHECK(fake.live().empty());
}

TEST_CASE("concurrency: two runs at once have arenas and counters of their own") {
  FakeDriver fake;
  const Device device = Device::open(0);
  const LoadedNetwork network(LoadedPackage(device, std::make_shared<burin::Package>(network_package()), "sample"));
  const DeviceBuffer image(device, 8 * kSampleImageWords * 4), shift(device, 8 * kSampleFeatures * 4);
  const DeviceBuffer scores(device, 8 * kSampleFeatures * 4), features(device, 8 * kSampleTensorWords * 4);
  const NetworkIo io{{image.data(), shift.data()}, {scores.data(), features.data()}, 8};
  const NetworkRun first = network.bind(io), second = network.bind(io);
  const FakeGraph a = fake.graphs()[0], b = fake.graphs()[1];
  for (const int step : {kConv1, kLeft, kRight}) {
    const auto i = static_cast<std::size_t>(step);
    CHECK(a.nodes[i].function == b.nodes[i].function);
    CHECK(a.nodes[i].output != b.nodes[i].output);
    CHECK(a.nodes[i].partials != b.nodes[i].partials);
    CHECK(a.nodes[i].counters != b.nodes[i].counters);
  }
}
