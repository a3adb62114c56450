// verify on the host executor: what passes, what fails, what is said of it.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/package/package.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

void compile_weights(const ScratchFolder& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"compile", folder / "w.safetensors", "--arch", "sm_90",
                                        "-o",      folder / "p.burin"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = run_burin(arguments);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
}

Outcome verify_weights(const ScratchFolder& folder, const std::string& weights, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"verify",         folder / "p.burin", "--against",
                                        folder / weights, "--device",         "host"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments);
}

}  // namespace

TEST_CASE("the_demo_network_compiles_and_verifies") {
  const ScratchFolder folder;
  const std::string script = std::string(BURIN_SOURCE_FOLDER) + "/examples/make_pruned_network.py";
  const Outcome made = run_program({"python3", script, folder / "w.safetensors"});
  CAPTURE(made.err);
  REQUIRE(made.exit_code == 0);
  compile_weights(folder);
  const Outcome outcome = verify_weights(folder, "w.safetensors", {"--seed", "3"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("on host, seed 3") && Contains("all 6 kernels verified"));
}

TEST_CASE("the_demo_network_is_the_same_for_a_seed") {
  const ScratchFolder folder;
  const std::string script = std::string(BURIN_SOURCE_FOLDER) + "/examples/make_pruned_network.py";
  for (const char* name : {"1", "2"}) REQUIRE(run_program({"python3", script, folder / name}).exit_code == 0);
  REQUIRE(run_program({"python3", script, folder / "3", "--seed", "2"}).exit_code == 0);
  CHECK((read_file(folder / "1") == read_file(folder / "2")));
  CHECK((read_file(folder / "1") != read_file(folder / "3")));
}

TEST_CASE("kernels_are_verified_on_inputs_that_are_not_finite") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}}, 1);
  // Baked code leaves zero weights out, dense code multiplies them, the others transform their inputs.
  for (const std::string kind : {"baked", "dense", "winograd", "fft"}) {
    CAPTURE(kind);
    compile_weights(folder, {"--kernels", kind});
    for (const std::string share : {"0.001", "0.05", "1"}) {
      const Outcome outcome =
          verify_weights(folder, "w.safetensors", {"--seed", "3", "--no-code", "--non-finite", share});
      CAPTURE(share, outcome.out, outcome.err);
      CHECK(outcome.exit_code == 0);
    }
  }
  for (const std::string share : {"-0.1", "1.1", "nan"}) {
    const Outcome outcome = verify_weights(folder, "w.safetensors", {"--non-finite=" + share});
    CAPTURE(share);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains("--non-finite") && Contains("not a share from 0 to 1"));
  }
}

TEST_CASE("a_network_is_not_verified_on_inputs_that_are_not_finite") {
  const ScratchFolder folder;
  folder.write("m.onnx", chain_model(1).bytes());
  REQUIRE(run_burin({"compile", folder / "m.onnx", "--arch", "sm_90", "-o", folder / "p.burin"}).exit_code == 0);
  const Outcome outcome = run_burin(
      {"verify", folder / "p.burin", "--against", folder / "m.onnx", "--device", "host", "--non-finite", "0.1"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("--non-finite") && Contains("holds a network"));
}

TEST_CASE("other_weights_fail_with_1_and_the_worst_element_is_named") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}}, 1);
  write_safetensors(folder / "other.safetensors", {TestLayer{}}, 2);
  compile_weights(folder);
  const Outcome outcome = verify_weights(folder, "other.safetensors", {"--seed", "5"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.out, Contains("FAILED") && Contains("channel ") && Contains("expected"));
  CHECK_THAT(outcome.err, Contains("burin: error: ") && Contains("--seed 5"));
}

TEST_CASE("one_weight_that_differs_a_little_fails") {
  const ScratchFolder folder;
  TestLayer layer;
  layer.weights = sparse_weights(8 * 4 * 9, 1);
  layer.weights[40] = 0.5F;
  write_safetensors(folder / "w.safetensors", {layer});
  layer.weights[40] = 0.5001F;
  write_safetensors(folder / "other.safetensors", {layer});
  compile_weights(folder);
  CHECK(verify_weights(folder, "w.safetensors").exit_code == 0);
  CHECK(verify_weights(folder, "other.safetensors").exit_code == 1);
}

TEST_CASE("a_seed_repeats_a_run_and_is_printed_when_drawn") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  compile_weights(folder);
  const Outcome first = verify_weights(folder, "w.safetensors", {"--seed", "11"});
  const Outcome second = verify_weights(folder, "w.safetensors", {"--seed", "11"});
  CHECK(first.exit_code == 0);
  CHECK(first.out == second.out);
  const nlohmann::json drawn = nlohmann::json::parse(verify_weights(folder, "w.safetensors", {"--json"}).out);
  const Outcome repeated =
      verify_weights(folder, "w.safetensors", {"--json", "--seed", std::to_string(drawn["seed"].get<std::uint64_t>())});
  CHECK(nlohmann::json::parse(repeated.out) == drawn);
}

