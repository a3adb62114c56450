#include "compiler/execute/device_choice.h"

#include <string_view>

#include "ir/error.h"
#include "ir/text.h"
#include "runtime/burin/runtime.hpp"

namespace burin {
namespace {

bool has_gpu() {
  try {
    return device_count() > 0;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device) throw;
    return false;  // no driver
  }
}

}  // namespace

DeviceChoice choose_device(const std::string& text) {
  if (text == "host") return {};
  if (text == "auto") {
    if (has_gpu()) return {.host = false, .ordinal = 0, .note = {}};
    return {.note = "no GPU found: using the host executor (burin doctor says what is missing)"};
  }
  int ordinal = 0;
  if (text != "cuda") {
    constexpr std::string_view kPrefix = "cuda:";
    ordinal = text.starts_with(kPrefix) ? parse_number<int>(text.substr(kPrefix.size())).value_or(-1) : -1;
    if (ordinal < 0) fail(ErrorKind::usage, "--device '{}' is not one of auto, host, cuda, cuda:N", text);
  }
  const int devices = device_count();
  if (ordinal >= devices) {
    fail(ErrorKind::device, "--device {}: the driver finds {} device{}; --device host needs none", text, devices,
         devices == 1 ? "" : "s");
  }
  return {.host = false, .ordinal = ordinal, .note = {}};
}

std::optional<std::string> native_arch() {
  if (!has_gpu()) return std::nullopt;
  return Device::open(0).info().arch();
}

}  // namespace burin
