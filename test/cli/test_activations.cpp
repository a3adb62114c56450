// Zeros of feature maps on the command line: --activations and --activation-sparsity of compile, bench and verify.
#include <limits>
#include <nlohmann/json.hpp>

#include "compiler/cli/npy_tensor.h"
#include "compiler/reference.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

// Two images of x, of which two thirds are zero.
void write_half_dead_images(const ScratchFolder& folder) {
  std::vector<float> values = burin::random_tensor(std::int64_t{2} * 3 * 12 * 12, 7);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 3 != 0) values[i] = 0;
  }
  burin::write_npy(folder / "x.npy", {2, 3, 12, 12}, values);
}

Outcome compile_with_zeros(const ScratchFolder& folder, const std::vector<std::string>& more) {
  folder.write("m.onnx", chain_model(1).bytes());
  std::vector<std::string> arguments = {"compile", folder / "m.onnx",  "--arch",    "sm_90",
                                        "-o",      folder / "p.burin", "--no-cache"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments);
}

// What inspect --json says of a layer.
nlohmann::json row_of(const ScratchFolder& folder, const std::string& layer) {
  const auto document = nlohmann::json::parse(run_burin({"inspect", folder / "p.burin", "--json"}).out);
  for (const nlohmann::json& row : document["rows"]) {
    if (row["layer"] == layer) return row;
  }
  FAIL("there is no layer " << layer);
  return {};
}

}  // namespace

TEST_CASE("zeros_of_activations_make_kernels_that_skip_them_candidates") {
  const ScratchFolder folder;
  write_half_dead_images(folder);
  REQUIRE(compile_with_zeros(folder, {}).exit_code == 0);
  CHECK(row_of(folder, "conv1")["input_zeros"].is_null());
  CHECK(run_burin({"inspect", folder / "p.burin"}).out.find("skipping pays from") == std::string::npos);
  const Outcome counted = compile_with_zeros(folder, {"--activations", folder / "x.npy"});
  INFO(counted.err);
  REQUIRE(counted.exit_code == 0);
  CHECK(row_of(folder, "conv1")["input_zeros"].get<double>() == Approx(2.0 / 3));
  const Outcome inspected = run_burin({"inspect", folder / "p.burin"});
  CHECK_THAT(inspected.out, Contains("zeros of the input") && Contains("skipping pays from") && Contains("66.7 %"));
  REQUIRE(compile_with_zeros(folder, {"--activation-sparsity", "0.9:blobs"}).exit_code == 0);
  CHECK(row_of(folder, "conv2")["input_zeros"].get<double>() == Approx(0.9).margin(0.01));
}

TEST_CASE("choices_in_the_cache_are_those_for_the_same_zeros") {
  const ScratchFolder folder;
  folder.write("m.onnx", chain_model(1).bytes());
  const auto share = [&](const std::string& sparsity) {
    const Outcome outcome =
        run_burin({"compile", folder / "m.onnx", "--arch", "sm_90", "-o", folder / "p.burin", "--cache",
                   folder / "cache", "--kernels", "zero_skip", "--activation-sparsity", sparsity});
    REQUIRE(outcome.exit_code == 0);
    const nlohmann::json row = row_of(folder, "conv1");
    return std::make_pair(row["input_zeros"].get<double>(), row["predicted_us"].get<double>());
  };
  const auto first = share("0.2"), second = share("1"), again = share("0.2");
  CHECK(first == again);
  CHECK(first.first == Approx(0.2).margin(0.01));
  CHECK(second.first == 1);
  CHECK(second.second < first.second);  // nothing is left to multiply
}

TEST_CASE("kernels_that_skip_zeros_are_right_on_inputs_with_zeros") {
  const ScratchFolder folder;
  const Outcome compiled =
      compile_with_zeros(folder, {"--kernels", "zero_skip", "--activation-sparsity", "0.7", "--batch", "3"});
  INFO(compiled.err);
  REQUIRE(compiled.exit_code == 0);
  for (const std::string sparsity : {"0.7", "1", "0.5:channels"}) {
    const Outcome verified = run_burin({"verify", folder / "p.burin", "--against", folder / "m.onnx", "--device",
                                        "host", "--layers", "--activation-sparsity", sparsity});
    INFO(verified.err << verified.out);
    CHECK(verified.exit_code == 0);
  }
}

TEST_CASE("activations_that_contradict_or_do_not_fit") {
  const ScratchFolder folder;
  write_half_dead_images(folder);
  burin::write_npy(folder / "last.npy", {1, 12, 12, 3}, std::vector<float>(432, 1));
  const auto fault = [&](const std::vector<std::string>& arguments, int exit_code) {
    const Outcome outcome = compile_with_zeros(folder, arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.exit_code == exit_code);
    CHECK_FALSE(std::filesystem::exists(folder / "p.burin"));
    return outcome.err;
  };
  CHECK_THAT(fault({"--activation-sparsity", "0.8:stripes"}, 2),
             Contains("'stripes' is none of random, channels, blobs"));
  CHECK_THAT(fault({"--activation-sparsity", "80"}, 2), Contains("must be a share from 0 to 1"));
  CHECK_THAT(fault({"--activations", folder / "absent.npy"}, 3), Contains("no such file"));
  CHECK_THAT(fault({"--activations", "z=" + (folder / "x.npy")}, 2), Contains("m.onnx has no input 'z'"));
  CHECK_THAT(fault({"--activations", folder / "last.npy"}, 3),
             Contains("has shape [1,12,12,3], but the input 'x' is [N,3,12,12] or [3,12,12]"));
  CHECK_THAT(fault({"--activations", folder / "x.npy", "--activation-sparsity", "0.5"}, 2),
             Contains("give one of them"));
  burin::write_npy(folder / "nan.npy", {3, 12, 12}, std::vector<float>(432, std::numeric_limits<float>::quiet_NaN()));
  CHECK_THAT(fault({"--activations", folder / "nan.npy"}, 3), Contains("hold NaN or infinity"));
  const Outcome stopped = run_burin({"compile", folder / "m.onnx", "--arch", "sm_90", "--stop-after", "layer",
                                     "--dump-dir", folder / "d", "--activation-sparsity", "0.5"});
  CHECK(stopped.exit_code == 2);
  CHECK_THAT(stopped.err, Contains("--stop-after layer ends before there is a plan"));
  const Outcome over = run_burin(
      {"compile", folder / "m.onnx", "--arch", "sm_90", "--activations", folder / "x.npy", "-o", folder / "x.npy"});
  CHECK(over.exit_code == 2);
}

TEST_CASE("bench_says_before_it_looks_for_a_gpu_what_activations_it_cannot_take") {
  const ScratchFolder folder;
  write_half_dead_images(folder);
  REQUIRE(compile_with_zeros(folder, {}).exit_code == 0);
  const auto fault = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"bench", folder / "p.burin"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_burin(arguments, {"CUDA_VISIBLE_DEVICES="});
    CAPTURE(more, outcome.err);
    CHECK(outcome.exit_code == 2);
    return outcome.err;
  };
  CHECK_THAT(fault({"--activation-sparsity", "2"}), Contains("must be a share from 0 to 1"));
  CHECK_THAT(fault({"--activation-sparsity", "0.5", "--dead", "0.5"}), Contains("says what kernels read"));
  CHECK_THAT(fault({"--activations", folder / "x.npy", "--layer", "conv*"}), Contains("are the input of one layer"));
  CHECK_THAT(fault({"--activations", "z=" + (folder / "x.npy"), "--layer", "conv1"}), Contains("has no input 'z'"));
}
