// burin report and inspect --why: a package whose names are hostile, with times that were measured on a faked GPU.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/cli/bench_figures.h"
#include "compiler/cli/candidates.h"
#include "compiler/cli/commands.h"
#include "compiler/cli/report/report_document.h"
#include "compiler/cli/report/report_page.h"
#include "ir/error.h"
#include "ir/package/package.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/package/sample_network.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/sample_package.h"
#include "test/scoped_variable.h"
#include "test/scratch_folder.h"
#include "test/skip.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;
using nlohmann::json;

namespace {

const std::string kHostile = R"(</script><script>alert("1")</script>'&amp; @SCRIPT@ ${x})";
constexpr int kBatch = 2;

// As burin tune leaves it: the models' choice was slower, and one candidate was wrong.
TuningRecord tuning_of_right() {
  TuningRecord tuning;
  tuning.device = "NVIDIA <H200>";
  tuning.arch = "sm_90";
  tuning.driver_version = 13000;
  const auto add = [&](const char* provider, double predicted_us, double us, const char* fault = "") {
    const std::optional<double> error = us > 0 ? std::optional(0.1) : std::nullopt;
    tuning.candidates.push_back({provider, "tile=1x7x7", predicted_us, fault, us, us > 0 ? 10 : 0, error});
  };
  add("conv_streamed", 3, 9);
  add("conv_dense", 5, 8);
  add("conv_baked", 4, 4);
  add("conv_gathered", 2, 0, "wrong: <image 0>");
  tuning.chosen = 2;
  return tuning;
}

// The sample network. Its step 'left' has a hostile name; conv1 was compared with a dense kernel by the models, and
// right was tuned.
Package sample() {
  Package package = network_package();
  for (Kernel& kernel : package.manifest.kernels) {
    if (kernel.op == "left") kernel.op = kHostile;
    if (kernel.op == "right") kernel.tuning = tuning_of_right();
  }
  for (Program& program : package.manifest.programs) {
    program.steps[kLeft].name = program.steps[kLeft].tensor = kHostile;
    program.steps[kConv1].options = {{"conv_baked", 2}, {"conv_dense", 3}};
  }
  REQUIRE(verify(package) == std::vector<std::string>{});
  return package;
}

Package sample_of_layers() {
  Package package = *sample_package();
  package.manifest.programs.clear();
  add_layer_programs(package.manifest);
  REQUIRE(verify(package) == std::vector<std::string>{});
  return package;
}

std::string written(const Package& package, const ScratchFolder& folder) {
  const std::string path = folder / "p.burin";
  write_package(package, path);
  return path;
}

// burin bench in this process, where the fake driver is; the file of its --json.
std::string bench(const std::string& package, const std::string& file, const std::vector<std::string>& more = {}) {
  FakeDriver driver;
  driver.microseconds_per_launch = 3;
  CLI::App app;
  Action action;
  add_bench_command(app, action);
  std::vector<std::string> arguments = {"bench", package, "--samples", "2", "--json", file};
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::ranges::reverse(arguments);  // as CLI11 takes them
  app.parse(arguments);
  REQUIRE(action() == 0);
  return file;
}

json document_of(const std::string& package, const std::vector<std::string>& bench_files = {}) {
  std::vector<std::string> arguments = {"report", package, "--json"};
  for (const std::string& file : bench_files) arguments.insert(arguments.end(), {"--bench", file});
  const Outcome outcome = run_burin(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(outcome.out);
}

// The document's bench figures, edited, are refused as those of another package.
std::string refusal_of(const Package& package, const ScratchFolder& folder, const std::string& content) {
  BenchFigures figures;
  std::vector<std::string> notes;
  return error_of([&] { figures.add(folder.write("other.json", content), package.manifest, notes); });
}

}  // namespace

TEST_CASE("report_predicts_what_was_not_measured_and_says_so") {
  const ScratchFolder folder;
  const json document = document_of(written(sample(), folder));
  CHECK(document["package"]["name"] == "p.burin");
  CHECK(document["measured_on"].empty());
  REQUIRE(document["programs"].size() == 2);
  const json& program = document["programs"][0];
  REQUIRE(program["steps"].size() == kSampleSteps);
  const json& conv1 = program["steps"][kConv1];
  CHECK(conv1["us"] == 2);
  CHECK(conv1["source"] == "model");
  CHECK(conv1["dense"]["name"] == "conv_dense");
  CHECK(conv1["dense"]["ratio"] == Approx(1.5));
  CHECK(conv1["dense"]["source"] == "model");
  const json& right = program["steps"][kRight];
  CHECK(right["us"] == 4);
  CHECK(right["source"] == "tuning");
  CHECK(right["dense"]["ratio"] == Approx(2));
  CHECK(right["dense"]["source"] == "tuning");
  // Nobody has said what the operators take.
  CHECK(program["steps"][kCopy]["us"].is_null());
  CHECK(program["steps"][kCopy]["source"] == "");
  CHECK(program["sum_us"] == Approx(6));
  CHECK(program["memory"]["arena_bytes"] == program["arena_bytes"]);
  CHECK(program["memory"]["scratch_bytes"].get<std::int64_t>() > 0);
  const json& kernel = document["kernels"][conv1["kernel"].get<std::size_t>()];
  CHECK(kernel["symbol"] == "conv1_b2");
  CHECK(kernel["layer"]["nonzeros"] == 100);
  CHECK(kernel["threads"].get<int>() > 0);
}

TEST_CASE("report_takes_times_of_a_network_and_of_its_layers_beside_cudnn") {
  const ScratchFolder folder;
  const ScopedVariable cudnn("BURIN_CUDNN", BURIN_FAKE_CUDNN);
  const std::string package = written(sample(), folder);
  const std::string network = bench(package, folder / "network.json");
  const std::string layers = bench(package, folder / "layers.json", {"--baseline", "cudnn", "--copies", "1"});
  const json both = document_of(package, {network, layers});
  CHECK(both["measured_on"] == json::array({"Fake H200 (sm_90)"}));
  for (const json& program : both["programs"]) {
    CHECK(program["sources"]["network"] == int{kSampleSteps});
    CHECK(program["sum_us"] == Approx(3 * kSampleSteps));
    CHECK(program["latency_us"] == Approx(3 * kSampleSteps));
    const json& left = program["steps"][kLeft];
    CHECK(left["us"] == Approx(3));
    CHECK(left["dense"]["source"] == "layer");
    CHECK_THAT(left["dense"]["name"].get<std::string>(), Contains("cuDNN fp32 ("));
    CHECK(left["dense"]["ratio"].get<double>() ==
          Approx(left["dense"]["us"].get<double>() / left["dense"]["own_us"].get<double>()));
    CHECK(left["cudnn"].size() == 2);  // FP32 and TF32
  }
  const json alone = document_of(package, {layers});
  CHECK(alone["programs"][0]["steps"][kLeft]["source"] == "layer");
  CHECK(alone["programs"][0]["steps"][kFc]["source"] == "");
  // A copy has a row, too.
  const json& copy = both["programs"][0]["steps"][kCopy];
  CHECK_THAT(copy["dense"]["name"].get<std::string>(), Contains("cuDNN fp32 (TRANSFORM)"));
  CHECK(copy["cudnn"].size() == 1);
}

TEST_CASE("report_refuses_figures_that_are_not_of_the_package") {
  const ScratchFolder folder;
  const Package package = sample();
  const json good = json::parse(read_file(bench(written(package, folder), folder / "bench.json")));
  const auto edited = [&](const auto& edit) {
    json other = good;
    edit(other);
    return refusal_of(package, folder, other.dump());
  };
  CHECK(edited([](json&) {}) == "no error");
  CHECK_THAT(edited([](json& d) { d["network"][0]["steps"][1]["operator"] = "conv2"; }),
             Contains("was measured with another package: step 1 is 'conv2' there"));
  CHECK_THAT(edited([](json& d) { d["network"][0]["steps"][1]["symbol"] = "conv2_b2"; }),
             Contains("launches 'conv2_b2' there, and 'left_b2' in the package"));
  CHECK_THAT(edited([](json& d) { d["network"][0]["steps"].erase(0); }),
             Contains("for batch 2 it has 5 steps, and the package 6"));
  CHECK_THAT(edited([](json& d) {
               d["network"].erase(1);
               d["network"][0]["batch"] = 3;
             }),
             Contains("it has times for batch 3, and no program here is for that"));
  CHECK_THAT(edited([](json& d) { d["network"][0]["steps"][1]["time"]["median_us"] = -1; }),
             Contains("is no output of burin bench --json: 'median_us' is no time"));
  CHECK_THAT(edited([](json& d) { d["network"][0]["batch"] = "2"; }), Contains("'batch' is no batch size"));
  CHECK_THAT(edited([](json& d) { d["network"] = json::array(); }), Contains("nothing in it was measured"));
  CHECK_THAT(edited([](json& d) { d.erase("network"); }), Contains("it has neither 'network' nor 'rows'"));
  CHECK_THAT(edited([](json& d) { d["network"] = 1; }), Contains("'network' is no list"));
  CHECK_THAT(refusal_of(package, folder, "[]"), Contains("not a JSON object"));
  CHECK_THAT(refusal_of(package, folder, R"({"rows": [{"symbol": "x", "layer": "y\u001b"}]})"),
             Contains("it has kernel 'x' of layer 'y\\x1b', and the package does not"));
  CHECK_THAT(refusal_of(sample_of_layers(), folder, good.dump()),
             Contains("a network was measured, and this package holds layers"));
}

TEST_CASE("report_leaves_out_times_of_other_batch_sizes_with_a_note") {
  const ScratchFolder folder;
  const Package package = sample();
  json document = json::parse(read_file(bench(written(package, folder), folder / "bench.json")));
  document["network"][1]["batch"] = 5;
  BenchFigures figures;
  std::vector<std::string> notes;
  figures.add(folder.write("other.json", document.dump()), package.manifest, notes);
  REQUIRE(figures.network(kBatch) != nullptr);
  CHECK(figures.network(kBatch)->steps_us.size() == kSampleSteps);
  CHECK(figures.network(5) == nullptr);
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Contains("the times for batch 5 are left out"));
}

