// JSON as every command prints it: two blanks of indentation, a newline at the end.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace burin {

// File names may hold bytes that are no UTF-8; they are replaced, so that the document can always be read.
inline std::string json_output(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace burin
