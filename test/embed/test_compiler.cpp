// The compiler as programs embed it: compiler/burin/compiler.hpp.
#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "compiler/burin/compiler.hpp"
#include "ir/package/device_memory.h"
#include "ir/package/package.h"
#include "test/catch.h"
#include "test/import/onnx_model.h"
#include "test/scratch_folder.h"

using burin::compile;
using burin::Compiled;
using burin::CompileSettings;
using burin::Model;
using burin::PrunedLayer;
using burin_test::Contains;

namespace {

PrunedLayer small_layer(const std::string& name) {
  PrunedLayer layer;
  layer.name = name;
  layer.in_channels = 3;
  layer.out_channels = 4;
  layer.in_height = layer.in_width = 8;
  layer.kernel_height = layer.kernel_width = 3;
  layer.pad_top = layer.pad_bottom = layer.pad_left = layer.pad_right = 1;
  layer.activation = "relu";
  for (int i = 0; i < 4 * 3 * 9; ++i) layer.weights.push_back(i % 5 == 0 ? 0.25F * static_cast<float>(i % 7 - 3) : 0);
  layer.bias.assign(4, 0.5F);
  return layer;
}

std::string model_bytes() {
  burin_test::OnnxModel model = burin_test::OnnxModel::of_image({3, 8, 8});
  const PrunedLayer layer = small_layer("conv");
  model.floats("w", {4, 3, 3, 3}, layer.weights);
  model.add_node("Conv", {"x", "w"}, "c").set("pads", std::vector<std::int64_t>(4, 1)).node.set_name("conv");
  model.add_node("GlobalAveragePool", {"c"}, "y");
  return model.bytes();
}

// Convolutions of 64 channels, of which two read the same tensor, on maps of 14x14.
std::string deep_model_bytes() {
  constexpr int kChannels = 64, kExtent = 14;
  burin_test::OnnxModel model = burin_test::OnnxModel::of_image({kChannels, kExtent, kExtent});
  const auto convolve = [&](const std::string& name, const std::string& input, int extent) {
    std::vector<float> weights(static_cast<std::size_t>(kChannels * kChannels * extent * extent));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = i % 3 == 0 ? 0.01F * static_cast<float>(static_cast<int>(i * 7 % 11) - 5) : 0;
    }
    model.floats(name + "_w", {kChannels, kChannels, extent, extent}, weights);
    model.add_node("Conv", {input, name + "_w"}, name)
        .set("pads", std::vector<std::int64_t>(4, extent / 2))
        .node.set_name(name);
    return name;
  };
  const std::string a = convolve("a", "x", 3), left = convolve("left", a, 1), right = convolve("right", a, 1);
  model.add_node("Concat", {left, right}, "both").set("axis", std::int64_t{1});
  model.add_node("GlobalAveragePool", {"both"}, "y");
  return model.bytes();
}

// A convolution and a depthwise one behind it.
std::string pair_model_bytes() {
  constexpr int kChannels = 64, kExtent = 14;
  burin_test::OnnxModel model = burin_test::OnnxModel::of_image({kChannels, kExtent, kExtent});
  std::vector<float> wide(std::size_t{kChannels} * kChannels), deep(std::size_t{kChannels} * 9);
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = 0.03F * static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
  for (std::size_t i = 0; i < deep.size(); ++i) deep[i] = 0.3F * static_cast<float>(static_cast<int>(i * 5 % 7) - 3);
  model.floats("pw_w", {kChannels, kChannels, 1, 1}, wide);
  model.floats("dw_w", {kChannels, 1, 3, 3}, deep);
  model.add_node("Conv", {"x", "pw_w"}, "pw").node.set_name("pw");
  model.add_node("Conv", {"pw", "dw_w"}, "dw")
      .set("pads", std::vector<std::int64_t>(4, 1))
      .set("group", std::int64_t{kChannels})
      .node.set_name("dw");
  model.add_node("GlobalAveragePool", {"dw"}, "y");
  return model.bytes();
}