TEST_CASE("report_page_holds_hostile_texts_as_data") {
  std::vector<std::string> notes;
  const ScratchFolder folder;
  const std::string path = written(sample(), folder);
  const std::string page =
      report_page(report_document(read_package(path), {}, {.package = path, .arch = {}, .dump_dir = {}}, notes));
  // The document, the script that all pages share, and this page's own, each with its end.
  const auto count = [&](std::string_view text) {
    int found = 0;
    for (std::size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + 1)) ++found;
    return found;
  };
  CHECK(count("<script") == 3);
  CHECK(count("</script>") == 3);
  CHECK(count("alert(\\\"1\\\")") > 0);
  CHECK(count("@SCRIPT@") > 0);  // in the name, where it is left alone
  CHECK(count("://") == count("http://www.w3.org/2000/svg"));
  CHECK(count("default-src 'none'") == 1);
  CHECK(count("'unsafe-inline'") == 0);
}

TEST_CASE("report_links_to_the_dumps_that_are_there") {
  const ScratchFolder folder;
  const Package package = sample();
  const std::string path = written(package, folder);
  const std::string ptx = *package.files.at("kernels/conv1_b2.ptx").content();
  folder.write("my dumps/conv1/b2/60-kernel.ptx", ptx);
  folder.write("my dumps/conv1/b2/30-plan.txt", "plan");
  folder.write("my dumps/conv1/b8/60-kernel.ptx", "of another package");
  folder.write("my dumps/conv1/b8/30-plan.txt", "plan");
  folder.write("my dumps/secret.txt", "no stage");
  std::vector<std::string> notes;
  const auto document = report_document(
      package, {}, {.package = path, .arch = {}, .dump_dir = folder / "my dumps", .beside = folder.path().string()},
      notes);
  REQUIRE(document["kernels"][0]["symbol"] == "conv1_b2");
  CHECK(document["kernels"][0]["dumps"].dump() ==
        R"([{"name":"30-plan.txt","href":"my%20dumps/conv1/b2/30-plan.txt"},)"
        R"({"name":"60-kernel.ptx","href":"my%20dumps/conv1/b2/60-kernel.ptx"}])");
  for (std::size_t i = 1; i < document["kernels"].size(); ++i) CHECK(document["kernels"][i]["dumps"].empty());
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Contains("the PTX of 1 kernel is another than the package's"));
  const auto with = [&](const std::string& dumps) {
    return error_of(
        [&] { report_document(package, {}, {.package = path, .arch = {}, .dump_dir = folder / dumps}, notes); });
  };
  CHECK_THAT(with("absent"), Contains("there is no such folder of dumps"));
  folder.write("empty/secret.txt", "no stage");
  CHECK_THAT(with("empty"), Contains("holds no dump of a kernel of this package"));
}

