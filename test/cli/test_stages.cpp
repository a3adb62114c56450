// --dump-dir and --from: every stage can be read, and an edited one goes back in. test_every_provider.cpp has the same
// of kernels of all kinds, and --stop-after.

#include <algorithm>
#include <filesystem>

#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

const std::vector<std::string> kFiles = {"10-layer.txt",      "20-pattern.txt", "30-plan.txt",   "40-template.ll",
                                         "50-specialised.ll", "60-kernel.ptx",  "70-kernel.json"};

Outcome compile_stages(const ScratchFolder& folder, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"compile", folder / "w.safetensors", "--arch", "sm_90"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments);
}

Outcome verify_package(const ScratchFolder& folder, const std::string& package) {
  return run_burin(
      {"verify", folder / package, "--against", folder / "w.safetensors", "--device", "host", "--seed", "1"});
}

}  // namespace

TEST_CASE("dump_dir_holds_every_stage_and_changes_nothing") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(compile_stages(folder, {"-o", folder / "1.burin"}).exit_code == 0);
  REQUIRE(compile_stages(folder, {"-o", folder / "2.burin", "--dump-dir", folder / "d"}).exit_code == 0);
  CHECK((read_file(folder / "1.burin") == read_file(folder / "2.burin")));
  for (const std::string& file : kFiles) {
    CAPTURE(file);
    CHECK(std::filesystem::file_size(folder / ("d/conv/" + file)) > 0);
  }
}

TEST_CASE("layers_of_any_name_have_a_folder_each_within_the_dump") {
  const ScratchFolder folder;
  std::vector<TestLayer> layers;
  for (const char* name : {"network", "..", ".", "../out", "a/b", "a_b", "a", "a_2", "A", "/tmp/x", "10-layer.txt"}) {
    layers.push_back({.name = name, .shape = {2, 2, 1, 1}});
  }
  write_safetensors(folder / "w.safetensors", layers);
  const Outcome outcome = compile_stages(folder, {"--dump-dir", folder / "d", "--stop-after", "layer"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(folder.entries() == std::vector<std::string>{"d", "w.safetensors"});
  std::vector<std::string> dumped;  // which layer each folder is of
  for (const auto& entry : std::filesystem::directory_iterator(folder / "d")) {
    if (entry.path().filename() == "network") continue;
    dumped.push_back(read_file((entry.path() / "10-layer.txt").string()));
  }
  for (const TestLayer& layer : layers) {
    INFO(layer.name);
    CHECK(std::ranges::count_if(
              dumped, [&](const std::string& text) { return text.starts_with("name: " + layer.name + "\n"); }) == 1);
  }
  CHECK(dumped.size() == layers.size());
  for (const auto& entry : std::filesystem::directory_iterator(folder / "d/network")) CHECK(entry.is_regular_file());
}

TEST_CASE("stages_go_back_in") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(compile_stages(folder, {"-o", folder / "p.burin", "--dump-dir", folder / "d"}).exit_code == 0);
  for (const char* file : {"30-plan.txt", "50-specialised.ll"}) {
    const Outcome outcome =
        compile_stages(folder, {"-o", folder / "again.burin", "--from", folder / (std::string("d/conv/") + file)});
    CAPTURE(file, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK_THAT(outcome.err, Contains(": verified on host"));
    const Outcome verified = verify_package(folder, "again.burin");
    CAPTURE(verified.out, verified.err);
    CHECK(verified.exit_code == (std::string(file) == "30-plan.txt" ? 0 : 4));
  }
  const Outcome ptx = compile_stages(
      folder, {"-o", folder / "ptx.burin", "--from", folder / "d/conv/60-kernel.ptx", "--dump-dir", folder / "e"});
  CAPTURE(ptx.err);
  REQUIRE(ptx.exit_code == 0);
  CHECK((read_file(folder / "d/conv/60-kernel.ptx") == read_file(folder / "e/conv/60-kernel.ptx")));
}

TEST_CASE("an_edited_module_that_is_wrong_does_not_verify") {
  const ScratchFolder folder;
  TestLayer layer;
  layer.weights.assign(8 * 4 * 9, 0.0F);
  layer.weights[13] = 0.25F;  // the one nonzero, easy to find and to change
  write_safetensors(folder / "w.safetensors", {layer});
  REQUIRE(
      compile_stages(folder, {"-o", folder / "p.burin", "--kernels", "baked", "--dump-dir", folder / "d"}).exit_code ==
      0);
  std::string module = read_file(folder / "d/conv/50-specialised.ll");
  const std::string weight = "float 2.500000e-01";
  const std::size_t at = module.find(weight);
  REQUIRE(at != std::string::npos);
  module.replace(at, weight.size(), "float 5.000000e-01");
  write_file(folder / "d/conv/edited.ll", module);
  const Outcome refused =
      compile_stages(folder, {"-o", folder / "edited.burin", "--from", folder / "d/conv/edited.ll"});
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.err, Contains("edited.ll") && Contains("does not compute what the weights say"));
  CHECK_FALSE(std::filesystem::exists(folder / "edited.burin"));
  REQUIRE(compile_stages(folder, {"-o", folder / "edited.burin", "--from", folder / "d/conv/edited.ll", "--no-verify"})
              .exit_code == 0);
  CHECK(verify_package(folder, "p.burin").exit_code == 0);
  const Outcome edited = verify_package(folder, "edited.burin");  // the host has no module of it any more
  CHECK(edited.exit_code == 4);
  CHECK_THAT(edited.err, Contains("its code was edited by hand"));
}

// test/sandbox has the other ways in.
TEST_CASE("an_edited_module_does_no_harm") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(compile_stages(folder, {"-o", folder / "p.burin", "--dump-dir", folder / "d"}).exit_code == 0);
  const std::string module = read_file(folder / "d/conv/50-specialised.ll");
  const std::size_t kernel = module.find("define dso_local void @burin_conv");
  REQUIRE(kernel != std::string::npos);
  const std::size_t body = module.find("{\n", kernel) + 2;
  const std::vector<std::pair<std::string, std::string>> harms = {
      {"  store volatile i32 1, ptr null\n", "was ended by signal 11 (Segmentation fault)"},
      {"  %deep = alloca " + std::string(200000, '[') + "\n", "edited.ll"}};
  for (const auto& [harm, text] : harms) {
    CAPTURE(harm.substr(0, 60));
    write_file(folder / "d/conv/edited.ll", std::string(module).insert(body, harm));
    const Outcome outcome = run_burin({"compile", folder / "w.safetensors", "--arch", "sm_90", "-o",
                                       folder / "edited.burin", "--from", folder / "d/conv/edited.ll"},
                                      {"BURIN_ASSEMBLER=none"});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 3);
    CHECK_THAT(outcome.err, Contains("edited.ll, ") && Contains(text));
    CHECK_FALSE(std::filesystem::exists(folder / "edited.burin"));
  }
}

