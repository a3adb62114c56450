// Output channels are exchanged between groups, so that those of a group read the same activations.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/sparse_pattern.h"

namespace burin {

// What a block's code costs: a multiply-add is one, an activation that any of its output channels reads takes two issue
// slots.
inline constexpr std::int64_t kLoadWeight = 2;

// Exchanges channels between the groups of each family of `family` consecutive groups, and moves them while a group has
// less than `capacity`; no group becomes empty, and those that change are ascending. The cost of a family's heaviest
// group does not rise, nor that of all. Looks for as long as `effort` memory accesses take, a few nanoseconds each; the
// result depends on nothing else.
std::vector<std::vector<int>> exchange_channels(const SparsePattern& pattern, std::vector<std::vector<int>> groups,
                                                int family, int capacity, std::int64_t effort);

}  // namespace burin
