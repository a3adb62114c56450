// --memory-limit, --objective and ranges of --batch, by what the tool says. What limits do to a network is in
// test/codegen/test_memory_limit.cpp, which needs an assembler.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

using Names = std::vector<std::string>;

struct Folder {
  ScratchFolder files;
  Folder() { files.write("m.onnx", chain_model().bytes()); }

  Outcome compile(const Names& more, const Names& environment = {}) const {
    Names arguments = {"compile", files / "m.onnx", "--arch", "sm_90", "-o", files / "p.burin", "--no-cache"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_burin(arguments, environment);
  }
  bool has_package() const { return std::filesystem::exists(files / "p.burin"); }
};

}  // namespace

TEST_CASE("memory_limits_that_mean_nothing") {
  const Folder folder;
  for (const char* size : {"64", "MiB", "-1MiB", "1.2.3MB", "64 MiB", "0B", "64mib", "99999999GiB", ""}) {
    CAPTURE(size);
    const Outcome outcome = folder.compile({"--memory-limit", size});
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains("is no size such as 64MiB, 500kB or 1.5GB"));
  }
  const Outcome objective = folder.compile({"--objective", "tine"});
  CHECK(objective.exit_code == 2);
  CHECK_THAT(objective.err, Contains("--objective 'tine' is not one of time, memory; did you mean 'time'?"));
  CHECK_FALSE(folder.has_package());
}

TEST_CASE("memory_limits_need_machine_code") {
  const Folder folder;
  for (const Names& asked : {Names{"--memory-limit", "1GiB"}, Names{"--objective", "memory"}}) {
    const Outcome outcome = folder.compile(asked);
    CHECK(outcome.exit_code == 4);
    CHECK_THAT(outcome.err, Contains(asked[0] + (asked[0] == "--objective" ? " memory" : "") +
                                     " counts machine code, and there is no assembler"));
  }
  CHECK_FALSE(folder.has_package());
}

TEST_CASE("device_memory_of_a_network_is_said") {
  const Folder folder;
  const Outcome outcome = folder.compile({"--batch", "1..5"});
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("device memory: "));
  CHECK_THAT(outcome.out, Contains(", which the driver makes; the layers' weights are "));
  CHECK_THAT(outcome.out, Contains("5 batch sizes on "));
  const auto network = nlohmann::json::parse(run_burin({"inspect", folder.files / "p.burin", "--json"}).out)["network"];
  REQUIRE(network["batches"].size() == 5);
  for (const auto& batch : network["batches"]) CHECK(batch["us"].get<double>() <= 1.3 * batch["own_us"].get<double>());
  CHECK(network["memory_limit"].is_null());
  CHECK(network["objective"] == "time");
  const auto& memory = network["device_memory"];
  CHECK(memory["kernels_without_code"].get<std::size_t>() == network["kernels"].size());
  CHECK(memory["total_bytes"] == memory["weight_bytes"].get<std::int64_t>() +
                                     memory["arena_bytes"].get<std::int64_t>() +
                                     memory["scratch_bytes"].get<std::int64_t>());
  std::int64_t dense = 0;
  for (const auto& step : network["programs"][0]["steps"]) {
    const auto& bytes = step["memory"]["dense_bytes"];
    if (!bytes.is_null()) dense += bytes.get<std::int64_t>();
  }
  CHECK(dense > 0);
  CHECK(memory["dense_bytes"] == dense);
  CHECK_THAT(run_burin({"inspect", folder.files / "p.burin"}).out, Contains("images  program  model us"));
}

TEST_CASE("limits_and_ranges_are_for_networks") {
  ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {{}});
  for (const Names& asked :
       {Names{"--memory-limit", "1GiB"}, Names{"--objective", "memory"}, Names{"--batch", "1..4"}}) {
    CAPTURE(asked[0]);
    Names arguments = {"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / "p.burin"};
    arguments.insert(arguments.end(), asked.begin(), asked.end());
    const Outcome outcome = run_burin(arguments);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains("is compiled layer by layer"));
    CHECK_FALSE(std::filesystem::exists(folder / "p.burin"));
  }
}
