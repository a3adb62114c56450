// compile --kernels: which convolutions of a network have their weights as data.

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

Outcome compile_branched(const ScratchFolder& folder, const std::vector<std::string>& more) {
  folder.write("m.onnx", branched_model().bytes());
  std::vector<std::string> arguments = {"compile", folder / "m.onnx",  "--arch",    "sm_90",
                                        "-o",      folder / "p.burin", "--no-cache"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments);
}

// x (300 features) -> fc -> y (40), most of whose weights are zeros.
OnnxModel linear_model() {
  constexpr int kIn = 300, kOut = 40;
  OnnxModel model = OnnxModel::of_image({kIn});
  std::vector<float> weights(kOut * kIn, 0.0F);
  for (std::size_t i = 0; i < weights.size(); i += 13) weights[i] = 0.5F;
  model.floats("w", {kOut, kIn}, std::move(weights));
  model.add_node("Gemm", {"x", "w"}, "y").set("transB", 1).node.set_name("fc");
  return model;
}

// Providers of the convolutions of the first program, in the order of its steps, and what each was compared with.
std::vector<std::pair<std::string, nlohmann::json>> convolutions(const ScratchFolder& folder) {
  const auto document = nlohmann::json::parse(run_burin({"inspect", folder / "p.burin", "--json"}).out);
  const nlohmann::json& network = document["network"];
  const nlohmann::json& program = network["programs"][0];
  std::vector<std::pair<std::string, nlohmann::json>> found;
  for (const nlohmann::json& step : program["steps"]) {
    if (step["kind"] != "convolution") continue;
    std::string provider;
    for (const nlohmann::json& kernel : network["kernels"]) {
      if (kernel["symbol"] == step["kernel"]) provider = kernel["provider"];
    }
    found.emplace_back(provider, step["options"]);
  }
  return found;
}

}  // namespace

TEST_CASE("kernels_with_weights_as_data_compute_a_network") {
  const ScratchFolder folder;
  const Outcome compiled = compile_branched(folder, {"--batch", "1,3", "--kernels", "dense"});
  CAPTURE(compiled.err);
  REQUIRE(compiled.exit_code == 0);
  const auto found = convolutions(folder);
  REQUIRE(found.size() == 3);
  for (const auto& [kernel, options] : found) {
    CHECK(kernel == "conv_dense");
    REQUIRE(options.size() == 1);
    CHECK(options[0]["provider"] == "conv_dense");
    CHECK(options[0]["source"] == "model");
    CHECK(options[0]["us"] > 0);
  }
  const Outcome verified =
      run_burin({"verify", folder / "p.burin", "--against", folder / "m.onnx", "--device", "host", "--layers"});
  CAPTURE(verified.out, verified.err);
  CHECK(verified.exit_code == 0);
  CHECK_THAT(verified.out, Contains("the network, 2 programs, verified"));
  const Outcome inspected = run_burin({"inspect", folder / "p.burin"});
  CHECK_THAT(inspected.out, Contains("  conv_dense, "));
}

TEST_CASE("convolutions_of_every_kind_read_parts_of_larger_tensors") {
  for (const int extent : {8, 7}) {  // whose planes are aligned, or not
    for (const std::vector<std::string>& kind :
         std::vector<std::vector<std::string>>{{"--kernels", "baked"},
                                               {"--kernels", "baked", "--plan", "staging=bulk"},
                                               {"--kernels", "baked", "--plan", "staging=shared"},
                                               {"--kernels", "baked", "--skip-dead-tiles"},
                                               {"--kernels", "baked", "--precision", "fp16"},
                                               {"--kernels", "dense"},
                                               {"--kernels", "streamed"}}) {
      if (extent == 7 && kind.back() == "staging=bulk") continue;
      const ScratchFolder folder;
      folder.write("m.onnx", dense_model(extent).bytes());
      std::vector<std::string> arguments = {"compile",          folder / "m.onnx", "--arch", "sm_90",     "-o",
                                            folder / "p.burin", "--batch",         "1,3",    "--no-cache"};
      arguments.insert(arguments.end(), kind.begin(), kind.end());
      const Outcome compiled = run_burin(arguments);
      CAPTURE(extent, kind, compiled.err);
      REQUIRE(compiled.exit_code == 0);
      const Outcome verified =
          run_burin({"verify", folder / "p.burin", "--against", folder / "m.onnx", "--device", "host", "--layers"});
      CAPTURE(verified.out, verified.err);
      CHECK(verified.exit_code == 0);
      const auto document = nlohmann::json::parse(run_burin({"inspect", folder / "p.burin", "--json"}).out);
      int convolutions = 0, copies = 0;
      for (const nlohmann::json& step : document["network"]["programs"][0]["steps"]) {
        convolutions += step["kind"] == "convolution";
        copies += step["kind"] == "copy";
      }
      CHECK(convolutions == 6);
      CHECK(copies == 0);
    }
  }
}

