#include "compiler/import/safetensors.h"

#include <fmt/format.h>

#include "compiler/import/import.h"
#include "test/import/files.h"

using namespace burin;
using namespace burin_test;

namespace {

std::vector<float> values_of(const std::string& bytes) {
  return float_values(parse_safetensors(bytes, "m").tensors.at(0));
}

std::string two(const std::string& first_offsets, const std::string& second_offsets) {
  return "{" + entry("a", "F32", "[2]", first_offsets) + "," + entry("b", "F32", "[2]", second_offsets) + "}";
}

void rejects_safetensors(const std::string& bytes, std::initializer_list<std::string_view> parts) {
  expect_bad_input({"m.safetensors"}, [&] { parse_safetensors(bytes, "m.safetensors"); });
  expect_bad_input(parts, [&] { parse_safetensors(bytes, "m.safetensors"); });
}

}  // namespace

TEST_CASE("safetensors: F32") {
  CHECK(values_of(safetensors("{" + entry("a", "F32", "[2]", "[0,8]") + "}", ramp(2))) == std::vector<float>{1, 2});
}
TEST_CASE("safetensors: F16") {
  CHECK(values_of(safetensors("{" + entry("a", "F16", "[2]", "[0,4]") + "}", raw<std::uint16_t>({0x3C00, 0xB800}))) ==
        std::vector<float>{1, -0.5F});
}
TEST_CASE("safetensors: BF16") {
  CHECK(values_of(safetensors("{" + entry("a", "BF16", "[2]", "[0,4]") + "}", raw<std::uint16_t>({0x3F80, 0xC040}))) ==
        std::vector<float>{1, -3});
}
TEST_CASE("safetensors: F64") {
  CHECK(values_of(safetensors("{" + entry("a", "F64", "[2]", "[0,16]") + "}", raw<double>({0.5, -4}))) ==
        std::vector<float>{0.5F, -4});
}
TEST_CASE("safetensors: F64 beyond float32") {
  expect_bad_input({"m", "'a'", "element 0", "float32"},
                   [] { values_of(safetensors("{" + entry("a", "F64", "[1]", "[0,8]") + "}", raw<double>({-1e39}))); });
}
TEST_CASE("safetensors: data that is not aligned") {
  // The header's length is odd, so every value lies across word boundaries.
  const std::string header = "{" + entry("a", "F32", "[3]", "[0,12]") + "}";
  CHECK(values_of(safetensors(header + std::string(header.size() % 2 == 0 ? 1 : 2, ' '), ramp(3))) ==
        std::vector<float>{1, 2, 3});
}
TEST_CASE("safetensors: tensors come in the order of their data") {
  const std::string bytes = safetensors(two("[8,16]", "[0,8]"), ramp(4));
  const WeightsFile file = parse_safetensors(bytes, "m");
  REQUIRE(file.tensors.size() == 2);
  CHECK(file.tensors[0].name == "b");
  CHECK(float_values(file.tensors[1]) == std::vector<float>{3, 4});
}
TEST_CASE("safetensors: scalars, empty tensors and integers are tensors too") {
  const std::string bytes =
      safetensors("{" + entry("s", "F32", "[]", "[0,4]") + "," + entry("e", "F32", "[0,3]", "[4,4]") + "," +
                      entry("i", "I64", "[1]", "[4,12]") + "}",
                  ramp(3));
  const WeightsFile file = parse_safetensors(bytes, "m");
  REQUIRE(file.tensors.size() == 3);
  CHECK(float_values(file.tensors[0]) == std::vector<float>{1});
  CHECK(file.tensors[2].type == StoredType::i64);
}
TEST_CASE("safetensors: a header of 40,000 tensors takes linear time") {
  constexpr int kTensors = 40'000;
  std::string header = "{";
  for (int i = 0; i < kTensors; ++i) {
    if (i > 0) header += ',';
    header +=
        entry(fmt::format("blocks.{}.conv.weight", i), "F32", "[1,1,1,1]", fmt::format("[{},{}]", 4 * i, 4 * i + 4));
  }
  const std::string bytes = safetensors(header + "}", ramp(kTensors));
  const WeightsFile file = parse_safetensors(bytes, "m");
  REQUIRE(file.tensors.size() == kTensors);
  CHECK(file.tensors.back().name == "blocks.39999.conv.weight");
  CHECK(float_values(file.tensors.back()) == std::vector<float>{kTensors});
}
TEST_CASE("safetensors: geometry comes from the metadata") {
  const WeightsFile file = parse_safetensors(one_tensor_file("a", {2}, R"({"x":{}})"), "m.safetensors");
  REQUIRE(file.geometry.size() == 1);
  CHECK(file.geometry[0].json == R"({"x":{}})");
  CHECK(file.geometry[0].where == "m.safetensors: metadata key 'geometry'");
}
TEST_CASE("safetensors: what the safetensors library wrote") {
  const Network network = import_network(std::string(BURIN_IMPORT_DATA) + "/library.safetensors");
  REQUIRE(network.layers.size() == 2);
  CHECK(network.layers[0].name == "b");
  CHECK(network.layers[1].name == "a");
  CHECK(network.layers[1].weights == std::vector<float>{1, 0, -2, 0.5F});
  CHECK(network.layers[0].bias == std::vector<float>{1, 2});
}

