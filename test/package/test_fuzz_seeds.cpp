// The seeds of fuzz_package are packages and manifests of the present format: others would end at its version.
#include <filesystem>

#include "ir/package/package.h"
#include "test/catch.h"
#include "test/scratch_folder.h"

using namespace burin;

TEST_CASE("fuzz seeds: each can be read") {
  int manifests = 0, packages = 0;
  for (const auto& file : std::filesystem::directory_iterator(BURIN_PACKAGE_SEEDS)) {
    const std::string name = file.path().string();
    INFO(name);
    const std::string bytes = burin_test::read_file(name);
    if (file.path().extension() == ".json") {
      ++manifests;
      CHECK(verify(parse_manifest(bytes)) == std::vector<std::string>{});
    } else {
      ++packages;
      const Package package = read_package_from_memory(bytes, name);
      check_contents(package);
      CHECK(verify(package) == std::vector<std::string>{});
    }
  }
  CHECK(manifests >= 5);
  CHECK(packages >= 3);
}
