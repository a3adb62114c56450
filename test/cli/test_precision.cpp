// compile --precision of single layers, and auto: what is kept in FP32, why, and who says so.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "compiler/cli/npy_tensor.h"
#include "compiler/network/reference_network.h"
#include "compiler/reference.h"
#include "ir/package/package.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

constexpr float kOverflowing = 2e4F;  // the scale of conv2 with which chain_model() leaves FP16

// Three images of x.
std::vector<float> write_images(const ScratchFolder& folder, const std::string& name = "x.npy") {
  std::vector<float> values = burin::random_tensor(std::int64_t{3} * 3 * 12 * 12, 7);
  burin::write_npy(folder / name, {3, 3, 12, 12}, values);
  return values;
}

Outcome compile_chain(const ScratchFolder& folder, const std::vector<std::string>& more, float scale = 1) {
  folder.write("m.onnx", chain_model(scale).bytes());
  std::vector<std::string> arguments = {"compile", folder / "m.onnx",  "--arch",    "sm_90",
                                        "-o",      folder / "p.burin", "--no-cache"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments);
}

Outcome verify_on_host(const ScratchFolder& folder, const std::string& against = "m.onnx") {
  std::vector<std::string> arguments = {"verify",         folder / "p.burin", "--against",
                                        folder / against, "--device",         "host"};
  if (against == "m.onnx") arguments.emplace_back("--layers");
  return run_burin(arguments);
}

// Layers and their reasons, as inspect --json has them.
std::map<std::string, std::string> kept_by_inspect(const ScratchFolder& folder) {
  const auto document = nlohmann::json::parse(run_burin({"inspect", folder / "p.burin", "--json"}).out);
  std::map<std::string, std::string> kept;
  for (const nlohmann::json& row : document["rows"]) {
    const std::string reason = row["kept_in_fp32"];
    if (!reason.empty()) kept[row["layer"]] = reason;
  }
  return kept;
}

std::map<std::string, std::string> precisions_by_inspect(const ScratchFolder& folder) {
  const auto document = nlohmann::json::parse(run_burin({"inspect", folder / "p.burin", "--json"}).out);
  std::map<std::string, std::string> precisions;
  for (const nlohmann::json& row : document["rows"]) precisions[row["layer"]] = row["precision"];
  return precisions;
}

// What the note says that the outputs are off by.
double noted_error(const std::string& text) {
  std::smatch found;
  REQUIRE(std::regex_search(text, found, std::regex("off by ([0-9.e+-]+) of its outputs")));
  return std::stod(found[1]);
}

}  // namespace

TEST_CASE("precisions_of_single_layers_convert_where_formats_change") {
  const ScratchFolder folder;
  const Outcome compiled = compile_chain(folder, {"--precision", "fp16,conv2=fp32", "--batch", "1,8"});
  CAPTURE(compiled.err);
  REQUIRE(compiled.exit_code == 0);
  const burin::Manifest manifest = burin::read_package(folder / "p.burin").manifest;
  REQUIRE(manifest.programs.size() == 2);
  const auto steps_of = [](const burin::Program& program) {
    std::string text;
    for (const burin::Step& step : program.steps) text += step.kind + " ";
    return text;
  };
  CHECK(steps_of(manifest.programs[0]) == "convolution convolution convolution ");
  CHECK(steps_of(manifest.programs[1]) == "convert convolution convert convolution convert convolution convert ");
  for (const burin::Kernel& kernel : manifest.kernels) {
    if (!kernel.is_convolution() || kernel.planned_batch != 8) continue;
    CAPTURE(kernel.op);
    CHECK(kernel.precision == (kernel.op == "conv2" ? "fp32" : "fp16"));
    CHECK(kernel.kept_in_fp32.empty());  // a person asked for it
  }
  const Outcome verified = verify_on_host(folder);
  CAPTURE(verified.out, verified.err);
  CHECK(verified.exit_code == 0);
  CHECK_THAT(verified.out, Contains("the network, 2 programs, verified"));
}

