// Device memory that shows what a kernel did beside its work.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/burin/device_memory.hpp"

namespace burin {

inline constexpr unsigned char kPoison = 0xFF;  // four of them are a NaN

// Device memory with words behind it that tell whether a kernel wrote past its end.
class GuardedBuffer {
 public:
  // Every byte before the guard is `value`.
  GuardedBuffer(const Device& device, std::size_t bytes, unsigned char value)
      : bytes_(bytes), buffer_(device, bytes + sizeof kGuard) {
    buffer_.fill(value);
    buffer_.upload(kGuard.data(), sizeof kGuard, bytes);
  }

  std::size_t bytes() const { return bytes_; }
  DeviceBuffer& buffer() { return buffer_; }
  const DeviceBuffer& buffer() const { return buffer_; }
  bool intact() const {
    std::array<std::uint32_t, kGuardWords> guard{};
    buffer_.download(guard.data(), sizeof guard, bytes_);
    return guard == kGuard;
  }

 private:
  static constexpr std::size_t kGuardWords = 1024;
  static constexpr std::array<std::uint32_t, kGuardWords> kGuard = [] {
    std::array<std::uint32_t, kGuardWords> words{};
    words.fill(0xB0B1B2B3U);
    return words;
  }();

  std::size_t bytes_;
  DeviceBuffer buffer_;
};

}  // namespace burin
