// Channels that hold one number, whatever the network's inputs are, and their way into biases.
#pragma once

#include "ir/network.h"

namespace burin {

// Takes constant channels out of the convolutions and linear layers that read them: value * sum of weights is added to
// the bias, and the weights become zero. Where padding would mix zeros with another constant, the layer stays as it is.
// Returns how many channels layers have ceased to read.
int absorb_constants(Network& network);

}  // namespace burin
