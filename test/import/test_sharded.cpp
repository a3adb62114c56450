#include <algorithm>

#include "compiler/import/import.h"
#include "test/import/files.h"

using namespace burin;
using namespace burin_test;

namespace {

const std::string kGeometryA = R"({"a":{"H":4,"W":4}})";
const std::string kGeometryB = R"({"b":{"H":5,"W":5,"pad":"1"}})";

struct Model {
  ScratchFolder folder;
  std::string index;
  explicit Model(const std::string& index_text, const std::string& geometry_a = kGeometryA,
                 const std::string& geometry_b = kGeometryB) {
    folder.write("part-1.safetensors", one_tensor_file("a.weight", {2, 1, 1, 1}, geometry_a));
    folder.write("parts/part-2.safetensors", one_tensor_file("b.weight", {1, 2, 3, 3}, geometry_b));
    index = folder.write("model.safetensors.index.json", index_text);
  }
};

const std::string kMap = R"("weight_map":{"a.weight":"part-1.safetensors","b.weight":"parts/part-2.safetensors"})";

void rejects_sharded(const std::string& index_text, std::initializer_list<std::string_view> parts) {
  const Model model(index_text);
  expect_bad_input({"index.json"}, [&] { import_network(model.index); });
  expect_bad_input(parts, [&] { import_network(model.index); });
}

}  // namespace

TEST_CASE("sharded: tensors and geometry of all files") {
  const Model model("{" + kMap + "}");
  const Network network = import_network(model.index);
  REQUIRE(network.layers.size() == 2);
  CHECK(network.layers[0].name == "a");
  CHECK(network.layers[1].name == "b");
  CHECK(network.layers[1].weights.size() == 18);
  CHECK(network.layers[1].shape.pad == Padding{1, 1, 1, 1});
  CHECK(network.source == model.index);
}

TEST_CASE("sharded: geometry in the index stands above the files'") {
  const Model model(R"({"metadata":{"total_size":80,"geometry":"{\"b\":{\"H\":9,\"W\":9}}"},)" + kMap + "}");
  const Network network = import_network(model.index);
  REQUIRE(network.layers.size() == 1);
  CHECK(network.layers[0].shape.in_h == 9);
  CHECK(network.leftover.at(0).name == "a.weight");
}

TEST_CASE("sharded: tensors that weight_map does not name are ignored with a note") {
  const Model model(R"({"metadata":{"geometry":{"a":{"H":4,"W":4}}},"weight_map":{"a.weight":"part-1.safetensors"}})");
  model.folder.write("part-1.safetensors", safetensors("{" + entry("a.weight", "F32", "[1,1,1,1]", "[0,4]") + "," +
                                                           entry("z", "F32", "[1]", "[4,8]") + "}",
                                                       ramp(2)));
  const Network network = import_network(model.index);
  CHECK(network.leftover.empty());
  REQUIRE(network.notes.size() == 1);
  CHECK(network.notes[0].find("1 tensors") != std::string::npos);
}

TEST_CASE("sharded: rejects a path that climbs out") {
  rejects_sharded(R"({"weight_map":{"a":"../../etc/passwd"}})", {"'../../etc/passwd'", "not inside the folder"});
}
TEST_CASE("sharded: rejects a path that climbs out from within") {
  rejects_sharded(R"({"weight_map":{"a":"parts/../../x.safetensors"}})", {"not inside the folder"});
}
TEST_CASE("sharded: rejects an absolute path") {
  rejects_sharded(R"({"weight_map":{"a":"/etc/passwd"}})", {"'/etc/passwd'", "not inside"});
}
TEST_CASE("sharded: rejects an empty path") { rejects_sharded(R"({"weight_map":{"a":""}})", {"not inside"}); }
TEST_CASE("sharded: rejects a path with a zero byte") {
  rejects_sharded(R"({"weight_map":{"a":"part-1.safetensors\u0000.txt"}})", {"not inside"});
}
TEST_CASE("sharded: rejects a path that is no string") {
  rejects_sharded(R"({"weight_map":{"a":7}})", {"'a'", "not a file name"});
}
TEST_CASE("sharded: rejects an index without weight_map") { rejects_sharded(R"({"metadata":{}})", {"no weight_map"}); }
TEST_CASE("sharded: rejects an empty weight_map") { rejects_sharded(R"({"weight_map":{}})", {"no weight_map"}); }
TEST_CASE("sharded: rejects a weight_map that is no object") {
  rejects_sharded(R"({"weight_map":[1]})", {"no weight_map"});
}
TEST_CASE("sharded: rejects bad JSON") { rejects_sharded("{\"weight_map\":", {"not valid JSON"}); }
TEST_CASE("sharded: rejects a tensor named twice") {
  rejects_sharded(R"({"weight_map":{"a.weight":"part-1.safetensors","a.weight":"parts/part-2.safetensors"}})",
                  {"'a.weight'", "twice"});
}
TEST_CASE("sharded: rejects a tensor that its file does not hold") {
  rejects_sharded(R"({"weight_map":{"c.weight":"part-1.safetensors"}})",
                  {"'c.weight'", "'part-1.safetensors'", "is not"});
}
TEST_CASE("sharded: rejects a file that is missing") {
  const Model model(R"({"weight_map":{"a":"part-9.safetensors"}})");
  expect_bad_input({"part-9.safetensors", "no such file"}, [&] { import_network(model.index); });
}
TEST_CASE("sharded: rejects a file that is broken") {
  const Model model("{" + kMap + "}");
  model.folder.write("part-1.safetensors", "{}");
  expect_bad_input({"part-1.safetensors", "too few"}, [&] { import_network(model.index); });
}
TEST_CASE("sharded: rejects a layer that two files describe") {
  const Model model("{" + kMap + "}", kGeometryA, kGeometryA);
  expect_bad_input({"'a'", "another file"}, [&] { import_network(model.index); });
}
