// Whole networks on a real device, with kernels that are written by hand:
//
//   x -> double -> a -> double -> left  -> sum -> y = 8 x
//                  a -> double -> right ->
//
// The three layers are one kernel; each of its steps needs counters of its own, left and right partial sums too.
#include <algorithm>

#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/network.hpp"
#include "test/catch.h"
#include "test/package/sample_plans.h"
#include "test/runtime/double_kernel.h"
#include "test/skip.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr std::int64_t kImageBytes = kDoublePixels * 4;

// output = input + second input, a block of 32 threads for each image.
constexpr const char* kSumPtx = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry operator_sum(.param .u64 input, .param .u64 output, .param .u64 second, .param .u64 weights,
                             .param .u32 batch)
{
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .b64 %a<8>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  ld.param.u64 %a1, [input];
  ld.param.u64 %a2, [output];
  ld.param.u64 %a3, [second];
  mad.lo.u32 %r3, %r2, 32, %r1;
  mul.wide.u32 %a4, %r3, 4;
  add.u64 %a5, %a1, %a4;
  ld.global.f32 %f1, [%a5];
  add.u64 %a6, %a3, %a4;
  ld.global.f32 %f2, [%a6];
  add.f32 %f3, %f1, %f2;
  add.u64 %a7, %a2, %a4;
  st.global.f32 [%a7], %f3;
  ret;
}
)";

// The same code for sm_90, which awaits its launch and lets others follow.
std::string awaiting(std::string ptx) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    ptx.replace(ptx.find(from), from.size(), to);
  };
  replace(".version 7.0", ".version 7.8");
  replace("sm_75", "sm_90");
  const std::string first = "mov.u32 %r1, %tid.x;\n";
  replace(first, first + "  griddepcontrol.wait;\n  griddepcontrol.launch_dependents;\n");
  return ptx;
}

void add_sum(Package& package, const std::string& arch, const std::string& ptx) {
  Kernel& kernel = package.manifest.kernels.emplace_back();
  kernel.symbol = "operator_sum";
  kernel.op = "sum";
  kernel.kind = "add";
  TemplatePlan plan;
  plan.template_name = "combine";
  plan.input() = flat_tensor(TensorRole::input, kDoublePixels);
  plan.output() = flat_tensor(TensorRole::output, kDoublePixels);
  plan.residual() = flat_tensor(TensorRole::residual, kDoublePixels);
  plan.integers = {{"elements", kDoublePixels},
                   {"combination", 0},
                   {"swapped", 0},
                   {"constant", 0},
                   {"vector", 1},
                   {"steps", 1},
                   {"function", 0}};
  for (int axis = 0; axis < 4; ++axis) {
    plan.integers["other_extent" + std::to_string(axis)] = axis == 3 ? kDoublePixels : 1;
    plan.integers["other_step" + std::to_string(axis)] = axis == 3 ? 1 : 0;
  }
  plan.reals = {{"alpha", 0.0F}, {"beta", 0.0F}};
  plan.launch().threads = kDoublePixels;
  set_plan(kernel, plan);
  kernel.source_hash = "0123456789abcdef";
  kernel.binaries.push_back(
      {.kind = BinaryKind::ptx, .arch = arch, .path = "kernels/sum.ptx", .bytes = std::int64_t(ptx.size())});
  package.files["kernels/sum.ptx"] = ptx;
}

Program program_for_batch(int batch) {
  Program program;
  program.name = kNetworkName;
  program.batch = batch;
  const std::int64_t stride = aligned_bytes(batch * kImageBytes);
  const auto buffer = [&](const char* name, BufferHome home, std::int64_t offset) {
    program.buffers.push_back({.tensor = name,
                               .shape = {1, kDoubleHeight, kDoubleWidth},
                               .home = home,
                               .argument = home == BufferHome::arena ? -1 : 0,
                               .offset = offset});
  };
  buffer("x", BufferHome::input, 0);
  buffer("y", BufferHome::output, 0);
  buffer("a", BufferHome::arena, 0);
  buffer("left", BufferHome::arena, stride);
  buffer("right", BufferHome::arena, 2 * stride);
  const auto whole = [](int index) { return Place{index, 0, kImageBytes, kImageBytes, 1, 0}; };
  program.steps = {{"first", "convolution", 0, "a", {whole(0)}, whole(2), {}},
                   {"left", "convolution", 1, "left", {whole(2)}, whole(3), {0}},
                   {"right", "convolution", 2, "right", {whole(2)}, whole(4), {0}},
                   {"sum", "add", 3, "y", {whole(3), whole(4)}, whole(1), {1, 2}}};
  for (Step& step : program.steps) step.kernel = step.name == "sum" ? "operator_sum" : "double_b1";
  program.naive_bytes = 3 * stride;
  complete(program);
  return program;
}

