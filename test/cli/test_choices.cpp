// The table `choice` of inspect and --flip: who was chosen, who came next, what dense kernels take, and from which
// share of zero weights on these pay.
#include <nlohmann/json.hpp>

#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

const std::string kTitle = "zeros pay from";

std::string weights_file(const ScratchFolder& folder) {
  const std::string path = folder / "w.safetensors";
  write_safetensors(path,
                    {{.name = "small", .shape = {8, 4, 3, 3}}, {.name = "wide", .shape = {64, 64, 1, 1}, .pad = 0}});
  return path;
}

nlohmann::json choices_of(const std::string& input, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"inspect", input, "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = run_burin(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return nlohmann::json::parse(outcome.out)["choices"];
}

void compile(const std::string& input, const std::string& output, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"compile", input, "--arch", "sm_90", "-o", output, "--no-cache"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = run_burin(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
}

}  // namespace

TEST_CASE("inspect_shows_who_was_chosen_who_came_next_and_the_best_dense") {
  const ScratchFolder folder;
  const std::string weights = weights_file(folder);
  const nlohmann::json choices = choices_of(weights, {"--batch", "1,4"});
  REQUIRE(choices.size() == 4);  // two layers, two batch sizes
  for (const nlohmann::json& choice : choices) {
    CAPTURE(choice.dump());
    CHECK(choice["source"] == "model");
    CHECK(choice["us"].get<double>() > 0);
    REQUIRE_FALSE(choice["runner_up"].is_null());
    CHECK(choice["runner_up"]["provider"] != choice["provider"]);
    CHECK(choice["runner_up"]["us"].get<double>() >= choice["us"].get<double>());
    REQUIRE_FALSE(choice["best_dense"].is_null());
    CHECK(choice["dense_ratio"].get<double>() ==
          Approx(choice["best_dense"]["us"].get<double>() / choice["us"].get<double>()));
    CHECK(choice["dense_ratio"].get<double>() >= 1);
    CHECK(choice["weight_zeros"].is_null());
  }
  const Outcome table = run_burin({"inspect", weights});
  CHECK_THAT(table.out, Contains("\nchoice  batch") && Contains("runner-up") && Contains("dense/chosen"));
  CHECK(table.out.find(kTitle) == std::string::npos);
  // Where one provider is allowed, there is nobody else.
  compile(weights, folder / "baked.burin", {"--kernels", "baked"});
  const nlohmann::json alone = choices_of(folder / "baked.burin");
  REQUIRE(alone.size() == 2);
  for (const nlohmann::json& choice : alone) {
    CHECK(choice["provider"] == "conv_baked");
    CHECK(choice["runner_up"].is_null());
    CHECK(choice["best_dense"].is_null());
    CHECK(choice["dense_ratio"].is_null());
  }
}

TEST_CASE("flip_says_from_which_share_of_zeros_on_they_pay") {
  const ScratchFolder folder;
  const std::string weights = weights_file(folder);
  const nlohmann::json planned = choices_of(weights, {"--flip", "--batch", "1,4"});
  REQUIRE(planned.size() == 4);
  for (const nlohmann::json& choice : planned) {
    CAPTURE(choice.dump());
    REQUIRE_FALSE(choice["weight_zeros"].is_null());
    const nlohmann::json& share = choice["weight_zeros"]["pays_from"];
    if (!share.is_null()) CHECK((share.get<double>() >= 0 && share.get<double>() <= 1));
  }
  CHECK_THAT(run_burin({"inspect", weights, "--flip"}).out, Contains(kTitle));
  // A package keeps what was found when it was compiled.
  compile(weights, folder / "p.burin", {"--flip", "--batch", "1,4"});
  const nlohmann::json kept = choices_of(folder / "p.burin");
  REQUIRE(kept.size() == 4);
  for (const nlohmann::json& choice : kept) {
    const auto is_it = [&](const nlohmann::json& other) {
      return other["layer"] == choice["layer"] && other["batch"] == choice["batch"];
    };
    const auto found = std::find_if(planned.begin(), planned.end(), is_it);
    REQUIRE(found != planned.end());
    CHECK(*found == choice);
  }
  CHECK_THAT(run_burin({"inspect", folder / "p.burin"}).out, Contains(kTitle));
  compile(weights, folder / "p.burin", {});
  for (const nlohmann::json& choice : choices_of(folder / "p.burin")) CHECK(choice["weight_zeros"].is_null());
}

TEST_CASE("flip_of_a_network_is_told_of_every_layer_that_has_weights") {
  const ScratchFolder folder;
  folder.write("m.onnx", branched_model().bytes());
  compile(folder / "m.onnx", folder / "m.burin", {"--flip"});
  const nlohmann::json choices = choices_of(folder / "m.burin");
  bool has_linear = false;
  for (const nlohmann::json& choice : choices) {
    CAPTURE(choice.dump());
    CHECK_FALSE(choice["weight_zeros"].is_null());
    has_linear = has_linear || choice["layer"] == "fc";
  }
  CHECK(has_linear);
  const Outcome report = run_burin({"report", folder / "m.burin", "--json"});
  INFO(report.err);
  REQUIRE(report.exit_code == 0);
  const nlohmann::json document = nlohmann::json::parse(report.out);
  std::size_t told = 0;
  for (const nlohmann::json& step : document["programs"][0]["steps"]) {
    for (const nlohmann::json& choice : choices) {
      if (step["name"] != choice["layer"]) continue;
      CHECK(step["weight_zeros"] == choice["weight_zeros"]);
      ++told;
    }
  }
  CHECK(told == choices.size());
  // What is told of layers by name is told of those alone.
  CHECK(choices_of(folder / "m.burin", {"--layer", "conv1"}).size() == 1);
}

TEST_CASE("flip_that_would_do_nothing") {
  const ScratchFolder folder;
  const std::string weights = weights_file(folder);
  compile(weights, folder / "p.burin", {});
  const auto fault = [](const std::vector<std::string>& arguments) {
    const Outcome outcome = run_burin(arguments);
    CHECK(outcome.exit_code == 2);
    return outcome.err;
  };
  CHECK_THAT(fault({"inspect", folder / "p.burin", "--flip"}),
             Contains("--flip has no effect here") && Contains("is a package, and is shown as it is"));
  CHECK_THAT(fault({"inspect", folder / "p.burin", "--why", "small", "--flip"}), Contains("--flip has no effect here"));
  CHECK_THAT(
      fault({"compile", weights, "--arch", "sm_90", "--flip", "--stop-after", "plan", "--dump-dir", folder / "d"}),
      Contains("--flip has no effect here: --stop-after plan writes no package"));
}
