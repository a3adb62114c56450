// verify and inspect of packages that hold a whole network, on the host executor.

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/package/package.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

void compile_model(const ScratchFolder& folder, const OnnxModel& model, std::vector<std::string> more = {}) {
  folder.write("m.onnx", model.bytes());
  std::vector<std::string> arguments = {"compile", folder / "m.onnx",  "--arch",    "sm_90",
                                        "-o",      folder / "p.burin", "--no-cache"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = run_burin(arguments);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
}

Outcome verify_model(const ScratchFolder& folder, std::vector<std::string> more = {},
                     const std::string& model = "m.onnx") {
  std::vector<std::string> arguments = {"verify", folder / "p.burin", "--against", folder / model, "--device", "host"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments);
}

}  // namespace

TEST_CASE("verify_compares_each_program_of_a_network_with_the_model") {
  const ScratchFolder folder;
  compile_model(folder, branched_model(), {"--batch", "1,4"});
  const Outcome outcome = verify_model(folder, {"--seed", "3"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("on host, seed 3") && Contains("terms on the deepest path) * max |expected|"));
  CHECK_THAT(outcome.out, Contains("y           1  all     ok") && Contains("y           4  all     ok"));
  CHECK_THAT(outcome.out, Contains("the network, 2 programs, verified"));
  CHECK_THAT(outcome.out, !Contains("conv1"));
}

TEST_CASE("verify_layers_shows_each_step_on_what_was_computed_before_it") {
  const ScratchFolder folder;
  compile_model(folder, branched_model());
  const Outcome outcome = verify_model(folder, {"--layers"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  for (const char* name : {"conv1  ", "conv2  ", "conv3  ", "pool  ", "fc  ", "softmax  "}) {
    CHECK_THAT(outcome.out, Contains(name));
  }
  CHECK_THAT(outcome.out, Contains("every step is right") && Contains("the network verified"));
  const Outcome chosen = verify_model(folder, {"--layer", "conv?"});
  CHECK(chosen.exit_code == 0);
  CHECK_THAT(chosen.out, Contains("conv3  ") && !Contains("softmax  "));
  const Outcome none = verify_model(folder, {"--layer", "deconv"});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, Contains("--layer 'deconv'"));
}

TEST_CASE("verify_knows_fully_connected_layers_that_are_stored_in_fp16") {
  const ScratchFolder folder;
  compile_model(folder, branched_model(), {"--batch", "1,4", "--linear-storage", "fp16"});
  CHECK_THAT(run_burin({"inspect", folder / "p.burin"}).out,
             Contains("linear fp16, ") || Contains("linear_sparse fp16, "));
  const Outcome outcome = verify_model(folder, {"--layers"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("4.9e-04 of 1 step that rounds) * max |expected|"));
  CHECK_THAT(outcome.out, Contains("of steps that round, + the rounding of weights, inputs, sums and outputs"));
  CHECK_THAT(outcome.out, Contains("the network, 2 programs, verified"));
  const auto error_of_fc = [](const ScratchFolder& of) {
    const auto document = nlohmann::json::parse(verify_model(of, {"--layers", "--json"}).out);
    double error = -1;
    for (const auto& step : document["programs"][0]["steps"]) {
      if (step["operator"] == "fc") error = step["relative_error"];
    }
    return error;
  };
  CHECK(error_of_fc(folder) > 1e-6);  // the weights are rounded
  compile_model(folder, branched_model(), {"--linear-storage", "fp32"});
  CHECK(error_of_fc(folder) < 1e-6);
  const auto fault = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"compile", folder / "m.onnx", "--arch", "sm_90", "-o", folder / "q.burin"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome refused = run_burin(arguments);
    CHECK(refused.exit_code == 2);
    return refused.err;
  };
  CHECK_THAT(fault({"--linear-storage", "bf16"}), Contains("--linear-storage") && Contains("fp32, fp16"));
  CHECK_THAT(fault({"--linear-storage", "fp16", "--layer", "conv1"}),
             Contains("--linear-storage: ") && Contains("has no fully connected layers"));
}

TEST_CASE("verify_takes_fewer_images_than_a_program_is_for_and_compares_some_of_many") {
  const ScratchFolder folder;
  compile_model(folder, branched_model(), {"--batch", "12"});
  const Outcome all = verify_model(folder, {"--batch", "3"});
  CAPTURE(all.out, all.err);
  CHECK(all.exit_code == 0);
  CHECK_THAT(all.out, Contains("planned for") && Contains("3           12  all"));
  const auto document = nlohmann::json::parse(verify_model(folder, {"--images", "5", "--json"}).out);
  const std::vector<int> images = document["programs"][0]["images"];
  REQUIRE(images.size() == 5);
  CHECK(images.front() == 0);
  CHECK(images.back() == 11);
  const Outcome many = verify_model(folder, {"--batch", "13"});
  CHECK(many.exit_code == 2);
  CHECK_THAT(many.err, Contains("largest program is for 12 images"));
}

TEST_CASE("verify_json_holds_outputs_and_steps") {
  const ScratchFolder folder;
  compile_model(folder, branched_model());
  const auto document = nlohmann::json::parse(verify_model(folder, {"--layers", "--json", "--seed", "1"}).out);
  CHECK(document["passed"] == true);
  CHECK(document["deepest_reduction"] > 50);
  const auto& result = document["programs"][0];
  CHECK(result["program"] == "network");
  CHECK(result["batch"] == 1);
  CHECK(result["planned_batch"] == 1);
  CHECK(result["passed"] == true);
  CHECK(result["outputs"][0]["name"] == "y");
  CHECK(result["outputs"][0]["error_over_tolerance"] < 1);
  const auto& first = result["steps"][0];
  CHECK(first["operator"] == "conv1");
  CHECK(first["kind"] == "convolution");
  CHECK(first["longest_reduction"] > 0);
  CHECK_THAT(first["worst"]["at"].get<std::string>(), Contains("image 0, channel "));
}

TEST_CASE("a_network_with_another_layer_fails_with_1_and_its_step_is_named") {
  const ScratchFolder folder;
  compile_model(folder, branched_model());
  folder.write("other.onnx", branched_model(1.01F).bytes());
  const Outcome outcome = verify_model(folder, {"--seed", "1"}, "other.onnx");
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.out, Contains("the network FAILED"));
  CHECK_THAT(outcome.out, Contains("the first step that differs: ") && Contains("convolution 'conv3'"));
  CHECK_THAT(outcome.err, Contains("does not compute what") && Contains("--seed 1 repeats this"));
}

TEST_CASE("a_network_of_two_inputs_and_outputs_verifies") {
  const ScratchFolder folder;
  compile_model(folder, model_of_two_inputs(), {"--batch", "2"});
  const Outcome outcome = verify_model(folder, {"--layers"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("\ns  ") && Contains("\nr  "));
}

TEST_CASE("seed_models_verify_step_by_step") {
  for (const char* name : {"conv_bn", "hard", "inception", "opset10", "sparse", "view"}) {
    CAPTURE(name);
    const ScratchFolder folder;
    const std::string model = fmt::format("{}/test/fuzz/seeds/onnx/{}.onnx", BURIN_SOURCE_FOLDER, name);
    const Outcome made = run_burin({"compile", model, "-o", folder / "p.burin", "--arch", "sm_90", "--batch", "1,3"});
    CAPTURE(made.err);
    REQUIRE(made.exit_code == 0);
    // (With one seed of a hundred the few sums of `view` leave the network's tolerance, in which errors add up as their
    // squares do.)
    const Outcome outcome =
        run_burin({"verify", folder / "p.burin", "--against", model, "--device", "host", "--layers", "--seed", "1"});
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
  }
}

TEST_CASE("what_is_not_the_model_of_a_network_is_bad_input") {
  const ScratchFolder folder;
  compile_model(folder, branched_model());
  folder.write("two.onnx", model_of_two_inputs().bytes());
  Outcome outcome = verify_model(folder, {}, "two.onnx");
  CHECK(outcome.exit_code != 0);
  CHECK(outcome.exit_code != 1);
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  outcome = verify_model(folder, {}, "w.safetensors");
  CHECK(outcome.exit_code == 3);
  CHECK_THAT(outcome.err, Contains("is no .onnx file"));
  outcome = verify_model(folder, {"--geometry", "g.json"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("--geometry"));
}

TEST_CASE("steps_are_those_of_networks") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(run_burin({"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / "p.burin"}).exit_code == 0);
  const Outcome outcome = verify_model(folder, {"--layers"}, "w.safetensors");
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("--layers") && Contains("not a whole network"));
}

TEST_CASE("a_network_of_one_operator_is_one_whatever_the_operator_is_called") {
  for (const char* name : {"relu", "network"}) {
    CAPTURE(name);
    const ScratchFolder folder;
    OnnxModel model = OnnxModel::of_image({3, 4, 4});
    model.add_node("Relu", {"x"}, "y").node.set_name(name);
    compile_model(folder, model);
    const Outcome outcome = verify_model(folder, {"--layers"});
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK_THAT(outcome.out, Contains("the network verified"));
  }
}

TEST_CASE("convolutions_of_a_model_by_themselves_verify_against_the_model") {
  const ScratchFolder folder;
  compile_model(folder, branched_model(), {"--layer", "conv[13]"});
  const Outcome outcome = verify_model(folder, {"--layer", "conv[13]"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("conv1 ") && Contains("conv3 ") && Contains("all 2 kernels verified"));
  const Outcome whole = verify_model(folder);
  CHECK(whole.exit_code == 1);
  CHECK_THAT(whole.out, Contains("FAILED: 1 layer of the weights is not in the package: 'conv2'"));
  folder.write("other.onnx", branched_model(1.01F).bytes());
  const Outcome other = verify_model(folder, {}, "other.onnx");
  CHECK(other.exit_code == 1);
  CHECK_THAT(other.out, Contains("1 of 2 kernels FAILED"));
}

TEST_CASE("inspect_shows_the_steps_of_a_network_and_what_they_launch") {
  const ScratchFolder folder;
  compile_model(folder, branched_model(), {"--batch", "1,4"});
  const Outcome outcome = run_burin({"inspect", folder / "p.burin"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("inputs: x (3x12x12); outputs: y (5)"));
  CHECK_THAT(outcome.out, Contains("batch 1: an arena of ") && Contains("batch 4: an arena of "));
  CHECK_THAT(outcome.out, Contains("softmax, 1 block of") && Contains("6 steps") && Contains("3 layers"));
  CHECK_THAT(outcome.out, !Contains("buffer    tensor"));
  const Outcome memory = run_burin({"inspect", folder / "p.burin", "--memory"});
  CHECK(memory.exit_code == 0);
  CHECK_THAT(memory.out, Contains("buffer    tensor"));
  const Outcome layers = run_burin({"inspect", folder / "p.burin", "--layer", "conv1"});
  CHECK_THAT(layers.out, Contains("conv1") && !Contains("steps"));
  CHECK(run_burin({"inspect", folder / "p.burin", "--simplify"}).exit_code == 2);

  const auto document = nlohmann::json::parse(run_burin({"inspect", folder / "p.burin", "--json"}).out);
  const auto& network = document["network"];
  REQUIRE(network["programs"].size() == 2);
  CHECK(network["programs"][0]["name"] == "network");
  CHECK(network["programs"][1]["batch"] == 4);
  std::set<std::string> symbols;
  for (const auto& kernel : network["kernels"]) symbols.insert(kernel["symbol"].get<std::string>());
  CHECK(symbols.size() >= 4);
  for (const auto& program : network["programs"]) {
    CHECK(program["steps"].size() == 6);
    for (const auto& step : program["steps"]) {
      CHECK(symbols.contains(step["kernel"].get<std::string>()));
      CHECK(step["input_map"].is_null());
    }
    const auto& input = program["buffers"][program["steps"][0]["reads"][0]["buffer"].get<std::size_t>()];
    CHECK(input["tensor"] == "x");
    CHECK(input["home"] == "input");
    CHECK(input["format"] == "f32 nchw");
  }
}

TEST_CASE("inspect_memory_of_a_package_of_layers_is_a_usage_error") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(run_burin({"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / "p.burin"}).exit_code == 0);
  const Outcome outcome = run_burin({"inspect", folder / "p.burin", "--memory"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("--memory") && Contains("not a whole network"));
}

TEST_CASE("networks_compute_in_half_precision_with_conversions_as_steps") {
  const ScratchFolder folder;
  for (const std::string precision : {"fp16", "bf16", "fp16x2"}) {
    CAPTURE(precision);
    compile_model(folder, branched_model(), {"--batch", "1,4", "--precision", precision, "--layout", "n2chw"});
    const Outcome outcome = verify_model(folder, {"--layers"});
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK_THAT(outcome.out, Contains("the network, 2 programs, verified") && Contains("steps that round)"));
    // The input is converted; the pool takes halves, and the mean behind it writes floats.
    CHECK_THAT(outcome.out, Contains(".n2chw.convert  ") && !Contains(".f32.convert  "));
    const std::string shown = run_burin({"inspect", folder / "p.burin"}).out;
    CHECK_THAT(shown, Contains("convert") && Contains(precision));
    const Outcome odd = verify_model(folder, {"--batch", "3"});
    CHECK(odd.exit_code == 0);
  }
}

TEST_CASE("networks_in_tf32_keep_floats_between_layers_whatever_the_batch") {
  const ScratchFolder folder;
  compile_model(folder, branched_model(),
                {"--batch", "1,8", "--precision", "tf32,conv3=fp32", "--kernels", "conv2=gathered_rows"});
  const burin::Package package = burin::read_package(folder / "p.burin");
  int rounding = 0, in_lines = 0;
  std::string kernels;
  for (const burin::Kernel& kernel : package.manifest.kernels) {
    kernels += fmt::format("{} {} batch {}\n", kernel.op, kernel.plan_short, kernel.planned_batch);
    CHECK(kernel.precision == "fp32");
    const bool of_warpgroups = kernel.plan_short.starts_with("conv_warpgroup_tf32 tf32, ");
    const bool rounds = kernel.plan_short.starts_with("conv_gathered_rows tf32, ");
    CHECK(rounds == (kernel.provider == "conv_gathered_rows"));
    rounding += rounds && kernel.op == "conv2";
    CHECK_FALSE((rounds && kernel.op == "conv3"));
    if (!of_warpgroups) continue;
    CHECK(kernel.planned_batch == 8);
    CHECK(kernel.op == "conv1");
    CHECK(kernel.form.output().format() == burin::TensorFormat{burin::ElementType::f32, burin::TensorLayout::n4c8hw});
    ++in_lines;
  }
  INFO(kernels);
  CHECK(rounding == 1);  // with the pool inside both programs have the same
  CHECK(in_lines == 1);
  const Outcome outcome = verify_model(folder, {"--layers"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("the network, 2 programs, verified") && Contains("that round") &&
                              Contains("; of steps that round, + ") && Contains("n4c8hw.convert"));
  CHECK_THAT(run_burin({"inspect", folder / "p.burin"}).out, Contains("conv_gathered_rows tf32, "));
  const Outcome json =
      run_burin({"verify", folder / "p.burin", "--against", folder / "m.onnx", "--device", "host", "--json"});
  CHECK(nlohmann::json::parse(json.out).at("programs").at(0).at("outputs").at(0).at("relative_error") > 1e-6);
}

TEST_CASE("networks_in_tf32_stay_in_nchw_where_no_warpgroup_multiplies") {
  const ScratchFolder folder;
  folder.write("m.onnx", branched_model().bytes());
  for (const std::string archs : {"sm_80", "sm_80,sm_90"}) {
    const Outcome outcome = run_burin({"compile", folder / "m.onnx", "--arch", archs, "-o", folder / "p.burin",
                                       "--no-cache", "--batch", "8", "--precision", "tf32"});
    CAPTURE(archs, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const burin::Package package = burin::read_package(folder / "p.burin");
    REQUIRE_FALSE(package.manifest.kernels.empty());
    for (const burin::Kernel& kernel : package.manifest.kernels) CHECK(kernel.form.output().format().is_plain());
  }
}

TEST_CASE("networks_of_few_images_keep_fp32_between_layers_that_multiply_halves") {
  const ScratchFolder folder;
  for (const std::string precision : {"fp16", "bf16"}) {
    CAPTURE(precision);
    compile_model(folder, branched_model(),
                  {"--batch", "1,4", "--precision", precision, "--kernels", "conv2=gathered_rows"});
    const burin::Package package = burin::read_package(folder / "p.burin");
    bool found = false;
    for (const burin::Kernel& kernel : package.manifest.kernels) {
      CHECK(kernel.precision == "fp32");
      found |= kernel.op == "conv2" && kernel.provider == "conv_gathered_rows" &&
               kernel.plan_short.starts_with("conv_gathered_rows " + precision);
    }
    CHECK(found);
    const Outcome outcome = verify_model(folder, {"--layers"});
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK_THAT(outcome.out, Contains("that round") && !Contains("convert"));
    // What is rounded is within the tolerance of FP32 no more.
    const Outcome json =
        run_burin({"verify", folder / "p.burin", "--against", folder / "m.onnx", "--device", "host", "--json"});
    CHECK(nlohmann::json::parse(json.out).at("programs").at(0).at("outputs").at(0).at("relative_error") > 1e-6);
  }
}

TEST_CASE("a_layer_whose_provider_knows_no_halves_stays_in_fp32") {
  const ScratchFolder folder;
  compile_model(folder, branched_model(), {"--precision", "fp16", "--layout", "n2chw", "--kernels", "conv2=dense"});
  std::map<std::string, std::string> precisions;
  for (const burin::Kernel& kernel : burin::read_package(folder / "p.burin").manifest.kernels) {
    precisions[kernel.op] = kernel.precision;
  }
  CHECK(precisions["conv1"] == "fp16");
  CHECK(precisions["conv2"] == "fp32");
  const Outcome outcome = verify_model(folder, {"--layers"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
}

TEST_CASE("networks_lie_in_other_layouts_between_their_layers") {
  const ScratchFolder folder;
  compile_model(folder, branched_model(), {"--layout", "nchw4"});
  const Outcome outcome = verify_model(folder, {"--layers"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains(".nchw4.convert  "));
}

TEST_CASE("a_wrong_weight_in_half_precision_does_not_verify") {
  const ScratchFolder folder;
  compile_model(folder, branched_model(), {"--precision", "fp16"});
  OnnxModel other = branched_model(2);
  folder.write("other.onnx", other.bytes());
  CHECK(verify_model(folder, {}, "other.onnx").exit_code == 1);
}

TEST_CASE("layers_of_a_network_skip_what_the_one_before_them_marked_as_dead") {
  const ScratchFolder folder;
  for (const std::string precision : {"fp32", "fp16"}) {
    CAPTURE(precision);
    // Maps are handed on where both have the same tiles, and of halves each has two images.
    compile_model(folder, chain_model(),
                  {"--batch", "1,3", "--skip-dead-tiles", "--plan", "tile=2x6x12", "--precision", precision});
    const Outcome outcome = verify_model(folder, {"--layers"});
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK_THAT(outcome.out, Contains("every step is right") && Contains("the network, 2 programs, verified"));
    CHECK_THAT(outcome.out, !Contains("activity"));  // no map is the caller's
    CHECK(verify_model(folder, {"--layers", "--batch", "2"}).exit_code == 0);

    const auto document = nlohmann::json::parse(run_burin({"inspect", folder / "p.burin", "--json"}).out);
    for (const auto& program : document["network"]["programs"]) {
      int handed_on = 0;
      std::set<int> written;
      for (const auto& step : program["steps"]) {
        if (!step["input_map"].is_null()) {
          const int map = step["input_map"]["buffer"];
          CHECK(written.contains(map));
          const auto& buffer = program["buffers"][static_cast<std::size_t>(map)];
          CHECK(buffer["home"] == "arena");
          CHECK_THAT(buffer["format"].get<std::string>(), burin_test::StartsWith("map "));
          ++handed_on;
        }
        if (!step["output_map"].is_null()) written.insert(step["output_map"]["buffer"].get<int>());
      }
      CHECK(handed_on >= 1);
      CHECK(handed_on >= static_cast<int>(written.size()));  // a map that nobody reads is not written
    }
  }
}

TEST_CASE("a_wrong_network_with_activity_maps_does_not_verify") {
  const ScratchFolder folder;
  compile_model(folder, chain_model(), {"--skip-dead-tiles", "--plan", "tile=1x6x12"});
  folder.write("other.onnx", chain_model(1.01F).bytes());
  const Outcome outcome = verify_model(folder, {}, "other.onnx");
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.out, Contains("the first step that differs: ") && Contains("convolution 'conv2'"));
}

TEST_CASE("a_tensor_that_is_an_output_and_read_by_a_layer_verifies_with_activity_maps") {
  const ScratchFolder folder;
  OnnxModel model = chain_model();
  model.output("relu1");
  compile_model(folder, model, {"--skip-dead-tiles", "--plan", "tile=1x6x12"});
  const Outcome outcome = verify_model(folder, {"--layers"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("\nrelu1  ") && Contains("\ny  "));
}

TEST_CASE("an_edited_stage_of_one_operator_of_a_network_goes_back_in") {
  const ScratchFolder folder;
  compile_model(folder, branched_model(), {"--dump-dir", folder / "d"});
  for (const std::string stage : {"conv2/30-plan.txt", "fc/30-plan.txt", "fc/50-specialised.ll"}) {
    CAPTURE(stage);
    const std::string op = stage.substr(0, stage.find('/'));
    const Outcome again = run_burin({"compile", folder / "m.onnx", "--arch", "sm_90", "--no-cache", "-o",
                                     folder / "p.burin", "--from", op + "=" + (folder / ("d/" + stage))});
    CAPTURE(again.err);
    REQUIRE(again.exit_code == 0);
    CHECK_THAT(again.err, Contains(stage + ": verified on host"));
    const Outcome verified = verify_model(folder);
    if (stage.ends_with(".txt")) {
      CHECK(verified.exit_code == 0);
    } else {  // what a person changed follows from no plan, so that the host has nothing to run
      CHECK(verified.exit_code == 4);
      CHECK_THAT(verified.err, Contains("operator fc: its code was edited by hand"));
    }
  }
  const auto error = [&](const std::string& from, const std::string& batch) {
    const Outcome outcome = run_burin({"compile", folder / "m.onnx", "--arch", "sm_90", "--no-cache", "-o",
                                       folder / "q.burin", "--from", from, "--batch", batch});
    CHECK(outcome.exit_code == 2);
    return outcome.err;
  };
  const std::string plan = folder / "d/fc/30-plan.txt";
  CHECK_THAT(error(plan, "1"), Contains("say which: --from NAME=FILE"));
  CHECK_THAT(error("fd=" + plan, "1"), Contains("no kernel of") && Contains("has the name 'fd'") && Contains("'fc'"));
  CHECK_THAT(error("fc=" + plan, "1,2"), Contains("2 batch sizes are asked for"));
}
