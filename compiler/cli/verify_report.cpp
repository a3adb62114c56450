#include "compiler/cli/verify_report.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/cli/console.h"
#include "compiler/cli/table.h"
#include "compiler/import/names.h"
#include "compiler/make_kernel.h"
#include "compiler/network/operator_error.h"
#include "ir/package/manifest_index.h"

namespace burin {
namespace {

std::string result_text(bool passed) { return passed ? "ok" : "FAILED"; }

// What is compared beside values, such as activity maps, has no figures.
bool has_figures(const OutputResult& result) { return result.fault.empty() && result.comparison.worst_tolerance > 0; }

std::string ratio_text(const OutputResult& result) {
  return has_figures(result) ? error_ratio_text(result.comparison.worst_ratio) : "-";
}

std::string relative_text(const OutputResult& result) {
  return has_figures(result) ? fmt::format("{:.1e}", result.comparison.relative_error) : "-";
}

// "all", "0, 17, 31 of 32"
std::string images_text(const VerifiedProgram& result) {
  if (static_cast<int>(result.images.size()) == result.batch) return "all";
  return fmt::format("{} of {}", fmt::join(result.images, ", "), result.batch);
}

// A layer's row has the layer's name, and one for each map that it writes.
std::string print_outputs(const Verification& verification, const ManifestIndex& index, bool layers) {
  Table table({layers ? "layer" : "output", "precision", ">batch", ">planned for", "images", "result",
               ">error/tolerance", ">relative error", ">sum of", "worst element"});
  for (const VerifiedProgram& result : verification.results) {
    const Program& program = *result.program;
    const std::string precision =
        layers ? precision_text(index.kernel(program.steps.front().kernel).precision) : std::string();
    const std::string batch = fmt::format("{}", result.batch);
    const std::string planned = program.batch == result.batch ? "" : fmt::format("{}", program.batch);
    if (!result.fault.empty()) {
      table.add({layers ? program.name : "-", precision, batch, planned, "-", result_text(false), "-", "-", "",
                 result.fault});
    }
    for (std::size_t i = 0; i < result.outputs.size(); ++i) {
      const OutputResult& output = result.outputs[i];
      const Buffer& buffer = *program.outputs()[i];
      const std::string sum = layers && !buffer.map ? with_separators(result.steps.front().longest_reduction) : "";
      const bool plain_map = buffer.map && output.fault.empty();
      table.add({layers && !buffer.map ? program.name : buffer.tensor, precision, batch, planned, images_text(result),
                 result_text(output.passed), ratio_text(output), relative_text(output), sum,
                 plain_map ? "as its tensor says" : describe_worst(output, buffer.shape, result.images)});
    }
  }
  return table.print();
}

std::string print_steps(const VerifiedProgram& result) {
  Table table(
      {">step", "operator", "kind", "result", ">error/tolerance", ">relative error", ">sum of", "worst element"});
  for (const StepResult& seen : result.steps) {
    const Step& step = result.program->steps[static_cast<std::size_t>(seen.step)];
    table.add({fmt::format("{}", seen.step), step.name, step.kind, result_text(seen.passed), ratio_text(seen),
               relative_text(seen), with_separators(seen.longest_reduction),
               describe_worst(seen, seen.shape, result.images)});
  }
  return table.print();
}

// What the steps say of the outputs.
std::string steps_verdict(const VerifiedProgram& result) {
  if (const StepResult* failed = result.first_failed()) {
    const Step& step = result.program->steps[static_cast<std::size_t>(failed->step)];
    return fmt::format("the first step that differs: {}, {} '{}'", failed->step, step.kind, step.name);
  }
  if (!result.step_fault.empty()) return result.step_fault;
  if (result.steps.size() < result.program->steps.size()) return "the steps that were looked at are right";
  if (result.outputs_passed()) return "every step is right";
  return "every step is right by itself: either what compilation made of the graph is wrong (burin inspect MODEL "
         "--simplify shows it), or the network makes more of small errors than the tolerance allows";
}

// One line for each precision of the layers' kernels; fp32 goes without saying.
std::string layer_tolerances(const Verification& verification, const ManifestIndex& index) {
  std::string text;
  for (const Precision precision : kPrecisions) {
    const auto has = [&](const VerifiedProgram& result) {
      return index.kernel(result.program->steps.front().kernel).precision == to_string(precision);
    };
    if (std::ranges::none_of(verification.results, has)) continue;
    text += fmt::format("tolerance of an element{}: {}\n",
                        precision == Precision::fp32 ? "" : fmt::format(", {}", to_string(precision)),
                        tolerance_text(precision));
  }
  const auto rounds = [&](const VerifiedProgram& result) {
    const Arithmetic arithmetic = arithmetic_of(index.kernel(result.program->steps.front().kernel));
    return arithmetic.weights != FactorType::f32 || arithmetic.inputs != FactorType::f32;
  };
  if (std::ranges::any_of(verification.results, rounds)) {
    text +=
        "of kernels that round weights, or inputs, also what rounding takes of each, times what it is multiplied "
        "with\n";
  }
  return text;
}

std::string network_tolerance_text(const Verification& verification) {
  std::string rounding =
      fmt::format("2^-23 * sqrt({} terms on the deepest path)", with_separators(verification.deepest_reduction));
  if (verification.rounding_steps > 0) {
    rounding = fmt::format("({} + {:.1e} of {} step{} that round{})", rounding, verification.rounding_share,
                           verification.rounding_steps, verification.rounding_steps == 1 ? "" : "s",
                           verification.rounding_steps == 1 ? "s" : "");
  }
  return fmt::format("tolerance of an output: {:g} * {} * max |expected|\n", kNetworkToleranceFactor, rounding);
}

std::string missing_text(const std::vector<std::string>& missing) {
  const bool one = missing.size() == 1;
  return coloured(
             fmt::format("FAILED: {} layer{} of the weights {} not in the package: {} (--layer GLOB compares some)",
                         missing.size(), one ? "" : "s", one ? "is" : "are", listed(missing)),
             Colour::red) +
         "\n";
}

// One line for each thing that there is to say.
std::string code_text(const CodeComparison& code) {
  if (!code.other_version.empty()) {
    return fmt::format("code: not compared, since burin {} made the package and this is burin {}\n",
                       printable(code.other_version), tool_version());
  }
  const auto kernels = [](int count) { return fmt::format("{} kernel{}", count, count == 1 ? "" : "s"); };
  std::string text;
  if (code.same > 0) {
    text += fmt::format("code: the PTX of {} follows from plan and weights byte for byte\n", kernels(code.same));
  }
  if (code.edited > 0) text += fmt::format("code: {} edited by hand, not compared\n", kernels(code.edited));
  if (code.without_ptx > 0) {
    text += fmt::format("code: {} without PTX that could be compared\n", kernels(code.without_ptx));
  }
  for (const std::string& fault : code.different) {
    text += coloured(fmt::format("code FAILED: {}", fault), Colour::red) + "\n";
  }
  return text;
}

std::string print_verdict(const Verification& verification, bool layers) {
  const std::size_t programs = verification.results.size();
  std::string what = programs == 1 ? "the network" : fmt::format("the network, {} programs,", programs);
  const bool right = std::ranges::all_of(verification.results, &VerifiedProgram::passed);
  if (right && !verification.missing.empty()) return {};
  if (right && !verification.passed())
    return coloured("FAILED: what is computed is right, its code is other code", Colour::red) + "\n";
  if (layers) {
    const auto failed = static_cast<std::size_t>(
        std::ranges::count_if(verification.results, [](const VerifiedProgram& result) { return !result.passed(); }));
    if (failed > 0) return coloured(fmt::format("{} of {} kernels FAILED", failed, programs), Colour::red) + "\n";
    what = programs == 1 ? "1 kernel" : fmt::format("all {} kernels", programs);
  }
  return verification.passed() ? coloured(what + " verified", Colour::green) + "\n"
                               : coloured(what + " FAILED", Colour::red) + "\n";
}

nlohmann::ordered_json to_json(const OutputResult& result, const std::vector<std::int64_t>& shape,
                               const std::vector<int>& images) {
  if (!result.fault.empty()) return {{"fault", result.fault}};
  if (!has_figures(result)) return nlohmann::ordered_json::object();
  const Comparison& comparison = result.comparison;
  // NaN has no JSON form; nlohmann writes null for it.
  return {{"error_over_tolerance", comparison.worst_ratio},
          {"relative_error", comparison.relative_error},
          {"worst",
           {{"at", describe_index(shape, images, comparison.worst_index)},
            {"value", comparison.worst_value},
            {"expected", comparison.worst_expected},
            {"tolerance", comparison.worst_tolerance}}}};
}

nlohmann::ordered_json to_json(const VerifiedProgram& result) {
  const Program& program = *result.program;
  nlohmann::ordered_json row = {{"program", program.name},
                                {"batch", result.batch},
                                {"planned_batch", program.batch},
                                {"passed", result.passed()},
                                {"images", result.images}};
  if (!result.fault.empty()) row["fault"] = result.fault;
  row["outputs"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const OutputResult& output = result.outputs[i];
    const Buffer& buffer = *program.outputs()[i];
    nlohmann::ordered_json entry = {{"name", buffer.tensor}, {"passed", output.passed}};
    entry.update(to_json(output, buffer.shape, result.images));
    row["outputs"].push_back(std::move(entry));
  }
  if (!result.step_fault.empty()) row["step_fault"] = result.step_fault;
  row["steps"] = nlohmann::ordered_json::array();
  for (const StepResult& seen : result.steps) {
    const Step& step = program.steps[static_cast<std::size_t>(seen.step)];
    nlohmann::ordered_json entry = {{"step", seen.step},     {"operator", step.name},
                                    {"kind", step.kind},     {"kernel", step.kernel},
                                    {"passed", seen.passed}, {"longest_reduction", seen.longest_reduction}};
    entry.update(to_json(seen, seen.shape, result.images));
    row["steps"].push_back(std::move(entry));
  }
  return row;
}

}  // namespace

std::string verification_text(const Verification& verification, const Manifest& manifest) {
  const ManifestIndex index(manifest);
  const bool layers = holds_layers(manifest);
  std::string text = layers ? layer_tolerances(verification, index) : network_tolerance_text(verification);
  text += print_outputs(verification, index, layers);
  for (const VerifiedProgram& result : verification.results) {
    if (!result.stepped) continue;
    text += fmt::format("\nbatch {}, each step on what the package computed before it; tolerance of an element: {}{}\n",
                        result.batch, tolerance_text(Precision::fp32),
                        verification.rounding_steps > 0
                            ? "; of steps that round, + the rounding of weights, inputs, sums and outputs"
                            : "");
    text += print_steps(result);
    const bool passed = result.first_failed() == nullptr && result.step_fault.empty();
    text += coloured(steps_verdict(result), passed ? Colour::green : Colour::red) + "\n";
  }
  if (verification.code) text += code_text(*verification.code);
  if (!verification.missing.empty()) text += missing_text(verification.missing);
  return text + print_verdict(verification, layers);
}

nlohmann::ordered_json code_json(const Verification& verification) {
  if (!verification.code) return nullptr;
  const CodeComparison& code = *verification.code;
  return {{"same", code.same},
          {"different", code.different},
          {"edited", code.edited},
          {"without_ptx", code.without_ptx},
          {"other_version", code.other_version}};
}

nlohmann::ordered_json verification_json(const Verification& verification) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const VerifiedProgram& result : verification.results) rows.push_back(to_json(result));
  return rows;
}

std::string references_text(const UserOperators& operators) {
  std::string text;
  for (const UserOperators::Reference& reference : operators.references()) {
    text += fmt::format("reference of operator {}: {}, in {}\n", reference.name, reference.made_of,
                        reference.in_double ? "float64" : "float32");
  }
  return text;
}

nlohmann::ordered_json references_json(const UserOperators& operators) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const UserOperators::Reference& reference : operators.references()) {
    list.push_back({{"name", reference.name},
                    {"reference", reference.made_of},
                    {"precision", reference.in_double ? "float64" : "float32"}});
  }
  return list;
}

}  // namespace burin
