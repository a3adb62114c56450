#include "compiler/import/onnx/axes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {

Extents with_batch(const Extents& shape) {
  Extents full = {1};
  full.insert(full.end(), shape.begin(), shape.end());
  return full;
}

std::int64_t axis_of(const Node& node, std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank) node.bad_input("axis {} is none of {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

std::int64_t with_batch_first(std::int64_t axis, std::int64_t batch) {
  if (axis == batch) return 0;
  return axis < batch ? axis + 1 : axis;
}

Extents axes_of(const Node& node, Extents axes, std::int64_t rank) {
  for (std::int64_t& axis : axes) axis = axis_of(node, axis, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) node.bad_input("it names an axis twice");
  return axes;
}

Extents resolve(const Node& node, const Extents& wanted, const Extents& copied, std::int64_t elements) {
  const bool zero_copies = !node.attributes().boolean("allowzero", false);
  Extents shape = wanted;
  std::optional<std::size_t> open;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && zero_copies) {
      if (i >= copied.size())
        node.bad_input("its shape [{}] has a 0 where its input has no axis", numbers_text(wanted));
      shape[i] = copied[i];
    }
    if (shape[i] == -1) {
      if (open) node.bad_input("its shape [{}] has more than one -1", numbers_text(wanted));
      open = i;
      continue;
    }
    if (shape[i] < 1 && elements > 0) node.unsupported("its shape [{}] holds {}", numbers_text(wanted), shape[i]);
    known = saturating_product({known, shape[i]});
  }
  if (open) {
    if (known == 0 || elements % known != 0) {
      node.bad_input("its shape [{}] does not divide {} elements", numbers_text(wanted), elements);
    }
    shape[*open] = elements / known;
  } else if (known != elements) {
    node.bad_input("its shape [{}] has {} elements, its input {}", numbers_text(wanted), known, elements);
  }
  return shape;
}

Extents squeezed(const Node& node, Extents shape, const Extents& axes) {
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (shape[*axis] != 1) node.bad_input("it drops axis {}, which has {} elements", *axis, shape[*axis]);
    shape.erase(shape.begin() + *axis);
  }
  return shape;
}

Extents read_order(const Node& node, std::size_t rank) {
  Extents order(rank);
  std::iota(order.rbegin(), order.rend(), 0);  // the default is to reverse them
  order = node.attributes().integers("perm").value_or(order);
  Extents sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < std::max(sorted.size(), rank); ++i) {
    if (sorted.size() != rank || sorted[i] != static_cast<std::int64_t>(i)) {
      node.bad_input("attribute 'perm' is [{}]; it must name each axis of {} once", numbers_text(order), rank);
    }
  }
  return order;
}

}  // namespace burin
