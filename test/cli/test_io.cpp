// compile --io: networks whose inputs and outputs are halves, from the model to the files that run reads and writes.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "compiler/cli/npy_tensor.h"
#include "compiler/import/import.h"
#include "compiler/network/reference_network.h"
#include "compiler/reference.h"
#include "ir/element_type.h"
#include "ir/package/package.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin::ElementType;
using burin::random_tensor;
using burin::rounded;
using burin_test::Contains;

namespace {

Outcome compile(const ScratchFolder& folder, const OnnxModel& model, const std::vector<std::string>& more) {
  folder.write("m.onnx", model.bytes());
  std::vector<std::string> arguments = {"compile", folder / "m.onnx",  "--arch",    "sm_90",
                                        "-o",      folder / "p.burin", "--no-cache"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments);
}

void compile_model(const ScratchFolder& folder, const OnnxModel& model, const std::vector<std::string>& more) {
  const Outcome outcome = compile(folder, model, more);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
}

Outcome verify_model(const ScratchFolder& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"verify", folder / "p.burin", "--against", folder / "m.onnx", "--device",
                                        "host",   "--seed",           "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments);
}

Outcome run(const ScratchFolder& folder, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run", folder / "p.burin", "--device", "host"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments);
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The input's 7x5 pixels of one channel are an odd number, and so is the output's 35.
OnnxModel odd_model() {
  OnnxModel model = OnnxModel::of_image({1, 7, 5});
  model.floats("w", {1, 1, 3, 3}, {1, 0, -1, 0, 2, 0, 0.5F, 0, 0.25F});
  model.add_node("Conv", {"x", "w"}, "y").set("pads", std::vector<std::int64_t>(4, 1)).node.set_name("conv");
  return model;
}

}  // namespace

TEST_CASE("io: every precision with inputs and outputs of either half, verified step by step") {
  const ScratchFolder folder;
  for (const std::string precision : {"fp32", "fp16", "bf16", "fp16x2", "tf32"}) {
    for (const std::string io : {"fp16", "bf16"}) {
      CAPTURE(precision, io);
      compile_model(folder, branched_model(), {"--batch", "1,3,9", "--precision", precision, "--io", io});
      const Outcome outcome = verify_model(folder, {"--layers"});
      CAPTURE(outcome.out, outcome.err);
      CHECK(outcome.exit_code == 0);
      CHECK_THAT(outcome.out, Contains("the network, 3 programs, verified"));
      CHECK_THAT(outcome.out, Contains("y.convert"));
      CHECK_THAT(outcome.out, Contains("that round"));
    }
  }
}

TEST_CASE("io: images with an odd number of halves lie one behind the other") {
  const ScratchFolder folder;
  for (const std::string precision : {"fp32", "fp16", "fp16x2"}) {
    CAPTURE(precision);
    compile_model(folder, odd_model(), {"--batch", "1,2,9", "--precision", precision, "--io", "fp16"});
    for (const std::string batch : {"1", "2", "7", "9"}) {
      CAPTURE(batch);
      const Outcome outcome = verify_model(folder, {"--layers", "--batch", batch, "--images", "9"});
      CAPTURE(outcome.out, outcome.err);
      CHECK(outcome.exit_code == 0);
    }
  }
}

TEST_CASE("io: loose halves become eight images side by side in one step, and back") {
  const ScratchFolder folder;
  for (const std::string io : {"fp16", "bf16"}) {
    CAPTURE(io);
    compile_model(folder, odd_model(), {"--batch", "9", "--precision", "bf16", "--io", io});
    const auto document = nlohmann::json::parse(run_burin({"inspect", folder / "p.burin", "--json"}).out);
    const auto& program = document["network"]["programs"][0];
    std::vector<std::string> formats;
    for (const auto& buffer : program["buffers"]) formats.push_back(buffer["format"]);
    std::ranges::sort(formats);
    const std::string ends = (io == "fp16" ? "f16" : "bf16") + std::string(" nchw");
    std::vector<std::string> expected = {ends, ends, "bf16 n8c8hw", "bf16 n8c8hw"};
    std::ranges::sort(expected);
    CHECK(formats == expected);
    CHECK(program["steps"].size() == 3);
    CHECK(verify_model(folder, {"--layers"}).exit_code == 0);
  }
}

TEST_CASE("io: siblings that read the caller's input and make the caller's output") {
  OnnxModel model = OnnxModel::of_image({8, 7, 5});
  for (const std::string name : {"a", "b"}) {
    model.floats("w" + name, {8, 8, 1, 1}, random_tensor(64, name == "a" ? 1 : 2));
    model.add_node("Conv", {"x", "w" + name}, name + "_out").node.set_name(name);
  }
  model.add_node("Concat", {"a_out", "b_out"}, "y").set("axis", std::int64_t{1}).node.set_name("both");
  const ScratchFolder folder;
  for (const std::string batch : {"1", "9"}) {
    for (const std::string precision : {"fp32", "fp16", "tf32"}) {
      CAPTURE(batch, precision);
      compile_model(folder, model, {"--batch", batch, "--precision", precision, "--io", "fp16"});
      CHECK_THAT(run_burin({"inspect", folder / "p.burin"}).out, Contains("a+b"));
      const Outcome outcome = verify_model(folder, {"--layers"});
      CAPTURE(outcome.out, outcome.err);
      CHECK(outcome.exit_code == 0);
    }
  }
}

TEST_CASE("io: nchw4 between the layers") {
  const ScratchFolder folder;
  compile_model(folder, chain_model(), {"--batch", "2", "--layout", "nchw4", "--io", "fp16"});
  CHECK(verify_model(folder, {"--layers"}).exit_code == 0);
}

TEST_CASE("io: run reads and writes float16, and of bfloat16 the bits") {
  const ScratchFolder folder;
  compile_model(folder, model_of_two_inputs(), {"--batch", "2", "--io", "fp16"});
  const std::vector<float> a = rounded(ElementType::f16, random_tensor(3 * 2 * 6 * 6, 1)),
                           b = rounded(ElementType::f16, random_tensor(3 * 2 * 6 * 6, 2));
  burin::write_npy(folder / "a.npy", {3, 2, 6, 6}, a, ElementType::f16);
  burin::write_npy(folder / "b.npy", {3, 2, 6, 6}, b);  // float32 is rounded: here it is the same
  const std::vector<std::string> files = {"--input",  "a=" + (folder / "a.npy"), "--input",  "b=" + (folder / "b.npy"),
                                          "--output", "s=" + (folder / "s.npy"), "--output", "r=" + (folder / "r.npy")};
  const Outcome outcome = run(folder, files);
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("s.npy: float16 [3,") && Contains("of output 's' on host"));
  CHECK_THAT(content_of(folder / "s.npy"), Contains("'descr': '<f2'"));
  const auto expected = burin::run_reference(burin::import_network(folder / "m.onnx"), 3, {a, b});
  const auto check_near = [](const std::vector<float>& values, const std::vector<double>& wanted, double epsilon) {
    REQUIRE(values.size() == wanted.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      INFO("element " << i);
      CHECK(std::abs(values[i] - wanted[i]) <= epsilon * (0.01 + std::abs(wanted[i])));
    }
  };
  check_near(burin::read_npy(folder / "s.npy").values, expected[0], 0x1p-10);
  check_near(burin::read_npy(folder / "r.npy").values, expected[1], 0x1p-10);

