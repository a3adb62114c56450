#include <fmt/format.h>

#include <chrono>

#include "ir/package/manifest_index.h"
#include "test/catch.h"
#include "test/package/samples.h"

using namespace burin;

TEST_CASE("manifest index: kernels by symbol, and by layer and batch") {
  const Manifest manifest = sample_manifest();
  const ManifestIndex index(manifest);
  REQUIRE_FALSE(manifest.kernels.empty());
  for (const Kernel& kernel : manifest.kernels) {
    CAPTURE(kernel.symbol);
    CHECK(index.find_kernel(kernel.symbol) == &kernel);
    CHECK(&index.kernel(kernel.symbol) == &kernel);
    CHECK(index.kernel_for(kernel.op, kernel.planned_batch) == &kernel);
  }
  CHECK(index.find_kernel("none") == nullptr);
  CHECK(index.kernel_for("none", 1) == nullptr);
  CHECK(index.convolutions() == std::vector<std::string>{manifest.kernels.front().op});
}

TEST_CASE("manifest index: of a layer's kernels the one for the most images that are no more") {
  Manifest manifest = sample_manifest();
  const Kernel sample = manifest.kernels.front();
  manifest.kernels.clear();
  for (const int batch : {8, 32, 2}) {
    Kernel& kernel = manifest.kernels.emplace_back(sample);
    kernel.symbol = fmt::format("b{}", batch);
    kernel.planned_batch = batch;
  }
  const ManifestIndex index(manifest);
  const auto symbol_for = [&](int images) { return index.kernel_for(sample.op, images)->symbol; };
  CHECK(symbol_for(1) == "b2");
  CHECK(symbol_for(2) == "b2");
  CHECK(symbol_for(31) == "b8");
  CHECK(symbol_for(1000) == "b32");
}

TEST_CASE("manifest index: looking up each step of many takes a time in proportion to them") {
  // With each step's kernel looked for from the first on, 100,000 of them took minutes.
  constexpr int kCount = 100'000;
  const auto begin = std::chrono::steady_clock::now();
  Manifest manifest;
  for (int i = 0; i < kCount; ++i) {
    Kernel& kernel = manifest.kernels.emplace_back();
    kernel.symbol = fmt::format("a_symbol_of_the_same_length_{:06}", i);
    Program& program = manifest.programs.emplace_back();
    program.name = kernel.symbol;
    program.steps.emplace_back().kernel = kernel.symbol;
  }
  const ManifestIndex index(manifest);
  int found = 0;
  for (const Program& program : manifest.programs) {
    if (index.programs(program.name).front() == &program) ++found;
    CHECK(index.kernel(program.steps.front().kernel).symbol == program.name);
  }
  CHECK(found == kCount);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}
