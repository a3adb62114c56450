// run: tensors in and out as .npy.
#include <algorithm>

#include "compiler/cli/npy_tensor.h"
#include "compiler/import/import.h"
#include "compiler/import/mapped_file.h"
#include "compiler/import/npy.h"
#include "compiler/reference.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

struct Array {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

Array read_npy(const std::string& path) {
  const burin::MappedFile file(path);
  const burin::WeightsTensor tensor = burin::parse_npy(file.bytes(), path, path);
  return {tensor.shape, burin::float_values(tensor)};
}

// A package of one layer, 4x8x8 -> 8x8x8.
void compile_layer(const ScratchFolder& folder, const TestLayer& layer = {},
                   const std::vector<std::string>& more = {}) {
  write_safetensors(folder / "w.safetensors", {layer});
  std::vector<std::string> arguments = {"compile", folder / "w.safetensors", "--arch", "sm_90",
                                        "-o",      folder / "p.burin"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = run_burin(arguments);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
}

// `inputs`: of --input, files of the folder, NAME=FILE where there are several.
Outcome run_layer(const ScratchFolder& folder, const std::vector<std::string>& inputs = {"x.npy"}) {
  std::vector<std::string> arguments = {"run",      folder / "p.burin", "--layer",  "conv",
                                        "--output", folder / "y.npy",   "--device", "host"};
  for (const std::string& input : inputs) {
    const std::size_t file = input.find('=') + 1;  // 0: there is no name
    arguments.insert(arguments.end(), {"--input", input.substr(0, file) + (folder / input.substr(file))});
  }
  return run_burin(arguments);
}

void check_against_reference(const ScratchFolder& folder, int batch, const std::vector<float>& x,
                             const std::vector<float>& residual) {
  const burin::ConvLayer layer = burin::import_network(folder / "w.safetensors").layers.at(0);
  const burin::ConvolutionReference reference(layer, batch, x, residual);
  const burin::Comparison comparison = burin::compare(read_npy(folder / "y.npy").values, reference.outputs(),
                                                      reference.tolerances({.longest_reduction = 36}));
  CHECK(comparison.within);
}

}  // namespace

TEST_CASE("run_computes_a_batch") {
  const ScratchFolder folder;
  compile_layer(folder);
  const std::vector<float> x = burin::random_tensor(2 * 4 * 8 * 8, 1);
  burin::write_npy(folder / "x.npy", {2, 4, 8, 8}, x);
  const Outcome outcome = run_layer(folder);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out,
             Contains("y.npy") && Contains("[2,8,8,8]") && Contains("of layer 'conv'") && Contains("host"));
  CHECK(read_npy(folder / "y.npy").shape == std::vector<std::int64_t>{2, 8, 8, 8});
  check_against_reference(folder, 2, x, {});
}

TEST_CASE("run_takes_one_image_without_a_batch_axis") {
  const ScratchFolder folder;
  compile_layer(folder);
  const std::vector<float> x = burin::random_tensor(4 * 8 * 8, 2);
  burin::write_npy(folder / "x.npy", {4, 8, 8}, x);
  CHECK(run_layer(folder).exit_code == 0);
  CHECK(read_npy(folder / "y.npy").shape == std::vector<std::int64_t>{8, 8, 8});
  check_against_reference(folder, 1, x, {});
}

TEST_CASE("run_adds_a_residual_exactly_where_the_layer_has_one") {
  const ScratchFolder folder;
  TestLayer layer;
  layer.more_geometry = R"({"residual": true})";
  compile_layer(folder, layer);
  const std::vector<float> x = burin::random_tensor(4 * 8 * 8, 3), r = burin::random_tensor(8 * 8 * 8, 4);
  burin::write_npy(folder / "x.npy", {1, 4, 8, 8}, x);
  burin::write_npy(folder / "r.npy", {1, 8, 8, 8}, r);
  const auto usage_error = [&](const std::vector<std::string>& inputs) {
    std::filesystem::remove(folder / "y.npy");
    const Outcome outcome = run_layer(folder, inputs);
    CHECK(outcome.exit_code == 2);
    CHECK_FALSE(std::filesystem::exists(folder / "y.npy"));
    return outcome.err;
  };
  CHECK_THAT(usage_error({"x.npy"}), Contains("layer 'conv' has no input '") &&
                                         Contains("give NAME=FILE for each of ") && Contains("'input'") &&
                                         Contains("'residual'"));
  CHECK_THAT(usage_error({"input=x.npy"}),
             Contains("no file is given for the input 'residual' of layer 'conv': --input residual=FILE"));
  CHECK_THAT(usage_error({"input=x.npy", "residul=r.npy"}),
             Contains("layer 'conv' has no input 'residul'; did you mean 'residual'?"));
  CHECK_THAT(usage_error({"input=x.npy", "residual=r.npy", "input=x.npy"}), Contains("'input' is given twice"));

  const std::vector<std::string> both = {"residual=r.npy", "input=x.npy"};
  const Outcome outcome = run_layer(folder, both);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  check_against_reference(folder, 1, x, r);
  burin::write_npy(folder / "r.npy", {1, 8, 8, 7}, burin::random_tensor(8 * 8 * 7, 4));
  const Outcome narrow = run_layer(folder, both);
  CHECK(narrow.exit_code == 3);
  CHECK_THAT(narrow.err, Contains("[1,8,8,7]") && Contains("input 'residual' is [N,8,8,8]"));
  burin::write_npy(folder / "r.npy", {2, 8, 8, 8}, burin::random_tensor(2 * 8 * 8 * 8, 4));
  const Outcome more = run_layer(folder, both);
  CHECK(more.exit_code == 3);
  CHECK_THAT(more.err, Contains("holds 2 images, but") || Contains("holds 1 images, but"));

  compile_layer(folder);
  CHECK_THAT(usage_error({"input=x.npy", "residual=r.npy"}), Contains("layer 'conv' has no input 'residual'"));
}

