#include "compiler/assemble/locate.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "compiler/assemble/run_program.h"
#include "test/catch.h"
#include "test/scoped_variable.h"

namespace fs = std::filesystem;

namespace {

void make_file(const fs::path& path, bool executable = false) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "x";
  if (executable) fs::permissions(path, fs::perms::owner_exec, fs::perm_options::add);
}

bool has(const std::vector<std::string>& list, const fs::path& item) {
  return std::find(list.begin(), list.end(), item.string()) != list.end();
}

}  // namespace

TEST_CASE("locate: a chosen library is the only candidate") {
  const burin_test::ScopedVariable chosen("BURIN_NVJITLINK", "/nowhere/libnvJitLink.so.13");
  CHECK(burin::library_candidates("BURIN_NVJITLINK", {"libnvJitLink.so.13"}) ==
        std::vector<std::string>{"/nowhere/libnvJitLink.so.13"});
}

TEST_CASE("locate: a chosen program is the only candidate") {
  const burin_test::ScopedVariable chosen("BURIN_PTXAS", "/nowhere/ptxas");
  CHECK(burin::program_candidates("BURIN_PTXAS", "ptxas") == std::vector<std::string>{"/nowhere/ptxas"});
}

TEST_CASE("locate: libraries of wheels in a virtual environment") {
  const burin::TemporaryFolder folder;
  const fs::path packages = fs::path(folder.path()) / "lib/python3.11/site-packages/nvidia";
  make_file(packages / "nvjitlink/lib/libnvJitLink.so.12");
  make_file(packages / "cu13/lib/libnvJitLink.so.13");
  const burin_test::ScopedVariable wheels("BURIN_CUDA_WHEELS", folder.path());
  const auto candidates =
      burin::library_candidates("BURIN_UNSET_VARIABLE", {"libnvJitLink.so.13", "libnvJitLink.so.12"});
  REQUIRE(candidates.size() >= 4);
  CHECK(candidates[0] == "libnvJitLink.so.13");  // the default loader path first
  CHECK(has(candidates, packages / "nvjitlink/lib/libnvJitLink.so.12"));
  CHECK(has(candidates, packages / "cu13/lib/libnvJitLink.so.13"));
  CHECK_FALSE(has(candidates, packages / "cu13/lib/libnvJitLink.so.12"));
}

TEST_CASE("locate: wheels in a plain site-packages folder") {
  const burin::TemporaryFolder folder;
  make_file(fs::path(folder.path()) / "nvidia/cuda_nvcc/bin/ptxas", true);
  const burin_test::ScopedVariable wheels("BURIN_CUDA_WHEELS", folder.path());
  CHECK(burin::wheel_folders() == std::vector<std::string>{folder.path() + "/nvidia/cuda_nvcc"});
  CHECK(has(burin::program_candidates("BURIN_UNSET_VARIABLE", "ptxas"), folder.path() + "/nvidia/cuda_nvcc/bin/ptxas"));
}

TEST_CASE("locate: only programs that may be executed") {
  const burin::TemporaryFolder folder;
  make_file(fs::path(folder.path()) / "plain/burin-test-program", false);
  make_file(fs::path(folder.path()) / "good/burin-test-program", true);
  fs::create_directories(fs::path(folder.path()) / "folder/burin-test-program");
  const std::string base = folder.path();
  const burin_test::ScopedVariable path("PATH",
                                        base + "/folder:" + base + "/plain::" + base + "/good:" + base + "/absent");
  const std::vector<std::string> expected = {base + "/good/burin-test-program"};
  CHECK(burin::program_candidates("BURIN_UNSET_VARIABLE", "burin-test-program") == expected);
}

TEST_CASE("locate: a toolkit named by CUDA_HOME comes before the usual place") {
  const burin::TemporaryFolder folder;
  make_file(fs::path(folder.path()) / "lib64/libburin-test.so");
  const burin_test::ScopedVariable home("CUDA_HOME", folder.path());
  CHECK(burin::toolkit_folders().front() == folder.path());
  const std::vector<std::string> expected = {"libburin-test.so", folder.path() + "/lib64/libburin-test.so"};
  CHECK(burin::library_candidates("BURIN_UNSET_VARIABLE", {"libburin-test.so"}) == expected);
}

TEST_CASE("locate: folders that do not exist are no error") {
  const burin_test::ScopedVariable home("CUDA_HOME", "/nowhere/cuda");
  const burin_test::ScopedVariable wheels("BURIN_CUDA_WHEELS", "/nowhere/venv");
  CHECK(burin::wheel_folders().empty());
  CHECK_FALSE(has(burin::toolkit_folders(), "/nowhere/cuda"));
}
