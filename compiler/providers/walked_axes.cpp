#include "compiler/providers/walked_axes.h"

#include <fmt/format.h>

#include "ir/error.h"
#include "ir/saturate.h"

namespace burin {

std::vector<std::int64_t> steps_in(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> steps(shape.size());
  std::int64_t step = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    steps[axis] = shape[axis] == 1 ? 0 : step;
    step *= shape[axis];
  }
  return steps;
}

std::vector<WalkedAxis> merged(const std::vector<WalkedAxis>& axes) {
  std::vector<WalkedAxis> result;
  for (const WalkedAxis& axis : axes) {
    if (axis.extent == 1) continue;
    bool one = !result.empty();
    for (std::size_t tensor = 0; one && tensor < kWalkedTensors; ++tensor) {
      one = result.back().steps[tensor] == axis.steps[tensor] * axis.extent;
    }
    if (one) {
      result.back() = {result.back().extent * axis.extent, axis.steps};
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

void set_axes(TemplatePlan& plan, const std::string& name, std::size_t count, const std::vector<WalkedAxis>& axes,
              const std::vector<std::string>& tensors) {
  BURIN_CHECK(axes.size() <= count, "{} axes for a template that knows {}", axes.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t missing = count - axes.size();
    const WalkedAxis axis = i < missing ? WalkedAxis{} : axes[i - missing];
    plan.integers[fmt::format("{}_extent{}", name, i)] = saturate_to_int(axis.extent);
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      plan.integers[fmt::format("{}_{}{}", name, tensors[tensor], i)] = saturate_to_int(axis.steps[tensor]);
    }
  }
}

}  // namespace burin
