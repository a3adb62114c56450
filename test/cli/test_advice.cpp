// Mistakes that everybody makes once: the message says what was meant, or what to do.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler/cli/npy_tensor.h"
#include "compiler/reference.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;

namespace {

// The error of a command that ends with `exit_code`.
std::string error_of(const std::vector<std::string>& arguments, int exit_code) {
  const Outcome outcome = run_burin_without_gpu(arguments);
  CAPTURE(arguments, outcome.out, outcome.err);
  CHECK(outcome.exit_code == exit_code);
  const std::size_t error = outcome.err.find("burin: error: ");
  CHECK(error != std::string::npos);
  return outcome.err.substr(std::min(error, outcome.err.size()));
}

// A package of the branched model, and one of a layer.
struct Compiled {
  ScratchFolder folder;
  std::string model = folder.write("m.onnx", branched_model().bytes());
  std::string weights = folder / "w.safetensors", network = folder / "m.burin", layers = folder / "w.burin";

  Compiled() {
    write_safetensors(weights, {TestLayer{}});
    REQUIRE(run_burin({"compile", model, "--arch", "sm_90", "-o", network}).exit_code == 0);
    REQUIRE(run_burin({"compile", weights, "--arch", "sm_90", "-o", layers}).exit_code == 0);
  }
};

// An .npy file of integers, all zero.
std::string npy_of_type(const ScratchFolder& folder, const std::string& type, int bytes, const std::string& shape,
                        int elements) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize(118, ' ');
  header.back() = '\n';
  std::string content("\x93NUMPY\x01\x00\x76\x00", 10);
  return folder.write("x.npy", content + header + std::string(static_cast<std::size_t>(bytes * elements), '\0'));
}

}  // namespace

TEST_CASE("a_file_of_pytorch_is_told_what_becomes_of_it") {
  const ScratchFolder folder;
  const std::string model = folder.write("model.pt", "\x80\x02}q");
  for (const char* command : {"compile", "inspect"}) {
    CHECK_THAT(error_of({command, model}, 3), Contains("model.pt: is a PyTorch file") &&
                                                  Contains("torch.onnx.export(model.eval()") &&
                                                  Contains("safetensors.torch.save_file(model.state_dict()"));
  }
  CHECK_THAT(error_of({"run", model, "--input", "x.npy", "--output", "y.npy"}, 3), Contains("is a PyTorch file"));
}

TEST_CASE("capitals_in_the_name_of_a_model_do_not_matter") {
  const ScratchFolder folder;
  const std::string model = folder.write("Net.ONNX", branched_model().bytes());
  REQUIRE(run_burin({"compile", model, "--arch", "sm_90"}, {}, folder.path()).exit_code == 0);
  CHECK(folder.entries() == std::vector<std::string>{"Net.ONNX", "Net.burin"});
  const Outcome verified = run_burin({"verify", folder / "Net.burin", "--against", model, "--device", "host"});
  CAPTURE(verified.err);
  CHECK(verified.exit_code == 0);
}

TEST_CASE("a_model_in_the_place_of_a_package_must_be_compiled_first") {
  const Compiled made;
  const auto advice = [](const std::string& path, const std::string& kind, const std::string& name) {
    return Contains(path + ": is " + kind + ", and a package is wanted: compile it first (burin compile " + path +
                    " -o " + name + ".burin)");
  };
  for (const auto& [path, kind, name] :
       {std::tuple{made.model, "a model", "m"}, std::tuple{made.weights, "a file of weights", "w"}}) {
    CHECK_THAT(error_of({"run", path, "--input", "x.npy", "--output", "y.npy"}, 3), advice(path, kind, name));
    CHECK_THAT(error_of({"verify", path, "--against", path}, 3), advice(path, kind, name));
    CHECK_THAT(error_of({"bench", path}, 3), advice(path, kind, name));
    CHECK_THAT(error_of({"inspect", path, "--tuning"}, 2),
               Contains("--tuning has no effect here") && Contains("only tune measures plans"));
  }
}