TEST_CASE("kernels_of_single_layers_are_chosen_by_their_names") {
  const ScratchFolder folder;
  REQUIRE(compile_branched(folder, {"--kernels", "baked,conv3=dense"}).exit_code == 0);
  const auto found = convolutions(folder);
  REQUIRE(found.size() == 3);
  CHECK(found[0].first == "conv_baked");
  CHECK(found[1].first == "conv_baked");
  CHECK(found[2].first == "conv_dense");
  CHECK(found[0].second.size() == 1);
  const Outcome verified =
      run_burin({"verify", folder / "p.burin", "--against", folder / "m.onnx", "--device", "host"});
  CAPTURE(verified.out, verified.err);
  CHECK(verified.exit_code == 0);
}

TEST_CASE("a_small_sparse_convolution_stays_baked") {
  const ScratchFolder folder;
  REQUIRE(compile_branched(folder, {}).exit_code == 0);
  const auto found = convolutions(folder);
  REQUIRE(found.size() == 3);
  const auto& [kernel, options] = found.front();  // the two behind it pool, and take about as long in any way
  CHECK(kernel == "conv_baked");
  REQUIRE(options.size() > 1);  // others were compared all the same
  CHECK(options[0]["us"].get<double>() <= options[1]["us"].get<double>());
}

TEST_CASE("kernels_that_there_are_not") {
  const ScratchFolder folder;
  const auto fault = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = compile_branched(folder, arguments);
    CHECK(outcome.exit_code == 2);
    return outcome.err;
  };
  CHECK_THAT(fault({"--kernels", "wide"}),
             Contains("--kernels wide: 'wide' is no kind of kernel; there are auto, baked"));
  CHECK_THAT(fault({"--kernels", "conv9=dense"}),
             Contains("m.onnx has no convolution or fully connected layer 'conv9'"));
  CHECK_THAT(fault({"--kernels", "linear_sparse"}), Contains("chosen by name: NAME=linear_sparse"));
  CHECK_THAT(fault({"--kernels", "conv3=linear"}),
             Contains("--kernels conv3: it is a convolution layer, whose kinds are auto, baked"));
}

TEST_CASE("kernels_of_fully_connected_layers_are_chosen_by_name") {
  const ScratchFolder folder;
  folder.write("m.onnx", linear_model().bytes());
  const auto compile = [&](const std::string& kernels, const std::string& precision) {
    return run_burin({"compile", folder / "m.onnx", "--arch", "sm_90", "--precision", precision, "--kernels", kernels,
                      "-o", folder / "p.burin", "--no-cache"},
                     {"CUDA_VISIBLE_DEVICES=", "BURIN_ASSEMBLER=none"});
  };
  for (const std::string kind : {"linear", "linear_sparse", "linear_expanded"}) {
    const Outcome compiled = compile("auto,fc=" + kind, "fp16");
    INFO(compiled.err);
    REQUIRE(compiled.exit_code == 0);
    const auto document = nlohmann::json::parse(run_burin({"inspect", folder / "p.burin", "--json"}).out);
    REQUIRE(document["network"]["kernels"].size() == 1);
    CHECK(document["network"]["kernels"][0]["provider"] == kind);
  }
  CHECK_THAT(compile("fc=linear_expanded", "fp32").err,
             Contains("--kernels fc=linear_expanded: linear_expanded cannot compute"));
  CHECK_THAT(compile("fc=dense", "fp32").err,
             Contains("--kernels fc: it is a fully connected layer, whose kinds are auto, linear, linear_sparse, "
                      "linear_expanded"));
}

