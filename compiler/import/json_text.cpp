#include "compiler/import/json_text.h"

#include "compiler/import/faults.h"

namespace burin {
namespace {

// A tensor of a safetensors header is at least 50 bytes and 6 values: the longest header has 12 million of them.
constexpr JsonLimits kLimits{.depth = 32, .values = 20'000'000};

}  // namespace

StrictJson parse_json_object(std::string_view text, const std::string& where) {
  if (text.size() > kMaxJsonBytes) {
    bad_input(where, "{} bytes of JSON, more than the {} that burin reads", text.size(), kMaxJsonBytes);
  }
  StrictJson result = parse_strict_json(text, where, kLimits);
  if (!result.root.is_object()) bad_input(where, "not a JSON object");
  return result;
}

}  // namespace burin
