// What a manifest says of tuning: it survives, and hostile values do not get through.
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/limits.h"
#include "test/catch.h"
#include "test/package/samples.h"
#include "test/thrown.h"

using namespace burin;
using nlohmann::ordered_json;

namespace {

TuningRecord sample_tuning() {
  TuningRecord tuning;
  tuning.device = "NVIDIA H200";
  tuning.arch = "sm_90";
  tuning.driver_version = 13000;
  tuning.code_copies = 8;
  tuning.candidates = {{.provider = "conv_baked",
                        .plan = "tile=1x14x14,groups=1",
                        .predicted_us = 10.25,
                        .fault = "",
                        .us = 1.0 / 3,
                        .samples = 50,
                        .error = 0.125,
                        .workspace_bytes = 4096},
                       {.provider = "conv_baked",
                        .plan = "tile=1x7x14,groups=2",
                        .predicted_us = 11.5,
                        .fault = "wrong: image 0, channel 1, row 2, col 3: 1.5, expected 1 +- 1e-06"}};
  return tuning;
}

Manifest tuned_manifest() {
  Manifest manifest = burin_test::sample_manifest();
  manifest.kernels[1].tuning = sample_tuning();
  return manifest;
}

template <typename Edit>
std::vector<std::string> tuning_faults_after(Edit edit) {
  Manifest manifest = tuned_manifest();
  edit(*manifest.kernels[1].tuning);
  return verify(manifest);
}

// The error of parsing after an edit of the tuning's JSON.
template <typename Edit>
std::string tuning_parse_error(Edit edit) {
  ordered_json document = ordered_json::parse(print(tuned_manifest()));
  edit(document["kernels"][1]["tuning"]);
  return burin_test::error_of([&] { parse_manifest(document.dump()); });
}

using Faults = std::vector<std::string>;
const std::string kPath = "kernels[1].tuning.";

}  // namespace

TEST_CASE("tuning record: round trip") {
  const Manifest manifest = tuned_manifest();
  CHECK(verify(manifest).empty());
  CHECK(parse_manifest(print(manifest)) == manifest);
  CHECK_FALSE(parse_manifest(print(manifest)).kernels[0].tuning);
}

TEST_CASE("tuning record: a package keeps it") {
  Package package = burin_test::sample_package();
  package.manifest.kernels[1].tuning = sample_tuning();
  CHECK(verify(package).empty());
}

TEST_CASE("tuning record: a candidate has a fault or figures") {
  const std::string text = print(tuned_manifest());
  const ordered_json candidates = ordered_json::parse(text)["kernels"][1]["tuning"]["candidates"];
  CHECK(candidates[0].contains("us"));
  CHECK_FALSE(candidates[0].contains("fault"));
  CHECK(candidates[1].contains("fault"));
  CHECK_FALSE(candidates[1].contains("us"));
  CHECK(tuning_faults_after([](TuningRecord& t) { t.candidates[1].us = 3; }) ==
        Faults{kPath + "candidates[1]: has a fault and figures"});
}

TEST_CASE("tuning record: a candidate that nobody compared has figures and no error") {
  Manifest manifest = tuned_manifest();
  manifest.kernels[1].tuning->candidates[0].error.reset();
  CHECK(verify(manifest).empty());
  const std::string text = print(manifest);
  CHECK_FALSE(ordered_json::parse(text)["kernels"][1]["tuning"]["candidates"][0].contains("error"));
  CHECK(parse_manifest(text) == manifest);
}

