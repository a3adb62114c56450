#include "compiler/import/onnx/node_order.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

#include "compiler/import/faults.h"
#include "compiler/import/names.h"
#include "compiler/import/onnx/node.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

constexpr int kGiven = -1;  // no node makes it

// Adds names that a graph within a node reads and does not make.
void add_captured(const ::onnx::GraphProto& graph, std::vector<std::string>& names) {
  std::unordered_set<std::string> made;
  for (const auto& input : graph.input()) made.insert(input.name());
  for (const auto& tensor : graph.initializer()) made.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) made.insert(tensor.values().name());
  for (const auto& node : graph.node()) made.insert(node.output().begin(), node.output().end());
  const auto add = [&](const std::string& name) {
    if (!made.contains(name)) names.push_back(name);
  };
  for (const auto& node : graph.node()) {
    for (const std::string& name : names_read(node)) add(name);
  }
  for (const auto& output : graph.output()) add(output.name());
}

class Sorter {
 public:
  Sorter(const ::onnx::GraphProto& graph, const std::unordered_set<std::string>& given, const std::string& path)
      : graph_(graph), path_(path) {
    for (const std::string& name : given) makers_.emplace(name, kGiven);
    for (int i = 0; i < graph_.node_size(); ++i) add_maker(i);
    for (int i = 0; i < graph_.node_size(); ++i) add_sources(i);
  }

  NodeOrder run() {
    const std::vector<int> sorted = sort();
    const std::vector<bool> needed = find_needed();
    NodeOrder order;
    for (const int i : sorted) {
      if (needed[i]) {
        order.nodes.push_back(&graph_.node(i));
      } else {
        order.unused.push_back(graph_.node(i).name().empty() ? first_output(graph_.node(i)) : graph_.node(i).name());
      }
    }
    return order;
  }

 private:
  std::string at(int node) const { return fmt::format("{}: node {}", path_, node_text(graph_.node(node))); }

  void check_name(int node, const std::string& name) const {
    if (name.size() <= static_cast<std::size_t>(kMaxLayerNameBytes) && is_plain_text(name)) return;
    bad_input(at(node), "a name must have at most {} bytes of UTF-8 without control characters; one is {}",
              kMaxLayerNameBytes, in_quotes(name));
  }

  void add_maker(int node) {
    const auto& proto = graph_.node(node);
    check_name(node, proto.name());
    if (first_output(proto).empty()) bad_input(at(node), "has no output");
    for (const std::string& output : proto.output()) {
      if (output.empty()) continue;
      check_name(node, output);
      const auto [other, added] = makers_.emplace(output, node);
      if (added) continue;
      bad_input(at(node), "makes {}, which {} too", in_quotes(output),
                other->second == kGiven ? "is an input or an initializer"
                                        : fmt::format("node {} makes", node_text(graph_.node(other->second))));
    }
  }

  // The node that makes the value, or kGiven.
  int maker(const std::string& name, const std::function<std::string()>& reader) const {
    const auto found = makers_.find(name);
    if (found != makers_.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [known, maker] : makers_) names.push_back(known);
    std::sort(names.begin(), names.end());
    fail(ErrorKind::bad_input, "{} {}, which no node makes and which is neither an input nor an initializer{}",
         reader(), in_quotes(name), did_you_mean(name, names));
  }

  void add_sources(int node) {
    std::vector<int>& sources = sources_.emplace_back();
    for (const std::string& input : names_read(graph_.node(node))) {
      const int source = maker(input, [&] { return at(node) + ": reads"; });
      if (source != kGiven) sources.push_back(source);
    }
  }

  // A node is taken when its sources are; of several that could be, the first in the file.
  std::vector<int> sort() const {
    std::vector<int> missing(sources_.size());
    std::vector<std::vector<int>> readers(sources_.size());
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      missing[i] = static_cast<int>(sources_[i].size());
      for (const int source : sources_[i]) readers[source].push_back(static_cast<int>(i));
    }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (std::size_t i = 0; i < missing.size(); ++i) {
      if (missing[i] == 0) ready.push(static_cast<int>(i));
    }
    std::vector<int> sorted;
    for (; !ready.empty();) {
      sorted.push_back(ready.top());
      ready.pop();
      for (const int reader : readers[sorted.back()]) {
        if (--missing[reader] == 0) ready.push(reader);
      }
    }
    if (sorted.size() < sources_.size()) report_cycle(missing);
    return sorted;
  }

  [[noreturn]] void report_cycle(const std::vector<int>& missing) const {
    // Each node that is left has a source that is left: going back from one must come to a node a second time.
    std::vector<int> way;
    std::vector<bool> seen(missing.size());
    int node =
        static_cast<int>(std::find_if(missing.begin(), missing.end(), [](int n) { return n > 0; }) - missing.begin());
    for (; !seen[node];) {
      seen[node] = true;
      way.push_back(node);
      node =
          *std::find_if(sources_[node].begin(), sources_[node].end(), [&](int source) { return missing[source] > 0; });
    }
    std::vector<std::string> cycle;
    for (auto it = std::find(way.begin(), way.end(), node); it != way.end(); ++it) {
      cycle.push_back(node_text(graph_.node(*it)));
    }
    constexpr std::size_t kShown = 8;
    const std::size_t left_out = cycle.size() > kShown ? cycle.size() - kShown : 0;
    cycle.resize(cycle.size() - left_out);
    bad_input(path_, "its nodes form a cycle, each needs the one after it: {}{}", fmt::join(cycle, ", "),
              left_out > 0 ? fmt::format(" and {} more", left_out) : "");
  }

  std::vector<bool> find_needed() const {
    std::vector<bool> needed(sources_.size());
    std::vector<int> open;
    const auto need = [&](int node) {
      if (node == kGiven || needed[node]) return;
      needed[node] = true;
      open.push_back(node);
    };
    for (const auto& output : graph_.output()) need(maker(output.name(), [&] { return path_ + ": has the output"; }));
    while (!open.empty()) {
      const int node = open.back();
      open.pop_back();
      for (const int source : sources_[node]) need(source);
    }
    return needed;
  }

  const ::onnx::GraphProto& graph_;
  const std::string& path_;
  std::unordered_map<std::string, int> makers_;  // of each value
  std::vector<std::vector<int>> sources_;        // nodes that a node reads from
};

}  // namespace

std::vector<std::string> names_read(const ::onnx::NodeProto& node) {
  std::vector<std::string> names;
  for (const std::string& input : node.input()) {
    if (!input.empty()) names.push_back(input);
  }
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) add_captured(attribute.g(), names);
    for (const auto& graph : attribute.graphs()) add_captured(graph, names);
  }
  return names;
}

NodeOrder order_nodes(const ::onnx::GraphProto& graph, const std::unordered_set<std::string>& given,
                      const std::string& path) {
  return Sorter(graph, given, path).run();
}

}  // namespace burin
