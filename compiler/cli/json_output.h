// JSON as every command prints it: two blanks of indentation, a newline at the end. And programs in it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"

namespace burin {

// File names and messages of the system may hold bytes that are no UTF-8; they are replaced, so that the document can
// always be read.
inline std::string json_output(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// Null for what is not known: a negative figure, or none.
inline nlohmann::ordered_json known_json(std::int64_t value) {
  return value < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
}
inline nlohmann::ordered_json known_json(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json to_json(const Program& program);
nlohmann::ordered_json options_json(const std::vector<KernelOption>& options);

}  // namespace burin
