// compile and inspect: what comes out, and that it comes out the same.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "ir/package/package.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

Outcome compile(const ScratchFolder& folder, const std::string& output, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / output};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments);
}

std::vector<TestLayer> two_layers() {
  return {TestLayer{.name = "a"}, TestLayer{.name = "b", .shape = {6, 8, 1, 1}, .pad = 0}};
}

}  // namespace

TEST_CASE("compile_says_what_it_wrote_and_is_quiet_otherwise") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", two_layers());
  const Outcome outcome = compile(folder, "p.burin");
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("p.burin: 2 kernels") && Contains("PTX"));
  CHECK_THAT(outcome.err, !Contains("\r") && !Contains("\033"));  // no bar where nobody looks
  const burin::Package package = burin::read_package(folder / "p.burin");
  CHECK(package.manifest.kernels.size() == 2);
  CHECK(package.manifest.source == "w.safetensors");
}

TEST_CASE("the_default_output_lies_in_the_current_folder") {
  const ScratchFolder folder, elsewhere;
  write_safetensors(folder / "net.safetensors", {TestLayer{}});
  const Outcome outcome = run_burin({"compile", folder / "net.safetensors", "--arch", "sm_90"}, {}, elsewhere.path());
  CHECK(outcome.exit_code == 0);
  CHECK(elsewhere.entries() == std::vector<std::string>{"net.burin"});
  CHECK(folder.entries() == std::vector<std::string>{"net.safetensors"});
}

TEST_CASE("the_same_input_and_flags_give_the_same_bytes") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", two_layers());
  REQUIRE(compile(folder, "1.burin", {"--batch", "1,4", "--jobs", "1"}).exit_code == 0);
  REQUIRE(compile(folder, "2.burin", {"--batch", "1,4", "--jobs", "3"}).exit_code == 0);
  CHECK((read_file(folder / "1.burin") == read_file(folder / "2.burin")));
  REQUIRE(compile(folder, "3.burin", {"--batch", "4"}).exit_code == 0);
  CHECK((read_file(folder / "1.burin") != read_file(folder / "3.burin")));
}

TEST_CASE("layer_chooses_and_batch_multiplies") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", two_layers());
  REQUIRE(compile(folder, "p.burin", {"--layer", "b", "--batch", "1,4"}).exit_code == 0);
  const burin::Package package = burin::read_package(folder / "p.burin");
  REQUIRE(package.manifest.kernels.size() == 2);
  CHECK(package.manifest.kernels[0].op == "b");
  CHECK(package.manifest.kernels[0].planned_batch == 1);
  CHECK(package.manifest.kernels[1].planned_batch == 4);
}

TEST_CASE("nchw_is_the_layout_that_goes_without_saying") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(compile(folder, "1.burin").exit_code == 0);
  REQUIRE(compile(folder, "2.burin", {"--layout", "nchw"}).exit_code == 0);
  CHECK((read_file(folder / "1.burin") == read_file(folder / "2.burin")));
  const burin::KernelForm form = burin::read_package(folder / "1.burin").manifest.kernels.at(0).form;
  CHECK(form.input().layout == burin::TensorLayout::nchw);
  CHECK(form.output().layout == burin::TensorLayout::nchw);
  CHECK_THAT(run_burin({"inspect", folder / "1.burin"}).out, !Contains("layout"));
}

TEST_CASE("a_plan_that_is_fed_back_has_its_own_layout") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(compile(folder, "p.burin", {"--kernels", "baked", "--dump-dir", folder / "d"}).exit_code == 0);
  const std::string plan = folder / "d/conv/30-plan.txt";
  CHECK(compile(folder, "p.burin", {"--from", plan, "--layout", "nchw"}).exit_code == 0);
  const Outcome outcome = compile(folder, "q.burin", {"--from", plan, "--layout", "nchw4"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("--layout nchw4: the plan for '" + plan + "' reads nchw and writes nchw"));
  CHECK_FALSE(std::filesystem::exists(folder / "q.burin"));
}

