#include "compiler/cli/kernel_options.h"

#include <fmt/format.h>

namespace burin {

std::vector<KernelOption> options_of(const NetworkProgram& program, std::size_t step) {
  return step < program.options.size() ? program.options[step] : std::vector<KernelOption>();
}

std::string others_text(const std::vector<KernelOption>& options) {
  if (options.size() < 2) return {};
  return fmt::format(" ({})", describe(std::vector<KernelOption>(options.begin() + 1, options.end())));
}

nlohmann::ordered_json options_json(const std::vector<KernelOption>& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const KernelOption& option : options) {
    list.push_back(
        {{"provider", option.provider}, {"us", option.us}, {"source", option.measured ? "measured" : "model"}});
  }
  return list;
}

}  // namespace burin
