// Limits that a test reaches soon, and what sanitizers make of them.
#pragma once

#include "compiler/sandbox/sandbox.h"
#include "test/skip.h"

namespace burin_test {

inline constexpr burin::SandboxLimits kLittleMemory{.seconds = 60, .bytes = std::int64_t{512} << 20};
inline constexpr burin::SandboxLimits kOneSecond{.seconds = 1, .bytes = std::int64_t{512} << 20};

#ifdef BURIN_SANITIZED
#define BURIN_NEEDS_MEMORY_LIMIT() \
  BURIN_SKIP("AddressSanitizer has reserved memory beforehand, which the limit of a sandbox does not count")
#else
#define BURIN_NEEDS_MEMORY_LIMIT() static_cast<void>(0)
#endif

}  // namespace burin_test