TEST_CASE("verify_json_says_what_the_table_says") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}}, 1);
  write_safetensors(folder / "other.safetensors", {TestLayer{}}, 2);
  compile_weights(folder, {"--batch", "1,3"});
  const Outcome good = verify_weights(folder, "w.safetensors", {"--json", "--seed", "1"});
  CHECK(good.exit_code == 0);
  nlohmann::json document = nlohmann::json::parse(good.out);
  CHECK(document["passed"] == true);
  CHECK(document["device"] == "host");
  REQUIRE(document["programs"].size() == 2);
  const nlohmann::json& row = document["programs"][1];
  CHECK(row["program"] == "conv");
  CHECK(row["batch"] == 3);
  CHECK(row["planned_batch"] == 3);
  CHECK(row["passed"] == true);
  CHECK(row["images"] == std::vector<int>{0, 1, 2});
  REQUIRE(row["outputs"].size() == 1);
  CHECK(row["outputs"][0]["name"] == "conv.output");
  CHECK(row["outputs"][0]["passed"] == true);
  CHECK(row["outputs"][0]["error_over_tolerance"].get<double>() <= 1.0);
  REQUIRE(row["steps"].size() == 1);
  CHECK(row["steps"][0]["operator"] == "conv");
  CHECK(row["steps"][0]["kind"] == "convolution");
  CHECK(row["steps"][0]["longest_reduction"] > 0);
  CHECK(row["steps"][0]["error_over_tolerance"] == row["outputs"][0]["error_over_tolerance"]);
  const Outcome bad = verify_weights(folder, "other.safetensors", {"--json"});
  CHECK(bad.exit_code == 1);
  const nlohmann::json failed = nlohmann::json::parse(bad.out);
  CHECK(failed["passed"] == false);
  CHECK(failed["programs"][0]["passed"] == false);
  CHECK(failed["programs"][0]["outputs"][0]["passed"] == false);
  const Outcome table = verify_weights(folder, "w.safetensors", {"--seed", "1"});
  CHECK_THAT(table.out, Contains("conv       1  all     ok") && Contains("conv       3  all     ok"));
  CHECK_THAT(table.out, Contains(row["outputs"][0]["worst"]["at"].get<std::string>()));
}

TEST_CASE("a_kernel_is_right_for_other_batch_sizes_than_its_own") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  compile_weights(folder, {"--batch", "4"});
  for (const char* batch : {"1", "3", "5"}) {
    const Outcome outcome = verify_weights(folder, "w.safetensors", {"--batch", batch});
    CAPTURE(batch, outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK_THAT(outcome.out, Contains("planned for") && Contains("1 kernel verified"));
  }
  CHECK_THAT(verify_weights(folder, "w.safetensors", {"--batch", "4"}).out, !Contains("planned for"));
}

TEST_CASE("some_images_of_a_layer_are_compared") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  compile_weights(folder, {"--batch", "9"});
  const Outcome outcome = verify_weights(folder, "w.safetensors", {"--images", "3", "--seed", "2", "--json"});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  const std::vector<int> images = nlohmann::json::parse(outcome.out)["programs"][0]["images"];
  REQUIRE(images.size() == 3);
  CHECK(images.front() == 0);
  CHECK(images.back() == 8);
  CHECK_THAT(verify_weights(folder, "w.safetensors", {"--images", "3", "--seed", "2"}).out,
             Contains(std::to_string(images[1]) + ", 8 of 9"));
}

TEST_CASE("layers_with_activity_maps_verify_with_their_maps") {
  const ScratchFolder folder;
  TestLayer layer;
  layer.more_geometry = R"({"activation": "relu"})";
  write_safetensors(folder / "w.safetensors", {layer});
  for (const char* precision : {"fp32", "fp16"}) {
    CAPTURE(precision);
    compile_weights(folder, {"--skip-dead-tiles", "--batch", "1,3", "--precision", precision});
    const Outcome outcome = verify_weights(folder, "w.safetensors");
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK_THAT(outcome.out, Contains("conv.output.activity") && Contains("as its tensor says"));
    CHECK_THAT(outcome.out, Contains("all 2 kernels verified"));
    const auto document =
        nlohmann::json::parse(verify_weights(folder, "w.safetensors", {"--json", "--batch", "5"}).out);
    REQUIRE(document["programs"].size() == 1);
    const nlohmann::json& outputs = document["programs"][0]["outputs"];
    REQUIRE(outputs.size() == 2);
    CHECK(outputs[1] == nlohmann::json{{"name", "conv.output.activity"}, {"passed", true}});
  }
}

TEST_CASE("a_residual_layer_verifies") {
  const ScratchFolder folder;
  TestLayer layer;
  layer.more_geometry = R"({"residual": true, "activation": "relu"})";
  write_safetensors(folder / "w.safetensors", {layer});
  compile_weights(folder);
  const Outcome outcome = verify_weights(folder, "w.safetensors");
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
}

