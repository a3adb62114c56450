// Operators that a user gives as CUDA C++.

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/assemble/nvrtc.h"
#include "compiler/cli/npy_tensor.h"
#include "compiler/functions/host_library.h"
#include "compiler/network/reference_network.h"
#include "compiler/reference.h"
#include "ir/error.h"
#include "ir/package/package.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"
#include "test/skip.h"

using namespace burin_test;
using burin::random_tensor;
using burin_test::Contains;

namespace {

// "swoosh.cu": of one input, for floats and doubles. "blend.cu": of two, for floats alone.
constexpr const char* kSwoosh =
    "template <class T>\n__device__ T Swoosh(T x) {\n  return x / (1 + exp(-T(beta) * x));\n}\n";
constexpr const char* kBlend = "__device__ float Blend(float a, float b) { return b < 0 ? a * b : a + 0.5f * b; }\n";

bool has_nvrtc() {
  std::string why;
  return burin::Nvrtc::open(burin::Nvrtc::candidates(), why) != nullptr;
}

bool has_host_compiler() {
  try {
    return !burin::host_compiler().empty();
  } catch (const burin::Error&) {
    return false;
  }
}

#define REQUIRE_COMPILERS()                 \
  if (!has_nvrtc()) BURIN_SKIP("no NVRTC"); \
  if (!has_host_compiler()) BURIN_SKIP("no C++ compiler for the host")

NodeMaker own(OnnxModel& model, const std::string& op, const std::vector<std::string>& inputs,
              const std::string& output) {
  NodeMaker maker = model.add_node(op, inputs, output);
  maker.node.set_domain("my.Domain");
  return maker;
}

void add_conv(OnnxModel& model, const std::string& name, const std::string& input, int out, int in) {
  model.floats(name + "_w", {out, in, 3, 3}, sparse_weights(static_cast<std::size_t>(out * in * 9), name.back()));
  model.add_node("Conv", {input, name + "_w"}, name + "_out")
      .set("pads", std::vector<std::int64_t>(4, 1))
      .node.set_name(name);
}

// x (3x8x8) -> conv1, Swoosh -> conv2, both -> Blend -> Swoosh with another number -> y: conv1, conv2 and Blend with
// its end are all that is launched.
OnnxModel own_model() {
  OnnxModel model = OnnxModel::of_image({3, 8, 8});
  add_conv(model, "conv1", "x", 8, 3);
  own(model, "Swoosh", {"conv1_out"}, "first").set("beta", 1.5F);
  add_conv(model, "conv2", "first", 8, 8);
  own(model, "Blend", {"conv2_out", "first"}, "blend").node.set_name("blend");
  own(model, "Swoosh", {"blend"}, "y").set("beta", -0.5F);
  return model;
}

double swoosh(double x, double beta) { return x / (1 + std::exp(-beta * x)); }

struct Files {
  ScratchFolder folder;
  std::vector<std::string> operators;

