#include "compiler/tune/time_graphs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "compiler/choose/choose.h"
#include "compiler/compile.h"
#include "compiler/network/passes.h"
#include "compiler/program_graphs.h"
#include "ir/call_providers.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr int kTurnsOfGraphs = 11;
constexpr double kWorthChanging = 0.99;  // of the time of what the models say; above that they stay right

// A way to compile the network for one batch size, and its name in notes.
struct Variant {
  std::string name;
  CompileOptions options;
};

class GraphTimer {
 public:
  GraphTimer(const Network& network, const std::function<void(const CompileProgress&)>& progress,
             const NetworkTimer& time)
      : network_(network), progress_(progress), time_(time) {}

  // The number of the fastest, which is the first, what the models say, unless another is faster by a hundredth, or the
  // first has no kernels, as within a limit of memory. Adds a note.
  std::size_t fastest(int batch, const std::vector<Variant>& variants, std::vector<std::string>& notes) const {
    std::vector<std::size_t> there;
    std::vector<TimedProgram> programs;
    for (std::size_t i = 0; i < variants.size(); ++i) {
      try {
        programs.push_back(compiled(variants[i].options));
        there.push_back(i);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::unsupported) throw;
        notes.push_back(
            fmt::format("batch {}: the network was not timed {}: {}", batch, variants[i].name, error.what()));
      }
    }
    if (there.empty()) return 0;
    if (there.size() == 1) {
      notes.push_back(fmt::format("batch {}: the network is packed {}: it has no other kernels", batch,
                                  variants[there.front()].name));
      return there.front();
    }
    try {
      const std::vector<double> us = time_(programs, kTurnsOfGraphs);
      const auto least = static_cast<std::size_t>(std::ranges::min_element(us) - us.begin());
      const std::size_t best = us.at(least) < kWorthChanging * us.at(0) ? least : 0;
      std::vector<std::string> texts;
      for (std::size_t i = 0; i < us.size(); ++i) {
        texts.push_back(fmt::format("{:.1f} us {}{}", us.at(i), variants[there[i]].name,
                                    i == best && there[i] > 0 ? ", as it is packed" : ""));
      }
      notes.push_back(fmt::format("batch {}: the network takes {}", batch, fmt::join(texts, ", ")));
      return there[best];
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device && error.kind() != ErrorKind::unsupported) throw;
      notes.push_back(
          fmt::format("batch {}: the network was not timed {}: {}", batch, variants[there.back()].name, error.what()));
      return there.front();
    }
  }

 private:
  TimedProgram compiled(CompileOptions options) const {
    options.seeks_weight_zeros = false;  // it is told of what is packed
    auto package = std::make_shared<const Package>(compile_network(network_, options, progress_).package);
    auto program = std::make_shared<const Program>(package->manifest.programs.front());
    return {std::move(package), std::move(program)};
  }

  const Network& network_;
  const std::function<void(const CompileProgress&)>& progress_;
  const NetworkTimer& time_;
};

// A kind of layers that the models may join, and how notes call them.
struct JoinedLayers {
  bool Joins::* may;
  const char* name;
};
constexpr JoinedLayers kJoinedLayers[] = {{&Joins::siblings, "layers"},
                                          {&Joins::depthwise, "depthwise layers and those before them"}};

std::vector<Variant> joined_and_apart(const Network& network, const JoinedLayers& layers, const CompileOptions& joined,
                                      int batch) {
  CompileOptions apart = joined;
  apart.joins.*layers.may = false;
  const auto operators = [&](const CompileOptions& of) {
    return prepare_graphs(network, of).of(batch).operators.size();
  };
  if (!(joined.joins.*layers.may) || operators(joined) == operators(apart)) return {};
  return {{fmt::format("with the {} joined that the models join", layers.name), joined},
          {"with all of them apart", std::move(apart)}};
}

std::string name_of(FormatRule rule) {
  switch (rule) {
    case FormatRule::usual:
      return "with tensors in the formats that its batch size suggests";
    case FormatRule::careful:
      return "with those that the models find clearly faster";
    case FormatRule::libraries:
      return "with those that calls of libraries read best";
    case FormatRule::estimated:
      break;
  }
  return "with those that the models find the fastest";
}

// The one of the usual rule is first; then come those of others whose tensors lie otherwise than those before.
std::vector<Variant> in_each_format(const Network& network, const CompileOptions& options, int batch,
                                    std::vector<FormatRule> rules) {
  std::vector<Variant> variants;
  std::vector<Network> known;
  const ProgramGraphs graphs = prepare_graphs(network, options);
  rules.insert(rules.begin(), usual_rule(batch));
  for (const FormatRule rule : rules) {
    CompileOptions ruled = options;
    ruled.format_rules[batch] = rule;
    Network formatted = in_formats(graphs.of(batch), ruled, batch);
    const auto is_same = [&](const Network& other) { return has_same_formats(formatted, other); };
    if (std::ranges::any_of(known, is_same)) continue;
    known.push_back(std::move(formatted));
    variants.push_back({name_of(rule), std::move(ruled)});
  }
  if (variants.size() == 1) variants.clear();
  return variants;
}

