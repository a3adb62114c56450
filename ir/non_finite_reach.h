// How far an input that is NaN or infinite reaches.
#pragma once

namespace burin {

// Says which outputs may become NaN by it; what reaches further comes later.
enum class NonFiniteReach {
  nonzeros,  // those alone that it makes NaN of where zero weights are left out
  window,    // those whose window holds it: zero weights are multiplied, and 0 * infinity is NaN
  image,     // all of its image and group, and they may become infinite, too: inputs are transformed first
};

}  // namespace burin
