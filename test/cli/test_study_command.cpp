// burin study: what it writes and prints, with the built tool where the models suffice, and with times that were made
// up.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler/cli/json_output.h"
#include "compiler/cli/study/study_document.h"
#include "compiler/cli/study/study_page.h"
#include "compiler/cli/study/study_tables.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/weights_file.h"
#include "test/scratch_folder.h"
#include "test/skip.h"
#include "test/study/made_up.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;
using burin_test::StartsWith;
using nlohmann::json;

namespace {

const std::string kBase = "c=16 h=8 k=16 r=3 zeros=0.9";
const std::string kHostile = R"(</script><script>alert("1")</script>'&amp; @SCRIPT@ ${x})";

using Strings = std::vector<std::string>;

Outcome study_in(const ScratchFolder& folder, Strings more) {
  Strings arguments = {"study", kBase};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_burin(arguments, {"BURIN_CUDA_DRIVER=/nowhere/libcuda.so"}, folder.path());
}

// As a GPU would leave it that was stopped: calls of a library among the algorithms, a candidate that is wrong, a point
// without any, and one that was not measured.
Study measured_study() {
  Study study =
      plan_study(parse_study_layer(kBase), {{StudyAxis::batch, {1, 8, 32}}, {StudyAxis::zeros, {0, 0.5, 0.9}}},
                 {{StudyAxis::zeros, StudyAxis::batch}});
  study.source = Estimate::Source::measured;
  study.device = {kHostile, "sm_90", 13000, 8, {{Library::cudnn, "9.19.0"}}};
  study.stopped = "the time that it was given was over";
  MadeUpTimes times;
  for (const char* algorithm :
       {"conv_baked", "conv_streamed", "conv_dense", "conv_gathered", "conv_gathered_rows", "conv_warpgroup",
        "conv_depthwise", "conv_cudnn implicit_gemm", "conv_cudnn winograd", "conv_cudnn fft"}) {
    const auto number = static_cast<double>(times.size());
    times.emplace_back(algorithm, std::vector<std::optional<double>>{2 + number, 20 + 2 * number, 90 - 5 * number});
  }
  set_times(study, study.curves[0], times);
  set_times(study, study.curves[1], times);
  StudyCandidate& wrong = study.points[0].candidates[3];
  wrong.us.reset();
  wrong.memory.reset();
  wrong.fault = "wrong: <image 0>";
  study.points[study.curves[1].points[0]] = {
      .layer = study.points[study.curves[1].points[0]].layer, .done = true, .fault = "no <provider> can"};
  return study;
}

}  // namespace

TEST_CASE("study_by_the_models_writes_a_document_and_a_page_and_prints_the_rules") {
  const ScratchFolder folder;
  const Strings options = {"--estimate", "--batch", "1,8", "--zeros", "0.5,0.9", "--map", "zeros,batch"};
  const Outcome outcome = study_in(folder, options);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("times and memory are predictions of the cost models; nothing was measured"));
  CHECK_THAT(outcome.out, Contains("n=1 c=16 h=8 w=8 k=16 r=3 s=3 zeros=0.9, fp32\npredicted for sm_90") &&
                              Contains("8 images") && Contains("zeros by batch") &&
                              Contains("rules read off\n  batch: ") && Contains(" is predicted to be the fastest, ") &&
                              Contains("study.json, study.html: 4 of 4 points"));
  const json document = json::parse(read_file(folder / "study.json"));
  CHECK(document["study"] == 1);
  CHECK(document["source"] == "model");
  CHECK(document["device"].is_null());
  CHECK(document["base"]["zeros"] == 0.9);
  CHECK(document["points"].size() == 4);
  CHECK(document["curves"].size() == 2);
  CHECK(document["maps"][0]["points"].size() == 2);
  CHECK(document["rules"].size() >= 2);
  for (const json& point : document["points"]) {
    CHECK(point["done"] == true);
    REQUIRE(point["ranking"].size() >= 2);
    for (const json& ranked : point["ranking"]) {
      const json& candidate = point["candidates"][ranked["candidate"].get<std::size_t>()];
      CHECK(candidate["algorithm"] == ranked["algorithm"]);
      CHECK(candidate["predicted_us"] == ranked["us"]);
      CHECK(candidate["us"].is_null());
      CHECK(candidate["memory"]["total_bytes"].get<std::int64_t>() > 0);
    }
  }
  CHECK_THAT(read_file(folder / "study.html"), Contains("</html>"));
  // The same again, as a document alone.
  Strings again = options;
  again.insert(again.end(), {"--json", "--jobs", "1"});
  CHECK((study_in(folder, again).out == read_file(folder / "study.json")));
}

