// Limits that a test reaches soon, and what sanitizers make of them.
#pragma once

#include "compiler/sandbox/sandbox.h"
#include "test/skip.h"

namespace burin_test {

inline constexpr burin::SandboxLimits kSmallLimits{.seconds = 1, .bytes = std::int64_t{256} << 20};

#if defined(__SANITIZE_ADDRESS__)
#define BURIN_TEST_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BURIN_TEST_HAS_ASAN 1
#endif
#endif

#ifdef BURIN_TEST_HAS_ASAN
#define BURIN_NEEDS_MEMORY_LIMIT() \
  BURIN_SKIP("AddressSanitizer has reserved memory beforehand, which the limit of a sandbox does not count")
#else
#define BURIN_NEEDS_MEMORY_LIMIT() static_cast<void>(0)
#endif

}  // namespace burin_test