  Files() {
    folder.write("m.onnx", own_model().bytes());
    give("my.Domain::Swoosh", "swoosh.cu", kSwoosh);
    give("my.Domain::Blend", "blend.cu", kBlend);
  }
  void give(const std::string& name, const std::string& file, const std::string& text) {
    folder.write(file, text);
    operators.insert(operators.end(), {"--operator", name + "=" + (folder / file)});
  }
  Outcome run(std::vector<std::string> arguments, bool with_operators = true,
              const std::vector<std::string>& environment = {}) const {
    if (with_operators) arguments.insert(arguments.end(), operators.begin(), operators.end());
    return run_burin(arguments, environment);
  }
  Outcome compile(const std::vector<std::string>& more = {"--no-cache"},
                  const std::vector<std::string>& environment = {}) const {
    std::vector<std::string> arguments = {"compile", folder / "m.onnx", "--arch", "sm_90", "-o", folder / "p.burin"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments, true, environment);
  }
  Outcome verify(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"verify", folder / "p.burin", "--against", folder / "m.onnx", "--device",
                                          "host",   "--seed",           "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
};

#define REQUIRE_OK(outcome)                \
  do {                                     \
    CAPTURE((outcome).err, (outcome).out); \
    REQUIRE((outcome).exit_code == 0);     \
  } while (false)

}  // namespace

TEST_CASE("own_operators: nodes and ends of convolutions are compiled, verified and run on the host") {
  REQUIRE_COMPILERS();
  const Files files;
  REQUIRE_OK(files.compile());
  const burin::Package package = burin::read_package(files.folder / "p.burin");
  // No launch for what a convolution, or another operator, can end with.
  std::vector<std::string> steps;
  for (const burin::Step& step : package.manifest.programs.at(0).steps) steps.push_back(step.name);
  CHECK(steps == std::vector<std::string>{"conv1", "conv2", "blend"});
  REQUIRE(package.manifest.kernels.size() == 3);
  for (const burin::Kernel& kernel : package.manifest.kernels) {
    const std::size_t functions = kernel.op == "conv1" ? 1 : kernel.op == "conv2" ? 0 : 2;
    CHECK(kernel.functions.size() == functions);
    // The code is in the kernel's own text: nothing is called, and nothing is left to be linked.
    const std::string ptx = *package.files.at(kernel.binaries.at(0).path).content();
    CHECK(ptx.find("burin_user_") == std::string::npos);
    CHECK(ptx.find(".extern .func") == std::string::npos);
  }

  const Outcome verified = files.verify({"--layers"});
  REQUIRE_OK(verified);
  CHECK_THAT(verified.out, Contains("reference of operator my.Domain::Swoosh: ") &&
                               Contains("swoosh.cu, compiled by ") && Contains(", in float64\n") &&
                               Contains(", in float32\n"));
  CHECK_THAT(verified.out, Contains("the PTX of 3 kernels follows from plan and weights byte for byte"));
  const Outcome json = files.verify({"--json"});
  REQUIRE_OK(json);
  CHECK(nlohmann::json::parse(json.out).at("operators").size() == 2);

  // What comes out is what the functions say, and not only the same twice.
  const std::vector<float> x = random_tensor(2 * 3 * 8 * 8, 1);
  burin::write_npy(files.folder / "x.npy", {2, 3, 8, 8}, x);
  REQUIRE_OK(files.run({"run", files.folder / "p.burin", "--device", "host", "--input", files.folder / "x.npy",
                        "--output", files.folder / "y.npy"}));
  // Zeros behind them are counted, for which the host computes them.
  REQUIRE_OK(files.compile({"--no-cache", "--activations", files.folder / "x.npy"}));
  OnnxModel convolution = OnnxModel::of_image({3, 8, 8});
  add_conv(convolution, "conv1", "x", 8, 3);
  convolution.add_node("Identity", {"conv1_out"}, "y");
  std::vector<double> first = burin::run_reference(convolution.import(), 2, {x})[0];
  for (double& value : first) value = swoosh(value, 1.5);
  OnnxModel second = OnnxModel::of_image({8, 8, 8});
  add_conv(second, "conv2", "x", 8, 8);
  second.add_node("Identity", {"conv2_out"}, "y");
  const std::vector<double> sums =
      burin::run_reference(second.import(), 2, {std::vector<float>(first.begin(), first.end())})[0];
  const std::vector<float> y = burin::read_npy(files.folder / "y.npy").values;
  REQUIRE(y.size() == sums.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double a = sums[i], b = first[i], expected = swoosh(b < 0 ? a * b : a + 0.5 * b, -0.5);
    INFO("element " << i);
    CHECK(std::abs(y[i] - expected) <= 1e-5 * (1 + std::abs(expected)));
  }
}

TEST_CASE("own_operators: half precision, other kernels, and a constant as the second input") {
  REQUIRE_COMPILERS();
  Files files;
  for (const char* precision : {"fp16", "tf32"}) {
    CAPTURE(precision);
    REQUIRE_OK(files.compile({"--precision", precision, "--batch", "8", "--no-cache"}));
    REQUIRE_OK(files.verify({"--images", "2", "--no-code"}));
  }
  OnnxModel model = OnnxModel::of_image({3, 8, 8});
  model.floats("slopes", {1, 3, 1, 1}, {0.5F, -1, 2});
  own(model, "Blend", {"slopes", "x"}, "y");  // the constant comes first
  files.folder.write("m.onnx", model.bytes());
  files.operators = {"--operator", "my.Domain::Blend=" + files.folder / "blend.cu"};
  REQUIRE_OK(files.compile());
  REQUIRE_OK(files.verify({"--layers"}));
  burin::write_npy(files.folder / "x.npy", {3, 8, 8}, std::vector<float>(192, -2));
  REQUIRE_OK(files.run({"run", files.folder / "p.burin", "--device", "host", "--input", files.folder / "x.npy",
                        "--output", files.folder / "y.npy"}));
  CHECK(burin::read_npy(files.folder / "y.npy").values[0] == -1);
  CHECK(burin::read_npy(files.folder / "y.npy").values[64] == 2);
}

TEST_CASE("own_operators: an activation of weights") {
  REQUIRE_COMPILERS();
  Files files;
  files.folder.write("w.npy", "");
  burin::write_npy(files.folder / "w.npy", {4, 3, 3, 3}, sparse_weights(108, 1));
  const std::string name = "Half", file = files.folder / "half.cu";
  files.folder.write("half.cu", "__device__ double Half(double x) { return x < 0 ? 0 : 0.5 * x; }\n");
  const std::vector<std::string> own_half = {"--operator", name + "=" + file};
  std::vector<std::string> arguments = {
      "compile", files.folder / "w.npy",   "--input-shape", "3x8x8", "--arch", "sm_90",
      "-o",      files.folder / "p.burin", "--activation",  "Half"};
  const Outcome unknown = run_burin(arguments);
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err, Contains("--activation 'Half' is not one of none") && Contains("--operator Half=FILE.cu"));
  arguments.insert(arguments.end(), own_half.begin(), own_half.end());
  REQUIRE_OK(run_burin(arguments));
  std::vector<std::string> verify = {
      "verify", files.folder / "p.burin", "--against", files.folder / "w.npy", "--device", "host"};
  const Outcome without = run_burin(verify);
  CHECK(without.exit_code == 4);
  CHECK_THAT(without.err, Contains("'Half'") && Contains("--operator Half=FILE"));
  verify.insert(verify.end(), own_half.begin(), own_half.end());
  const Outcome verified = run_burin(verify);
  REQUIRE_OK(verified);
  CHECK_THAT(verified.out, Contains("in float64"));
}

