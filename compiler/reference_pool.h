// The float64 reference of a pool, as an operator and at the end of a convolution.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/pool.h"

namespace burin {

// Pools `values`: so many planes of rows x cols, one after the other.
std::vector<double> reference_pool(const Pool& pool, std::int64_t rows, std::int64_t cols,
                                   std::span<const double> values);

}  // namespace burin
