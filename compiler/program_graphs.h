// The graphs that the programs of a network are made of. Which layers the passes join follows from estimates for a
// batch size: what is faster for one image need not be for many, so that each size may have a graph of its own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/network/passes.h"
#include "compiler/options.h"
#include "ir/network.h"

namespace burin {

// Copies share the graphs. All have the same inputs and outputs, in the same order.
class ProgramGraphs {
 public:
  ProgramGraphs() = default;
  // One for all batch sizes.
  ProgramGraphs(Network graph) : of_all_(std::make_shared<const Network>(std::move(graph))) {}

  // The graph of another batch size; where one that is there has the same operators, that one is taken.
  void add(int batch, Network graph);

  const Network& of(int batch) const;
  const Network& any() const { return of_all_ ? *of_all_ : *of_batches_.begin()->second; }

  // Each graph with those of the batch sizes that have it.
  struct Shared {
    const Network* graph = nullptr;
    std::vector<int> batches;
  };
  std::vector<Shared> shared_by(const std::vector<int>& batches) const;

 private:
  std::shared_ptr<const Network> of_all_;  // null: each batch size has one
  std::map<int, std::shared_ptr<const Network>> of_batches_;
};

// A graph as it is compiled: simplify(), each pass dumped to `dump_dir`/network, if there is one. `choices`: which
// pools stay kernels of their own, and which layers are joined (compiler/network/passes.h).
Network prepare_graph(Network network, const std::optional<std::string>& dump_dir, const GraphChoices& choices = {});

// The graphs of all batch sizes, which `prepare` makes with choices by estimates for a size. Each size has its own, but
// where programs for a range of sizes were chosen by what one graph for all of them takes, and where layers are
// separate: then it is asked once, for the first size.
using PrepareGraph = std::function<Network(int batch, const GraphChoices& choices)>;
ProgramGraphs graphs_of_batches(const Network& network, const CompileOptions& options, const PrepareGraph& prepare);

// These graphs by prepare_graph(), for several batch sizes dumped to `dump_dir`/bBATCH.
ProgramGraphs prepare_graphs(const Network& network, const CompileOptions& options,
                             const std::optional<std::string>& dump_dir = std::nullopt);

}  // namespace burin
