// What the fakes of libraries have in common: their launches take their time on the clock of the fake driver, and what
// they compute is computed when the stream or the graph runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "ir/element_type.h"
#include "test/runtime/fake_driver.h"

namespace burin_test {

inline constexpr double kFakeLaunchUs = 5;  // FakeDriver's

// Both libraries number floats and halves alike, and BF16 each in its own way.
inline constexpr int kFakeFloat = 0, kFakeHalf = 2;
inline burin::ElementType element_of(int type) {
  return type == kFakeFloat  ? burin::ElementType::f32
         : type == kFakeHalf ? burin::ElementType::f16
                             : burin::ElementType::bf16;
}

// The values of a tensor, one by one.
inline float load_element(burin::ElementType type, const void* tensor, std::ptrdiff_t at) {
  if (type == burin::ElementType::f32) return static_cast<const float*>(tensor)[at];
  return burin::from_half(type, static_cast<const std::uint16_t*>(tensor)[at]);
}
inline void store_element(burin::ElementType type, void* tensor, std::ptrdiff_t at, float value) {
  if (type == burin::ElementType::f32) {
    static_cast<float*>(tensor)[at] = value;
  } else {
    static_cast<std::uint16_t*>(tensor)[at] = burin::to_half(type, value);
  }
}

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