TEST_CASE("own_operators: one of ONNX's own is replaced") {
  REQUIRE_COMPILERS();
  Files files;
  OnnxModel model = OnnxModel::of_image({3, 8, 8});
  model.add_node("Relu", {"x"}, "y");
  files.folder.write("m.onnx", model.bytes());
  files.operators.clear();
  files.give("Relu", "relu.cu", "__device__ float Relu(float x) { return x < 0 ? -1 : 2 * x; }\n");
  REQUIRE_OK(files.compile());
  std::vector<float> x(192, -3);
  x[0] = 4;
  burin::write_npy(files.folder / "x.npy", {3, 8, 8}, x);
  REQUIRE_OK(files.run({"run", files.folder / "p.burin", "--device", "host", "--input", files.folder / "x.npy",
                        "--output", files.folder / "y.npy"}));
  CHECK(burin::read_npy(files.folder / "y.npy").values[0] == 8);
  CHECK(burin::read_npy(files.folder / "y.npy").values[1] == -1);
}

TEST_CASE("own_operators: inspect names them") {
  if (!has_nvrtc()) BURIN_SKIP("no NVRTC");
  const Files files;
  REQUIRE_OK(files.compile());
  const Outcome table = run_burin({"inspect", files.folder / "p.burin"});
  REQUIRE_OK(table);
  CHECK_THAT(table.out, Contains("my.Domain::Swoosh, beta 1.5   conv1") &&
                            Contains("my.Domain::Swoosh, beta -0.5  blend") &&
                            Contains("my.Domain::Blend              blend"));
  const Outcome json = run_burin({"inspect", files.folder / "p.burin", "--json"});
  REQUIRE_OK(json);
  const auto function = nlohmann::json::parse(json.out).at("network").at("kernels").at(0).at("functions").at(0);
  CHECK(function.at("name") == "my.Domain::Swoosh");
  CHECK(function.at("attributes").at("beta") == 1.5);
}

TEST_CASE("own_operators: a model's nodes without them are refused, and what helps is said") {
  const Files files;
  const Outcome refused = files.run({"compile", files.folder / "m.onnx", "--arch", "sm_90"}, false);
  CHECK(refused.exit_code == 4);
  CHECK_THAT(refused.err, Contains("burin does not know 2 of its operators: my.Domain::Blend (node 'blend')") &&
                              Contains("--operator NAME=FILE.cu"));
  const Outcome coverage = files.run({"inspect", files.folder / "m.onnx", "--coverage"}, false);
  CHECK(coverage.exit_code == 4);
  CHECK_THAT(coverage.out, Contains("--operator NAME=FILE.cu"));
  CHECK(files.run({"inspect", files.folder / "m.onnx", "--coverage"}).exit_code == 0);
}