TEST_CASE("stage_files_that_cannot_be_are_refused") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  write_file(folder / "plan.txt", "this is no plan\n");
  write_file(folder / "module.ll", "this is no module\n");
  write_file(folder / "stage.xyz", "what is this\n");
  const Outcome plan = compile_stages(folder, {"-o", folder / "p.burin", "--from", folder / "plan.txt"});
  CHECK(plan.exit_code == 3);
  CHECK_THAT(plan.err, Contains("plan.txt"));
  const Outcome module = compile_stages(folder, {"-o", folder / "p.burin", "--from", folder / "module.ll"});
  CHECK(module.exit_code == 3);
  CHECK(compile_stages(folder, {"-o", folder / "p.burin", "--from", folder / "stage.xyz"}).exit_code == 2);
  CHECK(compile_stages(folder, {"-o", folder / "p.burin", "--from", folder / "absent.txt"}).exit_code == 3);
  CHECK_FALSE(std::filesystem::exists(folder / "p.burin"));
}

TEST_CASE("from_needs_one_layer_and_one_batch_size") {
  const ScratchFolder folder;
  const TestLayer a{.name = "a"}, b{.name = "b"};
  write_safetensors(folder / "w.safetensors", {a, b});
  REQUIRE(compile_stages(folder, {"-o", folder / "p.burin", "--dump-dir", folder / "d"}).exit_code == 0);
  const std::string plan = folder / "d/a/30-plan.txt";
  CHECK(compile_stages(folder, {"-o", folder / "q.burin", "--from", plan}).exit_code == 2);
  CHECK(
      compile_stages(folder, {"-o", folder / "q.burin", "--from", plan, "--layer", "a", "--batch", "1,2"}).exit_code ==
      2);
  CHECK(compile_stages(folder, {"-o", folder / "q.burin", "--from", plan, "--layer", "a"}).exit_code == 0);
  const Outcome named = compile_stages(folder, {"-o", folder / "q.burin", "--from", "a=" + plan});
  CAPTURE(named.err);
  CHECK(named.exit_code == 0);
  CHECK_THAT(named.err, Contains("verified on host"));
}
