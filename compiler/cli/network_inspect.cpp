#include "compiler/cli/network_inspect.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/cli/inspect_rows.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/table.h"
#include "ir/network.h"

namespace burin {
namespace {

// Where the weights are instructions there are none.
std::int64_t weight_bytes(const Kernel& kernel) {
  const KernelTensor* weights = kernel.form.find(TensorRole::weights);
  return weights == nullptr ? 0 : weights->run_words * kWordBytes;
}

std::string arguments_text(const std::vector<const Buffer*>& arguments) {
  std::vector<std::string> texts;
  for (const Buffer* argument : arguments) {
    texts.push_back(fmt::format("{} ({})", argument->tensor, shape_text(argument->shape)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string print_steps(const Manifest& manifest, const Program& program, const std::optional<std::string>& arch) {
  Table table({">step", "operator", "kind", "kernel", ">regs", ">spill B", ">code", ">weights", ">model us", "after"});
  std::int64_t code = 0, weights = 0;
  double predicted = 0;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const Kernel& kernel = *find_kernel(manifest, step.kernel);
    const KernelBinary binary = described_code(kernel, arch);
    code += std::max<std::int64_t>(0, binary.code_bytes);
    weights += weight_bytes(kernel);
    predicted += kernel.predicted_us;
    table.add({fmt::format("{}", i), step.name, step.kind, kernel.plan_short + others_text(step.options),
               known_count(binary.registers), known_count(binary.spill_bytes), known_bytes(binary.code_bytes),
               weight_bytes(kernel) == 0 ? "" : bytes_text(weight_bytes(kernel)),
               kernel.predicted_us > 0 ? microseconds_text(kernel.predicted_us) : "",
               fmt::format("{}", fmt::join(step.after, ","))});
  }
  table.add_footer({"", fmt::format("{} steps", program.steps.size()), "", "", "", "", code > 0 ? bytes_text(code) : "",
                    weights > 0 ? bytes_text(weights) : "", predicted > 0 ? microseconds_text(predicted) : "", ""});
  return table.print();
}

}  // namespace

std::string print_network(const Manifest& manifest, const std::optional<std::string>& arch, bool memory) {
  const Program& first = manifest.programs.front();
  std::string text =
      fmt::format("inputs: {}; outputs: {}\n", arguments_text(first.inputs()), arguments_text(first.outputs()));
  for (const Program& program : manifest.programs) {
    text += fmt::format("\nbatch {}: an arena of {}; a buffer for each tensor would take {}\n", program.batch,
                        bytes_text(program.arena_bytes), bytes_text(program.naive_bytes));
    text += print_steps(manifest, program, arch);
    if (memory) text += "\n" + print(program);
  }
  return text;
}

nlohmann::ordered_json network_json(const Manifest& manifest, const std::optional<std::string>& arch) {
  nlohmann::ordered_json document = {{"kernels", nlohmann::ordered_json::array()},
                                     {"programs", nlohmann::ordered_json::array()}};
  for (const Kernel& kernel : manifest.kernels) {
    nlohmann::ordered_json entry = {{"symbol", kernel.symbol},   {"operator", kernel.op},
                                    {"kind", kernel.kind},       {"provider", kernel.provider},
                                    {"plan", kernel.plan_short}, {"weight_bytes", weight_bytes(kernel)}};
    if (const KernelBinary binary = described_code(kernel, arch); !binary.arch.empty()) {
      entry["arch"] = binary.arch;
      entry["registers"] = binary.registers;
      entry["spill_bytes"] = binary.spill_bytes;
      entry["code_bytes"] = binary.code_bytes;
    }
    document["kernels"].push_back(std::move(entry));
  }
  for (const Program& program : manifest.programs) document["programs"].push_back(to_json(program));
  return document;
}

}  // namespace burin