TEST_CASE("run_gives_a_layer_its_activity_maps") {
  const ScratchFolder folder;
  TestLayer layer;
  layer.more_geometry = R"({"residual": true, "activation": "relu"})";
  compile_layer(folder, layer, {"--skip-dead-tiles"});
  constexpr int kImages = 3;
  std::vector<float> x = burin::random_tensor(kImages * 4 * 8 * 8, 3);
  const std::vector<float> r = burin::random_tensor(kImages * 8 * 8 * 8, 4);
  std::fill(x.begin(), x.begin() + 2 * 8 * 8, 0.0F);  // dead channels, of which nobody tells the kernel
  burin::write_npy(folder / "x.npy", {kImages, 4, 8, 8}, x);
  burin::write_npy(folder / "r.npy", {kImages, 8, 8, 8}, r);
  const Outcome outcome = run_layer(folder, {"input=x.npy", "residual=r.npy"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.out == (folder / "y.npy") + ": float32 [3,8,8,8] of layer 'conv' on host\n");
  check_against_reference(folder, kImages, x, r);
  CHECK(folder.entries() == std::vector<std::string>{"p.burin", "r.npy", "w.safetensors", "x.npy", "y.npy"});
}

TEST_CASE("run_of_the_only_layer_of_a_package_needs_no_name") {
  const ScratchFolder folder;
  compile_layer(folder);
  const std::vector<float> x = burin::random_tensor(4 * 8 * 8, 3);
  burin::write_npy(folder / "x.npy", {1, 4, 8, 8}, x);
  const Outcome outcome = run_burin(
      {"run", folder / "p.burin", "--input", folder / "x.npy", "--output", folder / "y.npy", "--device", "host"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  check_against_reference(folder, 1, x, {});
}

TEST_CASE("run_takes_the_program_of_the_batch_size_and_any_number_of_images") {
  const ScratchFolder folder;
  compile_layer(folder, {}, {"--batch", "1,4"});
  for (const int images : {1, 3, 4, 9}) {
    CAPTURE(images);
    const std::vector<float> x = burin::random_tensor(images * 4 * 8 * 8, 3);
    burin::write_npy(folder / "x.npy", {images, 4, 8, 8}, x);
    REQUIRE(run_layer(folder).exit_code == 0);
    CHECK(read_npy(folder / "y.npy").shape == std::vector<std::int64_t>{images, 8, 8, 8});
    check_against_reference(folder, images, x, {});
  }
}

TEST_CASE("run_takes_and_gives_nchw_whatever_the_kernels_layout") {
  const ScratchFolder folder;
  TestLayer layer;
  layer.more_geometry = R"({"residual": true})";
  // The last four channels are filled up on both sides, on one, on none.
  for (const std::vector<int>& shape : std::vector<std::vector<int>>{{6, 5, 3, 3}, {8, 3, 3, 3}, {8, 4, 3, 3}}) {
    layer.shape = shape;
    const int in = shape[1], out = shape[0];
    CAPTURE(in, out);
    compile_layer(folder, layer, {"--layout", "nchw4"});
    const std::vector<float> x = burin::random_tensor(3 * in * 8 * 8, 5), r = burin::random_tensor(3 * out * 8 * 8, 6);
    burin::write_npy(folder / "x.npy", {3, in, 8, 8}, x);
    burin::write_npy(folder / "r.npy", {3, out, 8, 8}, r);
    const Outcome outcome = run_layer(folder, {"input=x.npy", "residual=r.npy"});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(read_npy(folder / "y.npy").shape == std::vector<std::int64_t>{3, out, 8, 8});
    check_against_reference(folder, 3, x, r);
  }
}

TEST_CASE("run_refuses_an_input_of_another_shape") {
  const ScratchFolder folder;
  compile_layer(folder);
  burin::write_npy(folder / "x.npy", {1, 4, 8, 9}, burin::random_tensor(4 * 8 * 9, 1));
  const Outcome outcome = run_layer(folder);
  CHECK(outcome.exit_code == 3);
  CHECK_THAT(outcome.err, Contains("[1,4,8,9]") && Contains("layer 'conv'") && Contains("[N,4,8,8]"));
  CHECK_FALSE(std::filesystem::exists(folder / "y.npy"));
}

TEST_CASE("run_suggests_a_layer") {
  const ScratchFolder folder;
  compile_layer(folder, {}, {"--batch", "1,2"});
  const Outcome outcome = run_burin({"run", folder / "p.burin", "--layer", "cnov", "--input", "x", "--output", "y"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("no layer 'cnov'; did you mean 'conv'?; it has 'conv'\n"));
}