TEST_CASE("study_varies_every_axis_where_none_is_named") {
  const ScratchFolder folder;
  const Outcome outcome = study_in(folder, {"--estimate", "--json", "--providers", "dense"});
  REQUIRE(outcome.exit_code == 0);
  const json document = json::parse(outcome.out);
  REQUIRE(document["curves"].size() == 5);
  CHECK(document["curves"][0]["values"] == json::array({1, 2, 4, 8, 16, 32}));
  CHECK(document["curves"][1]["values"] == json::array({16, 64, 128, 256, 512}));
  CHECK(document["curves"][2]["texts"] == json::array({"1x1 filters", "3x3 filters", "5x5 filters"}));
  CHECK(document["algorithms"].size() == 1);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("study_takes_a_layer_of_a_file_as_its_base") {
  const ScratchFolder folder;
  const std::string weights = folder / "w.safetensors";
  write_safetensors(weights, {{.name = "conv1", .pad = 1}, {.name = "conv2", .shape = {8, 8, 1, 1}, .pad = 0}});
  const auto study = [&](Strings more) {
    Strings arguments = {"study", weights, "--estimate", "--batch", "2", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_burin(arguments);
  };
  const Outcome made = study({"--layer", "conv2"});
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  CHECK_THAT(json::parse(made.out)["base"]["text"].get<std::string>(),
             StartsWith("n=1 c=8 h=8 w=8 k=8 r=1 s=1 zeros=0."));
  const Outcome both = study({});
  CHECK(both.exit_code == 2);
  CHECK_THAT(both.err, Contains("has 2 convolutions, and a study is of one; --layer chooses it: 'conv1', 'conv2'"));
  CHECK(study({"--layer", "conv7"}).exit_code == 2);
  const Outcome absent = run_burin({"study", "absent.onnx", "--estimate"});
  CHECK(absent.exit_code == 3);
  // What the command reads it does not overwrite.
  folder.write("geo.json", "{}");
  const Outcome over = study({"--layer", "conv2", "--geometry", folder / "geo.json", "-o", folder / "geo.json"});
  CHECK(over.exit_code == 2);
  CHECK(read_file(folder / "geo.json") == "{}");
  const Outcome text = run_burin({"study", kBase, "--layer", "conv1", "--estimate"});
  CHECK(text.exit_code == 2);
  CHECK_THAT(text.err, Contains("--layer has no effect here: LAYER is no file"));
}

TEST_CASE("study_refuses_what_it_cannot_do_before_any_work") {
  const ScratchFolder folder;
  const auto refused = [&](const Strings& arguments, int exit_code, const std::string& message) {
    const Outcome outcome = study_in(folder, arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.exit_code == exit_code);
    CHECK_THAT(outcome.err, Contains(message));
    CHECK(outcome.out.empty());
  };
  refused({}, 5, "study measures on a GPU, and none was found");
  refused({}, 5, "--estimate goes by the cost models");
  refused({"--estimate", "--batch", "1,x"}, 2, "--batch '1,x': 'x' is not a whole number from 1 on");
  refused({"--estimate", "--batch", "1,,2"}, 2, "an item of the list is empty");
  refused({"--estimate", "--zeros", "0.5,1"}, 2, "--zeros '0.5,1': '1' is not a share from 0 to below 1");
  refused({"--estimate", "--zeros", "nan"}, 2, "--zeros 'nan'");
  refused({"--estimate", "--filter", "3,99"}, 2, "--filter 99: ");
  refused({"--estimate", "--channels", "99999999999"}, 2, "--channels '99999999999'");
  refused({"--estimate", "--map", "zeros"}, 2, "a map has two axes, such as zeros,batch");
  refused({"--estimate", "--map", "zeros,depth"}, 2, "'depth' is none of batch, channels, filter, image, zeros");
  refused({"--estimate", "--zeros", "0.5", "--map", "zeros,batch"}, 2, "--batch gives it no values");
  refused({"--estimate", "--providers", "bakd"}, 2, "did you mean 'baked'?");
  refused({"--estimate", "--providers", "cudnn"}, 2, "no model speaks of conv_cudnn");
  refused({"--estimate", "--precision", "int8"}, 4, "--precision int8: known are fp32");
  refused({"--estimate", "--layout", "nhwc"}, 2, "nhwc");
  refused({"--estimate", "--arch", "sm_1"}, 4, "sm_1");
  refused({"--estimate", "--budget", "1m"}, 2, "--budget has no effect here: --estimate measures nothing");
  refused({"--arch", "sm_90"}, 2, "--arch has no effect here");
  refused({"--budget", "soon"}, 2, "--budget 'soon': is no time such as 90s, 5m or 1h");
  refused({"--estimate", "-o", "study.txt"}, 2, "-o study.txt: a study is written as .json or .html");
  refused({"--estimate", "-o", "no/study.json"}, 2, "-o: ");
  refused({"--estimate", "-o", "a.json", "-o", "a.json"}, 2, "a.json");
  CHECK(std::filesystem::is_empty(folder.path()));
  const Outcome misspelt = run_burin({"study", "c=16 h=8"});
  CHECK(misspelt.exit_code == 2);
  CHECK_THAT(misspelt.err, Contains("r= is missing"));
}

TEST_CASE("study_of_what_was_measured_has_device_faults_and_what_is_missing") {
  const Study study = measured_study();
  const json document = json::parse(json_output(study_document(study, {"a note"})));
  CHECK(document["source"] == "measured");
  CHECK(document["device"]["libraries"] == "cuDNN 9.19.0");
  CHECK(document["stopped"] == "the time that it was given was over");
  CHECK(document["done"] == 5);
  CHECK(document["points"].size() == 9);
  CHECK(document["notes"] == json::array({"a note"}));
  const json& base = document["points"][0];
  CHECK(base["candidates"][3]["fault"] == "wrong: <image 0>");
  CHECK(base["candidates"][3]["memory"].is_null());
  CHECK(base["candidates"][0]["memory"]["total_bytes"] == 3500);
  CHECK(base["candidates"][0]["us"] == 90);
  CHECK(base["ranking"][0]["us"] == 45);
  CHECK(base["ranking"].size() == 9);
  std::size_t not_done = 0;
  for (const json& point : document["points"]) {
    if (point["done"] == true) continue;
    ++not_done;
    CHECK(point["candidates"].empty());
    CHECK(point["ranking"].empty());
  }
  CHECK(not_done == 4);
  CHECK(document["algorithms"][7]["name"] == "conv_cudnn implicit_gemm");
  CHECK(document["algorithms"][7]["library"] == true);
  CHECK(document["algorithms"][0]["dense"] == false);
  CHECK(document["rules"].size() > 3);

  const std::string text = study_tables(study);
  CHECK_THAT(text, Contains("measured on ") && Contains("with cuDNN 9.19.0") && Contains("no <provider> can") &&
                       Contains("not measured") && Contains("conv_cudnn fft") && Contains("kernels of burin's own"));
}

TEST_CASE("study_page_holds_hostile_texts_as_data") {
  const std::string page = study_page(study_document(measured_study(), {kHostile}));
  const auto count = [&](std::string_view text) {
    int found = 0;
    for (std::size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + 1)) ++found;
    return found;
  };
  CHECK(count("<script") == 3);
  CHECK(count("</script>") == 3);
  CHECK(count("alert(\\\"1\\\")") == 2);
  CHECK(count("://") == count("http://www.w3.org/2000/svg"));
  CHECK(count("default-src 'none'") == 1);
  CHECK(count("'unsafe-inline'") == 0);
}

TEST_CASE("study_pages_work_in_a_browser") {
  const ScratchFolder folder;
  folder.write("measured.html",
               study_page(study_document(measured_study(), {kHostile, "5 of 9 points were measured"})));
  const Outcome predicted =
      study_in(folder, {"--estimate", "--batch", "1,8", "--zeros", "0.5", "-o", "predicted.html"});
  REQUIRE(predicted.exit_code == 0);
  const Outcome outcome =
      run_program({BURIN_PYTHON, BURIN_CHECK_STUDY, folder / "measured.html", folder / "predicted.html"},
                  {"PYTHONDONTWRITEBYTECODE=1"});
  constexpr int kSkipped = 77;
  if (outcome.exit_code == kSkipped) BURIN_SKIP(outcome.out);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("8 pages opened, 0 faults"));
}