TEST_CASE("layers_of_a_weights_file_have_precisions_of_their_own") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {{.name = "a"}, {.name = "b"}, {.name = "c"}});
  const Outcome compiled = run_burin({"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / "p.burin",
                                      "--precision", "fp32,b=fp16,c=bf16"});
  CAPTURE(compiled.err);
  REQUIRE(compiled.exit_code == 0);
  const std::map<std::string, std::string> expected = {{"a", "fp32"}, {"b", "fp16"}, {"c", "bf16"}};
  CHECK(precisions_by_inspect(folder) == expected);
  CHECK(verify_on_host(folder, "w.safetensors").exit_code == 0);
  const Outcome planned = run_burin({"inspect", folder / "w.safetensors", "--precision", "fp32,b=fp16", "--json"});
  REQUIRE(planned.exit_code == 0);
  CHECK(nlohmann::json::parse(planned.out)["rows"][1]["precision"] == "fp16");
}

TEST_CASE("auto_keeps_what_overflows_in_fp32_and_inspect_says_why") {
  const ScratchFolder folder;
  write_images(folder);
  const Outcome compiled =
      compile_chain(folder, {"--precision", "auto", "--batch", "8", "--calibrate", folder / "x.npy"}, kOverflowing);
  CAPTURE(compiled.err);
  REQUIRE(compiled.exit_code == 0);
  CHECK_THAT(compiled.err,
             Contains("note: --precision auto: 2 of 3 layers stay in FP32; the network is then off by ") &&
                 Contains("measured in float64 on 3 images (--max-error 0.01)"));
  const auto kept = kept_by_inspect(folder);
  REQUIRE(kept.size() == 2);
  for (const std::string layer : {"conv2", "conv3"}) {
    CAPTURE(layer);
    REQUIRE(kept.contains(layer));
    CHECK_THAT(kept.at(layer), Contains("'relu2' reaches ") && Contains(", beyond 65504, the largest number of FP16"));
  }
  const Outcome inspected = run_burin({"inspect", folder / "p.burin"});
  CHECK_THAT(inspected.out, Contains("\nkept in fp32  because\n") && Contains("\nconv2         'relu2' reaches "));
  CHECK(verify_on_host(folder).exit_code == 0);
  // The same without calibration is wrong.
  REQUIRE(compile_chain(folder, {"--precision", "fp16", "--batch", "8"}, kOverflowing).exit_code == 0);
  CHECK(verify_on_host(folder).exit_code == 1);
  CHECK_THAT(run_burin({"inspect", folder / "p.burin"}).out, !Contains("kept in fp32"));
}

TEST_CASE("calibration_says_what_overflows_in_the_precision_that_was_asked_for") {
  const ScratchFolder folder;
  write_images(folder);
  const Outcome refused = compile_chain(folder, {"--precision", "fp16", "--calibrate", folder / "x.npy"}, kOverflowing);
  CHECK(refused.exit_code == 4);
  CHECK_THAT(refused.err, Contains("error: --precision fp16: beyond 65504, the largest number of FP16: 'relu2' "
                                   "reaches ") &&
                              Contains("--precision auto keeps such layers in FP32, and bf16 has the range of FP32"));
  CHECK_FALSE(std::filesystem::exists(folder / "p.burin"));
  const Outcome sound = compile_chain(folder, {"--precision", "fp16", "--calibrate", "x=" + (folder / "x.npy")});
  CHECK(sound.exit_code == 0);
  CHECK_THAT(sound.err, Contains("note: the network is in half precision off by ") && Contains("on 3 images"));
}