TEST_CASE("own_operators: what the compilers say is shown with file and line, and nothing is written") {
  Files files;
  const auto check = [&](const std::string& text, const std::string& says) {
    CAPTURE(text);
    files.folder.write("swoosh.cu", text);
    const Outcome outcome = files.compile();
    CHECK(outcome.exit_code == 3);
    CHECK_THAT(outcome.err, Contains("operator my.Domain::Swoosh: NVRTC") && Contains(says) &&
                                Contains("(float Swoosh(float) is looked for)"));
    CHECK_FALSE(std::filesystem::exists(files.folder / "p.burin"));
  };
  if (!has_nvrtc()) BURIN_SKIP("no NVRTC");
  check("\n__device__ float Swoosh(float x) {\n  return x + nothing;\n}\n",
        files.folder / "swoosh.cu" + "(3): error: identifier \"nothing\" is undefined");
  check("__device__ float Swish(float x) { return x; }\n", "\"Swoosh\" is undefined");
  check("__device__ float Swoosh(float x, float y) { return x + y; }\n", "too few arguments");
  check("__device__ int* Swoosh(float) { return nullptr; }\n", "float");
  // What the linker would have to find.
  files.folder.write(
      "swoosh.cu",
      "extern \"C\" __device__ float other(float);\n__device__ float Swoosh(float x) { return other(x); }\n");
  const Outcome linked = files.compile();
  CHECK(linked.exit_code == 4);
  CHECK_THAT(linked.err, Contains("it calls a function that is not in the operator's file"));
}

TEST_CASE("own_operators: what only the GPU's compiler knows is said when it is compiled for the host") {
  REQUIRE_COMPILERS();
  const Files files;
  files.folder.write("swoosh.cu", "__device__ float Swoosh(float x) {\n  return __fsqrt_rn(beta * x);\n}\n");
  REQUIRE_OK(files.compile());
  const Outcome refused = files.verify();
  CHECK(refused.exit_code == 3);
  CHECK_THAT(refused.err, Contains("does not compile its text for the host") && Contains("swoosh.cu:2:"));
  // A large frame would not fit the stack of a kernel's thread.
  files.folder.write("swoosh.cu",
                     "__device__ float Swoosh(float x) {\n  volatile float many[10000];\n"
                     "  for (int i = 0; i < 10000; ++i) many[i] = x;\n  return beta + many[int(x) & 1023];\n}\n");
  REQUIRE_OK(files.compile());
  CHECK_THAT(files.verify().err, Contains("does not compile its text for the host") && Contains("stack frame size"));
}

TEST_CASE("own_operators: options that cannot be") {
  const Files files;
  const std::string model = files.folder / "m.onnx", text = files.folder / "swoosh.cu";
  const auto check = [&](const std::vector<std::string>& given, int code, const std::string& says) {
    std::vector<std::string> arguments = {"compile", model, "--arch", "sm_90", "-o", files.folder / "p.burin"};
    for (const std::string& item : given) arguments.insert(arguments.end(), {"--operator", item});
    const Outcome outcome = run_burin(arguments);
    CHECK(outcome.exit_code == code);
    CHECK_THAT(outcome.err, Contains(says));
    CHECK_FALSE(std::filesystem::exists(files.folder / "p.burin"));
  };
  check({"my.Domain::Swoosh"}, 2, "is not NAME=FILE");
  check({"my.Domain::Sw-oosh=" + text}, 2, "'Sw-oosh' is no name of a function in C++");
  check({"my.Domain::Swoosh=" + files.folder / "absent.cu"}, 3, "cannot be read");
  check({"my.Domain::Swoosh=" + text, "my.Domain::Swoosh=" + text}, 2, "there is a file of this kind");
  const std::string both = "my.Domain::Swoosh=" + text, blend = "my.Domain::Blend=" + files.folder / "blend.cu";
  check({both, blend, "my.Domain::Other=" + text}, 2, "has no effect here: " + model + " has no operator of this name");
  files.folder.write("op.so", "");
  check({"my.Domain::Swoosh=" + files.folder / "op.so", blend}, 2, "a GPU needs the operator's text");
  const Outcome over = files.run({"compile", model, "--arch", "sm_90", "-o", text});
  CHECK(over.exit_code == 2);
  CHECK(read_file(text) == kSwoosh);
  const Outcome without = files.compile({"--no-cache"}, {"BURIN_NVRTC=/nonexistent/libnvrtc.so"});
  CHECK(without.exit_code == 4);
  CHECK_THAT(without.err, Contains("--operator needs NVRTC") && Contains("/nonexistent/libnvrtc.so"));
}

