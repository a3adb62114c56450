// Half precision through the tool, on the host executor.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compiler/cli/npy_tensor.h"
#include "compiler/import/import.h"
#include "compiler/import/mapped_file.h"
#include "compiler/import/npy.h"
#include "compiler/reference.h"
#include "ir/element_type.h"
#include "ir/package/package.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

constexpr burin::Precision kHalves[] = {burin::Precision::fp16, burin::Precision::bf16, burin::Precision::fp16x2};

std::string name_of(burin::Precision precision) { return std::string(to_string(precision)); }

Outcome compile_half(const ScratchFolder& folder, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"compile", folder / "w.safetensors", "--arch", "sm_90",
                                        "-o",      folder / "p.burin"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments);
}

Outcome run_half_layer(const ScratchFolder& folder, const std::vector<std::string>& inputs) {
  std::vector<std::string> arguments = {"run",      folder / "p.burin", "--layer",  "conv",
                                        "--output", folder / "y.npy",   "--device", "host"};
  for (const std::string& input : inputs) arguments.insert(arguments.end(), {"--input", input});
  return run_burin(arguments);
}

std::vector<float> read_values(const std::string& path) {
  const burin::MappedFile file(path);
  const burin::WeightsTensor tensor = burin::parse_npy(file.bytes(), path, path);
  CHECK(tensor.type == burin::StoredType::f32);
  return burin::float_values(tensor);
}

}  // namespace

TEST_CASE("half_packages_say_what_their_tensors_are_and_verify") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  for (const burin::Precision precision : kHalves) {
    const std::string name = name_of(precision);
    CAPTURE(name);
    const Outcome compiled = compile_half(folder, {"--precision", name, "--batch", "1,2"});
    CAPTURE(compiled.err);
    REQUIRE(compiled.exit_code == 0);
    const burin::Manifest manifest = burin::read_package(folder / "p.burin").manifest;
    REQUIRE(manifest.kernels.size() == 2);
    for (const burin::Kernel& kernel : manifest.kernels) {
      CHECK(kernel.precision == name);
      CHECK(kernel.form.input().element == burin::element_of(precision));
      CHECK(kernel.form.output().element == burin::element_of(precision));
      CHECK(kernel.form.input().layout == burin::TensorLayout::n2chw);
      CHECK(kernel.form.output().layout == burin::TensorLayout::n2chw);
      CHECK(kernel.form.launch.tile_images % 2 == 0);
    }
    for (const burin::Program& program : manifest.programs) {
      for (const burin::Buffer& buffer : program.buffers) {
        CHECK(buffer.format == burin::format_of(precision, burin::TensorLayout::n2chw));
      }
    }
    // An odd batch leaves half of the last pair empty.
    for (const char* batch : {"1", "2", "3"}) {
      const Outcome verified = run_burin({"verify", folder / "p.burin", "--against", folder / "w.safetensors",
                                          "--device", "host", "--seed", "4", "--batch", batch});
      CAPTURE(verified.out, verified.err);
      CHECK(verified.exit_code == 0);
      CHECK_THAT(verified.out, Contains("tolerance of an element, " + name + ": ") && Contains("|expected|") &&
                                   Contains("1 kernel verified"));
    }
    const Outcome json = run_burin({"verify", folder / "p.burin", "--against", folder / "w.safetensors", "--device",
                                    "host", "--seed", "4", "--json"});
    const nlohmann::json document = nlohmann::json::parse(json.out);
    REQUIRE(document.at("programs").size() == 2);
    for (const nlohmann::json& row : document.at("programs")) {
      const nlohmann::json& output = row.at("outputs").at(0);
      CHECK(output.at("name") == "conv.output");
      CHECK(output.at("relative_error") > 1e-5);  // no FP32 kernel would have it
      CHECK(output.at("relative_error") < 1e-2);
    }
  }
}

TEST_CASE("half_kernels_of_other_weights_fail") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}}, 1);
  write_safetensors(folder / "other.safetensors", {TestLayer{}}, 2);
  for (const burin::Precision precision : kHalves) {
    REQUIRE(compile_half(folder, {"--precision", name_of(precision)}).exit_code == 0);
    const Outcome outcome =
        run_burin({"verify", folder / "p.burin", "--against", folder / "other.safetensors", "--device", "host"});
    CHECK(outcome.exit_code == 1);
    CHECK_THAT(outcome.out, Contains("FAILED") && Contains(name_of(precision)));
  }
}

TEST_CASE("run_gives_float32_of_half_kernels") {
  const ScratchFolder folder;
  TestLayer layer;
  layer.more_geometry = R"({"residual": true})";
  write_safetensors(folder / "w.safetensors", {layer});
  constexpr int kBatch = 3;
  const std::vector<float> x = burin::random_tensor(kBatch * 4 * 8 * 8, 1);
  const std::vector<float> r = burin::random_tensor(kBatch * 8 * 8 * 8, 2);
  burin::write_npy(folder / "x.npy", {kBatch, 4, 8, 8}, x);
  burin::write_npy(folder / "r.npy", {kBatch, 8, 8, 8}, r);
  const burin::ConvLayer source = burin::import_network(folder / "w.safetensors").layers.at(0);
  for (const burin::Precision precision : kHalves) {
    CAPTURE(name_of(precision));
    REQUIRE(compile_half(folder, {"--precision", name_of(precision), "--plan", "groups=1"}).exit_code == 0);
    const Outcome outcome = run_half_layer(folder, {"input=" + (folder / "x.npy"), "residual=" + (folder / "r.npy")});
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.out == fmt::format("{}: float32 [3,8,8,8] of layer 'conv' ({} n2chw) on host\n", folder / "y.npy",
                                     to_string(burin::element_of(precision))));
    CHECK(outcome.err == "");
    const burin::ElementType element = burin::element_of(precision);
    const std::vector<float> y = read_values(folder / "y.npy");
    for (const float value : y) REQUIRE(value == burin::rounded(element, value));
    const std::vector<float> input = burin::rounded(element, x), residual = burin::rounded(element, r);
    const burin::ConvolutionReference reference(source, kBatch, input, residual);
    const burin::Comparison comparison = burin::compare(
        y, reference.outputs(), reference.tolerances({.precision = precision, .longest_reduction = 36}), element);
    CHECK(comparison.within);
  }
}