TEST_CASE("a_package_in_the_place_of_a_model_names_what_it_was_compiled_from") {
  const Compiled made;
  CHECK_THAT(error_of({"compile", made.network, "--arch", "sm_90"}, 3),
             Contains("m.burin: is a package already") && Contains("it was compiled from m.onnx"));
  CHECK_THAT(error_of({"verify", made.layers, "--against", made.network}, 3),
             Contains("--against " + made.network + ": is a package already") && Contains("compiled from m.onnx"));
}

TEST_CASE("a_wrong_name_of_an_input_lists_the_right_ones_the_nearest_first") {
  const Compiled made;
  burin::write_npy(made.folder / "x.npy", {3, 12, 12}, burin::random_tensor(3 * 12 * 12, 1));
  const std::string file = made.folder / "x.npy";
  CHECK_THAT(error_of({"run", made.network, "--input", "xx=" + file, "--output", "y.npy"}, 2),
             Contains("the network has no input 'xx'") && Contains("'x'"));
  const std::string two = made.folder.write("two.onnx", model_of_two_inputs().bytes());
  REQUIRE(run_burin({"compile", two, "--arch", "sm_90", "-o", made.folder / "two.burin"}).exit_code == 0);
  CHECK_THAT(error_of({"run", made.folder / "two.burin", "--input", "bb=" + file, "--output", "y.npy"}, 2),
             Contains("the network has no input 'bb'; did you mean 'b'?; give NAME=FILE for each of 'b', 'a'"));
  CHECK_THAT(error_of({"run", made.layers, "--layer", "cnov", "--input", file, "--output", "y.npy"}, 2),
             Contains("no layer 'cnov'; did you mean 'conv'?; it has 'conv'"));
}

TEST_CASE("images_with_channels_last_are_recognised") {
  const Compiled made;
  const auto error_of_shape = [&](const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    burin::write_npy(made.folder / "x.npy", shape, burin::random_tensor(count, 1));
    return error_of({"run", made.network, "--input", made.folder / "x.npy", "--output", made.folder / "y.npy"}, 3);
  };
  CHECK_THAT(error_of_shape({2, 12, 12, 3}),
             Contains("its axes are in another order, with the channels last: in Python, "
                      "numpy.transpose(x, (0, 3, 1, 2)) gives the shape [2,3,12,12]"));
  CHECK_THAT(error_of_shape({12, 12, 3}), Contains("numpy.transpose(x, (2, 0, 1)) gives the shape [3,12,12]"));
  CHECK_THAT(error_of_shape({12, 3, 12}), Contains("in another order: in Python, numpy.transpose(x, (1, 0, 2))"));
  CHECK_THAT(error_of_shape({1, 3, 12, 11}), !Contains("in another order"));
  CHECK_THAT(error_of_shape({1, 1, 3, 12, 12}), !Contains("in another order"));
}

TEST_CASE("integers_are_called_by_their_name_and_converted_by_a_line_of_python") {
  const Compiled made;
  for (const auto& [type, bytes, name] :
       {std::tuple{"<i8", 8, "int64"}, std::tuple{"|u1", 1, "uint8"}, std::tuple{"|b1", 1, "bool"}}) {
    const std::string file = npy_of_type(made.folder, type, bytes, "3, 12, 12", 3 * 12 * 12);
    CHECK_THAT(error_of({"run", made.network, "--input", file, "--output", made.folder / "y.npy"}, 3),
               Contains(std::string("x.npy: holds ") + name + ", and floating-point numbers are wanted") &&
                   Contains(".astype(\"float32\")"));
  }
}

TEST_CASE("architectures_that_were_meant_and_those_that_run_ptx") {
  const auto of = [](const std::string& arch) { return error_of({"compile", "x.npy", "--arch", arch}, 4); };
  CHECK_THAT(of("sm90"), Contains("--arch sm90: ") && Contains("did you mean 'sm_90'?"));
  CHECK_THAT(of("90"), Contains("did you mean 'sm_90'?"));
  CHECK_THAT(of("sm_90a"), Contains("did you mean 'sm_90'?"));
  CHECK_THAT(of("SM_80"), Contains("did you mean 'sm_80'?"));
  CHECK_THAT(of("sm_100"),
             Contains("machine code for sm_75, sm_80, sm_86, sm_89, sm_90") &&
                 Contains("--arch sm_90 also puts PTX into the package, which the driver of a newer GPU"));
  CHECK_THAT(of("sm_120"), Contains("--arch sm_89 also puts PTX"));
  CHECK_THAT(of("sm_70"), Contains("machine code for sm_75") && !Contains("PTX"));
  CHECK_THAT(error_of({"inspect", "x.npy", "--arch", "sm90"}, 4), Contains("did you mean 'sm_90'?"));
}

