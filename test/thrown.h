// What a call throws, as text and kind.
#pragma once

#include <optional>
#include <string>

#include "ir/error.h"
#include "test/catch.h"

namespace burin_test {

struct Thrown {
  burin::ErrorKind kind = burin::ErrorKind::internal;
  std::string text;
  bool has(const std::string& part) const { return text.find(part) != std::string::npos; }
};

// Nothing when `call` throws nothing. Exceptions that are not burin's pass through.
template <typename Call>
std::optional<Thrown> thrown_by(Call call) {
  try {
    call();
  } catch (const burin::Error& error) {
    return Thrown{error.kind(), error.what()};
  }
  return std::nullopt;
}

// The text of what `call` throws, "no error" when it throws nothing. An error of another kind gives a text that says
// so.
template <typename Call>
std::string error_of(Call call, burin::ErrorKind kind = burin::ErrorKind::bad_input) {
  const std::optional<Thrown> thrown = thrown_by(call);
  if (!thrown) return "no error";
  return thrown->kind == kind ? thrown->text : "an error of another kind: " + thrown->text;
}

}  // namespace burin_test

// The error of `expression`; fails the test when there is none, or when it is of another kind.
#define BURIN_THROWN(kind_of_error, expression)                             \
  [&] {                                                                     \
    const auto thrown = burin_test::thrown_by([&] { (void)(expression); }); \
    REQUIRE(thrown.has_value());                                            \
    INFO(thrown->text);                                                     \
    REQUIRE(thrown->kind == burin::ErrorKind::kind_of_error);               \
    return *thrown;                                                         \
  }()