TEST_CASE("safetensors: rejects a file shorter than the length") {
  rejects_safetensors("1234567", {"7 bytes", "too few"});
}
TEST_CASE("safetensors: rejects a header length of 2^63") {
  rejects_safetensors(std::string("\0\0\0\0\0\0\0\x80{}", 10), {"9223372036854775808", "safetensors allows"});
}
TEST_CASE("safetensors: rejects a header length of 2^64-1") {
  rejects_safetensors(std::string(8, '\xff') + "{}", {"18446744073709551615"});
}
TEST_CASE("safetensors: rejects a truncated header") {
  rejects_safetensors(one_tensor_file("a", {2}).substr(0, 20), {"only 12 follow", "cut off"});
}
TEST_CASE("safetensors: rejects a header length of 0") {
  rejects_safetensors(safetensors("", "abcd"), {"header", "not valid JSON"});
}
TEST_CASE("safetensors: rejects bad JSON") {
  rejects_safetensors(safetensors("{\"a\":}", ""), {"header", "not valid JSON"});
}
TEST_CASE("safetensors: rejects JSON that is no object") {
  rejects_safetensors(safetensors("[1,2]", ""), {"header", "not a JSON object"});
}
TEST_CASE("safetensors: rejects JSON that is not UTF-8") {
  rejects_safetensors(safetensors("{\"\xff\xfe\":1}", ""), {"header", "not valid JSON"});
}
TEST_CASE("safetensors: rejects JSON nested without end") {
  rejects_safetensors(safetensors("{\"a\":" + std::string(100'000, '['), ""), {"nested"});
}
TEST_CASE("safetensors: rejects a tensor twice") {
  rejects_safetensors(
      safetensors("{" + entry("a", "F32", "[2]", "[0,8]") + "," + entry("a", "F32", "[2]", "[8,16]") + "}", ramp(4)),
      {"'a'", "twice"});
}
TEST_CASE("safetensors: rejects an attribute twice") {
  rejects_safetensors(safetensors(R"({"a":{"dtype":"F32","dtype":"F16","shape":[2],"data_offsets":[0,8]}})", ramp(2)),
                      {"'dtype'", "twice"});
}
TEST_CASE("safetensors: rejects a file without tensors") { rejects_safetensors(safetensors("{}", ""), {"no tensors"}); }
TEST_CASE("safetensors: rejects an unknown dtype") {
  rejects_safetensors(safetensors("{" + entry("a", "F99", "[2]", "[0,8]") + "}", ramp(2)), {"'a'", "'F99'", "BF16"});
}
TEST_CASE("safetensors: rejects a dtype that is no string") {
  rejects_safetensors(safetensors(R"({"a":{"dtype":7,"shape":[2],"data_offsets":[0,8]}})", ramp(2)), {"'a'", "dtype"});
}
TEST_CASE("safetensors: rejects a tensor without dtype") {
  rejects_safetensors(safetensors(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", ramp(2)), {"'a'", "lacks 'dtype'"});
}
TEST_CASE("safetensors: rejects a tensor without shape") {
  rejects_safetensors(safetensors(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", ramp(2)), {"'a'", "lacks 'shape'"});
}
TEST_CASE("safetensors: rejects a tensor without offsets") {
  rejects_safetensors(safetensors(R"({"a":{"dtype":"F32","shape":[2]}})", ramp(2)), {"'a'", "lacks 'data_offsets'"});
}
TEST_CASE("safetensors: rejects a tensor that is no object") {
  rejects_safetensors(safetensors(R"({"a":5})", ""), {"'a'", "not a JSON object"});
}
TEST_CASE("safetensors: rejects a shape that is no array") {
  rejects_safetensors(safetensors("{" + entry("a", "F32", "2", "[0,8]") + "}", ramp(2)),
                      {"'a'", "shape is not an array"});
}
TEST_CASE("safetensors: rejects a negative extent") {
  rejects_safetensors(safetensors("{" + entry("a", "F32", "[-2]", "[0,8]") + "}", ramp(2)), {"'a'", "-2"});
}
TEST_CASE("safetensors: rejects a fractional extent") {
  rejects_safetensors(safetensors("{" + entry("a", "F32", "[2.0]", "[0,8]") + "}", ramp(2)), {"'a'", "2.0"});
}
TEST_CASE("safetensors: rejects a shape whose product overflows") {
  rejects_safetensors(safetensors("{" + entry("a", "F32", "[4294967296,4294967296]", "[0,8]") + "}", ramp(2)),
                      {"'a'", "larger than memory"});
}
TEST_CASE("safetensors: rejects a shape whose size in bytes overflows") {
  rejects_safetensors(safetensors("{" + entry("a", "F32", "[4611686018427387904]", "[0,0]") + "}", ""),
                      {"'a'", "larger than memory"});
}
TEST_CASE("safetensors: rejects 65 dimensions") {
  std::string shape = "[1";
  for (int i = 1; i < 65; ++i) shape += ",1";
  rejects_safetensors(safetensors("{" + entry("a", "F32", shape + "]", "[0,4]") + "}", ramp(1)),
                      {"'a'", "64 dimensions"});
}
TEST_CASE("safetensors: rejects negative offsets") {
  rejects_safetensors(safetensors("{" + entry("a", "F32", "[2]", "[-8,0]") + "}", ramp(2)), {"'a'", "[-8,0]"});
}
TEST_CASE("safetensors: rejects offsets beyond 63 bits") {
  rejects_safetensors(
      safetensors("{" + entry("a", "F32", "[2]", "[18446744073709551608,18446744073709551615]") + "}", ramp(2)),
      {"'a'", "18446744073709551608"});
}
TEST_CASE("safetensors: rejects offsets beyond 64 bits") {
  rejects_safetensors(safetensors("{" + entry("a", "F32", "[2]", "[0,99999999999999999999]") + "}", ramp(2)),
                      {"'a'", "data_offsets"});
}
TEST_CASE("safetensors: rejects offsets that end before they begin") {
  rejects_safetensors(safetensors("{" + entry("a", "F32", "[2]", "[8,0]") + "}", ramp(2)), {"'a'", "[8, 0]"});
}
TEST_CASE("safetensors: rejects offsets behind the end of the file") {
  rejects_safetensors(safetensors("{" + entry("a", "F32", "[2]", "[0,8]") + "}", ramp(1)),
                      {"'a'", "[0, 8]", "outside the 4 bytes"});
}
TEST_CASE("safetensors: rejects three offsets") {
  rejects_safetensors(safetensors("{" + entry("a", "F32", "[2]", "[0,8,9]") + "}", ramp(2)),
                      {"'a'", "two whole numbers"});
}
TEST_CASE("safetensors: rejects offsets that do not fit the shape") {
  rejects_safetensors(safetensors("{" + entry("a", "F32", "[3]", "[0,8]") + "}", ramp(2)),
                      {"'a'", "needs 12 bytes", "span 8"});
}
TEST_CASE("safetensors: rejects overlapping tensors") {
  rejects_safetensors(safetensors(two("[0,8]", "[4,12]"), ramp(3)), {"'a'", "'b'", "overlap"});
}
TEST_CASE("safetensors: rejects two tensors in the same place") {
  rejects_safetensors(safetensors(two("[0,8]", "[0,8]"), ramp(2)), {"'a'", "'b'", "overlap"});
}
TEST_CASE("safetensors: rejects a hole") {
  rejects_safetensors(safetensors(two("[0,8]", "[12,20]"), ramp(5)), {"'b'", "4 bytes before it"});
}
TEST_CASE("safetensors: rejects a hole at the start") {
  rejects_safetensors(safetensors("{" + entry("a", "F32", "[2]", "[4,12]") + "}", ramp(3)),
                      {"'a'", "4 bytes before it"});
}
TEST_CASE("safetensors: rejects bytes after the last tensor") {
  rejects_safetensors(one_tensor_file("a", {2}) + "xyz", {"last 3 bytes"});
}
TEST_CASE("safetensors: rejects metadata that is no object") {
  rejects_safetensors(safetensors(R"({"__metadata__":3,)" + entry("a", "F32", "[2]", "[0,8]") + "}", ramp(2)),
                      {"__metadata__"});
}
TEST_CASE("safetensors: rejects metadata that is no string") {
  rejects_safetensors(
      safetensors(R"({"__metadata__":{"geometry":{}},)" + entry("a", "F32", "[2]", "[0,8]") + "}", ramp(2)),
      {"'geometry'", "not a string"});
}
TEST_CASE("safetensors: control characters of a name do not reach the terminal") {
  try {
    parse_safetensors(safetensors(R"({"\u001b[31m":5})", ""), "m");
    FAIL("no error was thrown");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find('\x1b') == std::string::npos);
    CHECK(std::string(error.what()).find("\\x1b[31m") != std::string::npos);
  }
}