TEST_CASE("own_operators: nodes that no function can compute") {
  Files files;
  const auto check = [&](OnnxModel model, const std::string& says) {
    files.folder.write("m.onnx", model.bytes());
    const Outcome outcome = files.compile();
    CHECK(outcome.exit_code >= 3);
    CHECK(outcome.exit_code <= 4);
    CHECK_THAT(outcome.err, Contains(says));
  };
  OnnxModel three = OnnxModel::of_image({3, 8, 8});
  own(three, "Swoosh", {"x", "x", "x"}, "y");
  check(three, "reads 3 tensors");
  OnnxModel text = OnnxModel::of_image({3, 8, 8});
  own(text, "Swoosh", {"x"}, "y").set("mode", "fast");
  check(text, "attribute 'mode' is of type STRING");
  OnnxModel name = OnnxModel::of_image({3, 8, 8});
  own(name, "Swoosh", {"x"}, "y").set("a b", 1);
  check(name, "no identifier of C++");
  OnnxModel constant = OnnxModel::of_image({3, 8, 8});
  constant.floats("c", {1, 3, 1, 1});
  own(constant, "Swoosh", {"c"}, "d");
  constant.add_node("Add", {"x", "d"}, "y");
  check(constant, "node 'd' (Swoosh)");
}

TEST_CASE("own_operators: the cache knows the text") {
  if (!has_nvrtc()) BURIN_SKIP("no NVRTC");
  const Files files;
  const std::vector<std::string> cached = {"--cache", files.folder / "cache"};
  REQUIRE_OK(files.compile(cached));
  const Outcome again = files.compile(cached);
  REQUIRE_OK(again);
  CHECK_THAT(again.out, Contains("3 kernels (3 from the cache)"));
  // Of the three kernels one has nothing of it.
  files.folder.write("swoosh.cu", std::string(kSwoosh) + "// another\n");
  CHECK_THAT(files.compile(cached).out, Contains("3 kernels (1 from the cache)"));
}

