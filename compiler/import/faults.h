// Faults of what was read: "net.onnx: node 'conv1' (Conv): lacks input 2".
#pragma once

#include <string_view>
#include <utility>

#include "ir/error.h"

namespace burin {

// `where` starts the text; the rest says what is wrong there.
template <typename... Args>
[[noreturn]] void bad_input(std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::bad_input, "{}: {}", where, fmt::format(format, std::forward<Args>(args)...));
}
// What options ask for, or what none of them says.
template <typename... Args>
[[noreturn]] void usage(std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::usage, "{}: {}", where, fmt::format(format, std::forward<Args>(args)...));
}
// What keeps the rules of its format, but is more than burin does.
template <typename... Args>
[[noreturn]] void unsupported(std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::unsupported, "{}: {}", where, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace burin
