#include "ir/strict_json.h"

#include "test/catch.h"
#include "test/thrown.h"

using namespace burin;

namespace {

constexpr JsonLimits kLimits{.depth = 3, .values = 10};

std::string json_error(const std::string& text) {
  return burin_test::error_of([&] { parse_strict_json(text, "f.json", kLimits); });
}

}  // namespace

TEST_CASE("strict_json: the outermost keys keep the order of the text") {
  const StrictJson json = parse_strict_json(R"({"b": {"x": 1}, "a": [{"y": 2}], "c": "text"})", "f.json", kLimits);
  CHECK(json.top_keys == std::vector<std::string>{"b", "a", "c"});
  CHECK(json.root["b"]["x"] == 1);
  CHECK(json.root["a"][0]["y"] == 2);
  CHECK(json.root["c"] == "text");
}

TEST_CASE("strict_json: what is no object has no outermost keys") {
  CHECK(parse_strict_json(R"([{"a": 1}])", "f.json", kLimits).top_keys.empty());
  CHECK(parse_strict_json("7", "f.json", kLimits).root == 7);
}

TEST_CASE("strict_json: a key twice in one object is an error, in two objects it is not") {
  CHECK(json_error(R"({"a": 1, "a": 2})") == "f.json: the key 'a' stands twice in one object");
  CHECK(json_error(R"({"b": [{"a": 1, "\u0061": 2}]})") == "f.json: the key 'a' stands twice in one object");
  CHECK(json_error(R"({"\u001b[31m": 1, "\u001b[31m": 2})") ==
        "f.json: the key '\\x1b[31m' stands twice in one object");
  CHECK(json_error(R"({"a": {"a": 1}, "b": {"a": 1}})") == "no error");
}

TEST_CASE("strict_json: depth and number of values have an end") {
  CHECK(json_error("[[[1]]]") == "no error");
  CHECK(json_error("[[[[1]]]]") == "f.json: is nested deeper than 3 levels");
  CHECK(json_error(R"({"a": [{"b": []}]})") == "f.json: is nested deeper than 3 levels");
  CHECK(json_error(std::string(100'000, '[')) == "f.json: is nested deeper than 3 levels");
  CHECK(json_error("[1,2,3,4,5,6,7,8,9]") == "no error");
  CHECK(json_error("[1,2,3,4,5,6,7,8,9,10]") == "f.json: has more than 10 values");
  CHECK(json_error("[1,2.5,-3,true,null,{},[],\"8\",{}]") == "no error");
}

TEST_CASE("strict_json: malformed text is told with its place") {
  CHECK(json_error("").find("f.json: not valid JSON: parse error at line 1, column 1: ") == 0);
  CHECK(json_error("{\n\"a\": }").find("f.json: not valid JSON: parse error at line 2, column 6: ") == 0);
  CHECK(json_error("{} {}").find("f.json: not valid JSON: parse error") == 0);
  CHECK(json_error("[1e999]").find("f.json: not valid JSON: number overflow") == 0);
  CHECK(json_error("[\"\xff\"]").find("f.json: not valid JSON: ") == 0);
  CHECK(json_error("[\"" + std::string(100'000, 'x')).size() < 400);
}