TEST_CASE("verify_against_another_model_says_what_the_package_was_compiled_from") {
  const Compiled made;
  const std::string two = made.folder.write("two.onnx", model_of_two_inputs().bytes());
  CHECK_THAT(error_of({"verify", made.network, "--against", two, "--device", "host"}, 3),
             Contains("two.onnx") && Contains("the package was compiled from m.onnx"));
  const std::string other = made.folder.write("other.onnx", branched_model(1.01F).bytes());
  CHECK_THAT(error_of({"verify", made.network, "--against", other, "--device", "host"}, 1),
             Contains("does not compute what") && Contains("; the package was compiled from m.onnx"));
  write_safetensors(made.folder / "v.safetensors", {TestLayer{.shape = {8, 4, 1, 1}, .pad = 0}});
  CHECK_THAT(error_of({"verify", made.layers, "--against", made.folder / "v.safetensors"}, 3),
             Contains("are [8,4,1,1], but the package was compiled from [8,4,3,3]") &&
                 Contains("; the package was compiled from w.safetensors"));
  CHECK_THAT(error_of({"verify", made.network, "--against", made.weights}, 3),
             Contains("is no .onnx file") && Contains("; the package was compiled from m.onnx"));
}

TEST_CASE("bench_without_a_gpu_says_once_what_can_be_done") {
  const Compiled made;
  const std::string instead = "burin inspect " + made.network + " shows the predicted times, and burin verify checks";
  for (const std::vector<std::string>& device :
       std::vector<std::vector<std::string>>{{}, {"--device", "auto"}, {"--device", "cuda:1"}}) {
    std::vector<std::string> arguments = {"bench", made.network};
    arguments.insert(arguments.end(), device.begin(), device.end());
    const Outcome outcome = run_burin_without_gpu(arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 5);
    CHECK_THAT(outcome.err, burin_test::StartsWith("burin: error: bench measures on a GPU, and none was found") &&
                                Contains(instead) && !Contains("or use --device host"));
  }
  CHECK_THAT(error_of({"bench", made.network, "--device", "host"}, 2),
             Contains("--device host: bench measures on a GPU") && Contains(instead));
}

TEST_CASE("tune_without_a_gpu_does_not_send_to_an_option_that_compile_has_not") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  const std::vector<std::string> compile = {"tune", folder / "w.safetensors", "--arch", "sm_90",
                                            "-o",   folder / "p.burin"};
  for (const char* driver : {"CUDA_VISIBLE_DEVICES=", "BURIN_CUDA_DRIVER=absent.so"}) {
    const Outcome outcome = run_burin(compile, {driver});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 5);
    CHECK_THAT(outcome.err, Contains("tune measures on a GPU, and none was found") && !Contains("--device") &&
                                Contains("compile goes by the cost models"));
  }
}

TEST_CASE("help_speaks_of_networks_first") {
  const std::string help = run_burin({"--help"}).out;
  CHECK(help.find("network") < help.find("layer"));
  CHECK_THAT(help, Contains("burin compile model.onnx"));
  for (const char* command : {"compile", "inspect", "run", "verify", "bench"}) {
    const std::string of_command = run_burin({command, "--help"}).out;
    const std::size_t first = std::min(of_command.find("model"), of_command.find("network"));
    CAPTURE(of_command);
    CHECK(first < of_command.find("layer"));
  }
}

