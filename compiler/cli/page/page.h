// Pages for a browser, one file each that needs no other: the frame that all have in common (page.html with its style
// and its script), a page's own parts, and the document that it shows.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace burin {

// A piece of style or script, and its checksum in hexadecimal digits.
struct PagePart {
  std::string_view text, sha256;
};

// What one kind of page has of its own.
struct PageKind {
  std::string_view tool;          // the command that makes it
  std::string_view text_command;  // what shows the same as text
  std::string_view main;          // HTML
  PagePart style, script;
};

// The document is data: whatever texts it holds, none of them is read as HTML or as a script. The page's policy allows
// its styles and scripts alone, by their checksums, and no access to any network.
std::string make_page(const PageKind& kind, const nlohmann::ordered_json& document);

}  // namespace burin
