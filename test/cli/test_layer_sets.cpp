// test/gpu/make_layers.py and table.py, which docs/performance.md is made with.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "compiler/import/import.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/weights_file.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;

namespace {

Outcome run_script(const std::string& name, const std::vector<std::string>& arguments) {
  std::vector<std::string> command_line = {"python3", BURIN_SOURCE_FOLDER "/test/gpu/" + name};
  command_line.insert(command_line.end(), arguments.begin(), arguments.end());
  return run_program(command_line);
}

Outcome make_layers(std::vector<std::string> arguments) { return run_script("make_layers.py", arguments); }

std::int64_t nonzeros(const ConvLayer& layer) {
  return std::count_if(layer.weights.begin(), layer.weights.end(), [](float weight) { return weight != 0; });
}

// Makes the set in `file`; every layer has exactly its share of nonzeros.
void check_zeros(const std::string& file, const std::string& set, const std::string& sparsity, std::size_t layers) {
  const Outcome made = make_layers({file, "--set", set, "--sparsity", sparsity});
  CAPTURE(set, sparsity, made.err);
  REQUIRE(made.exit_code == 0);
  const Network network = import_network(file, {});
  CHECK(network.layers.size() == layers);
  for (const ConvLayer& layer : network.layers) {
    CAPTURE(layer.name);
    const double share = 1 - std::stod(sparsity);
    CHECK(nonzeros(layer) == std::llround(static_cast<double>(layer.shape.weight_elements()) * share));
  }
}

// And each has a plan.
void check_set(const std::string& set, const std::string& sparsity, std::size_t layers, const std::string& batches) {
  const ScratchFolder folder;
  const std::string file = folder / "w.safetensors";
  check_zeros(file, set, sparsity, layers);
  const Outcome planned = run_burin(
      {"compile", file, "--arch", "sm_90", "--batch", batches, "--dump-dir", folder / "d", "--stop-after", "plan"});
  CAPTURE(planned.err);
  CHECK(planned.exit_code == 0);
}

const ConvLayer& layer_of(const Network& network, const std::string& name) {
  const auto found = std::find_if(network.layers.begin(), network.layers.end(),
                                  [&](const ConvLayer& layer) { return layer.name == name; });
  REQUIRE(found != network.layers.end());
  return *found;
}

}  // namespace

TEST_CASE("layer set: anchors") {
  const ScratchFolder folder;
  check_zeros(folder / "w.safetensors", "anchors", "0.90", 14);
  check_set("anchors", "0.96", 14, "1");
}
TEST_CASE("layer set: vgg") { check_set("vgg", "0.90", 5, "1"); }
TEST_CASE("layer set: dong") { check_set("dong", "0.90", 10, "64"); }

