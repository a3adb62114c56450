#include "ir/user_function.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ir/error.h"
#include "ir/faults.h"
#include "ir/printable.h"

namespace burin {
namespace {

constexpr std::size_t kHashDigits = 64;  // of BLAKE3 in hexadecimal
constexpr std::size_t kShownDigits = 12;
constexpr std::size_t kMaxNameBytes = 256;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

void require_reference(const UserFunction& function) {
  if (function.reference != nullptr) return;
  fail(ErrorKind::unsupported,
       "operator '{}' is a user's, and was not compiled for the host; --operator {}=FILE gives its text", function.name,
       function.name);
}

}  // namespace

bool is_identifier(std::string_view text) { return !text.empty() && is_letter(text.front()) && is_word(text); }

bool is_user_symbol(std::string_view symbol) {
  return symbol.starts_with(kUserSymbolPrefix) && symbol.size() <= 2 * kMaxNameBytes && is_word(symbol);
}

std::string UserFunction::identifier() const {
  const std::size_t colons = name.rfind("::");
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

std::string UserFunction::symbol() const {
  std::string reduced = name;
  std::ranges::replace_if(reduced, [](char c) { return !is_letter(c) && !is_digit(c); }, '_');
  return fmt::format("{}{}_{}", kUserSymbolPrefix, reduced, source_hash.substr(0, kShownDigits));
}

std::string describe(const UserFunction& function) {
  std::string text = function.name;
  for (const UserAttribute& attribute : function.attributes) {
    text += fmt::format(", {} {}", attribute.name, static_cast<float>(attribute.value));
  }
  return text;
}

bool is_same(const SharedFunction& a, const SharedFunction& b) {
  return a == b || (a != nullptr && b != nullptr && a->symbol() == b->symbol());
}

std::vector<std::string> verify(const UserFunction& function) {
  Faults faults;
  if (function.name.size() > kMaxNameBytes || !is_identifier(function.identifier())) {
    faults.add("the operator's name is {}, whose last part is no identifier of C++ of at most {} bytes",
               in_quotes(function.name), kMaxNameBytes);
  }
  faults.require_range("inputs", function.inputs, 1, kMaxFunctionInputs);
  for (const UserAttribute& attribute : function.attributes) {
    if (attribute.name.size() > kMaxNameBytes || !is_identifier(attribute.name)) {
      faults.add("its attribute {} has a name that is no identifier of C++", in_quotes(attribute.name));
    }
    if (!std::isfinite(attribute.value)) faults.add("its attribute {} is not finite", in_quotes(attribute.name));
    constexpr double kMostWhole = 9007199254740992;  // 2^53: all whole numbers up to it are doubles
    const double most = attribute.whole ? kMostWhole : static_cast<double>(std::numeric_limits<float>::max());
    if (std::isfinite(attribute.value) && std::abs(attribute.value) > most) {
      faults.add("its attribute {} is {}, beyond {}", in_quotes(attribute.name), attribute.value, most);
    }
    if (attribute.whole && attribute.value != std::floor(attribute.value)) {
      faults.add("its attribute {} is {}, which is no whole number", in_quotes(attribute.name), attribute.value);
    }
  }
  const auto is_hex = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
  if (function.source_hash.size() != kHashDigits || !std::ranges::all_of(function.source_hash, is_hex)) {
    faults.add("its source_hash is {}, which is no BLAKE3 hash", in_quotes(function.source_hash));
  }
  return faults.take();
}

double reference_of(const UserFunction& function, double x) {
  require_reference(function);
  return function.reference(&x);
}

double reference_of(const UserFunction& function, double a, double b) {
  require_reference(function);
  const std::array<double, 2> inputs = {a, b};
  return function.reference(inputs.data());
}

float value_of(const UserFunction& function, float x) {
  require_reference(function);
  return reinterpret_cast<float (*)(float)>(const_cast<void*>(function.value))(x);
}

float value_of(const UserFunction& function, float a, float b) {
  require_reference(function);
  return reinterpret_cast<float (*)(float, float)>(const_cast<void*>(function.value))(a, b);
}

}  // namespace burin
