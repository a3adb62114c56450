#include "compiler/program_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "compiler/choose/choose.h"
#include "compiler/observer.h"
#include "ir/error.h"

namespace burin {
namespace {

// Both come from one network by passes that differ in nothing but what they joined, and the text names all of that.
bool are_same(const Network& a, const Network& b) {
  const auto same_layer = [](const ConvLayer& one, const ConvLayer& other) {
    return one.name == other.name && one.shape == other.shape;
  };
  return print(a) == print(b) && std::ranges::equal(a.layers, b.layers, same_layer);
}

}  // namespace

void ProgramGraphs::add(int batch, Network graph) {
  BURIN_CHECK(of_all_ == nullptr, "a graph for a batch of {} beside the one for all", batch);
  for (const auto& [other, known] : of_batches_) {
    if (!are_same(*known, graph)) continue;
    of_batches_[batch] = known;
    return;
  }
  of_batches_[batch] = std::make_shared<const Network>(std::move(graph));
}

const Network& ProgramGraphs::of(int batch) const {
  if (of_all_) return *of_all_;
  const auto found = of_batches_.find(batch);
  BURIN_CHECK(found != of_batches_.end(), "no graph for a batch of {}", batch);
  return *found->second;
}

std::vector<ProgramGraphs::Shared> ProgramGraphs::shared_by(const std::vector<int>& batches) const {
  std::vector<Shared> all;
  for (const int batch : batches) {
    const Network& graph = of(batch);
    const auto known = std::ranges::find(all, &graph, &Shared::graph);
    if (known == all.end()) {
      all.push_back({&graph, {batch}});
    } else {
      known->batches.push_back(batch);
    }
  }
  return all;
}

Network prepare_graph(Network network, const std::optional<std::string>& dump_dir, const GraphChoices& choices) {
  std::optional<std::string> folder;
  if (dump_dir) folder = (std::filesystem::path(*dump_dir) / "network").string();
  Observer observer(folder, std::nullopt);
  observer.observe("import", "00-import.txt", [&] { return print(network); });
  int number = 0;
  const auto observe = [&](const std::string& pass, const Network& left, int) {
    observer.observe(pass, fmt::format("{:02}-{}.txt", ++number, pass), [&] { return print(left); });
  };
  return simplify(std::move(network), observe, choices);
}

ProgramGraphs graphs_of_batches(const Network& network, const CompileOptions& options, const PrepareGraph& prepare) {
  if (network.separate || !options.asked_batches.empty()) {
    return prepare(options.batches.front(), graph_choices(options));
  }
  ProgramGraphs graphs;
  for (const int batch : options.batches) {
    CompileOptions of_batch = options;
    of_batch.batches = {batch};
    if (const auto measured = options.measured_joins.find(batch); measured != options.measured_joins.end()) {
      of_batch.joins = measured->second;
    }
    Network graph = prepare(batch, graph_choices(of_batch));
    if (options.batches.size() == 1) return graph;
    graphs.add(batch, std::move(graph));
  }
  return graphs;
}

ProgramGraphs prepare_graphs(const Network& network, const CompileOptions& options,
                             const std::optional<std::string>& dump_dir) {
  return graphs_of_batches(network, options, [&](int batch, const GraphChoices& choices) {
    std::optional<std::string> folder = dump_dir;
    if (dump_dir && options.batches.size() > 1 && options.asked_batches.empty() && !network.separate) {
      folder = (std::filesystem::path(*dump_dir) / fmt::format("b{}", batch)).string();
    }
    return prepare_graph(network, folder, choices);
  });
}

}  // namespace burin
