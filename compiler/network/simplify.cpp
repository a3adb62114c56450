#include <utility>

#include "compiler/network/passes.h"
#include "ir/error.h"

namespace burin {
namespace {

struct Pass {
  const char* name;
  std::function<Rewritten(Network)> run;
};

}  // namespace

Network simplify(Network network, const PassObserver& observe, const GraphChoices& choices) {
  const Pass passes[] = {
      {"drop_unread", drop_unread},
      {"drop_identities", drop_identities},
      {"nest_concats", nest_concats},
      {"sink_transposes", sink_transposes},
      {"name_functions", name_functions},
      {"fold_pad", fold_pad},
      {"lift_functions", lift_functions},
      {"fold_affine", fold_affine},
      {"fuse_epilogues", fuse_epilogues},
      {"merge_picks", merge_picks},
      {"order_channels", order_channels},
      {"remove_dead_channels", remove_dead_channels},
      {"fuse_pools", [&](Network graph) { return fuse_pools(std::move(graph), choices.stays_apart); }},
      {"merge_siblings", [&](Network graph) { return merge_siblings(std::move(graph), choices.together); }},
  };
  bool changed = true;
  for (bool first = true; changed; first = false) {
    changed = false;
    for (const Pass& pass : passes) {
      auto [rewritten, changes] = pass.run(std::move(network));
      network = std::move(rewritten);
      changed = changed || changes > 0;
      if (observe && (first || changes > 0)) observe(pass.name, network, changes);
    }
  }
  const Pass last[] = {
      {"fuse_excitations", [&](Network graph) { return fuse_excitations(std::move(graph), choices.excitations); }},
      {"fuse_depthwise",
       [&](Network graph) { return fuse_depthwise(std::move(graph), choices.windowed, choices.jobs); }},
  };
  for (const Pass& pass : last) {
    auto [rewritten, changes] = pass.run(std::move(network));
    network = std::move(rewritten);
    if (observe) observe(pass.name, network, changes);
  }
  const std::vector<std::string> faults = verify(network);
  BURIN_CHECK(faults.empty(), "a simplified network is not legal: {}", faults.front());
  return network;
}

}  // namespace burin
