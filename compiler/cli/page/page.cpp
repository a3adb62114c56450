#include "compiler/cli/page/page.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "templates/blob.h"

BURIN_BLOB(page_html, BURIN_PAGE_HTML)
BURIN_BLOB(page_css, BURIN_PAGE_CSS)
BURIN_BLOB(page_js, BURIN_PAGE_JS)

namespace burin {
namespace {

// A checksum in hexadecimal digits, as a content security policy has it: in base64.
std::string as_source(std::string_view hex) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr int kHexBits = 4, kDigitBits = 6, kGroupBits = 24;
  std::string text;
  unsigned bits = 0;
  int count = 0;
  for (const char c : hex) {
    bits = bits << kHexBits | static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    count += kHexBits;
    if (count < kDigitBits) continue;
    count -= kDigitBits;
    text += kDigits[bits >> count & 63U];
    bits &= (1U << count) - 1;
  }
  if (count > 0) text += kDigits[bits << (kDigitBits - count) & 63U];
  while (text.size() * kDigitBits % kGroupBits != 0) text += '=';
  return "'sha256-" + text + "'";
}

// In an element of HTML nothing but "<" can end it or begin another; "&" and ">" are left nothing to do either. In JSON
// they stand in texts alone, where \u003c means the same.
std::string as_json_element(const nlohmann::ordered_json& document) {
  const std::string json = document.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    switch (c) {
      case '<':
        text += "\\u003c";
        break;
      case '>':
        text += "\\u003e";
        break;
      case '&':
        text += "\\u0026";
        break;
      default:
        text += c;
    }
  }
  return text;
}

}  // namespace

std::string make_page(const PageKind& kind, const nlohmann::ordered_json& document) {
  const std::string_view css = BURIN_BLOB_TEXT(page_css), js = BURIN_BLOB_TEXT(page_js);
  const std::array<std::pair<std::string_view, std::string>, 10> parts = {{
      {"@TOOL@", std::string(kind.tool)},
      {"@TEXT_COMMAND@", std::string(kind.text_command)},
      {"@STYLE@", std::string(css)},
      {"@OWN_STYLE@", std::string(kind.style.text)},
      {"@STYLE_SOURCES@", as_source(BURIN_PAGE_CSS_SHA256) + " " + as_source(kind.style.sha256)},
      {"@MAIN@", std::string(kind.main)},
      {"@SCRIPT@", std::string(js)},
      {"@OWN_SCRIPT@", std::string(kind.script.text)},
      {"@SCRIPT_SOURCES@", as_source(BURIN_PAGE_JS_SHA256) + " " + as_source(kind.script.sha256)},
      {"@DOCUMENT@", as_json_element(document)},
  }};
  std::string page;
  std::string_view rest = BURIN_BLOB_TEXT(page_html);
  // One walk over the page: what is put in is not looked at again.
  while (!rest.empty()) {
    const std::size_t at = std::min(rest.find('@'), rest.size());
    page += rest.substr(0, at);
    rest.remove_prefix(at);
    if (rest.empty()) break;
    const auto part =
        std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return rest.starts_with(p.first); });
    page += part == parts.end() ? rest.substr(0, 1) : std::string_view(part->second);
    rest.remove_prefix(part == parts.end() ? 1 : part->first.size());
  }
  return page;
}

}  // namespace burin