TEST_CASE("activation_overrides_what_the_file_says") {
  const ScratchFolder folder;
  TestLayer layer;
  layer.more_geometry = R"({"activation": "relu"})";
  write_safetensors(folder / "w.safetensors", {layer});
  REQUIRE(compile(folder, "p.burin").exit_code == 0);
  CHECK(burin::read_package(folder / "p.burin").manifest.kernels.at(0).layer->shape.epilogue.function ==
        burin::function_of(burin::Activation::relu));
  REQUIRE(compile(folder, "p.burin", {"--activation", "silu"}).exit_code == 0);
  CHECK(burin::read_package(folder / "p.burin").manifest.kernels.at(0).layer->shape.epilogue.function ==
        burin::function_of(burin::Activation::silu));
}

TEST_CASE("zero_threshold_drops_weights_and_is_recorded") {
  const ScratchFolder folder;
  TestLayer layer;
  layer.weights.assign(8 * 4 * 9, 0.001F);
  layer.weights[5] = 0.5F;
  write_safetensors(folder / "w.safetensors", {layer});
  REQUIRE(compile(folder, "p.burin", {"--zero-threshold", "0.01"}).exit_code == 0);
  const burin::Manifest manifest = burin::read_package(folder / "p.burin").manifest;
  CHECK(manifest.kernels.at(0).layer->nonzeros == 1);
  CHECK(manifest.zero_threshold == 0.01F);
  const Outcome verified =
      run_burin({"verify", folder / "p.burin", "--against", folder / "w.safetensors", "--device", "host"});
  CAPTURE(verified.out, verified.err);
  CHECK(verified.exit_code == 0);  // verify applies the same threshold
}

TEST_CASE("max_extent_crops_and_keeps_padding_and_stride") {
  const ScratchFolder folder;
  TestLayer layer;
  layer.extent = 100;
  layer.stride = 2;
  write_safetensors(folder / "w.safetensors", {layer});
  REQUIRE(compile(folder, "p.burin", {"--max-extent", "9"}).exit_code == 0);
  const burin::ConvShape shape = burin::read_package(folder / "p.burin").manifest.kernels.at(0).layer->shape;
  CHECK(shape.in_h == 9);
  CHECK(shape.in_w == 9);
  CHECK(shape.stride_h == 2);
  CHECK(shape.pad.left == 1);
}

TEST_CASE("what_is_not_supported_exits_with_4") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  const Outcome precision = compile(folder, "p.burin", {"--precision", "fp8"});
  CHECK(precision.exit_code == 4);
  CHECK_THAT(precision.err, Contains("fp8") && Contains("fp32"));
  const Outcome arch = run_burin({"compile", folder / "w.safetensors", "--arch", "sm_42", "-o", folder / "p.burin"});
  CHECK(arch.exit_code == 4);
  CHECK_THAT(arch.err, Contains("sm_42") && Contains("sm_90"));
  CHECK(folder.entries() == std::vector<std::string>{"w.safetensors"});
}

TEST_CASE("native_without_a_gpu_exits_with_5") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  const Outcome outcome =
      run_burin_without_gpu({"compile", folder / "w.safetensors", "--arch", "native", "-o", folder / "p.burin"});
  CHECK(outcome.exit_code == 5);
  CHECK_THAT(outcome.err, Contains("--arch native") && Contains("no GPU"));
}

TEST_CASE("tune_without_a_gpu_exits_with_5_and_writes_nothing") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  for (const char* plans : {"12", "3"}) {
    const Outcome outcome = run_burin_without_gpu(
        {"tune", folder / "w.safetensors", "--arch", "sm_90", "--plans", plans, "-o", folder / "p.burin"});
    CHECK(outcome.exit_code == 5);
    CHECK(outcome.out == "");
    CHECK_THAT(outcome.err, Contains("burin: error: tune measures on a GPU"));
    CHECK(folder.entries() == std::vector<std::string>{"w.safetensors"});
  }
}

