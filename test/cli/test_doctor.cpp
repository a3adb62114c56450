
#include <deque>
#include <nlohmann/json.hpp>

#include "compiler/cli/doctor.h"
#include "test/catch.h"
#include "test/scoped_variable.h"

using burin::DoctorPiece;
using burin::DoctorReport;
using burin_test::Contains;

namespace {

DoctorReport sample() {
  DoctorReport report;
  report.tool_version = "1.2.3";
  report.pieces = {{"CUDA driver", true, "13.0", "libcuda.so.1", "run on a GPU", ""},
                   {"ptxas", false, "", "", "cubins", "no ptxas on PATH"}};
  report.devices = {{0, "NVIDIA H200", "sm_90", true, 132, std::size_t{141} << 30, ""},
                    {1, "NVIDIA X", "sm_123", false, 10, std::size_t{8} << 30, ""},
                    {2, "", "", false, 0, 0, "cuDevicePrimaryCtxRetain failed"}};
  report.assembler = "nvJitLink 13.0";
  report.default_archs = {"sm_90"};
  report.known_archs = {"sm_80", "sm_90"};
  return report;
}

const DoctorPiece* find(const DoctorReport& report, const std::string& name) {
  for (const DoctorPiece& piece : report.pieces) {
    if (piece.name == name) return &piece;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("doctor: the table names pieces, devices and what is missing") {
  const std::string text = burin::to_text(sample());
  CHECK_THAT(text,
             Contains("burin 1.2.3") && Contains("libcuda.so.1") && Contains("cuda:0") && Contains("NVIDIA H200"));
  CHECK_THAT(text, Contains("through PTX only"));
  CHECK_THAT(text, Contains("nvJitLink 13.0") && Contains("sm_80, sm_90"));
  CHECK_THAT(text, Contains("ptxas: no ptxas on PATH") && Contains("cuda:2: cuDevicePrimaryCtxRetain failed"));
}

TEST_CASE("doctor: without an assembler it says what that means and what helps") {
  DoctorReport report = sample();
  report.assembler.clear();
  report.assembler_note = "install something";
  CHECK_THAT(burin::to_text(report), Contains("nothing: packages hold PTX only") && Contains("install something"));
}

TEST_CASE("doctor: where all is well there is no list of what is missing") {
  DoctorReport report = sample();
  report.pieces.pop_back();
  report.devices.resize(1);
  CHECK_THAT(burin::to_text(report), !Contains("missing"));
}

TEST_CASE("doctor: the JSON holds the same") {
  const nlohmann::json json = nlohmann::json::parse(burin::to_json(sample()));
  CHECK(json["version"] == "1.2.3");
  CHECK(json["pieces"].size() == 2);
  CHECK(json["pieces"][0]["found"] == true);
  CHECK(json["pieces"][1]["problem"] == "no ptxas on PATH");
  CHECK(json["devices"][0]["memory_bytes"] == std::size_t{141} << 30);
  CHECK(json["devices"][2]["problem"] == "cuDevicePrimaryCtxRetain failed");
  CHECK(json["assembler"] == "nvJitLink 13.0");
  CHECK(json["default_archs"] == nlohmann::json::array({"sm_90"}));
}

TEST_CASE("doctor: text that is no UTF-8 does not break the JSON") {
  DoctorReport report = sample();
  report.pieces[1].problem = "a \xff byte";
  CHECK_NOTHROW(nlohmann::json::parse(burin::to_json(report)));
}

TEST_CASE("doctor: what is absent is reported, not thrown") {
  std::deque<burin_test::ScopedVariable> absent;
  for (const char* name :
       {"BURIN_CUDA_DRIVER", "BURIN_NVJITLINK", "BURIN_PTXAS", "BURIN_NVRTC", "BURIN_CUDNN", "BURIN_CUBLASLT"}) {
    absent.emplace_back(name, "/nowhere/at-all");
  }
  const DoctorReport report = burin::examine();
  for (const char* name : {"CUDA driver", "nvJitLink", "ptxas", "NVRTC", "cuDNN", "cuBLASLt"}) {
    INFO(name);
    REQUIRE(find(report, name) != nullptr);
    CHECK_FALSE(find(report, name)->found);
    CHECK_THAT(find(report, name)->problem, Contains("/nowhere/at-all"));
    CHECK_FALSE(find(report, name)->purpose.empty());
  }
  REQUIRE(find(report, "LLVM") != nullptr);
  CHECK(find(report, "LLVM")->found);
  CHECK_THAT(find(report, "LLVM")->version, Contains("19."));
  CHECK(report.devices.empty());
  CHECK(report.default_archs == std::vector<std::string>{"sm_90"});
}
