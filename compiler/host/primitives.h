// The device primitives of templates/device.h as C++ functions that check each access, and a few functions that the
// host form of a module calls beside them.
#pragma once

#include <span>
#include <string_view>

namespace burin {

struct HostFunction {
  std::string_view name;
  const void* address = nullptr;
};

// A module that calls it must do so before it touches what other kernels write.
inline constexpr std::string_view kAwaitLaunch = "burin_dev_await_launch";

// What a specialised module may call, beside notes.
std::span<const HostFunction> device_primitives();

// Primitives without effect or result, which the host leaves out: notes for the reader of generated code, and hints
// that only change how fast a GPU is.
constexpr bool has_no_effect(std::string_view name) {
  return name.starts_with("burin_dev_note_") || name.starts_with("burin_dev_prefetch_");
}

// Put into the host form where the module has `unreachable` and where it divides by what is no constant.
inline constexpr std::string_view kUnreachableReached = "burin_host_unreachable";
inline constexpr std::string_view kCheckDivision = "burin_host_check_division";

// What the host form may call beside the primitives: the two above, and what LLVM makes of intrinsics that the CPU has
// no instruction for (a fused multiply-add on an old CPU, the copy of a structure).
std::span<const HostFunction> support_functions();

}  // namespace burin
