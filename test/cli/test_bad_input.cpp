// Files that are not what they should be: exit code 3, the file named, nothing written.

#include <cmath>
#include <limits>

#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/weights_file.h"

using namespace burin_test;
using burin_test::Contains;

namespace {

void check_bad_input(const std::vector<std::string>& arguments, const std::string& text) {
  const Outcome outcome = run_burin(arguments);
  CAPTURE(arguments, outcome.out, outcome.err);
  CHECK(outcome.exit_code == 3);
  CHECK_THAT(outcome.err, Contains("burin: error: ") && Contains(text));
}

}  // namespace

TEST_CASE("absent_files_are_named") {
  check_bad_input({"compile", "/nonexistent.safetensors", "--arch", "sm_90"}, "/nonexistent.safetensors");
  check_bad_input({"inspect", "/nonexistent.safetensors"}, "/nonexistent.safetensors");
  check_bad_input({"inspect", "/nonexistent.burin"}, "/nonexistent.burin");
  check_bad_input({"verify", "/nonexistent.burin", "--against", "w.npy"}, "/nonexistent.burin");
  check_bad_input({"run", "/nonexistent.burin", "--layer", "a", "--input", "x", "--output", "y"}, "/nonexistent.burin");
  check_bad_input({"bench", "/nonexistent.burin"}, "/nonexistent.burin");
}

TEST_CASE("weights_that_are_not_finite_are_refused") {
  const ScratchFolder folder;
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    TestLayer layer;
    layer.weights = sparse_weights(8 * 4 * 9, 1);
    layer.weights[100] = value;
    write_safetensors(folder / "w.safetensors", {layer});
    check_bad_input({"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / "out.burin"}, "conv");
    CHECK(folder.entries() == std::vector<std::string>{"w.safetensors"});
  }
}

TEST_CASE("damaged_weights_leave_no_output_and_keep_the_old_one") {
  const ScratchFolder folder;
  write_safetensors(folder / "good.safetensors", {TestLayer{}});
  const std::string good = read_file(folder / "good.safetensors");
  write_file(folder / "old.burin", "the old package");
  std::vector<std::string> damaged = {
      "", "x", good.substr(0, 7), good.substr(0, 60), good.substr(0, good.size() - 1), std::string(64, '\xff')};
  std::string broken_json = good;
  broken_json[9] = '!';
  damaged.push_back(broken_json);
  for (std::size_t i = 0; i < damaged.size(); ++i) {
    CAPTURE(i);
    write_file(folder / "bad.safetensors", damaged[i]);
    check_bad_input({"compile", folder / "bad.safetensors", "--arch", "sm_90", "-o", folder / "old.burin"},
                    "bad.safetensors");
    CHECK(read_file(folder / "old.burin") == "the old package");
    CHECK(folder.entries() == std::vector<std::string>{"bad.safetensors", "good.safetensors", "old.burin"});
  }
}

TEST_CASE("a_geometry_that_cannot_be_is_refused") {
  const ScratchFolder folder;
  TestLayer layer;
  layer.extent = 1;
  layer.pad = 0;  // a 3x3 filter does not fit a 1x1 image
  write_safetensors(folder / "w.safetensors", {layer});
  check_bad_input({"inspect", folder / "w.safetensors"}, "conv");
  layer.extent = 8;
  layer.stride = 0;
  write_safetensors(folder / "w.safetensors", {layer});
  check_bad_input({"inspect", folder / "w.safetensors"}, "stride");
}

TEST_CASE("damaged_packages_are_refused") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  REQUIRE(run_burin({"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", folder / "p.burin"}).exit_code == 0);
  const std::string good = read_file(folder / "p.burin");
  std::string flipped = good;
  const std::size_t in_code = good.find("kernels/") + 200;
  REQUIRE(in_code < good.size());
  flipped[in_code] = static_cast<char>(flipped[in_code] ^ 0x10);
  for (const std::string& content :
       {std::string(), std::string("PK\x03\x04"), good.substr(0, good.size() / 2), flipped}) {
    CAPTURE(content.size());
    write_file(folder / "bad.burin", content);
    if (content == flipped) {  // in code, which nobody expands to inspect a package
      CHECK(run_burin({"inspect", folder / "bad.burin"}).exit_code == 0);
    } else {
      check_bad_input({"inspect", folder / "bad.burin"}, "bad.burin");
    }
    check_bad_input({"verify", folder / "bad.burin", "--against", folder / "w.safetensors", "--device", "host"},
                    "bad.burin");
  }
}

TEST_CASE("an_output_that_cannot_be_written_is_named") {
  const ScratchFolder folder;
  write_safetensors(folder / "w.safetensors", {TestLayer{}});
  const Outcome outcome =
      run_burin({"compile", folder / "w.safetensors", "--arch", "sm_90", "-o", "/nonexistent-folder/p.burin"});
  CHECK(outcome.exit_code == 2);  // another path helps, not another input
  CHECK_THAT(outcome.err, Contains("/nonexistent-folder/p.burin"));
}