TEST_CASE("kernels_on_tensor_cores_say_how_many_columns_live_and_how_full_they_are") {
  const ScratchFolder folder;
  struct Case {
    std::string kind, batch;
    bool gathers = true;
  };
  for (const auto& [kind, batch, gathers] :
       {Case{"gathered", "8"}, Case{"gathered_rows", "1"}, Case{"warpgroup", "8", false}}) {
    CAPTURE(kind);
    const Outcome compiled = compile_branched(folder, {"--batch", batch, "--precision", "fp16", "--kernels",
                                                       "baked,conv3=" + kind, "--dump-dir", folder / kind});
    CAPTURE(compiled.err);
    REQUIRE(compiled.exit_code == 0);
    const auto document = nlohmann::json::parse(run_burin({"inspect", folder / "p.burin", "--json"}).out);
    int counted = 0;
    for (const nlohmann::json& row : document["rows"]) {
      INFO(row["layer"]);
      if (row["layer"] != "conv3") {
        CHECK((row["live_columns"].is_null() && row["fill"].is_null()));
        continue;
      }
      ++counted;
      CHECK(row["provider"] == "conv_" + kind);
      // 4 channels of 16 rows: of 72 columns, those with any nonzero live; of gathered ones, others are not multiplied.
      const double live = row["live_columns"], fill = row["fill"], nonzeros = row["nonzeros"];
      CHECK((gathers ? live > 0.3 && live < 1 : live == 1));
      const double slots = nonzeros / fill;
      CHECK(slots == Approx(std::round(slots)));
      const int step = gathers ? 16 * 16 : 64 * 16;  // of sparse products; of 64 rows
      CHECK(static_cast<int>(std::round(slots)) % step == 0);
      CHECK(slots >= live * 72 * 16 / 2 - 1e-6);
    }
    CHECK(counted == 1);
    for (const nlohmann::json& kernel : document["network"]["kernels"]) {
      CHECK(kernel["live_columns"].is_null() == (kernel["operator"] != "conv3"));
      CHECK(kernel["fill"].is_null() == (kernel["operator"] != "conv3"));
    }
    const Outcome network = run_burin({"inspect", folder / "p.burin"});
    CHECK_THAT(network.out, Contains("  live ") && Contains("  fill "));
    const Outcome layers = run_burin({"inspect", folder / "p.burin", "--layer", "conv3"});
    CHECK_THAT(layers.out, Contains("  live ") && Contains("  fill "));
    CHECK_THAT(run_burin({"inspect", folder / "p.burin", "--layer", "conv1"}).out, !Contains("live"));
    std::ifstream stages(folder / (kind + "/conv3/00-stages.txt"));
    const std::string log{std::istreambuf_iterator<char>(stages), {}};
    CHECK_THAT(log, Contains("30-plan.txt: ") && Contains(" % of the columns live, ") &&
                        Contains(" % of what is multiplied is not zero"));
    std::ifstream report(folder / (kind + "/conv3/70-kernel.json"));
    const auto said = nlohmann::json::parse(report);
    CHECK(said["live_columns"] > 0.3);
    CHECK(said["fill"] > 0);
  }
}

TEST_CASE("kernels_that_transform_patches_keep_the_tolerance_that_others_keep") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{.shape = {20, 96, 3, 3}, .extent = 13}});
  for (const auto& [kind, plan] :
       {std::pair{"winograd", "tile=2"}, {"winograd", "tile=4"}, {"fft", "side=8"}, {"fft", "side=16"}}) {
    const Outcome compiled =
        run_burin({"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / "p.burin", "--batch", "1,3",
                   "--no-cache", "--kernels", kind, "--plan", plan});
    CAPTURE(kind, plan, compiled.err);
    REQUIRE(compiled.exit_code == 0);
    const Outcome verified =
        run_burin({"verify", folder / "p.burin", "--against", folder / "w.safetensors", "--device", "host", "--json"});
    CAPTURE(verified.out, verified.err);
    REQUIRE(verified.exit_code == 0);
    int outputs = 0;
    const auto document = nlohmann::json::parse(verified.out);
    for (const nlohmann::json& program : document["programs"]) {
      for (const nlohmann::json& output : program["outputs"]) {
        ++outputs;
        CHECK(output["error_over_tolerance"] < 0.25);
      }
    }
    CHECK(outputs == 2);
  }
}

