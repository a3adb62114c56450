// JSON of weights files and side files: one object of names.
#pragma once

#include <string>
#include <string_view>

#include "ir/strict_json.h"

namespace burin {

inline constexpr std::size_t kMaxJsonBytes = 100'000'000;  // the bound that safetensors sets for its header

// `where` starts every message: "net.safetensors: header". Throws Error(bad_input) for what is not one JSON object, is
// too long or too deep, or names a key twice in one object.
StrictJson parse_json_object(std::string_view text, const std::string& where);

}  // namespace burin
