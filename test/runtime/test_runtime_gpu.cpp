// The runtime on a real device, with a kernel written by hand that follows the launch contract of
// ir/package/manifest.h: two slices write partial sums, the last one to arrive adds them, counters are left zero.
#include <catch2/catch.hpp>
#include <thread>

#include "ir/error.h"
#include "ir/package/package.h"
#include "runtime/bench/measure.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/runtime.hpp"
#include "test/skip.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr int kHeight = 4, kWidth = 8;
constexpr int kPixels = kHeight * kWidth;
constexpr int kSlices = 2;
constexpr int kSharedBytes = 64 * 1024;  // more than a kernel gets without asking for it

// output = input + input, one block of 32 threads per image and slice.
constexpr const char* kDoublePtx = R"(.version 7.0
.target sm_75
.address_size 64
.extern .shared .align 4 .b8 scratch[];
.visible .entry double_b1(.param .u64 input, .param .u64 output, .param .u64 residual, .param .u64 partials,
                          .param .u64 counters, .param .u32 batch)
{
  .reg .pred %p<3>;
  .reg .b32 %r<16>;
  .reg .f32 %f<4>;
  .reg .b64 %a<16>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ctaid.y;
  ld.param.u64 %a1, [input];
  ld.param.u64 %a2, [output];
  ld.param.u64 %a3, [partials];
  ld.param.u64 %a4, [counters];
  mad.lo.u32 %r4, %r2, 32, %r1;
  mul.wide.u32 %a5, %r4, 4;
  add.u64 %a6, %a1, %a5;
  ld.global.f32 %f1, [%a6];
  mad.lo.u32 %r5, %r2, 2, %r3;
  mad.lo.u32 %r6, %r5, 32, %r1;
  mul.wide.u32 %a7, %r6, 4;
  add.u64 %a8, %a3, %a7;
  st.global.f32 [%a8], %f1;
  membar.gl;
  bar.sync 0;
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r9, scratch;
  @%p1 bra arrived;
  mul.wide.u32 %a9, %r2, 4;
  add.u64 %a10, %a4, %a9;
  atom.global.inc.u32 %r7, [%a10], 1;
  st.shared.u32 [%r9+65532], %r7;
arrived:
  bar.sync 0;
  ld.shared.u32 %r8, [%r9+65532];
  setp.ne.u32 %p2, %r8, 1;
  @%p2 bra done;
  membar.gl;
  mul.lo.u32 %r10, %r2, 64;
  add.u32 %r11, %r10, %r1;
  mul.wide.u32 %a11, %r11, 4;
  add.u64 %a12, %a3, %a11;
  ld.global.cg.f32 %f1, [%a12];
  ld.global.cg.f32 %f2, [%a12+128];
  add.f32 %f3, %f1, %f2;
  add.u64 %a13, %a2, %a5;
  st.global.f32 [%a13], %f3;
done:
  ret;
}
)";

std::shared_ptr<const Package> double_package(const std::string& ptx = kDoublePtx) {
  auto package = std::make_shared<Package>();
  package->manifest.tool_version = "0.1.0";
  package->manifest.source = "by hand";
  KernelRecord& record = package->manifest.kernels.emplace_back();
  record.symbol = "double_b1";
  record.layer = "double";
  record.shape.in_h = kHeight;
  record.shape.in_w = kWidth;
  record.nonzeros = 1;
  record.template_name = "by_hand";
  record.precision = "fp32";
  record.plan = "by hand\n";
  record.plan_short = "by hand";
  record.source_hash = "0123456789abcdef";
  record.launch = {.threads = kPixels,
                   .shared_bytes = kSharedBytes,
                   .slices = kSlices,
                   .tile_images = 1,
                   .tiles_per_image = 1,
                   .workspace_bytes_per_tile = kSlices * kPixels * sizeof(float),
                   .counters_per_tile = 1};
  record.binaries.push_back(
      {.kind = BinaryKind::ptx, .arch = "sm_75", .path = "kernels/double.ptx", .bytes = std::int64_t(ptx.size())});
  package->files["kernels/double.ptx"] = ptx;
  return package;
}

std::string missing_device() {
  try {
    return device_count() > 0 ? "" : "no CUDA device";
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<float> ramp(int batch, float start) {
  std::vector<float> values(static_cast<std::size_t>(batch) * kPixels);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<float>(i);
  return values;
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
  const Kernel kernel = package.kernel("double", 1);
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
  const Kernel kernel = LoadedPackage(device, double_package(), "double").kernel("double", kBatch);
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
      const Kernel kernel = package.kernel("double", kBatch);
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
  std::string ptx = kDoublePtx;
  ptx.replace(ptx.find("bar.sync"), 8, "no.such ");
  const LoadedPackage package(Device::open(0), double_package(ptx), "double");
  const Thrown error = BURIN_THROWN(device, package.kernel("double", 1));
  CHECK(error.has("cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX"));
  CHECK(error.has("the driver's log:"));
}
