#include <algorithm>
#include <numeric>
#include <optional>

#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"

namespace burin {
namespace {

// What a pick or a transpose takes; nothing for other operators.
std::optional<Pick> taken_by(GraphEdit& graph, int op) {
  if (const Pick* pick = graph.as<Pick>(op)) return *pick;
  const Transpose* transpose = graph.as<Transpose>(op);
  if (transpose == nullptr) return std::nullopt;
  Pick all{{}, transpose->order};
  for (const std::int64_t extent : graph.tensor(graph.op(op).inputs[0]).shape) all.axes.push_back({0, 1, extent});
  return all;
}

// The one that is `second` of what `first` takes.
Pick taken_of(const Pick& first, const Pick& second) {
  Pick both{std::vector<PickedAxis>(first.axes.size()), std::vector<int>(first.axes.size())};
  for (std::size_t axis = 0; axis < first.axes.size(); ++axis) {
    const std::size_t middle = second.from(axis), from = first.from(middle);
    const PickedAxis &outer = first.axes[from], &inner = second.axes[middle];
    // Of one element there is no step: it may be any number.
    const std::int64_t pace = outer.extent > 1 ? outer.step : 0;
    both.axes[from] = {outer.begin + inner.begin * pace, inner.extent > 1 ? inner.step * pace : 1, inner.extent};
    both.order[axis] = static_cast<int>(from);
  }
  if (std::ranges::is_sorted(both.order)) both.order.clear();
  return both;
}

// A transpose where all is taken.
OperatorKind simplest(const Pick& pick, const std::vector<std::int64_t>& input) {
  for (std::size_t axis = 0; axis < input.size(); ++axis) {
    if (!pick.axes[axis].is_whole(input[axis])) return pick;
  }
  return pick.order.empty() ? OperatorKind(pick) : OperatorKind(Transpose{pick.order});
}

// Whether nobody needs the tensor who cannot take what it takes of the tensor before.
bool is_read_by_picks_alone(GraphEdit& graph, int tensor) {
  return !graph.is_output(tensor) && std::ranges::all_of(graph.readers(tensor), [&](int reader) {
    return graph.as<Pick>(reader) || graph.as<Transpose>(reader);
  });
}

}  // namespace

Rewritten merge_picks(Network network) {
  GraphEdit graph(std::move(network));
  int changes = 0;
  for (int op = 0; op < graph.operators(); ++op) {
    const std::optional<Pick> first = taken_by(graph, op);
    if (!first || !is_read_by_picks_alone(graph, graph.op(op).output)) continue;
    const std::multiset<int> readers = graph.readers(graph.op(op).output);
    if (readers.empty()) continue;
    const int input = graph.op(op).inputs[0];
    for (const int reader : readers) {
      graph.set_kind(reader, simplest(taken_of(*first, *taken_by(graph, reader)), graph.tensor(input).shape));
      graph.set_input(reader, 0, input);
    }
    graph.remove(op);
    ++changes;
  }
  return {graph.finish(), changes};
}

}  // namespace burin
