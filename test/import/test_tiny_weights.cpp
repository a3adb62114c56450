// The note on weights that are tiny but not zero, and the threshold that it names.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/import/import.h"
#include "test/import/files.h"

using namespace burin;
using namespace burin_test;

namespace {

// 1x1 layers of 100 weights each: `tiny` of them are 1e-4, the others 1.
std::string network_file(std::initializer_list<int> tiny_counts) {
  std::string header, geometry, data;
  int index = 0;
  for (const int tiny : tiny_counts) {
    header += fmt::format(",{}", entry(fmt::format("l{}.weight", index), "F32", "[10,10,1,1]",
                                       fmt::format("[{},{}]", 400 * index, 400 * (index + 1))));
    geometry += fmt::format(R"({}\"l{}\":{{\"H\":1,\"W\":1}})", index == 0 ? "" : ",", index);
    for (int i = 0; i < 100; ++i) data += raw<float>({i < tiny ? -1e-4F : 1.0F});
    ++index;
  }
  return safetensors(R"({"__metadata__":{"geometry":"{)" + geometry + "}\"}" + header + "}", data);
}

}  // namespace

TEST_CASE("tiny weights: one note for all layers, naming the flag") {
  const ScratchFolder folder;
  const Network network = import_network(folder.write("n.safetensors", network_file({2, 0, 5})));
  REQUIRE(network.notes.size() == 1);
  for (const std::string part : {"2 of 3 layers", "7 of their 200 nonzeros", "--zero-threshold"}) {
    INFO(network.notes[0]);
    CHECK(network.notes[0].find(part) != std::string::npos);
  }
}

TEST_CASE("tiny weights: one in a hundred is no news") {
  const ScratchFolder folder;
  CHECK(import_network(folder.write("n.safetensors", network_file({1, 0, 1}))).notes.empty());
}

TEST_CASE("tiny weights: the threshold makes them zero and ends the note") {
  const ScratchFolder folder;
  ImportOptions options;
  options.zero_threshold = 1e-4F;
  const Network network = import_network(folder.write("n.safetensors", network_file({7})), options);
  CHECK(network.notes.empty());
  const auto& weights = network.layers.at(0).weights;
  CHECK(std::count(weights.begin(), weights.end(), 0.0F) == 7);
}

TEST_CASE("tiny weights: a threshold that makes no sense") {
  const ScratchFolder folder;
  const std::string path = folder.write("n.safetensors", network_file({0}));
  for (const float threshold : {-1.0F, NAN, INFINITY}) {
    ImportOptions options;
    options.zero_threshold = threshold;
    expect_error(ErrorKind::usage, {"--zero-threshold", "finite"}, [&] { import_network(path, options); });
  }
}
