// The candidate of a way that was chosen, for whoever searches for ways himself.
#pragma once

#include "compiler/providers/conv_streamed/ways.h"
#include "compiler/providers/provider.h"

namespace burin {

// `priced`: by price_streamed() for the task's layer and batch.
Candidate streamed_candidate(const Task& task, const ConvStreamedWay& priced);

}  // namespace burin
