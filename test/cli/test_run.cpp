// run: tensors in and out as .npy.

#include "compiler/cli/npy_writer.h"
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
void compile_layer(const ScratchFolder& folder, const TestLayer& layer = {}, const std::string& layout = "nchw") {
  write_safetensors(folder / "w.safetensors", {layer});
  const Outcome outcome =
      run_burin({"compile", folder / "w.safetensors", "--arch", "sm_90", "--layout", layout, "-o", folder / "p.burin"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
}

Outcome run_layer(const ScratchFolder& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"run",      folder / "p.burin", "--layer",  "conv", "--input", folder / "x.npy",
                                        "--output", folder / "y.npy",   "--device", "host"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments);
}

void check_against_reference(const ScratchFolder& folder, int batch, const std::vector<float>& x,
                             const std::vector<float>& residual) {
  const burin::ConvLayer layer = burin::import_network(folder / "w.safetensors").layers.at(0);
  const burin::Comparison comparison =
      burin::compare(read_npy(folder / "y.npy").values, burin::reference_convolution(layer, batch, x, residual),
                     burin::reference_magnitude(layer, batch, x, residual), {.longest_reduction = 36});
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
  CHECK_THAT(outcome.out, Contains("y.npy") && Contains("[2,8,8,8]") && Contains("host"));
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
  const Outcome missing = run_layer(folder);
  CHECK(missing.exit_code == 2);
  CHECK_THAT(missing.err, Contains("--residual"));
  CHECK(run_layer(folder, {"--residual", folder / "r.npy"}).exit_code == 0);
  check_against_reference(folder, 1, x, r);
  burin::write_npy(folder / "r.npy", {1, 8, 8, 7}, burin::random_tensor(8 * 8 * 7, 4));
  CHECK(run_layer(folder, {"--residual", folder / "r.npy"}).exit_code == 3);
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
    compile_layer(folder, layer, "nchw4");
    const std::vector<float> x = burin::random_tensor(3 * in * 8 * 8, 5), r = burin::random_tensor(3 * out * 8 * 8, 6);
    burin::write_npy(folder / "x.npy", {3, in, 8, 8}, x);
    burin::write_npy(folder / "r.npy", {3, out, 8, 8}, r);
    const Outcome outcome = run_layer(folder, {"--residual", folder / "r.npy"});
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
  CHECK_THAT(outcome.err, Contains("[1,4,8,9]") && Contains("[N,4,8,8]"));
  CHECK_FALSE(std::filesystem::exists(folder / "y.npy"));
}

TEST_CASE("run_suggests_a_layer") {
  const ScratchFolder folder;
  compile_layer(folder);
  const Outcome outcome = run_burin({"run", folder / "p.burin", "--layer", "cnov", "--input", "x", "--output", "y"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("no layer 'cnov'; did you mean 'conv'?"));
}
