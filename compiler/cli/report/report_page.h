// The page of `burin report`: what it has of its own beside what all pages have.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace burin {

// `document`: report_document().
std::string report_page(const nlohmann::ordered_json& document);

}  // namespace burin
