// Commands that are given an ONNX model: what they say of the network, and of its layers.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test/catch.h"
#include "test/cli/program.h"
#include "test/import/onnx_model.h"
#include "test/scratch_folder.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

const std::string kModel = BURIN_SOURCE_FOLDER "/test/fuzz/seeds/onnx/conv_bn.onnx";

}  // namespace

TEST_CASE("inspect_prints_the_graph_of_a_model") {
  const Outcome outcome = run_burin({"inspect", kModel});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("# inputs: x; outputs: y"));
  CHECK_THAT(outcome.out, Contains("channel_affine"));
  CHECK_THAT(outcome.out, Contains("2x6x6 > 4, 3x3 s2x1 p1 g2"));
}

TEST_CASE("inspect_json_holds_the_graph_of_a_model") {
  const Outcome outcome = run_burin({"inspect", kModel, "--json"});
  REQUIRE(outcome.exit_code == 0);
  const auto document = nlohmann::json::parse(outcome.out);
  CHECK(document["rows"].size() == 1);
  const auto& graph = document["graph"];
  REQUIRE(graph["operators"].size() == 7);
  CHECK(graph["operators"][0]["name"] == "conv");
  CHECK(graph["operators"][0]["kind"] == "convolution");
  CHECK(graph["tensors"][graph["inputs"][0].get<std::size_t>()]["shape"] == std::vector<int>{2, 6, 6});
  CHECK(graph["tensors"][graph["outputs"][0].get<std::size_t>()]["name"] == "y");
}

