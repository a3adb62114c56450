// What runs kernels: a GPU, or the host executor.
#pragma once

#include <optional>
#include <string>

namespace burin {

// What --device accepts.
struct DeviceChoice {
  bool host = true;
  int ordinal = 0;        // of the GPU
  std::string note = {};  // what was taken instead of a GPU that is not there; empty: what was asked for
};

// "auto", "host", "cuda" or "cuda:N". "auto" takes the first GPU, or, saying so, the host executor where there is
// none. Throws Error(usage) for other texts and Error(device) for a GPU that is not there.
DeviceChoice choose_device(const std::string& text);

// "sm_90" of the first GPU, or nothing where there is none.
std::optional<std::string> native_arch();

}  // namespace burin