std::shared_ptr<const Package> eightfold_package(bool awaits) {
  auto package = std::make_shared<Package>();
  package->manifest.tool_version = "0.1.0";
  package->manifest.source = "by hand";
  const std::string arch = awaits ? "sm_90" : "sm_75";
  add_double_kernel(*package, arch, awaits ? awaiting(double_ptx()) : double_ptx());
  add_sum(*package, arch, awaits ? awaiting(kSumPtx) : kSumPtx);
  package->manifest.programs = {program_for_batch(2), program_for_batch(16)};
  return package;
}

int wrong_values(const DeviceBuffer& y, int batch, float start) {
  const std::vector<float> output = y.to_vector<float>(), input = ramp(batch, start);
  int wrong = 0;
  for (std::size_t i = 0; i < input.size(); ++i) wrong += output[i] == 8 * input[i] ? 0 : 1;
  return wrong;
}

// Every kind of batch, each launched again and again with other values.
void run_all(const Device& device, const LoadedNetwork& network, const NetworkOptions& options) {
  const Stream stream(device);
  for (const int batch : {1, 2, 5, 16, 17, 18, 40, 300}) {
    INFO(network.schedule(batch).text());
    DeviceBuffer x(device, static_cast<std::size_t>(batch * kImageBytes));
    DeviceBuffer y(device, x.bytes());
    const NetworkRun run = network.bind({{x.data()}, {y.data()}, batch}, options);
    int wrong = 0;
    for (int round = 0; round < 50; ++round) {
      const std::vector<float> values = ramp(batch, static_cast<float>(round));
      x.upload(values.data(), x.bytes());
      y.fill(0xff);
      for (int i = 0; i < 3; ++i) run.launch(stream);
      stream.synchronize();
      wrong += wrong_values(y, batch, static_cast<float>(round));
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("gpu network: every batch, launched again and again") {
  if (const std::string reason = missing_device(); !reason.empty()) BURIN_SKIP(reason);
  const Device device = Device::open(0);
  const LoadedNetwork network(LoadedPackage(device, eightfold_package(false), "eightfold"));
  run_all(device, network, {});
  run_all(device, network, {.programmatic = true});  // without an effect: the code does not await its launch
}

TEST_CASE("gpu network: programmatic launches") {
  if (const std::string reason = missing_device(); !reason.empty()) BURIN_SKIP(reason);
  const Device device = Device::open(0);
  if (device.info().compute() < 90) BURIN_SKIP("the device cannot launch kernels before others have ended");
  const LoadedNetwork network(LoadedPackage(device, eightfold_package(true), "eightfold"));
  run_all(device, network, {});
  run_all(device, network, {.programmatic = true});
}

TEST_CASE("gpu network: step by step") {
  if (const std::string reason = missing_device(); !reason.empty()) BURIN_SKIP(reason);
  constexpr int kBatch = 20;  // 16 + 4 of 16
  const Device device = Device::open(0);
  const LoadedNetwork network(LoadedPackage(device, eightfold_package(false), "eightfold"));
  const std::vector<float> values = ramp(kBatch, 1);
  const DeviceBuffer x(device, std::span<const float>(values));
  DeviceBuffer y(device, x.bytes());
  y.fill(0xff);
  const NetworkRun run = network.bind({{x.data()}, {y.data()}, kBatch});
  const Stream stream(device);
  const std::vector<float> factors = {2, 4, 4, 8};
  for (int i = 0; i < run.steps(); ++i) {
    INFO(i);
    run.launch_step(i, stream);
    stream.synchronize();
    const int images = run.schedule().parts[static_cast<std::size_t>(run.part_of(i))].images;
    const int first = run.part_of(i) * 16;
    std::vector<float> output(static_cast<std::size_t>(images) * kDoublePixels);
    copy_from_device(device, output.data(), run.address(i, run.step(i).writes), output.size() * sizeof(float));
    int wrong = 0;
    for (std::size_t n = 0; n < output.size(); ++n) {
      const float input = values[static_cast<std::size_t>(first) * kDoublePixels + n];
      wrong += output[n] == factors[static_cast<std::size_t>(i % 4)] * input ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
  CHECK(wrong_values(y, kBatch, 1) == 0);
}

TEST_CASE("gpu network: two runs at the same time") {
  if (const std::string reason = missing_device(); !reason.empty()) BURIN_SKIP(reason);
  constexpr int kBatch = 16;
  const Device device = Device::open(0);
  const LoadedNetwork network(LoadedPackage(device, eightfold_package(false), "eightfold"));
  const std::vector<float> values = ramp(kBatch, 1);
  const DeviceBuffer x(device, std::span<const float>(values));
  DeviceBuffer first(device, x.bytes()), second(device, x.bytes());
  first.fill(0xff);
  second.fill(0xff);
  const NetworkRun run = network.bind({{x.data()}, {first.data()}, kBatch});
  const NetworkRun other = network.bind({{x.data()}, {second.data()}, kBatch});
  const Stream stream(device), other_stream(device);
  for (int i = 0; i < 500; ++i) {
    run.launch(stream);
    other.launch(other_stream);
  }
  stream.synchronize();
  other_stream.synchronize();
  CHECK(wrong_values(first, kBatch, 1) == 0);
  CHECK(wrong_values(second, kBatch, 1) == 0);
}
