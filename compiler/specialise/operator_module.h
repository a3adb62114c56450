// The template of an operator, made specific to its plan. The result is complete but for the device primitives, as that
// of a convolution is (specialise.h), and goes the same ways: emit_ptx(), print(), to_bitcode().
#pragma once

#include <string>

#include "compiler/specialise/specialise.h"
#include "ir/operator_plan.h"

namespace burin {

// Throws Error(bad_input) with all faults of a plan that does not verify. `symbol` becomes the entry's name.
SpecialisedModule specialise_operator(const OperatorPlan& plan, const std::string& symbol);

}  // namespace burin
