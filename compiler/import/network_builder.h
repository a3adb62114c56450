// From the tensors of a file and their geometry to a Network.
#pragma once

#include "compiler/import/import.h"
#include "compiler/import/weights_tensor.h"
#include "ir/network.h"

namespace burin {

// A layer is told that it has suspiciously tiny weights when more than kTinyShare of its nonzeros are smaller than
// kTinyFactor times its largest: pruning often leaves such dust behind, and each grain costs an instruction.
inline constexpr double kTinyFactor = 1e-3;
inline constexpr double kTinyShare = 0.01;

// Adds a note where layers have such weights.
void note_tiny_weights(Network& network);

// Throws Error(usage).
void check_zero_threshold(const ImportOptions& options);

// The network has at least one layer, and each is verified. Throws Error.
Network build_network(const WeightsFile& file, const ImportOptions& options);

}  // namespace burin
