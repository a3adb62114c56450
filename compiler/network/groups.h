// The values of images that lie along some axes: what Reduce and Normalize work on, for the float64 reference and for
// what it may be off.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace burin {

// visit(number of the group, its elements) for each group of `batch` images of the shape; groups are numbered as the
// output of a Reduce is.
template <typename Visit>
void for_each_group(const std::vector<std::int64_t>& shape, std::int64_t batch, const std::vector<int>& axes,
                    Visit visit) {
  std::vector<std::int64_t> pitch(shape.size(), 1);
  for (std::size_t axis = shape.size() - 1; axis > 0; --axis) pitch[axis - 1] = pitch[axis] * shape[axis];
  const std::int64_t image = pitch[0] * shape[0];
  std::vector<std::size_t> group;
  std::size_t number = 0;
  for (std::int64_t i = 0; i < batch * image; ++i) {
    const auto is_at_start = [&](int axis) {
      return i % image / pitch[static_cast<std::size_t>(axis)] % shape[static_cast<std::size_t>(axis)] == 0;
    };
    if (!std::ranges::all_of(axes, is_at_start)) continue;
    group.assign(1, static_cast<std::size_t>(i));
    for (const int along : axes) {
      const auto axis = static_cast<std::size_t>(along);
      const std::size_t before = group.size();
      for (std::int64_t step = 1; step < shape[axis]; ++step) {
        for (std::size_t j = 0; j < before; ++j)
          group.push_back(group[j] + static_cast<std::size_t>(step * pitch[axis]));
      }
    }
    visit(number++, group);
  }
}

}  // namespace burin
