#include "compiler/cli/network_verify.h"

#include <fmt/ranges.h>

#include "compiler/cli/arguments.h"
#include "compiler/cli/console.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/source_of_package.h"
#include "compiler/cli/table.h"
#include "compiler/network/operator_error.h"
#include "compiler/verify/layer_verification.h"
#include "ir/error.h"

namespace burin {
namespace {

using Align = Table::Align;

std::string result_text(bool passed) { return passed ? "ok" : "FAILED"; }

std::string ratio_text(const std::string& fault, const Comparison& comparison) {
  return fault.empty() ? error_ratio_text(comparison.worst_ratio) : "-";
}

std::string relative_text(const std::string& fault, const Comparison& comparison) {
  return fault.empty() ? fmt::format("{:.1e}", comparison.relative_error) : "-";
}

// "all", "0, 17, 31 of 32"
std::string images_text(const NetworkResult& result) {
  if (static_cast<int>(result.images.size()) == result.batch) return "all";
  return fmt::format("{} of {}", fmt::join(result.images, ", "), result.batch);
}

std::string print_outputs(const NetworkVerification& verification, const NetworkRecord& network) {
  Table table({{"output"},
               {"batch", Align::right},
               {"program", Align::right},
               {"images"},
               {"result"},
               {"error/tolerance", Align::right},
               {"relative error", Align::right},
               {"worst element"}});
  for (const NetworkResult& result : verification.results) {
    const int planned = result.program->plan.batch;
    const std::string batch = fmt::format("{}", result.batch);
    const std::string program = planned == result.batch ? "" : fmt::format("{}", planned);
    if (!result.fault.empty()) {
      table.add({"-", batch, program, "-", result_text(false), "-", "-", result.fault});
      continue;
    }
    for (std::size_t i = 0; i < result.outputs.size(); ++i) {
      const OutputResult& output = result.outputs[i];
      table.add({network.outputs[i].name, batch, program, images_text(result), result_text(output.passed),
                 ratio_text(output.fault, output.comparison), relative_text(output.fault, output.comparison),
                 describe_worst(output.comparison, output.fault, network.outputs[i].shape, result.images)});
    }
  }
  return table.print();
}

std::string print_steps(const NetworkResult& result) {
  Table table({{"step", Align::right},
               {"operator"},
               {"kind"},
               {"result"},
               {"error/tolerance", Align::right},
               {"relative error", Align::right},
               {"sum of", Align::right},
               {"worst element"}});
  for (const StepResult& seen : result.steps) {
    const Step& step = result.program->plan.steps[static_cast<std::size_t>(seen.step)];
    table.add({fmt::format("{}", seen.step), step.name, step.kind, result_text(seen.passed),
               ratio_text(seen.fault, seen.comparison), relative_text(seen.fault, seen.comparison),
               with_separators(seen.longest_reduction),
               describe_worst(seen.comparison, seen.fault, seen.shape, result.images)});
  }
  return table.print();
}

// What the steps say of the outputs.
std::string steps_verdict(const NetworkResult& result) {
  if (const StepResult* failed = result.first_failed()) {
    const Step& step = result.program->plan.steps[static_cast<std::size_t>(failed->step)];
    return fmt::format("the first step that differs: {}, {} '{}'", failed->step, step.kind, step.name);
  }
  if (!result.step_fault.empty()) return result.step_fault;
  if (result.steps.size() < result.program->plan.steps.size()) return "the steps that were looked at are right";
  if (result.outputs_passed()) return "every step is right";
  return "every step is right by itself: either what compilation made of the graph is wrong (burin inspect MODEL "
         "--simplify shows it), or the network makes more of small errors than the tolerance allows";
}

void print_text(const NetworkVerification& verification, const NetworkRecord& network) {
  std::string rounding =
      fmt::format("2^-23 * sqrt({} terms on the deepest path)", with_separators(verification.deepest_reduction));
  if (verification.half_steps > 0) {
    rounding = fmt::format("({} + {:.1e} of {} step{} in half precision)", rounding, verification.half_rounding,
                           verification.half_steps, verification.half_steps == 1 ? "" : "s");
  }
  print_data(fmt::format("tolerance of an output: {:g} * {} * max |expected|\n", kNetworkToleranceFactor, rounding));
  print_data(print_outputs(verification, network));
  for (const NetworkResult& result : verification.results) {
    if (!result.stepped) continue;
    print_data(fmt::format(
        "\nbatch {}, each step on what the package computed before it; tolerance of an element: {}{}\n", result.batch,
        tolerance_text(Precision::fp32),
        verification.half_steps > 0 ? "; in half precision, + the rounding of weights, sums and outputs" : ""));
    print_data(print_steps(result));
    const bool passed = result.first_failed() == nullptr && result.step_fault.empty();
    print_data(coloured(steps_verdict(result), passed ? Colour::green : Colour::red) + "\n");
  }
  const auto programs = verification.results.size();
  const std::string what = programs == 1 ? "the network" : fmt::format("the network, {} programs,", programs);
  print_data(verification.passed() ? coloured(what + " verified", Colour::green) + "\n"
                                   : coloured(what + " FAILED", Colour::red) + "\n");
}

nlohmann::ordered_json to_json(const Comparison& comparison, const std::string& fault,
                               const std::vector<std::int64_t>& shape, const std::vector<int>& images) {
  if (!fault.empty()) return {{"fault", fault}};
  // NaN has no JSON form; nlohmann writes null for it.
  return {{"error_over_tolerance", comparison.worst_ratio},
          {"relative_error", comparison.relative_error},
          {"worst",
           {{"at", describe_index(shape, images, comparison.worst_index)},
            {"value", comparison.worst_value},
            {"expected", comparison.worst_expected},
            {"tolerance", comparison.worst_tolerance}}}};
}

nlohmann::ordered_json to_json(const NetworkResult& result, const NetworkRecord& network) {
  nlohmann::ordered_json row = {{"batch", result.batch},
                                {"planned_batch", result.program->plan.batch},
                                {"passed", result.passed()},
                                {"images", result.images}};
  if (!result.fault.empty()) row["fault"] = result.fault;
  row["outputs"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const OutputResult& output = result.outputs[i];
    nlohmann::ordered_json entry = {{"name", network.outputs[i].name}, {"passed", output.passed}};
    entry.update(to_json(output.comparison, output.fault, network.outputs[i].shape, result.images));
    row["outputs"].push_back(std::move(entry));
  }
  if (!result.stepped) return row;
  if (!result.step_fault.empty()) row["step_fault"] = result.step_fault;
  row["steps"] = nlohmann::ordered_json::array();
  for (const StepResult& seen : result.steps) {
    const Step& step = result.program->plan.steps[static_cast<std::size_t>(seen.step)];
    nlohmann::ordered_json entry = {{"step", seen.step},
                                    {"operator", step.name},
                                    {"kind", step.kind},
                                    {"passed", seen.passed},
                                    {"longest_reduction", seen.longest_reduction}};
    entry.update(to_json(seen.comparison, seen.fault, seen.shape, result.images));
    row["steps"].push_back(std::move(entry));
  }
  return row;
}

}  // namespace

int verify_network_package(const NetworkVerifyArguments& arguments, const Package& package) {
  const NetworkRecord& network = *package.manifest.network;
  const Network model = comparing_with(arguments.model, package.manifest,
                                       [&] { return import_model(arguments.model, package.manifest); });
  const std::unique_ptr<NetworkExecutor> executor =
      make_network_executor(device_for(arguments.device), package, arguments.jobs);
  const std::uint64_t seed = arguments.options.seed;
  if (!arguments.json) {
    print_data(
        fmt::format("{} against {} on {}, seed {}\n", arguments.package, arguments.model, executor->name(), seed));
  }
  NetworkVerification verification;
  {
    ProgressBar progress("verifying");
    verification = comparing_with(arguments.model, package.manifest, [&] {
      return verify_network(package, model, arguments.options, *executor,
                            [&](int done, int all, const std::string& what) {
                              progress.update(done, all, what);
                              if (all > 0) progress.finished(fmt::format("{} ({} of {})", what, done, all));
                            });
    });
  }
  if (arguments.json) {
    nlohmann::ordered_json document = {{"package", arguments.package},
                                       {"against", arguments.model},
                                       {"device", executor->name()},
                                       {"seed", seed},
                                       {"passed", verification.passed()},
                                       {"deepest_reduction", verification.deepest_reduction},
                                       {"network", nlohmann::ordered_json::array()}};
    for (const NetworkResult& result : verification.results) document["network"].push_back(to_json(result, network));
    print_data(json_output(document));
  } else {
    print_text(verification, network);
  }
  if (!verification.passed()) {
    fail(ErrorKind::verification, "{} does not compute what {} says; --seed {} repeats this{}", arguments.package,
         arguments.model, seed, other_source(arguments.model, package.manifest));
  }
  return 0;
}

}  // namespace burin
