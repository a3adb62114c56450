// The template of an operator, made specific to its plan. The result is complete but for the device primitives, as that
// of a convolution is (specialise.h), and goes the same ways: emit_ptx(), print(), to_bitcode().
#pragma once

#include <string>

#include "compiler/specialise/specialise.h"
#include "ir/template_plan.h"

namespace burin {

// The template as it is before its constants are filled in: the dump's 40-template.ll.
std::string print_operator_template(const TemplatePlan& plan);

// Throws Error(bad_input) with all faults of a plan that does not verify. `symbol` becomes the entry's name.
SpecialisedModule specialise_operator(const TemplatePlan& plan, const std::string& symbol);

}  // namespace burin
