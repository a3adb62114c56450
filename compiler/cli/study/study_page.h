// The page of `burin study`: what it has of its own beside what all pages have.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace burin {

// `document`: study_document().
std::string study_page(const nlohmann::ordered_json& document);

}  // namespace burin
