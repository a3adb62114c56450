// The whole pipeline: a network in, a package out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/choose/network_choice.h"
#include "compiler/network/passes.h"
#include "compiler/options.h"
#include "compiler/program_graphs.h"
#include "ir/network.h"
#include "ir/package/package.h"

namespace burin {

// Which other kernels a step could launch: the symbols of TunedKernel's rivals, in their order.
using StepRivals = std::vector<std::string>;

struct CompileResult {
  Package package;
  // Each of the package's programs has those of its steps; empty where CompileOptions::rivals does not ask for them.
  std::vector<std::vector<StepRivals>> rivals;
  std::vector<std::string> notes;
  bool stopped_early = false;
  int cached = 0;  // kernels that the cache had
  // Where kernels were chosen together, what that came to; its bytes are those of the package.
  std::optional<NetworkChoice> choice;
  // Modules that a person edited, by their kernels' symbols; the package does not hold them.
  std::map<std::string, std::string> edited_modules;
};

// `network`: as it was imported. `progress` may be empty; it is called from worker threads, one call at a time.
CompileResult compile_network(Network network, const CompileOptions& options,
                              const std::function<void(const CompileProgress&)>& progress);

}  // namespace burin
