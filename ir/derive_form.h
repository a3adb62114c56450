// What a kernel's plan implies: nobody stores it, everybody derives it here.
#pragma once

#include "ir/baked_plan.h"
#include "ir/call_providers.h"
#include "ir/kernel.h"
#include "ir/template_plan.h"

namespace burin {

inline constexpr std::string_view kBakedProvider = "conv_baked";

// How a baked kernel of the layer is launched. The plan must be one that verify() finds no fault with.
KernelForm form_of(const BakedPlan& plan, const ConvShape& shape);

// Sets `plan_short`, `form` and `call`, from the provider, the plan's text and the layer. Throws Error(bad_input) where
// the plan cannot be read, is not legal, or is for another provider.
void derive_form(Kernel& kernel);

}  // namespace burin