int tensors_in_places(const burin::Program& program) {
  return static_cast<int>(std::ranges::count_if(
      program.buffers, [](const burin::Buffer& buffer) { return burin::has_places(buffer.format.layout); }));
}

}  // namespace

TEST_CASE("embedded compiler: networks of few images are in nchw8, calibrated and within a limit of memory, too") {
  const Model model = Model::from_onnx(deep_model_bytes(), "deep.onnx");
  CompileSettings settings;
  settings.batches = {1, 2};
  settings.precision = "fp16";
  settings.kernels = "warpgroup_rows";  // which it is that are in nchw8, where layers are larger than these
  const Compiled plain = compile(model, settings);
  settings.precision = "auto";
  settings.memory_limit = 64 << 20;
  settings.ptx = false;
  const Compiled made = compile(model, settings);
  for (const Compiled* each : {&plain, &made}) {
    const burin::Manifest& manifest = each->package->manifest;
    REQUIRE(manifest.programs.size() == 2);
    for (const burin::Program& program : manifest.programs) CHECK(tensors_in_places(program) > 0);
    const burin::Verified verified = burin::verify(*each->package, model, {.device = "host"});
    CHECK(verified.passed);
    REQUIRE(verified.outputs.size() == 2);
  }
  CHECK(made.package->manifest.memory_limit == settings.memory_limit);
  CHECK_THAT(made.notes.front(), Contains("0 of 3 layers stay in FP32; the network is then off by"));
  // A bound that FP16 breaks.
  settings.max_error = 1e-6;
  const Compiled exact = compile(model, settings);
  for (const burin::Program& program : exact.package->manifest.programs) CHECK(tensors_in_places(program) == 0);
  CHECK(burin::verify(*exact.package, model, {.device = "host"}).passed);
}

TEST_CASE("embedded compiler: each batch size has a graph of its own") {
  const Model model = Model::from_onnx(pair_model_bytes(), "pair.onnx");
  CompileSettings settings;
  settings.batches = {1, 8};
  settings.precision = "fp16";
  const auto layers_of = [&](const Compiled& made) {
    std::vector<std::vector<std::string>> layers;
    for (const burin::Program& program : made.package->manifest.programs) {
      std::vector<std::string>& names = layers.emplace_back();
      for (const burin::Step& step : program.steps) {
        if (step.kind == "convolution") names.push_back(step.name);
      }
    }
    return layers;
  };
  // For one image the depthwise layer is a part of the other's kernel; for eight no kernel has such a part.
  const std::vector<std::string> joined = {"pw+dw"}, apart = {"pw", "dw"};
  const Compiled made = compile(model, settings);
  CHECK(layers_of(made) == std::vector<std::vector<std::string>>{joined, apart});
  CHECK(burin::verify(*made.package, model, {.device = "host"}).passed);
  // Both have all weights, which count once.
  const burin::DeviceMemory memory = device_memory(made.package->manifest, std::nullopt);
  REQUIRE(memory.programs.size() == 2);
  CHECK(memory.sum.forms.csr_bytes == memory.programs.front().sum.forms.csr_bytes);
  // The error is that of the worse graph.
  settings.precision = "auto";
  const Compiled measured = compile(model, settings);
  CHECK(layers_of(measured) == layers_of(made));
  CHECK(burin::verify(*measured.package, model, {.device = "host"}).passed);
}

TEST_CASE("embedded compiler: what stays in FP32 is no part of a layer with a depthwise one behind it") {
  const Model network = Model::from_onnx(pair_model_bytes(), "pair.onnx");
  CompileSettings settings;
  settings.precision = "fp16";
  settings.ptx = false;
  const Compiled joined = compile(network, settings);
  REQUIRE(joined.package->manifest.programs.front().steps.size() == 2);
  settings.precision = "auto";
  settings.max_error = 1e-6;
  const Compiled made = compile(network, settings);
  CHECK_THAT(made.notes.front(), Contains("2 of 2 layers stay in FP32"));
  CHECK(made.package->manifest.programs.front().steps.size() == 3);
  CHECK(burin::verify(*made.package, network, {.device = "host"}).passed);
}