TEST_CASE("tuning record: hostile values are refused, each with its path") {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto candidate = [](auto edit) { return tuning_faults_after([&](TuningRecord& t) { edit(t.candidates[0]); }); };
  CHECK(candidate([&](TuningCandidate& c) { c.us = infinity; }) ==
        Faults{kPath + "candidates[0].us: inf is not a finite number from 0 up"});
  CHECK(candidate([](TuningCandidate& c) { c.predicted_us = -1; }) ==
        Faults{kPath + "candidates[0].predicted_us: -1 is not a finite number from 0 up"});
  CHECK(candidate([&](TuningCandidate& c) { c.error = nan; }) ==
        Faults{kPath + "candidates[0].error: nan is not a finite number from 0 up"});
  CHECK(candidate([](TuningCandidate& c) { c.samples = 0; }) == Faults{kPath + "candidates[0].samples: 0 is under 1"});
  CHECK(candidate([](TuningCandidate& c) { c.samples = 1'000'001; }) ==
        Faults{kPath + "candidates[0].samples: 1000001 is over 1000000"});
  CHECK(candidate([](TuningCandidate& c) { c.workspace_bytes = -1; }) ==
        Faults{kPath + "candidates[0].workspace_bytes: -1 is under 0"});
  CHECK(candidate([](TuningCandidate& c) { c.plan = ""; }) == Faults{kPath + "candidates[0].plan: is empty"});
  CHECK(candidate([](TuningCandidate& c) { c.plan = "\x1b[2J"; }) ==
        Faults{kPath + "candidates[0].plan: is not printable UTF-8 text"});
  CHECK(tuning_faults_after([](TuningRecord& t) { t.candidates[1].fault = "\a"; }) ==
        Faults{kPath + "candidates[1].fault: is not printable UTF-8 text"});
  CHECK(tuning_faults_after([](TuningRecord& t) { t.device = std::string(257, 'x'); }) ==
        Faults{kPath + "device: 257 bytes are over 256"});
  CHECK(tuning_faults_after([](TuningRecord& t) { t.arch = "x86"; }) ==
        Faults{kPath + "arch: 'x86' is not the name of an architecture, such as sm_90"});
  CHECK(tuning_faults_after([](TuningRecord& t) { t.driver_version = -1; }) ==
        Faults{kPath + "driver_version: -1 is under 0"});
  CHECK(tuning_faults_after([](TuningRecord& t) { t.code_copies = 0; }) == Faults{kPath + "code_copies: 0 is under 1"});
}

TEST_CASE("tuning record: what was chosen is one of the candidates, and has no fault") {
  CHECK(tuning_faults_after([](TuningRecord& t) { t.chosen = 2; }) ==
        Faults{kPath + "chosen: 2 is none of the 2 candidates"});
  CHECK(tuning_faults_after([](TuningRecord& t) { t.chosen = -1; }) ==
        Faults{kPath + "chosen: -1 is none of the 2 candidates"});
  CHECK(tuning_faults_after([](TuningRecord& t) { t.chosen = 1; }) ==
        Faults{kPath + "chosen: candidate 1 has a fault"});
  CHECK(tuning_faults_after([](TuningRecord& t) { t.candidates.clear(); }) ==
        Faults{kPath + "chosen: 0 is none of the 0 candidates"});
}

TEST_CASE("tuning record: the number of candidates is bounded") {
  const auto with = [](int count) {
    return tuning_faults_after(
        [&](TuningRecord& t) { t.candidates.resize(static_cast<std::size_t>(count), t.candidates.front()); });
  };
  CHECK(with(kMaxTuningCandidates).empty());
  CHECK(with(kMaxTuningCandidates + 1) == Faults{kPath + "candidates: 217 are over 216"});
}

TEST_CASE("tuning record: a wrong type or a missing key is named by its path") {
  const std::string start = "manifest.json: kernels[1].tuning";
  CHECK(tuning_parse_error([](ordered_json& json) { json = 7; }) == start + ": expected an object, found 7");
  CHECK(tuning_parse_error([](ordered_json& json) { json.erase("device"); }) ==
        start + ": the key \"device\" is missing");
  CHECK(tuning_parse_error([](ordered_json& json) { json["chosen"] = 0.5; }) ==
        start + ".chosen: expected an integer, found 0.5");
  CHECK(tuning_parse_error([](ordered_json& json) { json["chosen"] = 5'000'000'000; }) ==
        start + ".chosen: 5000000000 is over 2147483647");
  CHECK(tuning_parse_error([](ordered_json& json) { json["candidates"] = "many"; }) ==
        start + ".candidates: expected an array, found \"many\"");
  CHECK(tuning_parse_error([](ordered_json& json) { json["candidates"][0]["us"] = "fast"; }) ==
        start + ".candidates[0].us: expected a number, found \"fast\"");
  CHECK(tuning_parse_error([](ordered_json& json) { json["candidates"][0].erase("samples"); }) ==
        start + ".candidates[0]: the key \"samples\" is missing");
}
