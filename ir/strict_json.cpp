#include "ir/strict_json.h"

#include <set>

#include "ir/error.h"
#include "ir/printable.h"

namespace burin {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxReasonBytes = 300;  // of the library's own message

// A pass of its own, because the library's parse() with a callback takes quadratic time for long arrays and objects.
class Guard : public json::json_sax_t {
 public:
  Guard(const std::string& where, const JsonLimits& limits) : where_(where), limits_(limits) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }

  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) {
      fail(ErrorKind::bad_input, "{}: the key {} stands twice in one object", where_, in_quotes(key));
    }
    if (keys_.size() == 1) top_keys_.push_back(key);
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without the library's own numbering
    std::string_view reason = error.what();
    if (const std::size_t end = reason.find("] "); end != reason.npos) reason.remove_prefix(end + 2);
    fail(ErrorKind::bad_input, "{}: not valid JSON: {}", where_, printable(reason, kMaxReasonBytes));
  }

  std::vector<std::string> take_top_keys() { return std::move(top_keys_); }

 private:
  bool value() {
    if (++values_ > limits_.values) {
      fail(ErrorKind::bad_input, "{}: has more than {} values", where_, limits_.values);
    }
    return true;
  }
  bool open() {
    keys_.emplace_back();
    if (keys_.size() > limits_.depth) {
      fail(ErrorKind::bad_input, "{}: is nested deeper than {} levels", where_, limits_.depth);
    }
    return value();
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  const std::string& where_;
  const JsonLimits& limits_;
  std::size_t values_ = 0;
  // The keys of each array (none) and object that is open. They are ordered, not hashed: no file can make that slow.
  std::vector<std::set<std::string>> keys_;
  std::vector<std::string> top_keys_;
};

}  // namespace

StrictJson parse_strict_json(std::string_view text, const std::string& where, const JsonLimits& limits) {
  Guard guard(where, limits);
  json::sax_parse(text, &guard);
  return {json::parse(text), guard.take_top_keys()};
}

}  // namespace burin