TEST_CASE("a_network_that_ends_before_the_model_verifies_against_the_model") {
  const ScratchFolder folder;
  const std::string model = folder.write("m.onnx", branched_model().bytes()), package = folder / "m.burin";
  REQUIRE(run_burin({"compile", model, "--arch", "sm_90", "-o", package, "--outputs", "pooled,relu1"}).exit_code == 0);
  const Outcome outcome = run_burin({"verify", package, "--against", model, "--device", "host"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("pooled") && Contains("relu1") && !Contains("softmax"));
}

TEST_CASE("verify_takes_layers_by_glob") {
  const ScratchFolder folder;
  const TestLayer a{.name = "a"}, b{.name = "b"};
  write_safetensors(folder / "w.safetensors", {a, b});
  compile_weights(folder);
  const nlohmann::json document =
      nlohmann::json::parse(verify_weights(folder, "w.safetensors", {"--layer", "b*", "--json"}).out);
  REQUIRE(document["programs"].size() == 1);
  CHECK(document["programs"][0]["program"] == "b");
  CHECK(verify_weights(folder, "w.safetensors", {"--layer", "c*"}).exit_code == 2);
}

TEST_CASE("weights_of_another_network_are_bad_input") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  TestLayer wider;
  wider.shape = {8, 5, 3, 3};
  write_safetensors(folder / "wider.safetensors", {wider});
  compile_weights(folder);
  const Outcome outcome = verify_weights(folder, "wider.safetensors");
  CHECK(outcome.exit_code == 3);
  CHECK_THAT(outcome.err, Contains("[8,5,3,3]") && Contains("[8,4,3,3]"));
}

TEST_CASE("code_that_is_not_what_its_plan_says_fails") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{.name = "a"}, TestLayer{.name = "b"}});
  compile_weights(folder, {"--kernels", "baked"});
  const Outcome right = verify_weights(folder, "w.safetensors");
  CHECK(right.exit_code == 0);
  CHECK_THAT(right.out, Contains("code: the PTX of 2 kernels follows from plan and weights byte for byte"));

  // The host device computes what the plan says: only the comparison sees PTX that does something else.
  const burin::Package package = burin::read_package(folder / "p.burin");
  burin::Package changed = package;
  const auto& binaries = changed.manifest.kernels[1].binaries;
  const std::string& path = std::ranges::find(binaries, burin::BinaryKind::ptx, &burin::KernelBinary::kind)->path;
  std::string ptx = *changed.files.at(path).content();
  const std::size_t weight = ptx.find(" 0f3");
  REQUIRE(weight != std::string::npos);
  ptx[weight + 10] = ptx[weight + 10] == '0' ? '1' : '0';
  changed.files.at(path) = ptx;
  write_package(changed, folder / "p.burin");
  const Outcome wrong = verify_weights(folder, "w.safetensors");
  CHECK(wrong.exit_code == 1);
  CHECK_THAT(wrong.out, Contains("code FAILED: layer b") && Contains("the PTX of 1 kernel follows"));
  CHECK(verify_weights(folder, "w.safetensors", {"--no-code"}).exit_code == 0);
  CHECK(verify_weights(folder, "w.safetensors", {"--layer", "a"}).exit_code == 0);
  const Outcome json = verify_weights(folder, "w.safetensors", {"--json"});
  CHECK(json.exit_code == 1);
  CHECK(nlohmann::json::parse(json.out)["code"]["different"].size() == 1);

  changed.manifest.tool_version = "0.0.1, LLVM 1.2.3";
  write_package(changed, folder / "p.burin");
  const Outcome other = verify_weights(folder, "w.safetensors");
  CHECK(other.exit_code == 0);
  CHECK_THAT(other.out, Contains("code: not compared, since burin 0.0.1, LLVM 1.2.3 made the package"));
}

TEST_CASE("a_package_whose_code_was_edited_needs_a_gpu") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  compile_weights(folder, {"--dump-dir", folder / "d"});
  CHECK(verify_weights(folder, "w.safetensors").exit_code == 0);
  compile_weights(folder, {"--from", folder / "d/conv/50-specialised.ll"});
  const Outcome outcome = verify_weights(folder, "w.safetensors");
  CHECK(outcome.exit_code == 4);
  CHECK_THAT(outcome.err, Contains("layer conv: its code was edited by hand") && Contains("it runs on a GPU alone"));
}

TEST_CASE("a_gpu_that_is_not_there_exits_with_5") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  compile_weights(folder);
  const std::vector<std::vector<std::string>> commands = {
      {"verify", folder / "p.burin", "--against", folder / "w.safetensors", "--device", "cuda:0"},
      {"bench", folder / "p.burin"}};
  for (const auto& command : commands) {
    const Outcome outcome = run_burin_without_gpu(command);
    CAPTURE(command, outcome.out, outcome.err);
    CHECK(outcome.exit_code == 5);
    CHECK_THAT(outcome.err, burin_test::StartsWith("burin: error: "));
  }
}

TEST_CASE("auto_without_a_gpu_says_that_it_takes_the_host") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  compile_weights(folder);
  const Outcome outcome = run_burin_without_gpu({"verify", folder / "p.burin", "--against", folder / "w.safetensors"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("burin: note: no GPU found") && Contains("host executor"));
}