TEST_CASE("tune_refuses_counts_and_options_that_make_no_sense") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  const auto error_of = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"tune", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / "p"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_burin_without_gpu(arguments);
    CHECK(outcome.exit_code == 2);
    return outcome.err;
  };
  for (const char* count : {"0", "-1", "101", "many", "1.5"}) {
    CHECK_THAT(error_of({"--plans", count}), Contains("--plans"));
  }
  CHECK_THAT(error_of({"--budget", "long"}), Contains("--budget"));
  CHECK_THAT(error_of({"--from", "plan.txt"}), Contains("--from"));
  CHECK_THAT(
      error_of({"--providers", "baked,linaer"}),
      Contains("--providers 'baked,linaer': there is no 'linaer' among baked, ") && Contains("did you mean 'linear'?"));
  CHECK_THAT(error_of({"--providers", ""}), Contains("--providers"));
  CHECK_THAT(error_of({"--providers", "dense", "--kernels", "baked"}), Contains("--kernels has no effect here"));
  CHECK_THAT(error_of({"--providers", "dense,cudnn", "--no-libraries"}),
             Contains("asks for calls of cuDNN, and --no-libraries for none"));
  CHECK_THAT(error_of({"--providers", "linear,linear_cublas", "--no-libraries"}),
             Contains("asks for calls of cuBLASLt, and --no-libraries for none"));
  CHECK_THAT(error_of({"--anew", "--no-cache"}), Contains("--anew has no effect here: no cache is used"));
  CHECK_THAT(error_of({"--stop-after", "pattern", "--dump-dir", folder / "d"}),
             Contains("--stop-after pattern ends before there are any"));
}

TEST_CASE("inspect_tuning_says_where_nothing_was_tuned") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(compile(folder, "p.burin").exit_code == 0);
  const Outcome outcome = run_burin({"inspect", folder / "p.burin", "--tuning"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("no kernel was tuned"));
  CHECK_THAT(outcome.out, !Contains("tuned us"));
}

TEST_CASE("without_arch_and_gpu_a_note_says_what_was_taken") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  const Outcome outcome = run_burin_without_gpu({"compile", folder / "w.safetensors", "-o", folder / "p.burin"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("burin: note: no GPU found: compiling for sm_90"));
}

TEST_CASE("a_package_without_an_assembler_holds_ptx_and_says_so") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  const Outcome outcome = run_burin({"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / "p.burin"},
                                    {"BURIN_ASSEMBLER=none"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("burin: note: ") && Contains("PTX only"));
  CHECK_THAT(outcome.out, Contains("PTX") && !Contains("cubin"));
}

TEST_CASE("inspect_shows_weights_and_packages") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", two_layers());
  REQUIRE(compile(folder, "p.burin").exit_code == 0);
  for (const char* input : {"w.safetensors", "p.burin"}) {
    CAPTURE(input);
    const Outcome table = run_burin({"inspect", folder / input});
    CHECK(table.exit_code == 0);
    CHECK_THAT(table.out, Contains("sparsity") && Contains("4x8x8 > 8, 3x3 p1") && Contains("2 layers"));
    const Outcome json = run_burin({"inspect", folder / input, "--json"});
    CHECK(json.exit_code == 0);
    const nlohmann::json document = nlohmann::json::parse(json.out);
    REQUIRE(document["rows"].size() == 2);
    CHECK(document["rows"][1]["layer"] == "b");
    CHECK(document["rows"][1]["dense_bytes"] == 6 * 8 * 4);
    CHECK(document["rows"][0]["nonzeros"].get<int>() > 0);
  }
}

TEST_CASE("inspect_of_the_same_layer_agrees_before_and_after_compiling") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", two_layers());
  REQUIRE(compile(folder, "p.burin").exit_code == 0);
  const nlohmann::json before = nlohmann::json::parse(run_burin({"inspect", folder / "w.safetensors", "--json"}).out);
  const nlohmann::json after = nlohmann::json::parse(run_burin({"inspect", folder / "p.burin", "--json"}).out);
  for (const char* key : {"layer", "shape", "nonzeros", "dead_inputs", "dead_outputs", "provider", "plan", "symbol"}) {
    CAPTURE(key);
    CHECK(before["rows"][0][key] == after["rows"][0][key]);
  }
}

TEST_CASE("inspect_refuses_a_glob_without_a_match") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", two_layers());
  REQUIRE(compile(folder, "p.burin").exit_code == 0);
  const Outcome outcome = run_burin({"inspect", folder / "p.burin", "--layer", "z*"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("'z*'"));
}