TEST_CASE("report_writes_a_page_or_nothing") {
  const ScratchFolder folder;
  const std::string package = written(sample(), folder);
  const Outcome made = run_burin({"report", package}, {}, folder.path());
  INFO(made.err);
  CHECK(made.exit_code == 0);
  CHECK_THAT(made.out, Contains("p.html: ") && Contains("open it in a browser"));
  CHECK_THAT(read_file(folder / "p.html"), Contains("</html>"));
  const auto refused = [&](const std::vector<std::string>& arguments, int exit_code, const std::string& message) {
    const Outcome outcome = run_burin(arguments, {}, folder.path());
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.exit_code == exit_code);
    CHECK_THAT(outcome.err, Contains(message));
  };
  refused({"report", "absent.burin", "-o", "x.html"}, 3, "absent.burin: cannot be read: No such file");
  refused({"report", folder.write("weights.npy", "x"), "-o", "x.html"}, 3, "compile it first");
  refused({"report", folder.write("text.burin", "no package"), "-o", "x.html"}, 3, "text.burin");
  refused({"report", package, "-o", "no/x.html"}, 2, "-o: ");
  refused({"report", package, "-o", package}, 2, "would be overwritten");
  refused({"report", package, "-o", "x.html", "--json"}, 2, "--json prints the document");
  refused({"report", package, "-o", "x.html", "--arch", "sm_80"}, 2, "the package has machine code for sm_90");
  refused({"report", package, "-o", "x.html", "--bench", folder.write("bench.json", "{")}, 3, "bench.json");
  refused({"report", package, "-o", "x.html", "--bench", "absent.json"}, 3, "absent.json");
  refused({"report", package, "-o", "x.html", "--dump-dir", "absent"}, 3, "no such folder");
  CHECK_FALSE(std::filesystem::exists(folder / "x.html"));
}

