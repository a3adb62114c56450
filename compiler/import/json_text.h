// JSON that comes from files: parsed strictly, because a name that appears twice means two things at once.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace burin {

inline constexpr std::size_t kMaxJsonBytes = 100'000'000;  // the bound that safetensors sets for its header
inline constexpr int kMaxJsonDepth = 32;                   // arrays and objects inside one another

struct JsonText {
  nlohmann::json root;                // always an object
  std::vector<std::string> top_keys;  // in the order of the text
};

// `where` starts every message: "net.safetensors: header". Throws Error(bad_input) for what is not one JSON object, is
// too long or too deep, or names a key twice in one object.
JsonText parse_json_object(std::string_view text, const std::string& where);

}  // namespace burin
