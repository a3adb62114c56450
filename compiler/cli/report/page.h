// The page of `burin report`: report.html with its style, its script and a document in it, one file that needs no
// other.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace burin {

// The document is data: whatever texts it holds, none of them is read as HTML or as a script. The page's policy allows
// its own style and script alone, by their checksums, and no access to any network.
std::string report_page(const nlohmann::ordered_json& document);

}  // namespace burin
