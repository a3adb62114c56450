// What the build made of the providers' templates and of the device primitives.
#pragma once

#include <span>
#include <string_view>

#include "ir/template_plan.h"

namespace burin {

// "conv_baked", "device_sm75", ...; empty when there is none of that name.
std::string_view embedded_bitcode(std::string_view name);

// The constants that NAME.def lists, which the template's device code includes as well.
std::span<const TemplateConstant> template_constants(std::string_view name);

}  // namespace burin
