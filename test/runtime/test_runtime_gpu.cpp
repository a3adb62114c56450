// The runtime on a real device, with a kernel that is written by hand.
#include <thread>

#include "ir/package/package.h"
#include "runtime/bench/measure.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/runtime.hpp"
#include "test/catch.h"
#include "test/runtime/double_kernel.h"
#include "test/skip.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

std::shared_ptr<const Package> double_package(const std::string& ptx = double_ptx()) {
  auto package = std::make_shared<Package>();
  package->manifest.tool_version = "0.1.0";
  package->manifest.source = "by hand";
  add_double_kernel(*package, "sm_75", ptx);
  return package;
}

bool is_double(const std::vector<float>& output, const std::vector<float>& input) {
  if (output.size() != input.size()) return false;
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (output[i] != 2 * input[i]) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("gpu: launches of several batch sizes with one workspace") {
  if (const std::string reason = missing_device(); !reason.empty()) BURIN_SKIP(reason);
  const Device device = Device::open(0);
  const LoadedPackage package(device, double_package(), "double");
  const LoadedKernel kernel = package.kernel("double", 1);
  CHECK(kernel.loaded_from() == LoadedFrom::jit);
  const Workspace workspace(device, kernel.workspace_size(300));
  const Stream stream(device);
  for (const int batch : {1, 300, 7, 256, 1, 300}) {
    const std::vector<float> values = ramp(batch, static_cast<float>(batch));
    const DeviceBuffer input(device, std::span<const float>(values));
    DeviceBuffer output(device, input.bytes());
    output.fill(0xff);
    kernel.launch(stream, {input.data(), output.data(), nullptr, batch}, workspace);
    stream.synchronize();
    CHECK(is_double(output.to_vector<float>(), values));
  }
}

TEST_CASE("gpu: a graph replays launches") {
  if (const std::string reason = missing_device(); !reason.empty()) BURIN_SKIP(reason);
  constexpr int kBatch = 16;
  const Device device = Device::open(0);
  const LoadedKernel kernel = LoadedPackage(device, double_package(), "double").kernel("double", kBatch);
  const Workspace workspace(device, kernel.workspace_size(kBatch));
  const Stream stream(device);
  const std::vector<float> values = ramp(kBatch, 1);
  DeviceBuffer input(device, std::span<const float>(values));
  DeviceBuffer output(device, input.bytes());
  const LaunchIo io{input.data(), output.data(), nullptr, kBatch};
  const Graph graph = Graph::capture(stream, [&](CUstream_st* target) { kernel.launch(target, io, workspace); });
  for (const float start : {3.0F, 4.0F}) {
    const std::vector<float> next = ramp(kBatch, start);
    input.upload(next.data(), input.bytes());
    output.fill(0xff);
    graph.launch(stream);
    stream.synchronize();
    CHECK(is_double(output.to_vector<float>(), next));
  }
  const auto enqueue = [&](CUstream_st* target, int) { kernel.launch(target, io, workspace); };
  const Measurement measured = measure(device, stream, enqueue);
  std::printf("graph replay: %.2f us per launch (p10 %.2f, p90 %.2f, %d per graph)\n", measured.median_us,
              measured.p10_us, measured.p90_us, measured.launches_per_graph);
  CHECK(measured.min_us > 0);
}

TEST_CASE("gpu: threads with their own streams and workspaces") {
  if (const std::string reason = missing_device(); !reason.empty()) BURIN_SKIP(reason);
  constexpr int kThreads = 4, kRounds = 50, kBatch = 64;
  const Device device = Device::open(0);
  const LoadedPackage package(device, double_package(), "double");
  std::array<int, kThreads> wrong{};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const LoadedKernel kernel = package.kernel("double", kBatch);
      const Workspace workspace(device, kernel.workspace_size(kBatch));
      const Stream stream(device);
      const std::vector<float> values = ramp(kBatch, static_cast<float>(t));
      const DeviceBuffer input(device, std::span<const float>(values));
      DeviceBuffer output(device, input.bytes());
      for (int round = 0; round < kRounds; ++round) {
        output.fill(0xff);
        kernel.launch(stream, {input.data(), output.data(), nullptr, kBatch}, workspace);
        stream.synchronize();
        if (!is_double(output.to_vector<float>(), values)) ++wrong[static_cast<std::size_t>(t)];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::array<int, kThreads>{});
}

TEST_CASE("gpu: PTX that does not compile gives the compiler's log") {
  if (const std::string reason = missing_device(); !reason.empty()) BURIN_SKIP(reason);
  std::string ptx = double_ptx();
  ptx.replace(ptx.find("bar.sync"), 8, "no.such ");
  const LoadedPackage package(Device::open(0), double_package(ptx), "double");
  const Thrown error = BURIN_THROWN(device, package.kernel("double", 1));
  CHECK(error.has("cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX"));
  CHECK(error.has("the driver's log:"));
}
