#include <algorithm>
#include <numeric>
#include <optional>

#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"

namespace burin {
namespace {

// What a pick, a transpose or a view takes; nothing for other operators.
std::optional<Pick> taken_by(GraphEdit& graph, int op) {
  if (const Pick* pick = graph.as<Pick>(op)) return *pick;
  const Transpose* transpose = graph.as<Transpose>(op);
  const ChannelView* view = graph.as<ChannelView>(op);
  if (transpose == nullptr && view == nullptr) return std::nullopt;
  Pick all{{}, transpose != nullptr ? transpose->order : std::vector<int>()};
  for (const std::int64_t extent : graph.tensor(graph.op(op).inputs[0]).shape) all.axes.push_back({0, 1, extent});
  if (view != nullptr) all.axes[0] = {view->begin, 1, view->channels};
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

// A transpose where all is taken, a view where it is channels that follow each other.
OperatorKind simplest(const Pick& pick, const std::vector<std::int64_t>& input) {
  const auto is_whole = [&](std::size_t axis) { return pick.axes[axis].is_whole(input[axis]); };
  for (std::size_t axis = 1; axis < input.size(); ++axis) {
    if (!is_whole(axis)) return pick;
  }
  if (is_whole(0)) return pick.order.empty() ? OperatorKind(pick) : OperatorKind(Transpose{pick.order});
  const PickedAxis& channels = pick.axes[0];
  if (!pick.order.empty() || (channels.step != 1 && channels.extent > 1)) return pick;
  return ChannelView{static_cast<int>(channels.begin), static_cast<int>(channels.extent)};
}

// Whether nobody needs the tensor who cannot take what it takes of the tensor before. A view costs nothing, so that it
// does so only where it is the only one, and its channels were another axis.
bool is_read_by_picks_alone(GraphEdit& graph, const Pick& pick, int tensor) {
  if (graph.is_output(tensor)) return false;
  if (const int only = graph.only_reader(tensor); only >= 0 && graph.as<ChannelView>(only)) return pick.from(0) != 0;
  return std::ranges::all_of(graph.readers(tensor),
                             [&](int reader) { return graph.as<Pick>(reader) || graph.as<Transpose>(reader); });
}

}  // namespace

Rewritten merge_picks(Network network) {
  GraphEdit graph(std::move(network));
  int changes = 0;
  for (int op = 0; op < graph.operators(); ++op) {
    const std::optional<Pick> first = taken_by(graph, op);
    if (!first || graph.as<ChannelView>(op)) continue;
    if (!is_read_by_picks_alone(graph, *first, graph.op(op).output)) continue;
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
