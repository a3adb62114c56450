// run of packages that hold a whole network.

#include <algorithm>
#include <cmath>

#include "compiler/cli/npy_tensor.h"
#include "compiler/import/import.h"
#include "compiler/network/reference_network.h"
#include "compiler/reference.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin::random_tensor;
using burin_test::Contains;

namespace {

void compile_for_batches(const ScratchFolder& folder, const OnnxModel& model, const std::string& batches) {
  folder.write("m.onnx", model.bytes());
  const Outcome outcome = run_burin(
      {"compile", folder / "m.onnx", "--arch", "sm_90", "-o", folder / "p.burin", "--batch", batches, "--no-cache"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
}

Outcome run(const ScratchFolder& folder, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run", folder / "p.burin", "--device", "host"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments);
}

void check_near(const std::vector<float>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    INFO("element " << i);
    CHECK(std::abs(values[i] - expected[i]) <= 1e-5 * (1 + std::abs(expected[i])));
  }
}

}  // namespace

TEST_CASE("run_computes_a_network_for_any_number_of_images") {
  const ScratchFolder folder;
  compile_for_batches(folder, branched_model(), "1,2");
  const burin::Network model = burin::import_network(folder / "m.onnx");
  for (const int batch : {1, 2, 5}) {  // 5: the program for 2 images runs three times
    CAPTURE(batch);
    const std::vector<float> x = random_tensor(batch * 3 * 12 * 12, 1);
    burin::write_npy(folder / "x.npy", {batch, 3, 12, 12}, x);
    const Outcome outcome = run(folder, {"--input", folder / "x.npy", "--output", folder / "y.npy"});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK_THAT(outcome.out, Contains("y.npy: float32 [") && Contains("of output 'y' on host"));
    const burin::NpyTensor y = burin::read_npy(folder / "y.npy");
    CHECK(y.shape == std::vector<std::int64_t>{batch, 5});
    check_near(y.values, burin::run_reference(model, batch, {x})[0]);
  }
}

TEST_CASE("run_takes_one_image_of_a_network_without_a_batch_axis") {
  const ScratchFolder folder;
  compile_for_batches(folder, branched_model(), "4");
  burin::write_npy(folder / "x.npy", {3, 12, 12}, random_tensor(3 * 12 * 12, 2));
  CHECK(run(folder, {"--input", folder / "x.npy", "--output", folder / "y.npy"}).exit_code == 0);
  CHECK(burin::read_npy(folder / "y.npy").shape == std::vector<std::int64_t>{5});
}

TEST_CASE("run_takes_and_gives_tensors_by_name") {
  const ScratchFolder folder;
  compile_for_batches(folder, model_of_two_inputs(), "1");
  const std::vector<float> a = random_tensor(2 * 6 * 6, 1), b = random_tensor(2 * 6 * 6, 2);
  burin::write_npy(folder / "a.npy", {1, 2, 6, 6}, a);
  burin::write_npy(folder / "b.npy", {1, 2, 6, 6}, b);
  const std::string in_a = "a=" + (folder / "a.npy"), in_b = "b=" + (folder / "b.npy");
  const std::string out_s = "s=" + (folder / "s.npy"), out_r = "r=" + (folder / "r.npy");
  const Outcome outcome = run(folder, {"--input", in_b, "--input", in_a, "--output", out_s, "--output", out_r});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto expected = burin::run_reference(burin::import_network(folder / "m.onnx"), 1, {a, b});
  check_near(burin::read_npy(folder / "s.npy").values, expected[0]);
  check_near(burin::read_npy(folder / "r.npy").values, expected[1]);

  const auto fault = [&](const std::vector<std::string>& more) {
    const Outcome failed = run(folder, more);
    CHECK(failed.exit_code == 2);
    return failed.err;
  };
  CHECK_THAT(fault({"--input", in_a, "--output", out_s, "--output", out_r}),
             Contains("no file is given") && Contains("'b'"));
  CHECK_THAT(fault({"--input", in_a, "--input", in_a, "--output", out_s}), Contains("'a' is given twice"));
  CHECK_THAT(fault({"--input", in_a, "--input", "c=x.npy", "--output", out_s}), Contains("no input 'c'"));
  CHECK_THAT(fault({"--input", in_a, "--input", in_b, "--output", "y.npy"}), Contains("NAME=FILE"));

  burin::write_npy(folder / "b.npy", {2, 2, 6, 6}, random_tensor(2 * 2 * 6 * 6, 2));
  const Outcome other = run(folder, {"--input", in_a, "--input", in_b, "--output", out_s, "--output", out_r});
  CHECK(other.exit_code == 3);
  CHECK_THAT(other.err, Contains("holds 2 images, but"));
}

TEST_CASE("run_of_a_network_refuses_what_is_not_its_input") {
  const ScratchFolder folder;
  compile_for_batches(folder, branched_model(), "1");
  burin::write_npy(folder / "x.npy", {1, 3, 12, 11}, random_tensor(3 * 12 * 11, 1));
  const Outcome outcome = run(folder, {"--input", folder / "x.npy", "--output", folder / "y.npy"});
  CHECK(outcome.exit_code == 3);
  CHECK_THAT(outcome.err, Contains("[1,3,12,11]") && Contains("the network's input 'x' is [N,3,12,12] or [3,12,12]"));
}

TEST_CASE("run_of_a_package_of_layers_needs_one") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{.name = "a"}, TestLayer{.name = "b"}});
  REQUIRE(run_burin({"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / "p.burin"}).exit_code == 0);
  const Outcome outcome = run(folder, {"--input", "x.npy", "--output", "y.npy"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("p.burin holds 2 layers") && Contains("--layer NAME"));
}

TEST_CASE("run_of_a_layer_of_a_network") {
  const ScratchFolder folder;
  OnnxModel model = OnnxModel::of_image({3, 12, 12});
  std::vector<float> weights = sparse_weights(4 * 3 * 9, 5);
  std::fill_n(weights.begin() + 2 * 27, 27, 0.0F);
  model.floats("w1", {4, 3, 3, 3}, weights);
  model.add_node("Conv", {"x", "w1"}, "c1").set("pads", std::vector<std::int64_t>(4, 1)).node.set_name("conv1");
  model.add_node("MaxPool", {"c1"}, "p1")
      .set("kernel_shape", std::vector<std::int64_t>{2, 2})
      .set("strides", std::vector<std::int64_t>{2, 2})
      .node.set_name("pool");
  model.floats("w2", {5, 4, 1, 1}, sparse_weights(20, 6));
  model.add_node("Conv", {"p1", "w2"}, "y").node.set_name("conv2");
  compile_for_batches(folder, model, "2,4");
  for (const int images : {2, 5}) {
    CAPTURE(images);
    const std::vector<float> x = random_tensor(images * 3 * 12 * 12, 1);
    burin::write_npy(folder / "x.npy", {images, 3, 12, 12}, x);
    const Outcome outcome =
        run(folder, {"--layer", "conv1", "--input", folder / "x.npy", "--output", folder / "y.npy"});
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK_THAT(outcome.out, Contains("of layer 'conv1'"));
    // The filter without a nonzero is not there any more, and the pool is part of the layer.
    const burin::NpyTensor y = burin::read_npy(folder / "y.npy");
    CHECK(y.shape == std::vector<std::int64_t>{images, 3, 6, 6});
    burin::ConvLayer layer = burin::import_network(folder / "m.onnx").layers.at(0);
    layer.weights.erase(layer.weights.begin() + 2 * 27, layer.weights.begin() + 3 * 27);
    layer.shape.out_channels = 3;
    burin::Pool& pool = layer.shape.epilogue.pool.emplace();
    pool.kernel_h = pool.kernel_w = pool.stride_h = pool.stride_w = 2;
    check_near(y.values, burin::reference_convolution(layer, images, x, {}));
  }
}

TEST_CASE("run_of_a_layer_that_shares_its_tensor_with_others_says_that_it_cannot") {
  const ScratchFolder folder;
  compile_for_batches(folder, branched_model(), "2");  // conv2 and conv3 write a concat
  burin::write_npy(folder / "x.npy", {2, 8, 12, 12}, random_tensor(2 * 8 * 12 * 12, 1));
  for (const std::string layer : {"conv2", "conv3"}) {
    const Outcome outcome = run(folder, {"--layer", layer, "--input", folder / "x.npy", "--output", folder / "y.npy"});
    CHECK(outcome.exit_code == 4);
    CHECK_THAT(outcome.err, Contains("burin: error: layer " + layer) &&
                                Contains("its output is part of a larger tensor") &&
                                Contains("cannot be run by itself"));
    CHECK_FALSE(std::filesystem::exists(folder / "y.npy"));
  }
}

TEST_CASE("run_of_a_network_with_activity_maps_knows_nothing_of_them") {
  const ScratchFolder folder;
  folder.write("m.onnx", chain_model().bytes());
  const Outcome compiled = run_burin({"compile", folder / "m.onnx", "--arch", "sm_90", "-o", folder / "p.burin",
                                      "--batch", "1,2", "--no-cache", "--skip-dead-tiles", "--plan", "tile=1x6x12"});
  CAPTURE(compiled.err);
  REQUIRE(compiled.exit_code == 0);
  const std::vector<float> x = random_tensor(3 * 3 * 12 * 12, 1);
  burin::write_npy(folder / "x.npy", {3, 3, 12, 12}, x);
  const Outcome outcome = run(folder, {"--input", folder / "x.npy", "--output", folder / "y.npy"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  check_near(burin::read_npy(folder / "y.npy").values,
             burin::run_reference(burin::import_network(folder / "m.onnx"), 3, {x})[0]);
  // A layer of it takes and gives maps, and nobody has to give them either.
  burin::write_npy(folder / "x.npy", {8, 12, 12}, random_tensor(8 * 12 * 12, 1));
  const Outcome layer = run(folder, {"--layer", "conv2", "--input", folder / "x.npy", "--output", folder / "y.npy"});
  CAPTURE(layer.err);
  CHECK(layer.exit_code == 0);
  CHECK_THAT(layer.out, Contains(",12,12] of layer 'conv2'"));
}
