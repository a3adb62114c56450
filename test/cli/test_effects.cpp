// An option that would do nothing beside the others, or for this input, is an error: whoever gives one wants something.

#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;

namespace {

using Arguments = std::vector<std::string>;

struct Files {
  ScratchFolder folder;
  std::string model = folder.write("m.onnx", branched_model().bytes());
  std::string convolutions = folder.write("two.onnx", model_of_two_inputs().bytes());  // and nothing fully connected
  std::string weights = folder / "w.safetensors", layers = folder / "w.burin", network = folder / "m.burin";

  Files() { write_safetensors(weights, {TestLayer{}}); }
  void compile() const {
    REQUIRE(run_burin(
                {"compile", weights, "--arch", "sm_90", "-o", layers, "--kernels", "baked", "--dump-dir", folder / "d"})
                .exit_code == 0);
    REQUIRE(run_burin({"compile", model, "--arch", "sm_90", "-o", network}).exit_code == 0);
  }
};

void check_refused(Arguments arguments, const Arguments& more, const std::string& text) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = run_burin_without_gpu(arguments);
  CAPTURE(arguments, outcome.out, outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("burin: error: ") && Contains(more.front()) && Contains(text));
}

}  // namespace

TEST_CASE("compile_refuses_options_without_effect") {
  const Files files;
  const std::string dump = files.folder / "dump", package = files.folder / "p.burin";
  const Arguments bare = {"compile", files.weights, "--arch", "sm_90"};
  const auto refused = [&](const Arguments& more, const std::string& text) { check_refused(bare, more, text); };
  refused({"--output", package, "--stop-after", "plan", "--dump-dir", dump}, "--stop-after plan writes no package");
  refused({"--no-verify", "--stop-after", "ptx", "--dump-dir", dump}, "--stop-after ptx writes no package");
  refused({"--plan", "splits=1", "--stop-after", "pattern", "--dump-dir", dump}, "ends before there is a plan");
  refused({"--kernels", "dense", "--stop-after", "layer", "--dump-dir", dump}, "ends before there is a plan");
  refused({"--no-verify"}, "it is for --from");
  refused({"--cache", dump, "--no-cache"}, "--no-cache uses no cache");
  refused({"--cache-limit", "2", "--no-cache"}, "--no-cache uses no cache");
  refused({"--cache", dump, "--dump-dir", dump}, "--dump-dir makes every kernel anew, and uses no cache");
  refused({"--plan", "tile=1x1x1", "--kernels", "dense"}, "--plan tile=1x1x1: expected KEY=NUMBER");
  refused({"--plan", "stage=1", "--kernels", "dense"}, "--plan stage=1: conv_dense knows output_threads, ");
  refused({"--precision", "fp16", "--kernels", "dense"}, "none of the kernels that --kernels asks for computes in it");
  refused({"--layout", "nchw4", "--kernels", "conv=streamed"}, "is for baked code alone");
  refused({"--skip-dead-tiles", "--kernels", "dense"}, "is for baked code alone");
  refused({"--linear-storage", "fp16"}, "has no fully connected layers");
  refused({"--outputs", "a"}, "names the tensors of a model");
  refused({"--quantized", "drop"}, "--quantized is for models (.onnx)");
  refused({"--stop-after", "plan"}, "--dump-dir");
  CHECK(files.folder.entries() == Arguments{"m.onnx", "two.onnx", "w.safetensors"});
}

TEST_CASE("compile_of_a_model_refuses_options_without_effect") {
  const Files files;
  const Arguments bare = {"compile", files.model, "--arch", "sm_90", "-o", files.network};
  for (const Arguments& option :
       {Arguments{"--geometry", "g.json"}, {"--stride", "2"}, {"--pad", "1"}, {"--dilation", "2"}, {"--groups", "2"}}) {
    check_refused(bare, option, "an ONNX model says itself");
  }
  check_refused(bare, {"--activation", "relu"}, "would change what the network computes");
  check_refused(bare, {"--max-extent", "4"}, "--input-shape makes it smaller");
  check_refused({"compile", files.convolutions, "--arch", "sm_90", "-o", files.network}, {"--linear-storage", "fp16"},
                "has no fully connected layers");
  CHECK_FALSE(std::filesystem::exists(files.network));
}