TEST_CASE("own_operators: stages are dumped, and edited ones go back in") {
  REQUIRE_COMPILERS();
  const Files files;
  REQUIRE_OK(files.compile({"--dump-dir", files.folder / "dump"}));
  const auto read = [&](const std::string& stage) {
    std::ifstream file(files.folder / ("dump/conv1/" + stage));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  CHECK_THAT(read("10-layer.txt"), Contains("my.Domain::Swoosh"));
  CHECK_THAT(read("50-specialised.ll"), Contains("@burin_user_my_Domain__Swoosh_") && Contains("!burin.functions"));
  CHECK_THAT(read("60-kernel.ptx"), Contains("ex2.approx") && Contains("begin inline asm"));
  const Outcome from = files.compile({"--from", "conv1=" + files.folder / "dump/conv1/30-plan.txt", "--no-cache"});
  REQUIRE_OK(from);
  CHECK_THAT(from.err, Contains("verified on host"));
  const Outcome module =
      files.compile({"--from", "conv1=" + files.folder / "dump/conv1/50-specialised.ll", "--no-cache"});
  REQUIRE_OK(module);
  CHECK_THAT(module.err, Contains("50-specialised.ll: verified on host"));
}

TEST_CASE("own_operators: a package brings no code for the host, and another text is not taken for its own") {
  REQUIRE_COMPILERS();
  const Files files;
  REQUIRE_OK(files.compile());
  burin::write_npy(files.folder / "x.npy", {1, 3, 8, 8}, random_tensor(192, 1));
  const std::vector<std::string> run = {"run",     files.folder / "p.burin", "--device", "host",
                                        "--input", files.folder / "x.npy",   "--output", files.folder / "y.npy"};
  const Outcome without = files.run(run, false);
  CHECK(without.exit_code == 4);
  CHECK_THAT(without.err, Contains("no package brings code for the host") && Contains("--operator my.Domain::"));
  CHECK_FALSE(std::filesystem::exists(files.folder / "y.npy"));
  files.folder.write("swoosh.cu", std::string(kSwoosh) + "// another\n");
  const Outcome other = files.run(run);
  CHECK(other.exit_code == 3);
  CHECK_THAT(other.err, Contains("the package was compiled from another text of this operator"));
}

TEST_CASE("own_operators: a library stands in for the text on the host") {
  REQUIRE_COMPILERS();
  Files files;
  REQUIRE_OK(files.compile());
  files.folder.write("blend.cpp",
                     "extern \"C\" float burin_value(float a, float b) { return b < 0 ? a * b : a + 0.5f * b; }\n"
                     "extern \"C\" double burin_reference(const double* of) {\n"
                     "  return of[1] < 0 ? of[0] * of[1] : of[0] + 0.5 * of[1];\n}\n");
  const Outcome built = run_program(
      {burin::host_compiler(), "-shared", "-fPIC", "-o", files.folder / "blend.so", files.folder / "blend.cpp"});
  REQUIRE_OK(built);
  files.operators.back() = "my.Domain::Blend=" + (files.folder / "blend.so");
  const Outcome verified = files.verify();
  REQUIRE_OK(verified);
  CHECK_THAT(verified.out,
             Contains("reference of operator my.Domain::Blend: " + (files.folder / "blend.so") + ", in float64"));
  files.operators.insert(files.operators.end(), {"--operator", "my.Domain::Blend=" + (files.folder / "blend.cu")});
  REQUIRE_OK(files.verify());
  const std::string swoosh = files.operators[1];
  files.operators[1] = "my.Domain::Swoosh=" + (files.folder / "blend.so");
  const Outcome several = files.verify();
  CHECK(several.exit_code == 4);
  CHECK_THAT(several.err, Contains("nodes with different attributes are different functions"));
  files.operators[1] = swoosh;
  files.folder.write("blend.so", "no library");
  const Outcome damaged = files.verify();
  CHECK(damaged.exit_code == 3);
  CHECK_THAT(damaged.err, Contains("blend.so cannot be opened"));
}

TEST_CASE("own_operators: other PTX of a function is found") {
  REQUIRE_COMPILERS();
  const Files files;
  REQUIRE_OK(files.compile());
  CHECK(files.verify().err.find("was not compared") == std::string::npos);
  // A package that agrees with itself.
  burin::Package package = burin::read_package(files.folder / "p.burin");
  const burin::KernelFunction& called = package.manifest.kernels.at(0).functions.at(0);
  std::string ptx = *package.files.at(called.path).content();
  const std::size_t ret = ptx.rfind("ret;");
  package.files[called.path] = burin::PackageFile(ptx.insert(ret, "mov.u32 %r1, %clock;\n\t"));
  burin::write_package(package, files.folder / "p.burin");
  const Outcome changed = files.verify();
  CHECK(changed.exit_code == 1);
  CHECK_THAT(changed.out, Contains("is not what NVRTC makes of " + (files.folder / "swoosh.cu")));
  // What another NVRTC has made is said.
  const std::size_t version = ptx.find("release ");
  REQUIRE(version != std::string::npos);
  package.files[called.path] = burin::PackageFile(ptx.replace(version, 12, "release 1.0,"));
  burin::write_package(package, files.folder / "p.burin");
  CHECK_THAT(files.verify().err, Contains("was not compared with its text: NVRTC"));
}

TEST_CASE("own_operators: a wrong result is found") {
  REQUIRE_COMPILERS();
  Files files;
  REQUIRE_OK(files.compile());
  files.folder.write("wrong.cpp",
                     "extern \"C\" float burin_value(float a, float b) { return b < 0 ? a * b : a + 0.4999f * b; }\n"
                     "extern \"C\" double burin_reference(const double* of) {\n"
                     "  return of[1] < 0 ? of[0] * of[1] : of[0] + 0.5 * of[1];\n}\n");
  REQUIRE_OK(run_program(
      {burin::host_compiler(), "-shared", "-fPIC", "-o", files.folder / "wrong.so", files.folder / "wrong.cpp"}));
  files.operators.back() = "my.Domain::Blend=" + (files.folder / "wrong.so");
  const Outcome verified = files.verify();
  CHECK(verified.exit_code == 1);
}
