// How every part of burin reports a fault: one exception type, three audiences.
//
//   the user's    usage, bad_input, unsupported   which file, which layer, which value, what would help
//   the device's  device                          the API call, its code and text, the JIT log
//   ours          internal                        a bug: file and line
//
// The text of a user error must stand on its own: it is printed to stderr as "burin: error: TEXT" and nothing else is.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace burin {

enum class ErrorKind { verification, usage, bad_input, unsupported, device, internal };

// The exit code of the command line tool; part of its contract (docs/cli.md).
constexpr int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::verification:
      return 1;
    case ErrorKind::usage:
      return 2;
    case ErrorKind::bad_input:
      return 3;
    case ErrorKind::unsupported:
      return 4;
    case ErrorKind::device:
      return 5;
    case ErrorKind::internal:
      return 70;
  }
  return 70;
}

inline constexpr std::size_t kMaxErrorBytes = 16 << 10;

// There is an end to what is told, also where it quotes a file: it is cut between two characters.
inline std::string bounded_error(const std::string& text) {
  if (text.size() <= kMaxErrorBytes) return text;
  std::size_t end = kMaxErrorBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return fmt::format("{}... ({} more bytes)", text.substr(0, end), text.size() - end);
}

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& text) : std::runtime_error(bounded_error(text)), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] inline void fail_internal(const char* file, int line, const std::string& text) {
  throw Error(ErrorKind::internal, fmt::format("internal error at {}:{}: {}", file, line, text));
}

}  // namespace burin

// A condition that only a bug in burin can break. Stays in Release builds.
#define BURIN_CHECK(condition, ...)                                                         \
  do {                                                                                      \
    if (!(condition)) ::burin::fail_internal(__FILE__, __LINE__, fmt::format(__VA_ARGS__)); \
  } while (false)
