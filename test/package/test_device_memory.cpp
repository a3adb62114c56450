// What a package takes on a device, counted by hand.
#include "ir/package/device_memory.h"

#include <algorithm>
#include <limits>

#include "ir/arena.h"
#include "ir/limits.h"
#include "test/catch.h"
#include "test/package/sample_network.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr std::int64_t kFcWeights = (2 * kSampleTensorWords + 1) * kSampleFeatures * 4;

// Kernels have 1000, 2000, ... bytes of code, in their order.
Manifest manifest_with_code() {
  Manifest manifest = network_package().manifest;
  std::int64_t code = 0;
  for (Kernel& kernel : manifest.kernels) {
    code += 1000;
    for (KernelBinary& binary : kernel.binaries) {
      if (binary.kind == BinaryKind::cubin) binary.code_bytes = code;
    }
    if (kernel.op == "fc") kernel.linear = WeightMatrix{kSampleFeatures, 2 * kSampleTensorWords, 500};
  }
  return manifest;
}

std::int64_t code_of(const Manifest& manifest, const Program& program) {
  std::int64_t sum = 0;
  for (const Step& step : program.steps) {
    sum += described_code(*std::ranges::find(manifest.kernels, step.kernel, &Kernel::symbol), {}).code_bytes;
  }
  return sum;
}

}  // namespace

TEST_CASE("device memory: each kernel and each file of weights counts once") {
  const Manifest manifest = manifest_with_code();
  const DeviceMemory memory = device_memory(manifest, std::nullopt);
  REQUIRE(memory.programs.size() == 2);
  for (const ProgramMemory& of : memory.programs) {
    REQUIRE(of.steps.size() == kSampleSteps);
    CHECK(of.sum.code_bytes == code_of(manifest, *of.program));
    CHECK(of.sum.weight_bytes == kFcWeights);
    CHECK(of.sum.arena_bytes == of.program->arena_bytes);
  }
  // Both programs launch the same kernels but for the convolutions.
  const auto kernels = static_cast<std::int64_t>(manifest.kernels.size());
  CHECK(memory.sum.code_bytes == 1000 * kernels * (kernels + 1) / 2);
  CHECK(memory.sum.weight_bytes == kFcWeights);
  CHECK(memory.sum.arena_bytes == memory.programs[1].program->arena_bytes);
  CHECK(memory.sum.scratch_bytes == memory.programs[1].sum.scratch_bytes);
  CHECK(memory.sum.total() == memory.sum.code_bytes + kFcWeights + memory.sum.arena_bytes + memory.sum.scratch_bytes);
}

TEST_CASE("device memory: code that kernels share counts once, and that of which nobody knows what is in it does not") {
  Manifest manifest = manifest_with_code();
  std::vector<Kernel*> shared;
  for (Kernel& kernel : manifest.kernels) {
    if (kernel.shared_code()) shared.push_back(&kernel);
  }
  REQUIRE(shared.size() >= 2);
  Kernel &first = *shared[0], &second = *shared[1];
  const std::int64_t apart = device_memory(manifest, std::nullopt).sum.code_bytes;
  second.provider = first.provider;
  second.plan = first.plan;
  const std::int64_t of_second = described_code(second, {}).code_bytes;
  REQUIRE(of_second > 0);
  const std::int64_t together = device_memory(manifest, std::nullopt).sum.code_bytes;
  CHECK(together <= apart - std::min(of_second, described_code(first, {}).code_bytes));
  second.edited = true;
  CHECK(device_memory(manifest, std::nullopt).sum.code_bytes == apart);
  CHECK_FALSE(second.shared_code());
  second.edited = false;
  second.provider = kBakedProvider;
  CHECK_FALSE(second.shared_code());
}

TEST_CASE("device memory: steps that may run at the same time have scratch memory of their own") {
  const Manifest manifest = manifest_with_code();
  const ProgramMemory program = device_memory(manifest, std::nullopt).programs[0];
  std::int64_t counters = 0, left_and_right = 0;
  for (const int step : {kConv1, kLeft, kRight}) {
    const LaunchGeometry& launch = program.steps[static_cast<std::size_t>(step)].kernel->form.launch;
    counters += counter_bytes(launch, program.program->batch);
    if (step != kConv1) left_and_right += partial_bytes(launch, program.program->batch);
  }
  CHECK(counters > 0);
  CHECK(left_and_right > 0);
  CHECK(program.sum.scratch_bytes == counters + left_and_right);
}

TEST_CASE("device memory: weights as dense and as compressed matrices") {
  const Manifest manifest = manifest_with_code();
  const DeviceMemory memory = device_memory(manifest, std::nullopt);
  const StepMemory& fc = memory.programs[0].steps[kFc];
  REQUIRE(fc.forms);
  CHECK(fc.forms->dense_bytes == std::int64_t{kSampleFeatures} * 2 * kSampleTensorWords * 4);
  CHECK(fc.forms->csr_bytes == 500 * 8 + (kSampleFeatures + 1) * 4);
  CHECK_FALSE(memory.programs[0].steps[kAdd].forms);
  const std::int64_t convolutions = 16 * 8 * 9 * 4 + 2 * 16 * 16 * 9 * 4;
  CHECK(memory.sum.forms.dense_bytes == convolutions + fc.forms->dense_bytes);
  CHECK(memory.sum.forms.csr_bytes == 3 * (100 * 8 + 17 * 4) + fc.forms->csr_bytes);
}

TEST_CASE("device memory: code that nobody has counted is said") {
  Manifest manifest = manifest_with_code();
  std::erase_if(manifest.kernels[0].binaries,
                [](const KernelBinary& binary) { return binary.kind == BinaryKind::cubin; });
  const DeviceMemory memory = device_memory(manifest, std::nullopt);
  CHECK(memory.sum.kernels_without_code == 1);
  const auto kernels = static_cast<std::int64_t>(manifest.kernels.size());
  CHECK(memory.sum.code_bytes == 1000 * (kernels * (kernels + 1) / 2 - 1));
  CHECK(device_memory(manifest, "sm_80").sum.kernels_without_code == static_cast<int>(kernels));
}

TEST_CASE("device memory: sums of scratch memory that nobody gets do not overflow") {
  Manifest manifest = manifest_with_code();
  for (Kernel& kernel : manifest.kernels) {
    kernel.form.launch.workspace_bytes_per_tile = std::numeric_limits<std::int64_t>::max();
    kernel.form.launch.counters_per_tile = std::numeric_limits<int>::max();
    kernel.form.launch.tiles_per_image = kMaxTiles;
  }
  const MemorySum sum = device_memory(manifest, std::nullopt).sum;
  CHECK(sum.scratch_bytes >= kMaxWorkspaceBytes);
  CHECK(sum.scratch_bytes <= 2 * kSampleSteps * kMaxWorkspaceBytes);
  CHECK(sum.total() > sum.scratch_bytes);
}