TEST_CASE("embedded compiler: layers from memory are compiled and verified") {
  const Model model = Model::from_layers({small_layer("a"), small_layer("b")});
  CHECK(model.layers() == std::vector<std::string>{"a", "b"});
  for (const std::string precision : {"fp32", "fp16", "tf32"}) {
    CAPTURE(precision);
    const Compiled made = compile(
        model, {.batches = {1, 3}, .precision = precision, .kernels = precision == "tf32" ? "gathered_rows" : "auto"});
    CHECK(made.package->manifest.kernels.size() == 4);
    CHECK(made.package->manifest.programs.size() == 4);
    for (const burin::Kernel& kernel : made.package->manifest.kernels) {
      CHECK(kernel.plan_short.starts_with("conv_gathered_rows tf32, ") == (precision == "tf32"));
    }
    const burin::Verified verified = burin::verify(*made.package, model, {.device = "host"});
    CHECK(verified.passed);
    CHECK(verified.device == "host");
    REQUIRE(verified.outputs.size() == 4);
    for (const burin::VerifiedOutput& output : verified.outputs) {
      CHECK(output.passed);
      CHECK(output.error_over_tolerance > 0);
    }
  }
}

TEST_CASE("embedded compiler: layers stay in FP32 where calibration says so") {
  PrunedLayer large = small_layer("b");
  for (float& weight : large.weights) weight *= 0x1p18F;
  const Model model = Model::from_layers({small_layer("a"), large});
  const std::vector<float> images(std::size_t{2} * 3 * 8 * 8, 0.5F);
  const Compiled made =
      compile(model, {.batches = {2}, .precision = "auto", .calibration = {{"a.input", images}, {"b.input", images}}});
  REQUIRE(made.package->manifest.kernels.size() == 2);
  for (const burin::Kernel& kernel : made.package->manifest.kernels) {
    CAPTURE(kernel.op);
    CHECK(kernel.precision == (kernel.op == "a" ? "fp16" : "fp32"));
    CHECK(kernel.kept_in_fp32.empty() == (kernel.op == "a"));
  }
  REQUIRE(!made.notes.empty());
  CHECK_THAT(made.notes.front(), Contains("--precision auto: 1 of 2 layers stay in FP32"));
  CHECK(burin::verify(*made.package, model, {.device = "host"}).passed);
  CHECK_THROWS_WITH(compile(model, {.precision = "auto", .max_error = -1.0}), Contains("--max-error -1"));
  CHECK_THROWS_WITH(compile(model, {.precision = "auto", .calibration = {{"a.input", images}}}),
                    Contains("nothing is given for the input 'b.input'"));
  int calls = 0;
  CHECK_THROWS_AS(compile(model, {.precision = "auto"}, [&](const burin::CompileState&) { return ++calls < 2; }),
                  burin::Cancelled);
}

TEST_CASE("embedded compiler: other weights are found out") {
  const Model model = Model::from_layers({small_layer("a")});
  PrunedLayer changed = small_layer("a");
  changed.weights[0] += 1;
  const Compiled made = compile(Model::from_layers({changed}));
  const burin::Verified verified = burin::verify(*made.package, model, {.device = "host"});
  CHECK_FALSE(verified.passed);
  CHECK_FALSE(verified.outputs.at(0).passed);
  CHECK(verified.outputs.at(0).error_over_tolerance > 1);
}

