#include "compiler/import/npz.h"

#include "compiler/import/import.h"
#include "test/import/files.h"

using namespace burin;
using namespace burin_test;

namespace {

const std::string kArray = npy_ramp({2, 1, 3, 3});

void rejects_npz(const std::string& bytes, std::initializer_list<std::string_view> parts) {
  expect_bad_input({"a.npz"}, [&] { parse_npz(bytes, "a.npz"); });
  expect_bad_input(parts, [&] { parse_npz(bytes, "a.npz"); });
}

}  // namespace

TEST_CASE("npz: stored and deflated entries") {
  const std::string bytes = zip({{"stored.npy", kArray}, {"deflated.npy", npy_ramp({4}), true}});
  const WeightsFile file = parse_npz(bytes, "a.npz");
  REQUIRE(file.tensors.size() == 2);
  CHECK(file.tensors[0].name == "stored");
  CHECK(file.tensors[0].shape == std::vector<std::int64_t>{2, 1, 3, 3});
  CHECK(float_values(file.tensors[0])[17] == 18);
  CHECK(file.tensors[1].name == "deflated");
  CHECK(float_values(file.tensors[1]) == std::vector<float>{1, 2, 3, 4});
  CHECK(file.notes.empty());
}

TEST_CASE("npz: an array larger than one chunk, deflated to almost nothing") {
  constexpr int kCount = 100'000;
  const std::string array = npy(npy_header("<f4", "(100000,)"), std::string(kCount * sizeof(float), '\0'));
  const WeightsFile file = parse_npz(zip({{"zeros.npy", array, true}}), "a.npz");
  CHECK(float_values(file.tensors[0]) == std::vector<float>(kCount, 0.0F));
}

TEST_CASE("npz: a string array named geometry is the geometry") {
  const std::string text = R"({"c":{"H":5}})";
  std::string ucs4;
  for (const char ch : text) ucs4 += std::string(1, ch) + std::string(3, '\0');
  const auto geometry = [](const std::string& array) {
    const WeightsFile file = parse_npz(zip({{"c.npy", kArray}, {"geometry.npy", array}}), "a.npz");
    CHECK(file.tensors.size() == 1);
    REQUIRE(file.geometry.size() == 1);
    return file.geometry[0].json;
  };
  CHECK(geometry(npy(npy_header("<U" + std::to_string(text.size()), "()"), ucs4)) == text);
  CHECK(geometry(npy(npy_header("|S16", "()"), text + std::string(16 - text.size(), '\0'))) == text);
  CHECK(geometry(npy(npy_header("<U2", "()"), std::string("\xe9\0\0\0\x00\xf6\x01\0", 8))) ==
        "\xc3\xa9\xf0\x9f\x98\x80");
}

TEST_CASE("npz: rejects a geometry that is not one string") {
  rejects_npz(zip({{"c.npy", kArray}, {"geometry.npy", npy(npy_header("|S1", "(2,)"), "ab")}}),
              {"geometry", "one string"});
}
TEST_CASE("npz: rejects a geometry beyond Unicode") {
  rejects_npz(zip({{"c.npy", kArray}, {"geometry.npy", npy(npy_header("<U1", "()"), std::string("\0\0\0\x7f", 4))}}),
              {"beyond Unicode"});
}

TEST_CASE("npz: other entries are ignored and named") {
  const WeightsFile file = parse_npz(zip({{"a.npy", kArray}, {"readme.txt", "hello"}}), "a.npz");
  REQUIRE(file.notes.size() == 1);
  CHECK(file.notes[0].find("'readme.txt'") != std::string::npos);
}

TEST_CASE("npz: what NumPy wrote") {
  for (const std::string name : {"numpy_stored.npz", "numpy_deflated.npz"}) {
    const Network network = import_network(std::string(BURIN_IMPORT_DATA) + "/" + name);
    INFO(name);
    REQUIRE(network.layers.size() == 1);
    const ConvLayer& layer = network.layers[0];
    CHECK(layer.name == "conv");
    CHECK(layer.weights == std::vector<float>{0, 1, 0, 3, 0, 5, 0, 7, 0, 9, 0, 11, 0, 13, 0, 15});
    CHECK(layer.bias == std::vector<float>{0.5F, -0.5F});
    CHECK(layer.shape.stride_h == 2);
    CHECK(layer.shape.pad == Padding{1, 0, 1, 0});
    REQUIRE(network.leftover.size() == 1);
    CHECK(network.leftover[0].name == "scale");
  }
}