  compile_model(folder, model_of_two_inputs(), {"--batch", "2", "--io", "bf16"});
  const std::vector<float> as = rounded(ElementType::bf16, a), bs = rounded(ElementType::bf16, b);
  burin::write_npy(folder / "a.npy", {3, 2, 6, 6}, as, ElementType::bf16);
  burin::write_npy(folder / "b.npy", {3, 2, 6, 6}, bs);
  const Outcome bits = run(folder, files);
  CAPTURE(bits.out, bits.err);
  REQUIRE(bits.exit_code == 0);
  CHECK_THAT(bits.out, Contains("s.npy: uint16, the bits of bfloat16, [3,"));
  CHECK_THAT(content_of(folder / "s.npy"), Contains("'descr': '<u2'"));
  const auto of_bf16 = burin::run_reference(burin::import_network(folder / "m.onnx"), 3, {as, bs});
  check_near(burin::read_npy(folder / "s.npy", ElementType::bf16).values, of_bf16[0], 0x1p-7);

  // Elsewhere bits are no numbers.
  compile_model(folder, model_of_two_inputs(), {"--batch", "2", "--io", "fp16"});
  const Outcome refused = run(folder, files);
  CHECK(refused.exit_code == 3);
  CHECK_THAT(refused.err, Contains("a.npy: holds uint16, and floating-point numbers are wanted"));
}

