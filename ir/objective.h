// Objective: what the kernels of a network were chosen for.
#pragma once

#include "ir/named_enum.h"

namespace burin {

enum class Objective {
  time,    // the least time, within a limit of memory where there is one
  memory,  // the least memory; of what takes as little, the least time
};
constexpr EnumNames<2> names_of(Objective) { return {"an objective", {"time", "memory"}}; }

}  // namespace burin
