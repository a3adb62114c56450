// How a batch that is no compiled one is run. Pure functions.
#pragma once

#include <vector>

#include "runtime/burin/network.hpp"

namespace burin {

// `programs`: of one name, batch sizes ascending, at least one. A batch up to the largest is run by the next larger
// program, a larger one by as many runs of the largest as there are whole ones in it, and the rest like a batch of its
// own; programs that take any number run all at once. Throws Error(usage) for a batch that is not within 1..kMaxBatch.
NetworkSchedule make_schedule(const std::vector<const Program*>& programs, int batch);

}  // namespace burin