TEST_CASE("io: what a file holds beyond the largest half is a note") {
  const ScratchFolder folder;
  compile_model(folder, odd_model(), {"--io", "fp16"});
  std::vector<float> x(35, 1);
  x[3] = 70000;
  burin::write_npy(folder / "x.npy", {1, 7, 5}, x);
  const Outcome outcome = run(folder, {"--input", folder / "x.npy", "--output", folder / "y.npy"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("x.npy: 1 of 35 values become infinite") && Contains("65504"));
}

TEST_CASE("io: inspect says what inputs and outputs are, and fp32 is what there was without the option") {
  const ScratchFolder folder;
  compile_model(folder, branched_model(), {"--io", "bf16"});
  const Outcome text = run_burin({"inspect", folder / "p.burin"});
  CHECK_THAT(text.out, Contains("inputs: x (3x12x12 bf16 nchw); outputs: y (5 bf16 nchw)"));
  CHECK_THAT(text.out, Contains("x.f32.convert  ") && Contains("y.convert  "));
  const auto document = nlohmann::json::parse(run_burin({"inspect", folder / "p.burin", "--json"}).out);
  const auto& buffers = document["network"]["programs"][0]["buffers"];
  CHECK(buffers[0]["format"] == "bf16 nchw");
  CHECK(buffers[0]["bytes"] == 3 * 12 * 12 * 2);
  CHECK(buffers[1]["format"] == "bf16 nchw");
  CHECK(buffers[1]["bytes"] == 5 * 2);

  compile_model(folder, branched_model(), {});
  const std::string without = content_of(folder / "p.burin");
  compile_model(folder, branched_model(), {"--io", "fp32"});
  CHECK(content_of(folder / "p.burin") == without);
  CHECK_THAT(run_burin({"inspect", folder / "p.burin"}).out, Contains("inputs: x (3x12x12); outputs: y (5)"));
}

TEST_CASE("io: options that cannot be") {
  const ScratchFolder folder;
  const Outcome unknown = compile(folder, branched_model(), {"--io", "fp16x2"});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err, Contains("--io 'fp16x2' is not one of fp32, fp16, bf16"));
  const Outcome layers = compile(folder, branched_model(), {"--io", "fp16", "--layer", "conv1"});
  CHECK(layers.exit_code == 2);
  CHECK_THAT(layers.err, Contains("--io fp16: ") && Contains("is compiled layer by layer") &&
                             Contains("--precision and --layout say that"));
  write_safetensors(folder / "w.safetensors", {TestLayer{.name = "a"}});
  const Outcome weights =
      run_burin({"compile", folder / "w.safetensors", "--arch", "sm_90", "--io", "bf16", "-o", folder / "w.burin"});
  CHECK(weights.exit_code == 2);
  CHECK_THAT(weights.err, Contains("--io bf16: ") && Contains("w.safetensors is compiled layer by layer"));
}

TEST_CASE("io: precision by measurement counts what inputs and outputs are rounded to") {
  const ScratchFolder folder;
  compile_model(folder, branched_model(), {"--precision", "auto", "--io", "bf16", "--max-error", "0.05"});
  CHECK(verify_model(folder, {"--layers"}).exit_code == 0);
  // Nothing that stays in FP32 makes BF16 more exact.
  const Outcome outcome =
      compile(folder, branched_model(), {"--precision", "auto", "--io", "bf16", "--max-error", "1e-6"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 4);
  CHECK_THAT(outcome.err,
             Contains("with every layer in FP32 that may be") && Contains("--io bf16 rounds its inputs and outputs"));
  burin::write_npy(folder / "x.npy", {1, 3, 12, 12}, random_tensor(432, 1), ElementType::bf16);
  compile_model(folder, branched_model(), {"--precision", "auto", "--io", "bf16", "--calibrate", folder / "x.npy"});
}

TEST_CASE("io: a package whose halves were edited is refused") {
  const ScratchFolder folder;
  compile_model(folder, branched_model(), {"--io", "fp16"});
  const auto refused = [&](const std::function<void(burin::Manifest&)>& edit) {
    burin::Package package = burin::read_package(folder / "p.burin");
    edit(package.manifest);
    for (burin::Program& program : package.manifest.programs) complete(program);
    return burin::verify(package);
  };
  const auto has = [](const std::vector<std::string>& faults, const std::string& part) {
    return std::ranges::any_of(faults, [&](const std::string& fault) { return fault.find(part) != std::string::npos; });
  };
  CHECK(refused([](burin::Manifest&) {}).empty());
  // What the kernel takes is of another type.
  CHECK(has(refused([](burin::Manifest& m) { m.programs[0].buffers[0].format.element = ElementType::bf16; }),
            "its input lies in bf16 nchw, and the kernel takes f16 nchw"));
  CHECK(has(refused([](burin::Manifest& m) { m.programs[0].buffers[0].shape = {3, 12, 11}; }),
            "which do not lie within an image of buffer 0 (x)"));
  CHECK(has(refused([](burin::Manifest& m) { m.programs[0].steps[0].kind = "convolution"; }),
            "which holds f16 nchw: a convert of all of it may"));
}

TEST_CASE("io: a conversion's plan goes back in with --from, and only as it was") {
  const ScratchFolder folder;
  compile_model(folder, odd_model(), {"--io", "fp16", "--dump-dir", folder / "stages"});
  const std::string plan = content_of(folder / "stages/x.f32.convert/30-plan.txt");
  CHECK_THAT(plan, Contains("tensor 0: input, f16 nchw 1x7x5, 35 halves, aligned 2"));
  compile_model(folder, odd_model(),
                {"--io", "fp16", "--from", "x.f32.convert=" + (folder / "stages/x.f32.convert/30-plan.txt")});
  CHECK(verify_model(folder).exit_code == 0);
  std::string edited = plan;
  edited.replace(edited.find("aligned 2"), 9, "aligned 4");
  folder.write("edited.txt", edited);
  const Outcome outcome =
      compile(folder, odd_model(), {"--io", "fp16", "--from", "x.f32.convert=" + (folder / "edited.txt")});
  CHECK(outcome.exit_code != 0);
  CHECK_THAT(outcome.err, Contains("distances 35 between images"));
}
