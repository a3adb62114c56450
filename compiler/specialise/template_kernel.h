// A template kernel is a template whose constants are filled in; its weights are data. The result is complete but for
// the device primitives, as that of a baked kernel is.
#pragma once

#include <string>

#include "compiler/specialise/specialised_module.h"
#include "ir/template_plan.h"

namespace burin {

// The template as it is before its constants are filled in: the dump's 40-template.ll.
std::string print_template(const TemplatePlan& plan);

// Throws Error(bad_input) with all faults of a plan that does not verify. `symbol` becomes the entry's name.
SpecialisedModule specialise_template(const TemplatePlan& plan, const std::string& symbol);

}  // namespace burin