TEST_CASE("inspect_of_chosen_layers_of_a_model_says_that_they_stand_alone") {
  const Outcome outcome = run_burin({"inspect", kModel, "--layer", "conv"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("1 of 1 convolutions") && Contains("without the network around them"));
  CHECK_THAT(outcome.out, !Contains("# inputs"));
}

TEST_CASE("input_shape_makes_a_model_smaller_and_max_extent_is_refused") {
  CHECK_THAT(run_burin({"inspect", kModel, "--input-shape", "9x8"}).out, Contains("2x9x8 > 4"));
  const Outcome outcome = run_burin({"inspect", kModel, "--max-extent", "4"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("--max-extent") && Contains("--input-shape"));
}

TEST_CASE("a_model_with_external_data_that_are_absent_is_bad_input") {
  const Outcome outcome = run_burin({"inspect", BURIN_SOURCE_FOLDER "/test/fuzz/seeds/onnx/external.onnx"});
  CHECK(outcome.exit_code == 3);
  CHECK_THAT(outcome.err, Contains("tensor 'w'") && Contains("'w.bin'"));
}

TEST_CASE("inspect_simplify_shows_what_each_pass_did_and_what_is_left") {
  const Outcome outcome = run_burin({"inspect", kModel, "--simplify"});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("drop_unread           unchanged          7"));
  CHECK_THAT(outcome.out, Contains("fold_affine                   1          6"));
  CHECK_THAT(outcome.out, Contains("conv  convolution          x -> p"));  // the pool is inside
  CHECK_THAT(outcome.out, !Contains("channel_affine"));
}

TEST_CASE("inspect_simplify_json_lists_the_passes") {
  const Outcome outcome = run_burin({"inspect", kModel, "--simplify", "--json"});
  REQUIRE(outcome.exit_code == 0);
  const auto document = nlohmann::json::parse(outcome.out);
  CHECK(document["graph"]["operators"].size() == 4);
  const auto& passes = document["passes"];
  const nlohmann::json folded{{"pass", "fold_affine"}, {"changes", 1}, {"operators", 6}};
  CHECK(std::ranges::find(passes, folded) != passes.end());
}

TEST_CASE("inspect_simplify_needs_a_graph") {
  const Outcome outcome = run_burin({"inspect", kModel, "--simplify", "--layer", "conv"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("--simplify: no graph was read from") && Contains("all layers"));
}

TEST_CASE("inspect_memory_shows_steps_places_and_the_arena_for_each_batch_size") {
  const Outcome outcome = run_burin({"inspect", kModel, "--simplify", "--memory", "--batch", "1,3"});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("step  operator") && Contains("buffer    tensor"));
  CHECK_THAT(outcome.out, Contains("0     conv") && Contains("input 0"));
  CHECK_THAT(outcome.out, Contains("batch 1: an arena of ") && Contains("batch 3: an arena of "));
}

TEST_CASE("inspect_simplify_shows_the_graphs_of_batch_sizes_that_have_their_own") {
  constexpr int kChannels = 64, kExtent = 14;
  const ScratchFolder folder;
  OnnxModel model = OnnxModel::of_image({kChannels, kExtent, kExtent});
  model.floats("pw_w", {kChannels, kChannels, 1, 1}, std::vector<float>(std::size_t{kChannels} * kChannels, 0.5F));
  model.floats("dw_w", {kChannels, 1, 3, 3}, std::vector<float>(std::size_t{kChannels} * 9, 0.5F));
  model.add_node("Conv", {"x", "pw_w"}, "between").node.set_name("pw");
  model.add_node("Conv", {"between", "dw_w"}, "y")
      .set("pads", std::vector<std::int64_t>(4, 1))
      .set("group", std::int64_t{kChannels})
      .node.set_name("dw");
  write_file(folder / "pair.onnx", model.bytes());
  const auto inspect = [&](const std::string& batches, bool json) {
    std::vector<std::string> command = {"inspect", folder / "pair.onnx", "--simplify", "--precision", "fp16", "--batch",
                                        batches};
    if (json) command.emplace_back("--json");
    const Outcome outcome = run_burin(command);
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome.out;
  };
  // For one image the depthwise convolution is a part of the other's kernel.
  const auto one = nlohmann::json::parse(inspect("1", true));
  CHECK_FALSE(one.contains("graphs"));
  CHECK(one["rows"].size() == 1);
  const auto both = nlohmann::json::parse(inspect("8,1", true));
  CHECK_FALSE(both.contains("graph"));
  REQUIRE(both["graphs"].size() == 2);
  CHECK(both["graphs"][0]["batches"] == std::vector<int>{8});
  CHECK(both["graphs"][1]["batches"] == std::vector<int>{1});
  CHECK(both["graphs"][1]["graph"] == one["graph"]);
  CHECK(both["graphs"][1]["passes"] == one["passes"]);
  REQUIRE(both["rows"].size() == 3);
  CHECK(both["rows"][0]["layer"] == "pw");
  CHECK(both["rows"][0]["batch"] == 8);
  CHECK(both["rows"][2]["layer"] == one["rows"][0]["layer"]);
  CHECK_THAT(inspect("8,1", false), Contains("graph for batch 8\n") && Contains("graph for batch 1\n"));
}

TEST_CASE("inspect_memory_json_holds_the_plans") {
  const Outcome outcome = run_burin({"inspect", kModel, "--simplify", "--memory", "--json"});
  REQUIRE(outcome.exit_code == 0);
  const auto document = nlohmann::json::parse(outcome.out);
  REQUIRE(document["memory"].size() == 1);
  const auto& plan = document["memory"][0];
  CHECK(plan["name"] == "network");
  CHECK(plan["batch"] == 1);
  CHECK(plan["steps"][0]["name"] == "conv");
  CHECK(plan["steps"][0]["operator"] == 0);
  CHECK(plan["buffers"][0]["home"] == "input");
  CHECK(plan["buffers"][0]["bytes"] == 2 * 6 * 6 * 4);
  CHECK(plan["buffers"][0]["format"] == "f32 nchw");
  CHECK(plan["buffers"][plan["steps"].back()["writes"]["buffer"].get<std::size_t>()]["home"] == "output");
  CHECK(plan["arena_bytes"] <= plan["naive_bytes"]);
}

TEST_CASE("inspect_memory_needs_a_graph") {
  const Outcome outcome = run_burin({"inspect", kModel, "--memory", "--layer", "conv"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("--memory: no graph was read from") && Contains("all layers"));
}

TEST_CASE("inspect_coverage_of_a_model_that_is_read_whole") {
  const Outcome outcome = run_burin({"inspect", kModel, "--coverage"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("conv_bn.onnx: burin reads 7 of 7 nodes"));
  CHECK_THAT(outcome.out, Contains("BatchNormalization") && !Contains("refused"));
}

TEST_CASE("inspect_coverage_lists_all_that_is_refused") {
  const ScratchFolder folder;
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.add_node("LSTM", {"x"}, "a").node.set_name("memory");
  model.add_node("LSTM", {"x"}, "b");
  model.floats("w", {4, 2, 1});
  model.add_node("Conv", {"x", "w"}, "c");
  model.add_node("Sum", {"a", "b", "c"});
  const std::string file = folder / "partly.onnx";
  std::ofstream(file, std::ios::binary) << model.bytes();
  SECTION("as a table") {
    const Outcome outcome = run_burin({"inspect", file, "--coverage"});
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 4);
    CHECK_THAT(outcome.out, Contains("partly.onnx: burin reads 0 of 4 nodes"));
    CHECK_THAT(outcome.out, Contains("LSTM (nodes 'memory', 'b'): burin does not know this operator"));
    CHECK_THAT(outcome.out, Contains("what would help: burin compiles convolutional networks"));
    CHECK_THAT(outcome.out, Contains("Conv (node 'c'): its weights [4,2,1] make it a 1-D convolution"));
    CHECK_THAT(outcome.out, Contains("not reached"));
  }
  SECTION("as JSON") {
    const Outcome outcome = run_burin({"inspect", file, "--coverage", "--json"});
    CHECK(outcome.exit_code == 4);
    const auto document = nlohmann::json::parse(outcome.out);
    CHECK(document["complete"] == false);
    CHECK(document["operators"][1]["operator"] == "LSTM");
    CHECK(document["operators"][1]["refused"] == 2);
    CHECK(document["operators"][2]["not_reached"] == 1);
    REQUIRE(document["refusals"].size() == 2);
    CHECK(document["refusals"][0]["nodes"] == std::vector<std::string>{"memory", "b"});
    CHECK(document["fault"].is_null());
  }
}

TEST_CASE("inspect_coverage_is_for_models_alone_and_plans_nothing") {
  const ScratchFolder folder;
  const Outcome weights = run_burin({"inspect", folder / "w.npy", "--coverage"});
  CHECK(weights.exit_code == 2);
  CHECK_THAT(weights.err, Contains("w.npy: is no ONNX model"));
  for (const auto& option : {std::vector<std::string>{"--batch", "2"}, {"--simplify"}, {"--layer", "conv"}}) {
    std::vector<std::string> command = {"inspect", kModel, "--coverage"};
    command.insert(command.end(), option.begin(), option.end());
    const Outcome outcome = run_burin(command);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains(option[0] + " has no effect here: --coverage"));
  }
}
