#include "compiler/cli/network_inspect.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/cli/kernel_options.h"
#include "compiler/cli/network_plan_json.h"
#include "compiler/cli/table.h"
#include "ir/network.h"

namespace burin {
namespace {

using Align = Table::Align;

// What a step launches; one of the two.
struct StepKernel {
  const KernelRecord* layer = nullptr;
  const OperatorRecord* record = nullptr;

  const std::vector<KernelBinary>& binaries() const { return layer != nullptr ? layer->binaries : record->binaries; }
  std::string text() const { return layer != nullptr ? layer->plan_short : describe(record->plan); }
  // Those of a convolution are its code.
  std::int64_t weight_bytes() const {
    return layer != nullptr ? 0 : record->plan.weight_words * static_cast<std::int64_t>(sizeof(std::uint32_t));
  }
  // Null where there is no cubin for `arch`.
  const KernelBinary* cubin(const std::optional<std::string>& arch) const {
    const auto fits = [&](const KernelBinary& binary) {
      return binary.kind == BinaryKind::cubin && (!arch || binary.arch == *arch);
    };
    const auto found = std::ranges::find_if(binaries(), fits);
    return found == binaries().end() ? nullptr : &*found;
  }
};

// The time of a step's kernel by its model, where there is one, and the kernels that it was compared with.
std::optional<double> predicted_us(const StepKernel& kernel, const std::vector<KernelOption>& options) {
  if (kernel.layer != nullptr) return kernel.layer->predicted_us;
  return options.empty() ? std::nullopt : std::optional(options.front().predicted_us);
}

StepKernel kernel_of(const Manifest& manifest, const std::string& symbol) {
  const auto layer = std::ranges::find(manifest.kernels, symbol, &KernelRecord::symbol);
  if (layer != manifest.kernels.end()) return {&*layer, nullptr};
  return {nullptr, &*std::ranges::find(manifest.operators, symbol, &OperatorRecord::symbol)};
}

std::string arguments_text(const std::vector<NetworkArgument>& arguments) {
  std::vector<std::string> texts;
  for (const NetworkArgument& argument : arguments) {
    texts.push_back(fmt::format("{} ({})", argument.name, shape_text(argument.shape)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// What is not known leaves its cell empty.
std::string count_text(std::int64_t value) { return value < 0 ? "" : with_separators(value); }

std::string print_steps(const Manifest& manifest, const NetworkProgram& program,
                        const std::optional<std::string>& arch) {
  Table table({{"step", Align::right},
               {"operator"},
               {"kind"},
               {"kernel"},
               {"regs", Align::right},
               {"spill B", Align::right},
               {"code", Align::right},
               {"weights", Align::right},
               {"model us", Align::right},
               {"after"}});
  std::int64_t code = 0, weights = 0;
  double predicted = 0;
  for (std::size_t i = 0; i < program.plan.steps.size(); ++i) {
    const Step& step = program.plan.steps[i];
    const StepKernel kernel = kernel_of(manifest, program.kernels[i]);
    const KernelBinary* const cubin = kernel.cubin(arch);
    const std::int64_t code_bytes = cubin != nullptr ? cubin->code_bytes : -1;
    code += std::max<std::int64_t>(0, code_bytes);
    weights += kernel.weight_bytes();
    const std::vector<KernelOption> options = options_of(program, i);
    const std::optional<double> us = predicted_us(kernel, options);
    predicted += us.value_or(0);
    table.add({fmt::format("{}", i), step.name, step.kind, kernel.text() + others_text(options),
               count_text(cubin != nullptr ? cubin->registers : -1),
               count_text(cubin != nullptr ? cubin->spill_bytes : -1), code_bytes < 0 ? "" : bytes_text(code_bytes),
               kernel.weight_bytes() == 0 ? "" : bytes_text(kernel.weight_bytes()), us ? microseconds_text(*us) : "",
               fmt::format("{}", fmt::join(step.after, ","))});
  }
  table.add_footer({"", fmt::format("{} steps", program.plan.steps.size()), "", "", "", "",
                    code > 0 ? bytes_text(code) : "", weights > 0 ? bytes_text(weights) : "",
                    predicted > 0 ? microseconds_text(predicted) : "", ""});
  return table.print();
}

}  // namespace

std::string print_network(const Manifest& manifest, const std::optional<std::string>& arch, bool memory) {
  const NetworkRecord& network = *manifest.network;
  std::string text =
      fmt::format("inputs: {}; outputs: {}\n", arguments_text(network.inputs), arguments_text(network.outputs));
  for (const NetworkProgram& program : network.programs) {
    const NetworkPlan& plan = program.plan;
    text += fmt::format("\nbatch {}: an arena of {}; a buffer for each tensor would take {}\n", plan.batch,
                        bytes_text(plan.arena_bytes), bytes_text(plan.naive_bytes));
    text += print_steps(manifest, program, arch);
    if (memory) text += "\n" + print(plan);
  }
  return text;
}

nlohmann::ordered_json network_json(const Manifest& manifest, const std::optional<std::string>& arch) {
  const NetworkRecord& network = *manifest.network;
  const auto arguments_json = [](const std::vector<NetworkArgument>& arguments) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const NetworkArgument& argument : arguments) {
      list.push_back({{"name", argument.name}, {"shape", argument.shape}});
    }
    return list;
  };
  nlohmann::ordered_json document = {{"inputs", arguments_json(network.inputs)},
                                     {"outputs", arguments_json(network.outputs)},
                                     {"operators", nlohmann::ordered_json::array()},
                                     {"programs", nlohmann::ordered_json::array()}};
  for (const OperatorRecord& record : manifest.operators) {
    const StepKernel kernel{nullptr, &record};
    nlohmann::ordered_json entry = {{"symbol", record.symbol},
                                    {"operator", record.op},
                                    {"kind", record.kind},
                                    {"kernel", kernel.text()},
                                    {"weight_bytes", kernel.weight_bytes()}};
    if (const KernelBinary* cubin = kernel.cubin(arch)) {
      entry["arch"] = cubin->arch;
      entry["registers"] = cubin->registers;
      entry["spill_bytes"] = cubin->spill_bytes;
      entry["code_bytes"] = cubin->code_bytes;
    }
    document["operators"].push_back(std::move(entry));
  }
  for (const NetworkProgram& program : network.programs) {
    nlohmann::ordered_json entry = to_json(program.plan);
    entry["kernels"] = program.kernels;
    entry["options"] = nlohmann::ordered_json::array();
    for (const std::vector<KernelOption>& options : program.options) entry["options"].push_back(options_json(options));
    document["programs"].push_back(std::move(entry));
  }
  return document;
}

}  // namespace burin