TEST_CASE("layer sets have the shapes that their names say") {
  const ScratchFolder folder;
  REQUIRE(make_layers({folder / "d.safetensors", "--set", "dong", "--sparsity", "0.9"}).exit_code == 0);
  const Network dong = import_network(folder / "d.safetensors", {});
  CHECK(describe(layer_of(dong, "5x5.1-20.24").shape) == "1x24x24 -> 20x20x20, 5x5, stride 1, pad 0");
  CHECK(describe(layer_of(dong, "5x5.20-50.8").shape) == "20x8x8 -> 50x4x4, 5x5, stride 1, pad 0");
  CHECK(describe(layer_of(dong, "5x5.3-32.32").shape) == "3x32x32 -> 32x32x32, 5x5, stride 1, pad 2");
  CHECK(describe(layer_of(dong, "3x3.64-128.112").shape) == "64x112x112 -> 128x112x112, 3x3, stride 1, pad 1");
  REQUIRE(make_layers({folder / "a.safetensors", "--set", "anchors", "--sparsity", "0.9"}).exit_code == 0);
  const Network anchors = import_network(folder / "a.safetensors", {});
  CHECK(describe(layer_of(anchors, "1x1.2048-512.7").shape) == "2048x7x7 -> 512x7x7, 1x1, stride 1, pad 0");
  CHECK(nonzeros(layer_of(anchors, "3x3.512-512.7")) == 235'930);
}

TEST_CASE("layer sets depend on their arguments alone") {
  const ScratchFolder folder;
  const auto made = [&](const std::string& name, const std::string& seed, const std::string& glob) {
    REQUIRE(
        make_layers({folder / name, "--set", "dong", "--sparsity", "0.9", "--seed", seed, "--layer", glob}).exit_code ==
        0);
    return read_file(folder / name);
  };
  const std::string first = made("1.safetensors", "1", "5x5.*");
  CHECK((first == made("2.safetensors", "1", "5x5.*")));
  CHECK((first != made("3.safetensors", "2", "5x5.*")));
  // A layer is the same whatever else the file holds.
  made("4.safetensors", "1", "*");
  const Network some = import_network(folder / "1.safetensors", {}), all = import_network(folder / "4.safetensors", {});
  CHECK(some.layers.size() == 5);
  for (const ConvLayer& layer : some.layers) CHECK((layer.weights == layer_of(all, layer.name).weights));
}

TEST_CASE("weights pruned further keep their largest and their geometry") {
  const ScratchFolder folder;
  const TestLayer a{.name = "a", .shape = {16, 8, 3, 3}, .more_geometry = R"({"activation": "relu6"})"};
  const TestLayer b{.name = "b", .shape = {8, 4, 1, 1}, .extent = 5, .stride = 2, .pad = 0, .groups = 2};
  write_safetensors(folder / "w.safetensors", {a, b});
  const Outcome made = make_layers({folder / "p.safetensors", "--from", folder / "w.safetensors", "--sparsity", "0.9"});
  CAPTURE(made.err);
  REQUIRE(made.exit_code == 0);
  const Network before = import_network(folder / "w.safetensors", {}),
                after = import_network(folder / "p.safetensors", {});
  REQUIRE(after.layers.size() == 2);
  CHECK(nonzeros(after.layers[0]) == 115);  // of 1152
  CHECK(nonzeros(after.layers[1]) == 3);    // of 32
  for (std::size_t i = 0; i < 2; ++i) {
    const ConvLayer &old_layer = before.layers[i], &layer = after.layers[i];
    CHECK(layer.name == old_layer.name);
    CHECK(layer.shape == old_layer.shape);
    float least_kept = 2, largest_gone = 0;
    for (std::size_t w = 0; w < layer.weights.size(); ++w) {
      const float magnitude = std::abs(old_layer.weights[w]);
      if (layer.weights[w] != 0) {
        CHECK(layer.weights[w] == old_layer.weights[w]);
        least_kept = std::min(least_kept, magnitude);
      } else {
        largest_gone = std::max(largest_gone, magnitude);
      }
    }
    CHECK(least_kept >= largest_gone);
  }
  const Outcome some =
      make_layers({folder / "b.safetensors", "--from", folder / "w.safetensors", "--sparsity", "0.9", "--layer", "b*"});
  REQUIRE(some.exit_code == 0);
  CHECK(import_network(folder / "b.safetensors", {}).layers.size() == 1);
}

TEST_CASE("weights that cannot be pruned so are refused") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});  // a third of its weights are not zero
  const auto error = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), folder / "p.safetensors");
    const Outcome outcome = make_layers(arguments);
    CHECK(outcome.exit_code != 0);
    CHECK_FALSE(std::filesystem::exists(folder / "p.safetensors"));
    return outcome.err;
  };
  CHECK_THAT(error({"--from", folder / "w.safetensors", "--sparsity", "0.1"}),
             Contains("layer 'conv' has ") && Contains("fewer than the 259 that --sparsity 0.1 leaves"));
  CHECK_THAT(error({"--set", "dong", "--sparsity", "0.9", "--layer", "x*"}), Contains("no layer matches --layer 'x*'"));
  CHECK_THAT(error({"--set", "dong", "--sparsity", "1"}), Contains("--sparsity"));
  CHECK_THAT(error({"--from", folder / "absent", "--sparsity", "0.9"}), Contains("absent"));
}