TEST_CASE("compile_from_a_plan_refuses_what_the_plan_says") {
  const Files files;
  files.compile();
  const std::string plan = files.folder / "d/conv/30-plan.txt", module = files.folder / "d/conv/50-specialised.ll";
  const Arguments bare = {"compile", files.weights, "--arch", "sm_90", "-o", files.folder / "again.burin"};
  check_refused(bare, {"--plan", "splits=1", "--from", plan}, "is a plan, which makes all choices");
  check_refused(bare, {"--kernels", "dense", "--from", plan}, "is a plan, and is for conv_baked");
  check_refused(bare, {"--kernels", "conv=dense", "--from", module}, "has its plan beside it, and is for conv_baked");
  CHECK_FALSE(std::filesystem::exists(files.folder / "again.burin"));
}

TEST_CASE("inspect_refuses_options_without_effect") {
  const Files files;
  files.compile();
  for (const Arguments& option : {Arguments{"--batch", "2"},
                                  {"--precision", "fp16"},
                                  {"--layout", "nchw4"},
                                  {"--geometry", "g.json"},
                                  {"--input-shape", "4x4x4"},
                                  {"--stride", "2"},
                                  {"--pad", "1"},
                                  {"--dilation", "2"},
                                  {"--groups", "2"},
                                  {"--activation", "relu"},
                                  {"--zero-threshold", "1"},
                                  {"--outputs", "a"},
                                  {"--quantized", "drop"},
                                  {"--max-extent", "4"}}) {
    check_refused({"inspect", files.layers}, option, "is a package, and is shown as it is");
  }
  check_refused({"inspect", files.network}, {"--memory", "--layer", "conv1"}, "--layer shows layers, not the network");
  check_refused({"inspect", files.network}, {"--simplify"}, "only an ONNX model has a graph");
  check_refused({"inspect", files.network}, {"--arch", "sm_80"}, "the package has ");
  check_refused({"inspect", files.weights}, {"--tuning"}, "only tune measures plans");
  check_refused({"inspect", files.weights}, {"--memory"}, "no graph was read");
}

TEST_CASE("verify_refuses_options_without_effect") {
  const Files files;
  files.compile();
  check_refused({"verify", files.layers, "--against", files.weights}, {"--layers"}, "not a whole network");
  check_refused({"verify", files.layers, "--against", files.weights}, {"--jobs", "2", "--device", "cuda"},
                "a GPU verifies one kernel after the other");
  check_refused({"verify", files.network, "--against", files.model}, {"--geometry", "g.json"}, "holds a network");
}

TEST_CASE("run_refuses_options_without_effect") {
  const Files files;
  files.compile();
  check_refused({"run", files.network, "--input", "x=x.npy", "--output", "y.npy"}, {"--input", "residual=r.npy"},
                "the network has no input 'residual'");
  check_refused({"run", files.layers, "--input", "input=x.npy", "--output", "y.npy", "--layer", "conv"},
                {"--input", "input=z.npy"}, "'input' is given twice");
}

TEST_CASE("bench_refuses_options_without_effect") {
  const Files files;
  files.compile();
  check_refused({"bench", files.network}, {"--copies", "2"}, "it is for layers");
  check_refused({"bench", files.network, "--layer", "conv1"}, {"--no-overlap"}, "is for whole networks");
  check_refused({"bench", files.layers}, {"--no-overlap"}, "is for whole networks");
  check_refused({"bench", files.layers}, {"--dead", "0.5"}, "compile it with --skip-dead-tiles");
}
