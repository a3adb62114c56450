#include "compiler/import/json_text.h"

#include <set>

#include "compiler/import/names.h"
#include "ir/error.h"

namespace burin {

JsonText parse_json_object(std::string_view text, const std::string& where) {
  if (text.size() > kMaxJsonBytes) {
    fail(ErrorKind::bad_input, "{}: {} bytes of JSON, more than the {} that burin reads", where, text.size(),
         kMaxJsonBytes);
  }
  using nlohmann::json;
  JsonText result;
  std::vector<std::set<std::string>> open_objects;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > kMaxJsonDepth) {
      fail(ErrorKind::bad_input, "{}: JSON nested more than {} levels deep", where, kMaxJsonDepth);
    }
    if (event == json::parse_event_t::object_start) {
      open_objects.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      open_objects.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!open_objects.back().insert(key).second) {
        fail(ErrorKind::bad_input, "{}: the key {} appears twice", where, in_quotes(key));
      }
      if (depth == 1) result.top_keys.push_back(key);
    }
    return true;
  };
  try {
    result.root = json::parse(text, watch);
  } catch (const json::exception& error) {
    std::string_view reason = error.what();
    if (const auto end = reason.find("] "); reason.starts_with('[') && end != reason.npos)
      reason.remove_prefix(end + 2);
    fail(ErrorKind::bad_input, "{}: not valid JSON: {}", where, printable(reason));
  }
  if (!result.root.is_object()) fail(ErrorKind::bad_input, "{}: not a JSON object", where);
  return result;
}

}  // namespace burin