TEST_CASE("calibration_measures_tf32") {
  const ScratchFolder folder;
  write_images(folder);
  const Outcome compiled = compile_chain(
      folder, {"--precision", "tf32", "--batch", "8", "--calibrate", folder / "x.npy", "--kernels", "gathered_rows"});
  CAPTURE(compiled.err);
  REQUIRE(compiled.exit_code == 0);
  CHECK_THAT(compiled.err, Contains("note: the network is in TF32 off by ") && Contains("on 3 images"));
  CHECK(noted_error(compiled.err) > 1e-5);
  CHECK(noted_error(compiled.err) < 1e-3);
  // What is beyond FP16 is not beyond TF32.
  CHECK(compile_chain(folder, {"--precision", "tf32", "--calibrate", folder / "x.npy"}, kOverflowing).exit_code == 0);
}

TEST_CASE("calls_of_libraries_are_for_halves_whose_channels_are_last") {
  const ScratchFolder folder;
  for (const std::vector<std::string>& kind :
       {std::vector<std::string>{"cudnn", "implicit_precomp_gemm"}, {"cudnn", "engine_0"}, {"cublas", "heuristic_1"}}) {
    const std::string weights = folder / "w.safetensors", package = folder / "w.burin";
    write_safetensors(weights, {{.shape = {16, 8, 1, 1}, .pad = 0}});
    const Outcome outcome = run_burin({"compile", weights, "--arch", "sm_90", "-o", package, "--precision", "fp16",
                                       "--layout", "nhwc8", "--kernels", kind[0], "--plan", "algorithm=" + kind[1]});
    CAPTURE(kind, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK_THAT(run_burin({"inspect", package}).out, Contains(kind[1] + " fp16"));
  }
}

TEST_CASE("tf32_is_refused_where_no_kernel_rounds_to_it") {
  const ScratchFolder folder;
  const auto fault = [&](const std::vector<std::string>& more) {
    const Outcome outcome = compile_chain(folder, more);
    CAPTURE(more, outcome.err);
    CHECK(outcome.exit_code == 2);
    return outcome.err;
  };
  CHECK_THAT(fault({"--precision", "tf32", "--kernels", "dense"}),
             Contains("--precision tf32: none of the kernels that --kernels asks for rounds to it; gathered_rows, "
                      "warpgroup_rows, warpgroup_tf32, cudnn and cublas ones do"));
  CHECK_THAT(fault({"--precision", "tf32", "--plan", "groups=1"}),
             Contains("--precision tf32: none of the kernels that --plan asks for rounds to it"));
  CHECK_THAT(fault({"--precision", "tf32", "--layout", "nchw4"}), Contains("kernels that --layout nchw4 asks for"));
  CHECK_THAT(fault({"--precision", "tf32", "--skip-dead-tiles"}), Contains("kernels that --skip-dead-tiles asks for"));
  CHECK(compile_chain(folder, {"--precision", "tf32", "--kernels", "dense,conv2=gathered_rows"}).exit_code == 0);
  CHECK_THAT(fault({"--precision", "tf32", "--layout", "n8c8hw"}),
             Contains("--layout n8c8hw with --precision tf32") && Contains("n2chw"));
  CHECK_THAT(fault({"--precision", "fp32", "--layout", "n4c8hw"}),
             Contains("--layout n4c8hw with --precision fp32") && Contains("n4c8hw"));
}

TEST_CASE("the_error_that_is_noted_is_that_of_the_kernels") {
  const ScratchFolder folder;
  const std::vector<float> images = write_images(folder);
  for (const std::string batch : {"1", "8"}) {
    const Outcome compiled =
        compile_chain(folder, {"--precision", "auto", "--batch", batch, "--calibrate", folder / "x.npy", "--kernels",
                               batch == "1" ? "gathered_rows" : "gathered"});
    CAPTURE(batch, compiled.err);
    REQUIRE(compiled.exit_code == 0);
    const Outcome run = run_burin(
        {"run", folder / "p.burin", "--input", folder / "x.npy", "--output", folder / "y.npy", "--device", "host"});
    CAPTURE(run.err);
    REQUIRE(run.exit_code == 0);
    const std::vector<float> made = burin::read_npy(folder / "y.npy").values;
    const burin::Network network = chain_model().import();
    const std::vector<double> expected = burin::run_reference(network, 3, {images}).front();
    REQUIRE(made.size() == expected.size());
    double worst = 0;
    for (std::size_t image = 0; image < 3; ++image) {
      double error = 0, size = 0;
      for (std::size_t i = image * made.size() / 3; i < (image + 1) * made.size() / 3; ++i) {
        error += (made[i] - expected[i]) * (made[i] - expected[i]);
        size += expected[i] * expected[i];
      }
      worst = std::max(worst, std::sqrt(error / size));
    }
    CHECK(worst > 1e-5);
    CHECK(noted_error(compiled.err) == Approx(worst).epsilon(0.1));  // two digits are noted
  }
}

TEST_CASE("auto_keeps_the_bound_that_is_asked_for") {
  const ScratchFolder folder;
  write_images(folder);
  const Outcome loose = compile_chain(folder, {"--precision", "auto", "--calibrate", folder / "x.npy"});
  REQUIRE(loose.exit_code == 0);
  CHECK(kept_by_inspect(folder).empty());
  const double error = noted_error(loose.err);
  const std::string bound = fmt::format("{:g}", error / 2);
  const Outcome tight =
      compile_chain(folder, {"--precision", "auto", "--calibrate", folder / "x.npy", "--max-error", bound});
  CAPTURE(tight.err);
  REQUIRE(tight.exit_code == 0);
  CHECK(noted_error(tight.err) <= error / 2 * 1.05);
  const auto kept = kept_by_inspect(folder);
  CHECK(!kept.empty());
  for (const auto& [layer, reason] : kept) {
    CHECK_THAT(reason, Contains("in fp16 its outputs are off by ") && Contains(" of their root mean square"));
  }
  CHECK(verify_on_host(folder).exit_code == 0);
  const Outcome impossible = compile_chain(folder, {"--precision", "auto", "--max-error", "1e-12"});
  CHECK(impossible.exit_code == 4);
  CHECK_THAT(impossible.err,
             Contains("--precision auto: the network is off by ") && Contains("--max-error allows 1e-12"));
}

TEST_CASE("auto_without_images_says_that_they_are_random") {
  const ScratchFolder folder;
  const Outcome compiled = compile_chain(folder, {"--precision", "auto"});
  REQUIRE(compiled.exit_code == 0);
  CHECK_THAT(compiled.err, Contains("on 4 random images (--max-error 0.01); --calibrate takes real ones"));
}

TEST_CASE("auto_and_the_layers_of_a_weights_file") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors",
                    {{.name = "a"}, {.name = "b", .weights = std::vector<float>(8 * 4 * 9, 7e4F)}});
  std::vector<float> values = burin::random_tensor(std::int64_t{2} * 4 * 8 * 8, 7);
  burin::write_npy(folder / "x.npy", {2, 4, 8, 8}, values);
  const std::vector<std::string> compile = {"compile", folder / "w.safetensors", "--arch",      "sm_90",
                                            "-o",      folder / "p.burin",       "--precision", "auto"};
  std::vector<std::string> given = compile;
  for (const std::string layer : {"a", "b"}) {
    given.insert(given.end(), {"--calibrate", layer + ".input=" + (folder / "x.npy")});
  }
  const Outcome compiled = run_burin(given);
  CAPTURE(compiled.err);
  REQUIRE(compiled.exit_code == 0);
  CHECK_THAT(compiled.err, Contains("1 of 2 layers stay in FP32; the worst layer is then off by"));
  const std::map<std::string, std::string> expected = {
      {"b", "a weight of 'b' reaches 70000, beyond 65504, the largest number of FP16"}};
  CHECK(kept_by_inspect(folder) == expected);
  CHECK(verify_on_host(folder, "w.safetensors").exit_code == 0);
  std::vector<std::string> half = compile;
  half.insert(half.end(), {"--calibrate", "a.input=" + (folder / "x.npy")});
  const Outcome refused = run_burin(half);
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("no file is given for the input 'b.input'"));
}