TEST_CASE("run_says_when_values_become_infinite") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  std::vector<float> x(4 * 8 * 8, 1.0F);
  x[7] = 70000;
  x[9] = -1e30F;
  burin::write_npy(folder / "x.npy", {4, 8, 8}, x);
  REQUIRE(compile_half(folder, {"--precision", "fp16"}).exit_code == 0);
  const Outcome outcome = run_half_layer(folder, {folder / "x.npy"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("2 of 256 values become infinite") && Contains("f16") && Contains("65504"));
  REQUIRE(compile_half(folder, {"--precision", "bf16"}).exit_code == 0);
  CHECK(run_half_layer(folder, {folder / "x.npy"}).err == "");
}

TEST_CASE("inspect_shows_the_precision") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(compile_half(folder, {"--precision", "fp16x2"}).exit_code == 0);
  for (const std::vector<std::string>& of :
       {std::vector<std::string>{folder / "p.burin"},
        std::vector<std::string>{folder / "w.safetensors", "--precision", "fp16x2"}}) {
    std::vector<std::string> arguments = {"inspect"};
    arguments.insert(arguments.end(), of.begin(), of.end());
    const Outcome table = run_burin(arguments);
    CHECK(table.exit_code == 0);
    CHECK_THAT(table.out, Contains("precision") && Contains("fp16x2"));
    arguments.push_back("--json");
    const nlohmann::json row = nlohmann::json::parse(run_burin(arguments).out).at("rows").at(0);
    CHECK(row.at("precision") == "fp16x2");
    CHECK(row.at("input_layout") == "n2chw");
  }
  CHECK_THAT(run_burin({"inspect", folder / "w.safetensors"}).out, !Contains("precision"));
}

TEST_CASE("layers_in_nchw_stay_fp32_and_are_multiplied_in_half_precision_or_in_tf32") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  for (const std::string precision : {"fp16", "bf16", "tf32"}) {
    CAPTURE(precision);
    const Outcome compiled =
        compile_half(folder, {"--precision", precision, "--layout", "nchw", "--kernels", "gathered_rows"});
    CAPTURE(compiled.err);
    REQUIRE(compiled.exit_code == 0);
    const burin::Kernel kernel = burin::read_package(folder / "p.burin").manifest.kernels.at(0);
    CHECK(kernel.provider == "conv_gathered_rows");
    CHECK(kernel.form.input().format().is_plain());
    CHECK(kernel.form.output().format().is_plain());
    const Outcome verified =
        run_burin({"verify", folder / "p.burin", "--against", folder / "w.safetensors", "--device", "host"});
    CAPTURE(verified.out, verified.err);
    CHECK(verified.exit_code == 0);
    CHECK_THAT(verified.out, Contains("of kernels that round weights, or inputs, also what rounding takes of each"));
  }
}

TEST_CASE("layouts_that_a_precision_cannot_have") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  const auto refused = [&](const std::string& command, const std::string& precision, const std::string& layout) {
    const Outcome outcome =
        run_burin({command, folder / "w.safetensors", "--precision", precision, "--layout", layout});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains("--layout " + layout + " with --precision " + precision) && Contains("n2chw"));
  };
  for (const char* command : {"compile", "inspect"}) {
    refused(command, "fp16x2", "nchw");
    refused(command, "bf16", "nchw4");
    refused(command, "fp32", "n2chw");
    refused(command, "fp32", "n8c8hw");
  }
  CHECK(compile_half(folder, {"--precision", "fp16", "--layout", "n2chw"}).exit_code == 0);
  const Outcome unknown = run_burin({"inspect", folder / "w.safetensors", "--precision", "fp8"});
  CHECK(unknown.exit_code == 4);
  CHECK_THAT(unknown.err, Contains("--precision fp8: known are fp32, fp16, bf16, fp16x2, tf32"));
}

TEST_CASE("promotion_is_for_fp16x2_alone") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(compile_half(folder, {"--precision", "fp16x2", "--plan", "promote=7"}).exit_code == 0);
  CHECK_THAT(burin::read_package(folder / "p.burin").manifest.kernels.at(0).plan,
             Contains("promote_every: 7\n") || Contains("promote_every: 7 "));
  for (const char* precision : {"fp32", "fp16", "bf16"}) {
    const Outcome outcome = compile_half(folder, {"--precision", precision, "--plan", "promote=7"});
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains("--plan promote=7 is for fp16x2 alone") && Contains(precision));
  }
}
