// Kernels of a network that are chosen together: limits of memory, and the least memory, as compiled.
#include "compiler/assemble/assemble.h"
#include "compiler/compile.h"
#include "compiler/program_tasks.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/package/device_memory.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/skip.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

// Three convolutions behind each other, half of their weights zero: baked they are fast, and large.
Network chain() {
  Network network;
  network.source = "chain.onnx";
  const std::vector<int> channels = {8, 32, 48, 16};
  network.tensors = {{"x", {8, 12, 12}}};
  for (int i = 0; i < 3; ++i) {
    ConvShape shape;
    shape.in_channels = channels[static_cast<std::size_t>(i)];
    shape.out_channels = channels[static_cast<std::size_t>(i) + 1];
    shape.kernel_h = shape.kernel_w = 3;
    shape.pad = {1, 1, 1, 1};
    shape.in_h = shape.in_w = 12;
    const std::string name = "conv" + std::to_string(i + 1);
    network.layers.push_back(make_layer(name, shape, 0.1));
    network.tensors.push_back({"t" + std::to_string(i + 1), {shape.out_channels, 12, 12}});
    network.operators.push_back({name, Convolution{i}, {i}, i + 1});
  }
  network.inputs = {0};
  network.outputs = {3};
  return network;
}

CompileOptions options_for(const std::vector<int>& batches = {1}) {
  CompileOptions options;
  options.batches = batches;
  options.keep_ptx = false;
  options.jobs = 2;
  return options;
}

CompileResult compiled(const CompileOptions& options) { return compile_network(chain(), options, {}); }

std::int64_t bytes_of(const CompileResult& result) {
  return device_memory(result.package.manifest, std::nullopt).sum.total();
}

bool can_assemble() { return find_assembler().kind != AssemblerInfo::Kind::none; }

}  // namespace

TEST_CASE("memory limit: one that does not bind changes no kernel") {
  if (!can_assemble()) BURIN_SKIP("no assembler");
  for (const std::vector<int>& batches : {std::vector<int>{1}, std::vector<int>{1, 8}}) {
    CompileOptions options = options_for(batches);
    const CompileResult free = compiled(options);
    CHECK_FALSE(free.choice);
    CHECK_FALSE(free.package.manifest.memory_limit);
    options.memory_limit = std::int64_t{1} << 40;
    CompileResult limited = compiled(options);
    REQUIRE(limited.choice);
    CHECK(limited.choice->us == Approx(limited.choice->fastest_us));
    CHECK(limited.package.manifest.memory_limit == options.memory_limit);
    const std::vector<Kernel>&kernels = limited.package.manifest.kernels, &without = free.package.manifest.kernels;
    REQUIRE(kernels.size() == without.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      CHECK(kernels[i].symbol == without[i].symbol);
      CHECK(kernels[i].plan == without[i].plan);
      CHECK(kernels[i] == without[i]);
    }
  }
}

TEST_CASE("memory limit: a package keeps it, and takes no less time than with a larger one") {
  if (!can_assemble()) BURIN_SKIP("no assembler");
  CompileOptions options = options_for({1, 8});
  options.objective = Objective::memory;
  const CompileResult smallest = compiled(options);
  const std::int64_t least = bytes_of(smallest), most = bytes_of(compiled(options_for({1, 8})));
  REQUIRE(least < most);
  REQUIRE(smallest.choice);
  CHECK(smallest.choice->bytes == least);
  CHECK(smallest.package.manifest.objective == Objective::memory);
  options.objective = Objective::time;
  double us = smallest.choice->us;
  for (const std::int64_t limit : {least, least + (most - least) / 3, least + 2 * (most - least) / 3, most}) {
    INFO("limit " << limit << " of " << least << " to " << most);
    options.memory_limit = limit;
    const CompileResult result = compiled(options);
    CHECK(bytes_of(result) <= limit);
    CHECK(result.choice->us <= us * 1.000001);
    CHECK(result.choice->us >= result.choice->fastest_us * 0.999999);
    us = result.choice->us;
  }
  CHECK(us < smallest.choice->us);
}

TEST_CASE("memory limit: one that nothing keeps is said before anything is compiled") {
  if (!can_assemble()) BURIN_SKIP("no assembler");
  CompileOptions options = options_for();
  options.memory_limit = 10'000;
  int made = 0;
  const auto fault = BURIN_THROWN(unsupported, compile_network(chain(), options, [&](const CompileProgress& progress) {
                                    made = std::max(made, progress.done);
                                  }));
  CHECK(fault.has("--memory-limit of 10000 bytes: the network takes "));
  CHECK(fault.has(" bytes at least, by estimate: "));
  CHECK(made == 0);
}

TEST_CASE("memory limit: it is for networks") {
  CompileOptions options = options_for();
  options.memory_limit = 1 << 20;
  Network layers;
  layers.source = "layers.npz";
  layers.layers = chain().layers;
  separate_layers(layers);
  CHECK(BURIN_THROWN(usage, compile_network(layers, options, {})).has("is compiled layer by layer"));
  options.memory_limit = 0;
  CHECK(BURIN_THROWN(usage, compile_network(chain(), options, {})).has("it must be 1 to"));
}

TEST_CASE("memory limit: machine code of baked kernels is about what the model says") {
  if (!can_assemble()) BURIN_SKIP("no assembler");
  double known = 0, estimated = 0;
  for (const Precision precision : {Precision::fp32, Precision::fp16x2}) {
    for (const int batch : {1, 16}) {
      CompileOptions options = options_for({batch});
      options.precisions.all = precision;
      options.kernels = parse_kernel_kinds("baked");
      const Network network = chain();
      const CompileResult result = compile_network(network, options, {});
      for (const Kernel& kernel : result.package.manifest.kernels) {
        if (kernel.provider != kBakedProvider) continue;
        Task task;
        task.name = kernel.op;
        task.layer = &*std::ranges::find(network.layers, kernel.op, &ConvLayer::name);
        const auto model = static_cast<double>(find_provider(kBakedProvider)->code_bytes(task, kernel.plan));
        const auto code = static_cast<double>(described_code(kernel, std::nullopt).code_bytes);
        INFO(kernel.symbol << ", " << to_string(precision) << ": " << model << " by the model, " << code);
        CHECK(model > 0.7 * code);
        CHECK(model < 1.4 * code);
        known += code;
        estimated += model;
      }
    }
  }
  REQUIRE(known > 0);
  CHECK(estimated / known == Approx(1).epsilon(0.15));
}
