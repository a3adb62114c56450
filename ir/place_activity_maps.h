// Where the activity maps of a program lie.
#pragma once

#include <vector>

#include "ir/kernel.h"
#include "ir/program.h"

namespace burin {

// A step whose kernel takes a map of what it reads gets the one that the kernel before it writes, where their cells are
// the same; maps that nobody reads are not written. `as_arguments`: maps of the program's inputs and outputs are inputs
// and outputs as well, "NAME.activity"; else there are none. `forms`: of each step's kernel.
void place_activity_maps(Program& program, const std::vector<const KernelForm*>& forms, bool as_arguments);

}  // namespace burin
