// The nonzeros of a fully connected layer as linear_sparse.cu streams them.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/element_type.h"
#include "ir/operators.h"

namespace burin {

// `delta_words`: words for four distances, 1 or 2: 8 or 16 bits each. `storage`: f32, or f16, which must be able to
// hold the weights.
std::vector<std::uint32_t> pack_sparse_rows(const Linear& op, int delta_words, ElementType storage);

}  // namespace burin