// Whether a network is compiled in several ways, each of its batch sizes by itself: what keeps a limit of memory by
// itself need not do so beside others.
bool may_be_timed(const Network& network, const CompileOptions& options) {
  const bool shares_limit = options.memory_limit && options.batches.size() > 1;
  return !network.separate && options.asked_batches.empty() && options.objective == Objective::time && !shares_limit &&
         options.makes_package();
}

// Whether some layer was measured in several formats.
bool has_choice_of_formats(const CompileOptions& options, int batch) {
  std::map<std::string, int> formats;
  return std::ranges::any_of(
      options.tuned, [&](const TunedKernel& kernel) { return kernel.batch == batch && ++formats[kernel.layer] > 1; });
}

CompileOptions of_batch_alone(const CompileOptions& options, int batch) {
  CompileOptions of_batch = options;
  of_batch.batches = {batch};
  of_batch.dump_dir.reset();
  return of_batch;
}

}  // namespace

std::vector<FormatRule> rules_for(const std::vector<std::string>& providers) {
  std::vector<FormatRule> rules = {FormatRule::usual, FormatRule::careful, FormatRule::estimated};
  const auto is_called = [](const std::string& provider) {
    return library_of(provider) && provider != kLinearCublasProvider;
  };
  if (providers.empty() || std::ranges::any_of(providers, is_called)) rules.push_back(FormatRule::libraries);
  return rules;
}

TimedGraphs time_graphs(const Network& network, const CompileOptions& options, const std::vector<FormatRule>& rules,
                        const std::function<void(const CompileProgress&)>& progress, const NetworkTimer& time,
                        const TimeBudget& budget) {
  TimedGraphs result;
  if (!may_be_timed(network, options)) return result;
  const GraphTimer timer(network, progress, time);
  const TimeBudget of_graphs = budget.first(kShareOfGraphs);
  for (const int batch : options.batches) {
    if (!of_graphs.is_time_left()) {
      result.notes.push_back(fmt::format(
          "batch {}: a quarter of the time was up before the network was timed as a whole: the models choose", batch));
      continue;
    }
    CompileOptions of_batch = of_batch_alone(options, batch);
    for (const JoinedLayers& layers : kJoinedLayers) {
      const std::vector<Variant> variants = joined_and_apart(network, layers, of_batch, batch);
      if (variants.empty()) continue;
      const std::size_t best = timer.fastest(batch, variants, result.notes);
      of_batch = variants[best].options;
      if (best > 0) result.joins[batch] = of_batch.joins;
    }
    if (rules.empty()) continue;
    const std::vector<Variant> variants = in_each_format(network, of_batch, batch, rules);
    if (variants.empty()) continue;
    if (const std::size_t best = timer.fastest(batch, variants, result.notes); best > 0) {
      result.formats[batch] = variants[best].options.format_rules.at(batch);
    }
  }
  return result;
}

TimedFormats time_measured_formats(const Network& network, const CompileOptions& options,
                                   const std::function<void(const CompileProgress&)>& progress,
                                   const NetworkTimer& time, const TimeBudget& budget) {
  TimedFormats result;
  const TimeBudget until_packed = budget.first(kShareUntilPacked);
  if (!may_be_timed(network, options)) return result;
  const GraphTimer timer(network, progress, time);
  const ProgramGraphs graphs = prepare_graphs(network, options);
  for (const int batch : options.batches) {
    if (!has_choice_of_formats(options, batch) || !until_packed.is_time_left()) continue;
    CompileOptions measured = of_batch_alone(options, batch);
    std::map<std::string, OperatorFormats> formats = formats_by_measurement(graphs.of(batch), options, batch);
    if (formats.empty()) continue;
    measured.formats[batch] = formats;
    if (has_same_formats(in_formats(graphs.of(batch), options, batch), in_formats(graphs.of(batch), measured, batch))) {
      continue;
    }
    const std::vector<Variant> variants = {
        {"with tensors in the formats in which its kernels were tuned first", of_batch_alone(options, batch)},
        {"with those that the times of its layers in several formats lead to", std::move(measured)}};
    if (timer.fastest(batch, variants, result.notes) > 0) result.formats[batch] = std::move(formats);
  }
  return result;
}

}  // namespace burin