TEST_CASE("kernels_that_call_cudnn_hold_code_of_their_own") {
  const ScratchFolder folder;
  const Outcome compiled =
      compile_branched(folder, {"--batch", "1,3", "--kernels", "cudnn", "--plan", "algorithm=implicit_gemm"});
  CAPTURE(compiled.err);
  REQUIRE(compiled.exit_code == 0);
  int calls = 0;
  for (const auto& [kernel, options] : convolutions(folder)) calls += kernel == "conv_cudnn" ? 1 : 0;
  CHECK(calls == 3);
  const Outcome verified =
      run_burin({"verify", folder / "p.burin", "--against", folder / "m.onnx", "--device", "host", "--layers"});
  CAPTURE(verified.out, verified.err);
  CHECK(verified.exit_code == 0);
  CHECK_THAT(verified.err, Contains("3 kernels call a library on a GPU: the host runs burin's own code in place"));
  const Outcome inspected = run_burin({"inspect", folder / "p.burin"});
  CHECK_THAT(inspected.out, Contains("cudnn implicit_gemm; own: conv_"));
}

TEST_CASE("fully_connected_layers_that_call_cublaslt_hold_code_of_their_own") {
  const ScratchFolder folder;
  const Outcome compiled = compile_branched(folder, {"--batch", "1,3", "--kernels", "fc=linear_cublas"});
  CAPTURE(compiled.err);
  REQUIRE(compiled.exit_code == 0);
  const Outcome verified =
      run_burin({"verify", folder / "p.burin", "--against", folder / "m.onnx", "--device", "host", "--layers"});
  CAPTURE(verified.out, verified.err);
  CHECK(verified.exit_code == 0);
  CHECK_THAT(verified.err, Contains("call a library on a GPU: the host runs burin's own code in place") ||
                               Contains("calls a library on a GPU: the host runs burin's own code in place"));
  const Outcome inspected = run_burin({"inspect", folder / "p.burin"});
  CHECK_THAT(inspected.out, Contains("cublaslt heuristic_0; own: linear"));
  // Weights in halves are none that the library reads.
  const Outcome halves = compile_branched(folder, {"--kernels", "fc=linear_cublas", "--linear-storage", "fp16"});
  CHECK(halves.exit_code == 4);
  CHECK_THAT(halves.err, Contains("--kernels fc=linear_cublas: linear_cublas cannot compute"));
}

TEST_CASE("what_cannot_be_asked_of_libraries") {
  const ScratchFolder folder;
  const auto error_of = [&](const std::vector<std::string>& more) {
    const Outcome outcome = compile_branched(folder, more);
    CHECK(outcome.exit_code != 0);
    return outcome.err;
  };
  CHECK_THAT(error_of({"--kernels", "cudnn", "--no-libraries"}),
             Contains("--kernels asks for calls of cuDNN, and --no-libraries for none"));
  CHECK_THAT(error_of({"--kernels", "cublas", "--no-libraries"}),
             Contains("--kernels asks for calls of cuBLASLt, and --no-libraries for none"));
  CHECK_THAT(error_of({"--kernels", "cublas", "--plan", "algorithm=gemm"}),
             Contains("--plan algorithm=gemm: known are heuristic_0, "));
  CHECK_THAT(error_of({"--kernels", "cudnn", "--plan", "algorithm=fastest"}),
             Contains("--plan algorithm=fastest: known are implicit_gemm, "));
  CHECK_THAT(error_of({"--kernels", "cudnn", "--plan", "workspace_limit=-1"}), Contains("workspace_limit=-1: 0 to "));
  CHECK_THAT(error_of({"--kernels", "cudnn", "--plan", "path=/tmp/x.so"}),
             Contains("--plan path=/tmp/x.so: a library's call has the choices algorithm=NAME"));
}
