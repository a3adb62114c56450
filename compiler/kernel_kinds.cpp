#include "compiler/kernel_kinds.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/providers/provider.h"
#include "ir/error.h"
#include "ir/text.h"

namespace burin {
namespace {

constexpr std::string_view kPrefix = "conv_";

std::string template_of(std::string_view kind, const std::string& option) {
  if (kind == kAutoKind) return std::string(kind);
  const std::vector<std::string> known = kernel_kind_names();
  if (std::ranges::find(known, kind) == known.end()) {
    fail(ErrorKind::usage, "--kernels {}: '{}' is no kind of kernel; there are {}, {}", option, kind, kAutoKind,
         fmt::join(known, ", "));
  }
  return fmt::format("{}{}", kPrefix, kind);
}

}  // namespace

const std::string& KernelKinds::of(const std::string& layer) const {
  const auto found = of_layers.find(layer);
  return found == of_layers.end() ? all : found->second;
}

std::vector<std::string> kernel_kind_names() {
  std::vector<std::string> names;
  for (const Provider* provider : providers()) {
    if (provider->name().starts_with(kPrefix)) names.emplace_back(provider->name().substr(kPrefix.size()));
  }
  return names;
}

KernelKinds parse_kernel_kinds(const std::string& text) {
  KernelKinds kinds;
  for (const std::string_view item : split(text, ',')) {
    const std::size_t equals = item.rfind('=');  // names of layers may have one
    if (equals == std::string_view::npos) {
      kinds.all = template_of(item, text);
    } else {
      kinds.of_layers[std::string(item.substr(0, equals))] = template_of(item.substr(equals + 1), text);
    }
  }
  return kinds;
}

}  // namespace burin
