// Convolutions that read the same tensor, from the model to what is verified: which become one, and what keeps them
// apart.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

using Names = std::vector<std::string>;

// Convolutions of a program's steps, or of a graph's operators.
Names convolutions(const nlohmann::json& steps) {
  Names names;
  for (const auto& step : steps) {
    if (step["kind"] == "convolution") names.push_back(step["name"]);
  }
  return names;
}

class CompiledModel {
 public:
  explicit CompiledModel(const Names& more, const OnnxModel& model = inception_model()) {
    folder_.write("m.onnx", model.bytes());
    Names arguments = {"compile", model_file(), "--arch", "sm_90", "-o", folder_ / "p.burin", "--no-cache"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_burin(arguments);
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    package_ = nlohmann::json::parse(run_burin({"inspect", folder_ / "p.burin", "--json"}).out);
  }

  std::string model_file() const { return folder_ / "m.onnx"; }
  const ScratchFolder& folder() const { return folder_; }
  Names convolutions() const { return ::convolutions(package_["network"]["programs"][0]["steps"]); }
  std::size_t steps() const { return package_["network"]["programs"][0]["steps"].size(); }

  void verify() const {
    const Outcome outcome =
        run_burin({"verify", folder_ / "p.burin", "--against", model_file(), "--device", "host", "--layers"});
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK_THAT(outcome.out, Contains("every step is right"));
  }

 private:
  ScratchFolder folder_;
  nlohmann::json package_;
};

const Names kTogether = {"conv1", "m.1x1+reduce3+reduce5", "m.3x3", "m.5x5", "m.proj", "last"};
const Names kApart = {"conv1", "m.1x1", "m.reduce3", "m.3x3", "m.reduce5", "m.5x5", "m.proj", "last"};

}  // namespace

TEST_CASE("siblings_of_an_inception_module_are_one_step_without_a_copy") {
  for (const char* precision : {"fp32", "fp16", "bf16", "fp16x2"}) {
    CAPTURE(precision);
    const CompiledModel compiled({"--batch", "1,8", "--precision", precision});
    CHECK(compiled.convolutions() == kTogether);
    compiled.verify();
  }
  CHECK(CompiledModel({}).steps() + 2 == CompiledModel({"--no-siblings"}).steps());
}

TEST_CASE("siblings_of_a_fire_module_are_what_the_concat_was") {
  const CompiledModel compiled({"--batch", "1,8"}, fire_model());
  CHECK(compiled.convolutions() == Names{"squeeze", "expand1x1+expand3x3", "last"});
  CHECK(compiled.steps() == 3);
  compiled.verify();
}

TEST_CASE("siblings_stay_apart_where_they_are_told_to") {
  CHECK(CompiledModel({"--no-siblings"}).convolutions() == kApart);
  CHECK(CompiledModel({"--plan", "groups=2"}).convolutions() == kApart);
  CHECK(CompiledModel({"--skip-dead-tiles", "--kernels", "baked"}).convolutions() == kApart);
  CHECK(CompiledModel({"--layout", "nchw4", "--kernels", "baked"}).convolutions() == kApart);
}

TEST_CASE("a_sibling_that_an_option_names_keeps_its_name") {
  const Names left = {"conv1", "m.1x1+reduce3", "m.3x3", "m.reduce5", "m.5x5", "m.proj", "last"};
  CHECK(CompiledModel({"--kernels", "auto,m.reduce5=dense"}).convolutions() == left);
  const CompiledModel mixed({"--precision", "fp16,m.reduce5=fp32", "--batch", "1,8"});
  CHECK(mixed.convolutions() == left);
  mixed.verify();
  // Which ones calibration keeps in FP32 is their own matter: here it is all, and none of them becomes another one.
  const CompiledModel kept({"--precision", "auto", "--max-error", "1e-6"});
  CHECK(kept.convolutions() == kApart);
}

TEST_CASE("a_plan_of_siblings_goes_back_in_by_their_name") {
  const CompiledModel compiled({"--kernels", "baked"});
  const std::string stages = compiled.folder() / "stages";
  Names arguments = {
      "compile", compiled.model_file(), "--arch", "sm_90", "-o", compiled.folder() / "again.burin", "--kernels",
      "baked",   "--dump-dir",          stages};
  REQUIRE(run_burin(arguments).exit_code == 0);
  const std::string plan = stages + "/m.1x1_reduce3_reduce5/30-plan.txt";
  const Outcome outcome =
      run_burin({"compile", compiled.model_file(), "--arch", "sm_90", "-o", compiled.folder() / "back.burin",
                 "--kernels", "baked", "--from", kTogether[1] + "=" + plan});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
}

TEST_CASE("inspect_simplify_merges_the_siblings_that_compile_merges") {
  const ScratchFolder folder;
  const std::string file = folder.write("m.onnx", inception_model().bytes());
  const Outcome outcome = run_burin({"inspect", file, "--simplify"});
  CHECK_THAT(outcome.out, Contains("merge_siblings                2"));
  const auto graph = [&](const Names& more) {
    Names arguments = {"inspect", file, "--simplify", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return nlohmann::json::parse(run_burin(arguments).out)["graph"]["operators"];
  };
  CHECK(convolutions(graph({})) == kTogether);
  CHECK(convolutions(graph({"--no-siblings"})) == kApart);
  const Outcome refused = run_burin({"inspect", file, "--no-siblings"});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("--no-siblings") && Contains("without --simplify"));
}