TEST_CASE("npz: rejects a wrong checksum, stored") {
  rejects_npz(zip({{"a.npy", kArray, false, -1, -1, -1, true}}), {"'a.npy'", "CRC"});
}
TEST_CASE("npz: rejects a wrong checksum, deflated") {
  rejects_npz(zip({{"a.npy", kArray, true, -1, -1, -1, true}}), {"'a.npy'", "CRC"});
}
TEST_CASE("npz: rejects a deflate bomb by its claim") {
  rejects_npz(zip({{"a.npy", kArray, true, -1, 2'000'000'000}}), {"'a.npy'", "2000000000", "more than deflate can"});
}
TEST_CASE("npz: rejects an entry that unpacks to more than it claims") {
  const std::string claim = npy(npy_header("<f4", "(10,)"), "");
  // The header promises ten values and so does the directory, but the stream goes on.
  rejects_npz(zip({{"a.npy", claim + ramp(1000), true, -1, static_cast<std::int64_t>(claim.size()) + 40}}),
              {"'a.npy'"});
}
TEST_CASE("npz: rejects an entry that unpacks to less than it claims") {
  const std::string array = npy(npy_header("<f4", "(20,)"), ramp(10));
  rejects_npz(zip({{"a.npy", array, true, -1, static_cast<std::int64_t>(array.size()) + 40}}), {"'a.npy'"});
}
TEST_CASE("npz: rejects a deflate stream that is cut off") {
  ZipEntry entry{"a.npy", npy_ramp({1000}), true};
  entry.cut = 500;
  rejects_npz(zip({entry}), {"'a.npy'"});
}
TEST_CASE("npz: rejects garbage in place of a deflate stream") {
  rejects_npz(zip({{"a.npy", std::string(600, '\xff'), false, 8, 650}}), {"'a.npy'", "unpacked"});
}
TEST_CASE("npz: rejects a shape that the entry does not hold, before unpacking") {
  rejects_npz(zip({{"a.npy", npy(npy_header("<f4", "(1000000000,)"), ramp(4)), true}}),
              {"needs 4000000000 bytes", "has 16"});
}
TEST_CASE("npz: rejects a shape that overflows") {
  rejects_npz(zip({{"a.npy", npy(npy_header("<f4", "(4294967296, 4294967296)"), ramp(4))}}),
              {"'a.npy'", "larger than memory"});
}
TEST_CASE("npz: rejects a name twice") {
  rejects_npz(zip({{"a.npy", kArray}, {"a.npy", kArray}}), {"'a.npy'", "twice"});
}
TEST_CASE("npz: rejects other compression methods") {
  rejects_npz(zip({{"a.npy", kArray, false, 12}}), {"'a.npy'", "method 12"});
}
TEST_CASE("npz: rejects encrypted entries") {
  ZipEntry entry{"a.npy", kArray};
  entry.flags = 1;
  rejects_npz(zip({entry}), {"'a.npy'", "encrypted"});
}
TEST_CASE("npz: rejects a stored entry of two sizes") {
  rejects_npz(zip({{"a.npy", kArray, false, -1, 5}}), {"'a.npy'", "stored", "5 bytes"});
}
TEST_CASE("npz: rejects entries that claim more than the file") {
  rejects_npz(zip({{"a.npy", kArray, false, -1, 100'000, 100'000}}), {"a.npz"});
}
TEST_CASE("npz: rejects entries that share their bytes") {
  // Each entry alone is possible; together they claim the same bytes twice.
  const std::string one = zip({{"a.npy", kArray}});
  const auto packed = static_cast<std::int64_t>(kArray.size());
  const std::string two =
      zip({{"a.npy", kArray}, {"b.npy", "", false, -1, packed, packed}, {"c.npy", "", false, -1, packed, packed}});
  rejects_npz(two, {"a.npz"});
}
TEST_CASE("npz: rejects a cut archive") { rejects_npz(zip({{"a.npy", kArray}}).substr(0, 150), {"zip"}); }
TEST_CASE("npz: rejects an archive without entries") { rejects_npz(zip({}), {"without any .npy"}); }
TEST_CASE("npz: rejects an archive of other things") { rejects_npz(zip({{"x.txt", "x"}}), {"without any .npy"}); }
TEST_CASE("npz: rejects a PyTorch checkpoint and says what to do") {
  rejects_npz(zip({{"archive/data.pkl", "x"}, {"archive/data/0", "y"}}), {"PyTorch", "safetensors"});
}
TEST_CASE("npz: rejects a compiled package") { rejects_npz(zip({{"manifest.json", "{}"}}), {"compiled package"}); }
TEST_CASE("npz: rejects an entry that is no array") {
  rejects_npz(zip({{"a.npy", "nothing"}}), {"'a.npy'", "does not start"});
}
TEST_CASE("npz: rejects an empty entry") { rejects_npz(zip({{"a.npy", ""}}), {"'a.npy'", "does not start"}); }
