// Axes along which a kernel moves over tensors of several shapes, as few as it can be described by: what providers
// share whose operands repeat values or that work on groups of them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/template_plan.h"

namespace burin {

inline constexpr std::size_t kWalkedTensors = 2;

struct WalkedAxis {
  std::int64_t extent = 1;
  std::array<std::int64_t, kWalkedTensors> steps = {};  // of each tensor, in elements; 0: one value stands for all
};

// Elements of a tensor from one step to the next along each axis of `whole`; 0 where it has one value.
std::vector<std::int64_t> steps_in(const std::vector<std::int64_t>& shape);

// Neighbours that are one axis for both tensors become one; those of extent 1 go.
std::vector<WalkedAxis> merged(const std::vector<WalkedAxis>& axes);

// Sets the integers NAME_extentN and, of each named tensor, NAME_TENSORN, for `count` axes of which the last are those
// that there are. There are at most so many.
void set_axes(TemplatePlan& plan, const std::string& name, std::size_t count, const std::vector<WalkedAxis>& axes,
              const std::vector<std::string>& tensors);

}  // namespace burin
