#include "compiler/network/reshaped_axes.h"

#include <algorithm>
#include <numeric>

#include "ir/network.h"

namespace burin {
namespace {

using Shape = std::vector<std::int64_t>;
using Order = std::vector<int>;
using Groups = std::vector<Order>;

// For each axis of one shape the axes of the other that it is made of, in their order; nothing where they overlap. Axes
// of extent 1 may stand in any group.
std::optional<Groups> groups_of(const Shape& few, const Shape& many) {
  Groups groups;
  std::size_t next = 0;
  for (const std::int64_t extent : few) {
    Order& group = groups.emplace_back();
    std::int64_t product = 1;
    while (product < extent && next < many.size()) {
      product *= many[next];
      group.push_back(static_cast<int>(next++));
    }
    if (product != extent) return std::nullopt;
  }
  for (; next < many.size(); ++next) {
    if (many[next] != 1 || groups.empty()) return std::nullopt;
    groups.back().push_back(static_cast<int>(next));
  }
  return groups;
}

// Those that are more than one element long.
Order wide_axes(const Order& axes, const Shape& shape) {
  Order wide;
  std::ranges::copy_if(axes, std::back_inserter(wide),
                       [&](int axis) { return shape[static_cast<std::size_t>(axis)] > 1; });
  return wide;
}

// Whether the axes, of which none has extent 1, follow each other but for such.
bool follow_each_other(const Order& axes, const Shape& shape) {
  for (std::size_t i = 1; i < axes.size(); ++i) {
    if (axes[i] < axes[i - 1]) return false;
    for (int between = axes[i - 1] + 1; between < axes[i]; ++between) {
      if (shape[static_cast<std::size_t>(between)] != 1) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<ReshapedThenOrdered> reshaped_before(const Shape& input, const Order& order, const Shape& to) {
  const Shape from = ordered(input, order);
  ReshapedThenOrdered result{{}, Order(to.size())};
  if (to.size() >= from.size()) {
    const std::optional<Groups> parts = groups_of(from, to);
    if (!parts) return std::nullopt;
    for (std::size_t axis = 0; axis < input.size(); ++axis) {
      const auto at = static_cast<std::size_t>(std::ranges::find(order, static_cast<int>(axis)) - order.begin());
      for (const int part : (*parts)[at]) {
        result.order[static_cast<std::size_t>(part)] = static_cast<int>(result.shape.size());
        result.shape.push_back(to[static_cast<std::size_t>(part)]);
      }
    }
    return result;
  }
  const std::optional<Groups> merged = groups_of(to, from);
  if (!merged) return std::nullopt;
  std::vector<std::pair<int, int>> first;  // axis of the input, group
  for (const Order& group : *merged) {
    Order before;
    for (const int axis : wide_axes(group, from)) before.push_back(order[static_cast<std::size_t>(axis)]);
    if (!follow_each_other(before, input)) return std::nullopt;
    first.emplace_back(before.empty() ? static_cast<int>(input.size()) : before.front(),
                       static_cast<int>(first.size()));
  }
  std::ranges::sort(first);
  for (const auto& [axis, group] : first) {
    result.order[static_cast<std::size_t>(group)] = static_cast<int>(result.shape.size());
    result.shape.push_back(to[static_cast<std::size_t>(group)]);
  }
  return result;
}

std::optional<Order> ordered_before(const Shape& input, const Shape& to, const Order& order) {
  Order before;
  if (to.size() <= input.size()) {
    const std::optional<Groups> merged = groups_of(to, input);
    if (!merged) return std::nullopt;
    for (const int axis : order) {
      const Order& group = (*merged)[static_cast<std::size_t>(axis)];
      before.insert(before.end(), group.begin(), group.end());
    }
    return before;
  }
  const std::optional<Groups> parts = groups_of(input, to);
  if (!parts) return std::nullopt;
  // The parts of an axis must stand together, as they did.
  Order wanted, taken;
  for (const int axis : wide_axes(order, to)) {
    wanted.push_back(axis);
    const auto whole =
        std::ranges::find_if(*parts, [&](const Order& group) { return std::ranges::find(group, axis) != group.end(); });
    const int of = static_cast<int>(whole - parts->begin());
    if (before.empty() || before.back() != of) before.push_back(of);
  }
  for (const int axis : before) {
    const Order group = wide_axes((*parts)[static_cast<std::size_t>(axis)], to);
    taken.insert(taken.end(), group.begin(), group.end());
  }
  if (taken != wanted) return std::nullopt;
  for (int axis = 0; axis < static_cast<int>(input.size()); ++axis) {
    if (std::ranges::find(before, axis) == before.end()) before.push_back(axis);
  }
  return before;
}

}  // namespace burin