TEST_CASE("tables of measurements have a mean for each batch size and for all") {
  const ScratchFolder folder;
  const auto row = [](int batch, double ours, double fp32, const std::string& tf32) {
    return fmt::format(R"({{"layer": "conv", "shape": "s", "batch": {}, "nonzeros": 9, "cold": {{"median_us": {}}},
      "warm": {{"median_us": 1.5}}, "cudnn_fp32": {{"median_us": {}}}, "cudnn_tf32": {},
      "code_bytes": 2500, "csr_bytes": 800, "dense_bytes": 1250000}})",
                       batch, ours, fp32, tf32);
  };
  const std::string one = R"({"median_us": 8})";
  folder.write("a.bench.json", fmt::format(R"({{"package_bytes": 7000, "rows": [{}, {}]}})", row(1, 2, 16, one),
                                           row(32, 10, 20, "null")));
  folder.write("b.bench.json", fmt::format(R"({{"rows": [{}]}})", row(1, 4, 8, one)));
  const Outcome outcome = run_script("table.py", {folder / "a.bench.json", folder / "b.bench.json"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.out,
             Contains("| conv, s | 1 | 9 | 2.00 | 1.50 | 16.0 | 8.00 | 8.00 | 4.00 | 2.5 kB | 800 B | 1.25 MB |"));
  CHECK_THAT(outcome.out, Contains("| conv, s | 32 | 9 | 10.0 | 1.50 | 20.0 | - | 2.00 | - |"));
  CHECK_THAT(outcome.out, Contains("| a | 1 | 1 | 8.00 | 4.00 |") && Contains("| a | all | 2 | 4.00 | 4.00 |"));
  CHECK_THAT(outcome.out, Contains("| together | 1 | 2 | 4.00 | 2.83 |") && Contains("| together | all | 3 | 3.17 |"));
  CHECK_THAT(outcome.out, Contains("| a | 1 | 2.5 kB | 800 B | 1.25 MB | 7 kB |"));
  CHECK_THAT(outcome.out, !Contains("FP16"));
}

TEST_CASE("tables of measurements say what cuDNN did, and have pools, which have no share in the means") {
  const ScratchFolder folder;
  const auto row = [](const std::string& layer, const std::string& weights, double fp32, const std::string& calls) {
    return fmt::format(R"({{"layer": "{}", "shape": "s", "batch": 1, {} "cold": {{"median_us": 2}},
      "warm": {{"median_us": 1.5}}, "cudnn_fp32": {{"median_us": {}}}, "cudnn_calls": "{}"}})",
                       layer, weights, fp32, calls);
  };
  const std::string weights = R"("nonzeros": 9, "code_bytes": 2500, "csr_bytes": 800, "dense_bytes": 1250000,)";
  folder.write("n.bench.json",
               fmt::format(R"({{"rows": [{}, {}]}})", row("conv", weights, 16, "conv+bias+relu, max pool"),
                           row("pool", "", 3, "max pool")));
  const Outcome outcome = run_script("table.py", {folder / "n.bench.json"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("| conv, s | 1 | 9 | conv+bias+relu, max pool | 2.00 | 1.50 | 16.0 | 8.00 |"));
  CHECK_THAT(outcome.out, Contains("| pool, s | 1 | - | max pool | 2.00 | 1.50 | 3.00 | 1.50 | - | - | - |"));
  CHECK_THAT(outcome.out, Contains("| n | 1 | 1 | 8.00 |"));
  CHECK_THAT(outcome.out, Contains("| n | 1 | 2.5 kB | 800 B | 1.25 MB |"));
}
