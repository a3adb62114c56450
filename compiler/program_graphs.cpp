#include "compiler/program_graphs.h"

#include <algorithm>

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

}  // namespace burin
