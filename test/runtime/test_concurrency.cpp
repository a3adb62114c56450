// Several threads at once. Meant for ThreadSanitizer too: the fake driver takes no lock in a launch that could hide a
// race of ours.
#include <catch2/catch.hpp>
#include <thread>

#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/runtime.hpp"
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
    const Kernel kernel = package.kernel("conv1", 1);
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
