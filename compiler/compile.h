// The whole pipeline: a network in, a package out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/network/passes.h"
#include "compiler/options.h"
#include "ir/network.h"
#include "ir/package/package.h"

namespace burin {

struct CompileResult {
  Package package;
  std::vector<std::string> notes;
  bool stopped_early = false;
  int cached = 0;  // kernels that the cache had
};

// A graph as it is compiled: simplify(), each pass dumped to `dump_dir`/network, if there is one. A network without a
// graph is returned as it is. `choices`: which pools stay kernels of their own, and in which formats convolutions
// compute (compiler/network/passes.h).
Network prepare_graph(Network network, const std::optional<std::string>& dump_dir, const GraphChoices& choices = {});

// Of a network with a graph, which has gone through prepare_graph(), all operators are compiled, and how they run
// (Manifest::network); of layers without a graph, a kernel for each and every batch size. `progress` may be empty; it
// is called from worker threads, one call at a time.
CompileResult compile_network(const Network& network, const CompileOptions& options,
                              const std::function<void(const CompileProgress&)>& progress);

}  // namespace burin