TEST_CASE("what_is_kept_does_not_depend_on_the_cache") {
  const ScratchFolder folder;
  folder.write("m.onnx", chain_model(1).bytes());
  const auto compile = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"compile", folder / "m.onnx",  "--arch",  "sm_90",
                                          "-o",      folder / "p.burin", "--cache", folder / "cache"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome compiled = run_burin(arguments);
    CAPTURE(compiled.err);
    REQUIRE(compiled.exit_code == 0);
    return kept_by_inspect(folder).size();
  };
  std::filesystem::create_directory(folder / "cache");
  CHECK(compile({"--precision", "fp32"}) == 0);
  CHECK(compile({"--precision", "auto", "--max-error", "1e-6"}) == 3);
  CHECK(compile({"--precision", "fp32"}) == 0);
}

TEST_CASE("options_of_calibration_that_contradict_others") {
  const ScratchFolder folder;
  write_images(folder);
  burin::write_npy(folder / "last.npy", {1, 12, 12, 3}, std::vector<float>(432, 1));
  const auto fault = [&](const std::vector<std::string>& arguments, int exit_code) {
    const Outcome outcome = compile_chain(folder, arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.exit_code == exit_code);
    CHECK_FALSE(std::filesystem::exists(folder / "p.burin"));
    return outcome.err;
  };
  CHECK_THAT(fault({"--max-error", "0.1"}, 2), Contains("--max-error has no effect here: it bounds the error of "
                                                        "--precision auto, and not of fp32"));
  CHECK_THAT(fault({"--precision", "auto", "--max-error", "0"}, 2),
             Contains("--max-error 0: must be a finite number above 0"));
  CHECK_THAT(fault({"--precision", "auto", "--max-error", "nan"}, 2),
             Contains("--max-error nan: must be a finite number above 0"));
  CHECK_THAT(fault({"--calibrate", folder / "x.npy"}, 2),
             Contains("--calibrate has no effect here: it measures what rounding costs, and --precision is fp32"));
  CHECK_THAT(fault({"--precision", "auto", "--calibrate", folder / "absent.npy"}, 3), Contains("no such file"));
  CHECK_THAT(fault({"--precision", "auto", "--calibrate", "z=" + (folder / "x.npy")}, 2),
             Contains("m.onnx has no input 'z'"));
  CHECK_THAT(fault({"--precision", "auto", "--calibrate", folder / "last.npy"}, 3),
             Contains("has shape [1,12,12,3], but the input 'x' is [N,3,12,12] or [3,12,12]"));
  CHECK_THAT(fault({"--precision", "auto", "--stop-after", "layer", "--dump-dir", folder / "d", "--max-error", "1"}, 2),
             Contains("--stop-after layer"));
  CHECK_THAT(fault({"--precision", "fp16,conv9=fp32"}, 2),
             Contains("--precision: ") && Contains("has no convolution or fully connected layer 'conv9'"));
  CHECK_THAT(fault({"--precision", "fp16,conv1=fp8"}, 4),
             Contains("--precision fp16,conv1=fp8: known are fp32, fp16, bf16, fp16x2, tf32, auto"));
  const Outcome over = run_burin({"compile", folder / "m.onnx", "--arch", "sm_90", "--precision", "auto", "--calibrate",
                                  folder / "x.npy", "-o", folder / "x.npy"});
  CHECK(over.exit_code == 2);
  CHECK_THAT(run_burin({"inspect", folder / "m.onnx", "--precision", "auto"}).err,
             Contains("--precision auto: only compile measures what half precision costs"));
}
