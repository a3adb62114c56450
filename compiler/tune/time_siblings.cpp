#include "compiler/tune/time_siblings.h"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "compiler/compile.h"
#include "compiler/program_graphs.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr int kTurnsOfGraphs = 11;
constexpr double kWorthParting = 0.99;  // of the time of what the models say; above that they stay right

TimedProgram compiled(const Network& network, const CompileOptions& options,
                      const std::function<void(const CompileProgress&)>& progress) {
  auto package = std::make_shared<const Package>(compile_network(network, options, progress).package);
  auto program = std::make_shared<const Program>(package->manifest.programs.front());
  return {std::move(package), std::move(program)};
}

}  // namespace

TimedSiblings time_siblings(const Network& network, const CompileOptions& options,
                            const std::function<void(const CompileProgress&)>& progress, const NetworkTimer& time) {
  TimedSiblings result;
  if (network.separate || !options.siblings || !options.asked_batches.empty() || options.chooses_together() ||
      !options.makes_package()) {
    return result;
  }
  for (const int batch : options.batches) {
    CompileOptions joined = options;
    joined.batches = {batch};
    joined.dump_dir.reset();
    CompileOptions apart = joined;
    apart.siblings = false;
    const auto operators = [&](const CompileOptions& of) {
      return prepare_graphs(network, of).of(batch).operators.size();
    };
    if (operators(joined) == operators(apart)) continue;
    try {
      const std::array<TimedProgram, 2> programs = {compiled(network, joined, progress),
                                                    compiled(network, apart, progress)};
      const std::vector<double> us = time(programs, kTurnsOfGraphs);
      const bool is_better_apart = us.at(1) < kWorthParting * us.at(0);
      if (is_better_apart) result.apart.insert(batch);
      result.notes.push_back(
          fmt::format("batch {}: with the layers joined that the models join the network takes {:.1f} us, and {:.1f} "
                      "with all of them apart{}",
                      batch, us[0], us[1], is_better_apart ? ", as they are packed" : ""));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device && error.kind() != ErrorKind::unsupported) throw;
      result.notes.push_back(
          fmt::format("batch {}: the network was not timed without joined layers: {}", batch, error.what()));
    }
  }
  return result;
}

}  // namespace burin
