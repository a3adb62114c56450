#pragma once

#include <string>

#include "runtime/burin/runtime.h"
#include "test/catch.h"

// Whether the C API's last error has `part`; a failed test shows the whole text.
inline bool last_error_has(const std::string& part) {
  INFO(burin_last_error());
  CHECK(std::string(burin_last_error()).find(part) != std::string::npos);
  return std::string(burin_last_error()).find(part) != std::string::npos;
}