TEST_CASE("report_pages_work_in_a_browser") {
  const ScratchFolder folder;
  const ScopedVariable cudnn("BURIN_CUDNN", BURIN_FAKE_CUDNN);
  const Package package = sample();
  const std::string path = written(package, folder);
  folder.write("dumps/conv1/b2/60-kernel.ptx", *package.files.at("kernels/conv1_b2.ptx").content());
  write_package(sample_of_layers(), folder / "layers.burin");
  const std::string network = bench(path, folder / "network.json");
  const std::string beside = bench(path, folder / "beside.json", {"--baseline", "cudnn", "--copies", "1"});
  REQUIRE(run_burin({"report", path, "-o", folder / "predicted.html"}).exit_code == 0);
  REQUIRE(run_burin({"report", path, "-o", folder / "measured.html", "--bench", network, "--bench", beside,
                     "--dump-dir", folder / "dumps"})
              .exit_code == 0);
  REQUIRE(run_burin({"report", folder / "layers.burin", "-o", folder / "layers.html"}).exit_code == 0);
  const Outcome outcome = run_program(
      {BURIN_PYTHON, BURIN_CHECK_REPORT, folder / "predicted.html", folder / "measured.html", folder / "layers.html"},
      {"PYTHONDONTWRITEBYTECODE=1"});
  constexpr int kSkipped = 77;
  if (outcome.exit_code == kSkipped) BURIN_SKIP(outcome.out);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("12 pages opened, 0 faults"));
}

