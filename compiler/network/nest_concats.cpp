#include <map>
#include <span>

#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"

namespace burin {
namespace {

// The lists of tensors that concats have had so far, each a way from the root of a tree.
class Lists {
 public:
  struct Prefix {
    int output = -1;  // -1: none
    std::size_t inputs = 0;
  };

  // The longest list of at least two tensors that these begin with and that is not all of them; adds these, which are
  // `output`.
  Prefix find_and_add(int axis, const std::vector<int>& inputs, int output) {
    Prefix longest;
    int node = child(kRoot, axis);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto made = outputs_.find(node);
      if (i >= 2 && made != outputs_.end()) longest = {made->second, i};
      node = child(node, inputs[i]);
    }
    outputs_.emplace(node, output);
    return longest;
  }

 private:
  static constexpr int kRoot = 0;

  int child(int node, int of) {
    const auto [way, added] = children_.emplace(std::pair(node, of), nodes_);
    if (added) ++nodes_;
    return way->second;
  }

  std::map<std::pair<int, int>, int> children_;
  std::map<int, int> outputs_;  // of the nodes where a concat's list ends
  int nodes_ = kRoot + 1;
};

// The tensor of which these, from the first on, are views that follow each other and together all of it, and how many
// of them are; none: there is no such tensor.
Lists::Prefix viewed_whole(GraphEdit& graph, std::span<const int> inputs) {
  int source = -1, channels = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const int op = graph.producer(inputs[i]);
    const auto* view = graph.as<ChannelView>(op);
    if (view == nullptr || view->begin != channels || (i > 0 && graph.op(op).inputs[0] != source)) return {};
    source = graph.op(op).inputs[0];
    channels += view->channels;
    if (channels == graph.tensor(source).shape[0]) return {source, i + 1};
  }
  return {};
}

// Puts whole tensors in the place of their parts; how many.
int join_views(GraphEdit& graph, int concat) {
  if (graph.as<Concat>(concat)->axis != 0) return 0;
  Operator joined = graph.op(concat);
  int changes = 0;
  for (std::size_t i = 0; i < joined.inputs.size(); ++i) {
    const auto [whole, parts] = viewed_whole(graph, std::span(joined.inputs).subspan(i));
    if (whole < 0) continue;
    const auto first = joined.inputs.begin() + static_cast<std::ptrdiff_t>(i);
    joined.inputs.erase(first + 1, first + static_cast<std::ptrdiff_t>(parts));
    joined.inputs[i] = whole;
    ++changes;
  }
  if (changes > 0) graph.replace(concat, std::move(joined));
  return changes;
}

}  // namespace

Rewritten nest_concats(Network network) {
  GraphEdit graph(std::move(network));
  Lists lists;
  int changes = 0;
  for (int op = 0; op < graph.operators(); ++op) {
    const auto* concat = graph.as<Concat>(op);
    if (concat == nullptr) continue;
    changes += join_views(graph, op);
    concat = graph.as<Concat>(op);
    Operator nested = graph.op(op);
    const auto [output, inputs] = lists.find_and_add(concat->axis, nested.inputs, nested.output);
    if (output < 0) continue;
    nested.inputs.erase(nested.inputs.begin(), nested.inputs.begin() + static_cast<std::ptrdiff_t>(inputs));
    nested.inputs.insert(nested.inputs.begin(), output);
    graph.replace(op, std::move(nested));
    ++changes;
  }
  return {graph.finish(), changes};
}

}  // namespace burin