// compile leaves a pool out of a convolution whose kernel then is faster; inspect --simplify must not fuse it either.
TEST_CASE("inspect_simplify_shows_the_graph_that_is_compiled") {
  const ScratchFolder folder;
  OnnxModel model = OnnxModel::of_image({512, 14, 14});
  model.floats("w", {512, 512, 1, 1}, std::vector<float>(512 * 512, 0.5F));  // no zeros: not for baked code
  model.add_node("Conv", {"x", "w"}, "c").node.set_name("conv");
  model.add_node("MaxPool", {"c"}, "y")
      .set("kernel_shape", std::vector<std::int64_t>{12, 12})  // more pixels than a tile of conv_dense holds
      .set("strides", std::vector<std::int64_t>{2, 2})
      .node.set_name("pool");
  const std::string file = folder.write("m.onnx", model.bytes());
  REQUIRE(run_burin({"compile", file, "--arch", "sm_90", "--dump-dir", folder / "d", "-o", folder / "m.burin",
                     "--stop-after", "cubin"})
              .exit_code == 0);
  const auto package = nlohmann::json::parse(run_burin({"inspect", folder / "m.burin", "--json"}).out);
  const auto shown = nlohmann::json::parse(run_burin({"inspect", file, "--simplify", "--memory", "--json"}).out);
  std::vector<std::string> compiled, inspected;
  for (const auto& step : package["network"]["programs"][0]["steps"]) compiled.push_back(step["name"]);
  for (const auto& step : shown["memory"][0]["steps"]) inspected.push_back(step["name"]);
  CHECK(compiled == std::vector<std::string>{"conv", "pool"});
  CHECK(inspected == compiled);
}

// Where tensors are halves kernels are others, and so are the formats that they are planned in.
TEST_CASE("inspect_simplify_shows_the_kernels_of_halves_that_are_compiled") {
  const ScratchFolder folder;
  OnnxModel model = OnnxModel::of_image({32, 40, 40});
  model.floats("w", {64, 32, 3, 3}, sparse_weights(64 * 32 * 9, 3));
  model.add_node("Conv", {"x", "w"}, "c").set("pads", std::vector<std::int64_t>(4, 1)).node.set_name("conv");
  model.add_node("Relu", {"c"}, "r");
  model.add_node("MaxPool", {"r"}, "y")
      .set("kernel_shape", std::vector<std::int64_t>{2, 2})
      .set("strides", std::vector<std::int64_t>{2, 2})
      .node.set_name("pool");
  const std::string file = folder.write("m.onnx", model.bytes()), package = folder / "m.burin";
  const std::vector<std::pair<std::string, std::string>> kinds = {{"fp16", "1"}, {"fp16", "8"}, {"fp16x2", "3"}};
  for (const auto& [precision, batch] : kinds) {
    INFO(precision << ", batch " << batch);
    REQUIRE(run_burin({"compile", file, "--arch", "sm_90", "--precision", precision, "--batch", batch, "-o", package})
                .exit_code == 0);
    const Outcome outcome =
        run_burin({"inspect", file, "--simplify", "--precision", precision, "--batch", batch, "--json"});
    REQUIRE(outcome.exit_code == 0);
    const nlohmann::json shown = nlohmann::json::parse(outcome.out)["rows"];
    const nlohmann::json compiled = nlohmann::json::parse(run_burin({"inspect", package, "--json"}).out)["rows"];
    REQUIRE(shown.size() == 1);
    REQUIRE(compiled.size() == 1);
    for (const char* key : {"provider", "plan", "input_layout", "predicted_us"}) {
      INFO(key);
      CHECK(shown[0].at(key) == compiled[0].at(key));
    }
    // A kernel that is not baked pools lines of eight images, and one that is pools pairs.
    if (batch == "8") CHECK(shown[0].at("provider") == "conv_warpgroup");
    if (precision == "fp16x2") CHECK(shown[0].at("provider") == "conv_baked");
    const auto steps = nlohmann::json::parse(run_burin({"inspect", package, "--json"}).out)["network"]["programs"][0];
    std::vector<std::string> names;
    for (const auto& step : steps["steps"]) names.push_back(step["name"]);
    if (batch != "1") CHECK(std::ranges::find(names, "pool") == names.end());
    CHECK(run_burin({"verify", package, "--against", file, "--device", "host", "--layers"}).exit_code == 0);
  }
}