TEST_CASE("why_shows_every_candidate_with_its_figures_and_what_spoke_against_it") {
  const ScratchFolder folder;
  const std::string package = written(sample(), folder);
  const Outcome tuned = run_burin({"inspect", package, "--why", "right"});
  INFO(tuned.out << tuned.err);
  REQUIRE(tuned.exit_code == 0);
  CHECK_THAT(tuned.out, Contains("right, batch 2: conv_baked, chosen by measurement on NVIDIA <H200>; "
                                 "the best dense one, conv_dense, takes 2.00 times its time"));
  const auto line = [&](const std::string& begin) {
    const std::size_t at = tuned.out.find("\n" + begin);
    return at == std::string::npos ? std::string() : tuned.out.substr(at + 1, tuned.out.find('\n', at + 1) - at - 1);
  };
  CHECK_THAT(line("conv_baked"), Contains("tile=1x7x7") && Contains("4.00") && Contains("chosen"));
  CHECK_THAT(line("conv_streamed"), Contains("9.00") && Contains("2.25 times the chosen one's time"));
  CHECK_THAT(line("conv_gathered"), Contains("left out: wrong: <image 0>"));
  CHECK(tuned.out.find("\nconv_dense ") < tuned.out.find("\nconv_streamed "));  // the faster first

  const Outcome outcome = run_burin({"inspect", package, "--why", "conv?", "--json"});
  REQUIRE(outcome.exit_code == 0);
  const json document = json::parse(outcome.out);
  REQUIRE(document["steps"].size() == 2);  // a batch size each
  const json& candidates = document["steps"][0]["candidates"];
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[0]["verdict"] == "chosen");
  CHECK(candidates[1]["provider"] == "conv_dense");
  CHECK(candidates[1]["predicted_us"] == 3);
  CHECK(candidates[1]["measured_us"].is_null());
  CHECK(candidates[1]["dense"] == true);
  CHECK(candidates[1]["verdict"] == "1.50 times the chosen one's time by the models");

  CHECK_THAT(run_burin({"inspect", package, "--why", "add"}).out,
             Contains("add, batch 2: combine; the package keeps no other candidate"));
  const Outcome misspelt = run_burin({"inspect", package, "--why", "rihgt"});
  CHECK(misspelt.exit_code == 2);
  CHECK_THAT(misspelt.err, Contains("no layer or operator of the package has this name; did you mean 'right'?"));
  const Outcome both = run_burin({"inspect", package, "--why", "right", "--memory"});
  CHECK(both.exit_code == 2);
  CHECK_THAT(both.err, Contains("--memory has no effect here"));
}

TEST_CASE("why_compares_times_of_one_source_alone") {
  Step step;
  step.options = {{"conv_baked", 2}, {"conv_dense", 1, true}};
  Kernel kernel;
  kernel.plan_short = "tile";
  const StepCandidates candidates = candidates_of(step, kernel, 1);
  CHECK_FALSE(candidates.tuned);
  CHECK(candidates.chosen().plan == "tile");
  REQUIRE(candidates.best_dense() != nullptr);
  CHECK_FALSE(ratio_to(candidates.chosen(), *candidates.best_dense()).has_value());
  CHECK(verdict_on(candidates, 1) == "not compared");
}

TEST_CASE("candidates_of_a_kernel_of_several_batch_sizes_are_those_of_the_step") {
  Kernel kernel;
  kernel.planned_batch = 1;
  kernel.tuning.emplace();
  kernel.tuning->candidates = {{.provider = "conv_baked", .plan = "a", .us = 3},
                               {.provider = "conv_baked", .plan = "b", .us = 4},
                               {.provider = "conv_dense", .plan = "c", .us = 6}};
  Step step;
  step.options = {{"conv_baked", 30, true}, {"conv_winograd", 40, true}};
  const StepCandidates own = candidates_of(step, kernel, 1), other = candidates_of(step, kernel, 8);
  CHECK(own.tuned);
  CHECK(own.all.size() == 3);
  REQUIRE(own.runner_up() != nullptr);  // of another provider
  CHECK(own.runner_up()->provider == "conv_dense");
  CHECK_FALSE(other.tuned);
  CHECK(other.chosen().measured_us == 30.0);
  REQUIRE(other.best_dense() != nullptr);
  CHECK(other.best_dense()->provider == "conv_winograd");
  step.options.clear();  // then the kernel's record is all that there is
  CHECK(candidates_of(step, kernel, 8).tuned);
}

TEST_CASE("the_best_dense_candidate_need_not_be_the_dense_one_that_was_chosen") {
  Step step;
  step.options = {{"conv_dense", 5}, {"conv_winograd", 4}, {"conv_baked", 6}};
  const StepCandidates candidates = candidates_of(step, Kernel(), 1);
  REQUIRE(candidates.best_dense() != nullptr);
  CHECK(candidates.best_dense()->provider == "conv_winograd");
  REQUIRE(candidates.runner_up() != nullptr);
  CHECK(candidates.runner_up()->provider == "conv_winograd");
}
