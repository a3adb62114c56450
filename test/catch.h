// Catch2, version 2 or 3, whichever is installed: they have other headers, and some names elsewhere. Tests include this
// header alone, and use burin_test's names for what the two call differently.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)

#include <catch2/catch_approx.hpp>
#include <catch2/catch_session.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <string>

using Catch::Approx;

namespace burin_test {

using Listener = Catch::EventListenerBase;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
inline auto Contains(const std::string& part) { return Catch::Matchers::ContainsSubstring(part); }

// What fails a run beside assertions. A run of no tests fails by itself.
inline constexpr auto kStrict = Catch::WarnAbout::NoAssertions;

}  // namespace burin_test

#else

#include <catch2/catch.hpp>

namespace burin_test {

using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

#ifdef CATCH_CONFIG_RUNNER
using Listener = Catch::TestEventListenerBase;
inline constexpr auto kStrict =
    static_cast<Catch::WarnAbout::What>(Catch::WarnAbout::NoTests | Catch::WarnAbout::NoAssertions);
#endif

}  // namespace burin_test

#endif
