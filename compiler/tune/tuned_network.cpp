#include "compiler/tune/tuned_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "compiler/tune/tune.h"
#include "ir/error.h"

namespace burin {
namespace {

// The batch sizes for which the models choose another kernel than the one that was measured to be the fastest.
std::vector<int> changed_batches(const std::vector<TunedKernel>& tuned, const std::vector<int>& batches) {
  const std::vector<TunedKernel> by_models = as_models_choose(tuned, batches);
  std::vector<int> changed;
  for (std::size_t i = 0; i < tuned.size(); ++i) {
    if (!(tuned[i].candidate == by_models[i].candidate)) changed.push_back(tuned[i].batch);
  }
  std::ranges::sort(changed);
  changed.erase(std::ranges::unique(changed).begin(), changed.end());
  return changed;
}

}  // namespace

CompileResult compile_tuned(const Network& network, CompileOptions options,
                            const std::function<void(const CompileProgress&)>& progress, const NetworkTimer& time) {
  // Stages are dumped of what is packed.
  CompileOptions tried = options;
  tried.dump_dir.reset();
  const std::vector<int> changed = changed_batches(options.tuned, options.batches);
  if (changed.empty() || options.stop_after || network.operators.empty()) {
    return compile_network(network, options, progress);
  }
  CompileResult tuned = compile_network(network, tried, progress);
  if (holds_layers(tuned.package.manifest)) {
    return options.dump_dir ? compile_network(network, options, progress) : std::move(tuned);
  }
  std::vector<std::string> notes;
  std::vector<int> slower;  // the batch sizes for which tuning gained nothing
  try {
    tried.tuned = as_models_choose(options.tuned, changed);
    const CompileResult other = compile_network(network, tried, progress);
    const std::array<const Package*, 2> packages = {&tuned.package, &other.package};
    for (const int batch : changed) {
      const std::vector<double> us = time(packages, batch);
      const bool gains = us.at(0) < us.at(1);
      notes.push_back(
          fmt::format("batch {}: the network takes {:.1f} us with the kernels that were measured to be the "
                      "fastest, and {:.1f} with those that the models choose{}",
                      batch, us[0], us[1], gains ? "" : ", which are packed"));
      if (!gains) slower.push_back(batch);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device && error.kind() != ErrorKind::unsupported) throw;
    slower.clear();
    notes = {
        fmt::format("the network was not timed with the models' choice, and has what was measured to be the fastest: "
                    "{}",
                    error.what())};
  }
  if (!slower.empty() || options.dump_dir) {
    options.tuned = as_models_choose(std::move(options.tuned), slower);
    tuned = compile_network(network, options, progress);
  }
  tuned.notes.insert(tuned.notes.end(), notes.begin(), notes.end());
  return tuned;
}

}  // namespace burin