TEST_CASE("embedded compiler: a model from memory, a package on disk") {
  const burin_test::ScratchFolder folder;
  const Model model = Model::from_onnx(model_bytes(), "net.onnx");
  const CompileSettings settings = {.ptx = false, .cache = folder / "cache"};
  const Compiled made = compile(model, settings);
  CHECK(made.cached == 0);
  CHECK(burin::verify(*made.package, model, {.device = "host", .layers = true}).passed);
  burin::save(*made.package, folder / "net.burin");
  CHECK(burin::read_package(folder / "net.burin").manifest == made.package->manifest);
  const Compiled again = compile(model, settings);
  CHECK(again.cached == static_cast<int>(again.package->manifest.kernels.size()));
  CHECK(again.package->files == made.package->files);
}

TEST_CASE("embedded compiler: inputs and outputs of halves") {
  const Model model = Model::from_onnx(model_bytes(), "net.onnx");
  const Compiled made = compile(model, {.io = "bf16", .ptx = false});
  CHECK(burin::verify(*made.package, model, {.device = "host", .layers = true}).passed);
  const burin::Program& program = made.package->manifest.programs.front();
  for (const burin::Buffer* end : {program.inputs().front(), program.outputs().front()}) {
    CHECK(end->format_text() == "bf16 nchw");
  }
  CHECK_THROWS_WITH(compile(model, {.io = "int8"}), Contains("--io 'int8' is not one of fp32, fp16, bf16"));
  CHECK_THROWS_WITH(compile(Model::from_layers({small_layer("a")}), {.io = "fp16"}),
                    Contains("--io fp16: layers is compiled layer by layer"));
}

TEST_CASE("embedded compiler: it tells what it does, and can be cancelled") {
  const Model model = Model::from_layers({small_layer("a"), small_layer("b"), small_layer("c")});
  std::atomic<int> calls = 0;
  int last = 0;
  compile(model, {}, [&](const burin::CompileState& state) {
    ++calls;
    last = state.done;
    CHECK(state.total == 3);
    return true;
  });
  CHECK(calls == 6);  // each kernel is planned, and made
  CHECK(last == 3);
  std::atomic<int> after = 0;
  CHECK_THROWS_AS(compile(model, {.jobs = 1},
                          [&](const burin::CompileState&) {
                            ++after;
                            return false;
                          }),
                  burin::Cancelled);
  CHECK(after == 1);
}

TEST_CASE("embedded compiler: what is wrong is one error") {
  const auto fault = [](auto change) {
    PrunedLayer layer = small_layer("a");
    change(layer);
    try {
      compile(Model::from_layers({layer}));
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK_THAT(fault([](PrunedLayer& layer) { layer.weights.pop_back(); }), Contains("layer 'a'"));
  CHECK_THAT(fault([](PrunedLayer& layer) { layer.weights[3] = std::strtof("nan", nullptr); }), Contains("not finite"));
  CHECK_THAT(fault([](PrunedLayer& layer) { layer.bias.pop_back(); }), Contains("layer 'a'"));
  CHECK_THAT(fault([](PrunedLayer& layer) { layer.activation = "rleu"; }), Contains("'rleu'"));
  CHECK_THAT(fault([](PrunedLayer& layer) { layer.kernel_height = 0; }), Contains("layer 'a'"));
  CHECK(fault([](PrunedLayer&) {}) == "none");
  const Model model = Model::from_layers({small_layer("a")});
  CHECK_THROWS_WITH(compile(model, {.precision = "fp8"}), Contains("fp8"));
  CHECK_THROWS_WITH(compile(model, {.archs = {"sm_10"}}), Contains("sm_10"));
  CHECK_THROWS_WITH(compile(model, {.batches = {0}}), Contains("0"));
  CHECK_THROWS_WITH(Model::from_layers({}), Contains("no layers"));
  CHECK_THROWS_WITH(Model::from_layers({small_layer("a"), small_layer("a")}), Contains("a"));
  CHECK_THROWS_WITH(Model::from_onnx("nonsense", "x.onnx"), Contains("x.onnx"));
}
