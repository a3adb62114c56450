#include "ir/arena.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "ir/kernel.h"
#include "ir/program.h"
#include "ir/step_order.h"

namespace burin {
namespace {

// `taken` are ranges in ascending order of their begin.
std::int64_t best_offset(const std::vector<std::pair<std::int64_t, std::int64_t>>& taken, std::int64_t bytes) {
  std::int64_t best = -1, smallest = std::numeric_limits<std::int64_t>::max(), end = 0;
  for (const auto& [from, to] : taken) {
    const std::int64_t gap = from - end;
    if (gap >= bytes && gap < smallest) {
      smallest = gap;
      best = end;
    }
    end = std::max(end, to);
  }
  return best >= 0 ? best : end;
}

}  // namespace

ArenaLayout lay_out_arena(const std::vector<std::int64_t>& bytes, std::int64_t alignment,
                          const std::function<bool(int, int)>& conflict) {
  const auto padded = [&](int buffer) {
    return (bytes[static_cast<std::size_t>(buffer)] + alignment - 1) / alignment * alignment;
  };
  std::vector<int> order(bytes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), padded);

  ArenaLayout layout{std::vector<std::int64_t>(bytes.size()), 0};
  struct Placed {
    std::int64_t begin = 0, end = 0;
    int buffer = 0;
  };
  std::vector<Placed> placed;  // in ascending order of their begin
  for (const int buffer : order) {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (const Placed& other : placed) {
      if (conflict(buffer, other.buffer)) taken.emplace_back(other.begin, other.end);
    }
    const std::int64_t offset = best_offset(taken, padded(buffer)), end = offset + padded(buffer);
    layout.offsets[static_cast<std::size_t>(buffer)] = offset;
    layout.bytes = std::max(layout.bytes, end);
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Placed::begin), {offset, end, buffer});
  }
  return layout;
}

ArenaLayout lay_out_partials(const Program& program, const std::vector<std::int64_t>& bytes) {
  StepOrder order(program.steps.size());
  std::vector<int> with_partials;
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    order.add(program.steps[i].after);
    if (bytes[i] == 0) continue;
    with_partials.push_back(static_cast<int>(i));
    sizes.push_back(bytes[i]);
  }
  const auto step = [&](int index) { return with_partials[static_cast<std::size_t>(index)]; };
  const ArenaLayout arena =
      lay_out_arena(sizes, kWorkspaceAlignment, [&](int a, int b) { return !order.is_ordered(step(a), step(b)); });
  ArenaLayout layout{std::vector<std::int64_t>(bytes.size()), arena.bytes};
  for (std::size_t i = 0; i < with_partials.size(); ++i) {
    layout.offsets[static_cast<std::size_t>(with_partials[i])] = arena.offsets[i];
  }
  return layout;
}

}  // namespace burin
