// What the fakes of libraries have in common: their launches take their time on the clock of the fake driver, and what
// they compute is computed when the stream or the graph runs.
#pragma once

#include <functional>
#include <utility>

#include "test/runtime/fake_driver.h"

namespace burin_test {

inline constexpr double kFakeLaunchUs = 5;  // FakeDriver's

// A library's call that is worth so many launches of the fake driver.
inline void enqueue_call(CUstream_st& stream, int launches, std::function<void()> work) {
  if (stream.capturing) {
    stream.captured_launches += launches;
    stream.captured.push_back(std::move(work));
  } else {
    stream.clock_us += kFakeLaunchUs * launches;
    work();
  }
}

}  // namespace burin_test