TEST_CASE("nchw4_is_recorded_shown_and_verified") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{.name = "a", .shape = {6, 5, 3, 3}},
                                               TestLayer{.name = "b", .shape = {7, 6, 1, 1}, .pad = 0},
                                               TestLayer{.name = "c", .shape = {9, 1, 3, 3}, .groups = 9}});
  REQUIRE(compile(folder, "p.burin", {"--layout", "nchw4", "--batch", "1,3"}).exit_code == 0);
  for (const burin::Kernel& kernel : burin::read_package(folder / "p.burin").manifest.kernels) {
    CAPTURE(kernel.symbol);
    CHECK(kernel.form.input().layout == burin::TensorLayout::nchw4);
    CHECK(kernel.form.output().layout == burin::TensorLayout::nchw4);
    CHECK(kernel.form.input().alignment == 16);
    CHECK(kernel.form.output().alignment == 16);
  }
  for (const std::vector<std::string>& input :
       {std::vector<std::string>{folder / "p.burin"},
        std::vector<std::string>{folder / "w.safetensors", "--layout", "nchw4"}}) {
    std::vector<std::string> arguments = {"inspect"};
    arguments.insert(arguments.end(), input.begin(), input.end());
    CHECK_THAT(run_burin(arguments).out, Contains("layout") && Contains("nchw4"));
    arguments.emplace_back("--json");
    const nlohmann::json document = nlohmann::json::parse(run_burin(arguments).out);
    CHECK(document["rows"][0]["input_layout"] == "nchw4");
    CHECK(document["rows"][0]["output_layout"] == "nchw4");
  }
  const Outcome verified =
      run_burin({"verify", folder / "p.burin", "--against", folder / "w.safetensors", "--device", "host"});
  CAPTURE(verified.out, verified.err);
  CHECK(verified.exit_code == 0);
}

TEST_CASE("skip_dead_tiles_is_recorded_and_verified") {
  const ScratchFolder folder;
  write_safetensors(
      folder / "w.safetensors",
      {TestLayer{.name = "a", .shape = {6, 40, 3, 3}}, TestLayer{.name = "b", .shape = {7, 6, 1, 1}, .pad = 0},
       TestLayer{.name = "c", .shape = {9, 1, 3, 3}, .stride = 2, .groups = 9}});
  for (const char* precision : {"fp32", "fp16x2"}) {
    CAPTURE(precision);
    REQUIRE(compile(folder, "p.burin",
                    {"--skip-dead-tiles", "--activation", "relu", "--batch", "1,3", "--precision", precision})
                .exit_code == 0);
    for (const burin::Kernel& kernel : burin::read_package(folder / "p.burin").manifest.kernels) {
      CAPTURE(kernel.symbol);
      const burin::KernelTensor* map = kernel.form.find(burin::TensorRole::output_map);
      REQUIRE((map != nullptr && kernel.form.has(burin::TensorRole::input_map)));
      CHECK(map->map->images == kernel.form.launch.tile_images);
    }
    for (const char* batch : {"1", "4"}) {
      const Outcome verified = run_burin(
          {"verify", folder / "p.burin", "--against", folder / "w.safetensors", "--device", "host", "--batch", batch});
      CAPTURE(verified.out, verified.err);
      CHECK(verified.exit_code == 0);
    }
  }
  REQUIRE(compile(folder, "plain.burin").exit_code == 0);
  for (const burin::Kernel& kernel : burin::read_package(folder / "plain.burin").manifest.kernels) {
    CHECK_FALSE(kernel.form.has_maps());
  }
}

TEST_CASE("a_plan_that_is_fed_back_has_its_own_activity_maps") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(compile(folder, "p.burin", {"--skip-dead-tiles", "--dump-dir", folder / "with"}).exit_code == 0);
  REQUIRE(compile(folder, "p.burin", {"--kernels", "baked", "--dump-dir", folder / "without"}).exit_code == 0);
  // A person's own cell.
  std::string plan = read_file(folder / "with/conv/30-plan.txt");
  const std::size_t cell = plan.find("skips: ") + 7;
  plan.replace(cell, plan.find(' ', cell) - cell, "1x2x3");
  write_file(folder / "edited.txt", plan);
  const Outcome edited = compile(folder, "edited.burin", {"--from", folder / "edited.txt"});
  CAPTURE(edited.err);
  CHECK(edited.exit_code == 0);
  CHECK_THAT(edited.err, Contains("verified on host"));
  CHECK(burin::read_package(folder / "edited.burin")
            .manifest.kernels.front()
            .form.find(burin::TensorRole::input_map)
            ->map == burin::ActivityMap{1, 2, 3});
  const Outcome none = compile(folder, "p.burin", {"--skip-dead-tiles", "--from", folder / "without/conv/30-plan.txt"});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, Contains("--skip-dead-tiles asks for activity maps") && Contains("'marks: yes'"));
}
