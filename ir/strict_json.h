// JSON that comes from files, parsed strictly: a name that stands twice in one object means two things at once, and
// what a hostile file may hold is bounded before any of it is built in memory.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace burin {

struct JsonLimits {
  std::size_t depth = 0;   // arrays and objects inside one another
  std::size_t values = 0;  // of any kind, keys not counted; each takes up to some 100 bytes once parsed
};

struct StrictJson {
  nlohmann::json root;                // and not ordered_json: look-up by key is logarithmic, whatever a file holds
  std::vector<std::string> top_keys;  // of the outermost object, in the order of the text
};

// `where` starts every message: "net.safetensors: header". Throws Error(bad_input) for what is not one JSON value, is
// over a limit, or names a key twice in one object. Takes time in proportion to the text, but for looking keys up.
StrictJson parse_strict_json(std::string_view text, const std::string& where, const JsonLimits& limits);

}  // namespace burin
