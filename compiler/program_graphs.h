// The graphs that the programs of a network are made of. Which layers the passes join follows from estimates for a
// batch size: what is faster for one image need not be for many, so that each size may have a graph of its own.
#pragma once

#include <map>
#include <memory>
#include <vector>

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

}  // namespace burin
