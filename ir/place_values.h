// What a tensor of a NetworkPlan holds: float32, dense NCHW, images one after the other, from the memory of its buffer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/network_plan.h"

namespace burin {

// Words from the beginning of the buffer to the last of the place, for `batch` images.
std::int64_t words_until_end(const Place& place, int batch);

// `memory` begins where the buffer does and holds at least words_until_end(). The buffer must be of float32. What a
// layout fills up is left out.
std::vector<float> read_place(const NetworkPlan& plan, const Place& place, int batch, std::span<const float> memory);
// The other way round; what fills up becomes NaN.
void write_place(const NetworkPlan& plan, const Place& place, int batch, std::span<const float> values,
                 std::span<float> memory);

}  // namespace burin
