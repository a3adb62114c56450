// The candidate of chosen shares, for whoever searches them himself.
#pragma once

#include "compiler/providers/conv_streamed/shares.h"
#include "compiler/providers/provider.h"

namespace burin {

// `priced`: by price_streamed() for the task's layer and batch.
Candidate streamed_candidate(const Task& task, const ConvStreamedWay& priced);

}  // namespace burin
