// The bitcode that the build made of the providers' templates and of the device primitives.
#pragma once

#include <string_view>

namespace burin {

// "conv_baked", "device_sm75", ...; empty when there is none of that name.
std::string_view embedded_bitcode(std::string_view name);

}  // namespace burin
