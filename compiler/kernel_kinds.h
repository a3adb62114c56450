// Which providers may make the kernels of which convolutions: those whose names begin with conv_
// (compiler/providers/providers.def).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace burin {

inline constexpr std::string_view kAutoKind = "auto";  // whatever is predicted to be fastest

struct KernelKinds {
  // kAutoKind, or the name of a provider. What it cannot compute is baked all the same.
  std::string all = std::string(kAutoKind);
  std::map<std::string, std::string> of_layers;  // by name; here a provider that cannot is an error

  const std::string& of(const std::string& layer) const;
};

// Names of providers without "conv_": "baked", then those with the weights as data.
std::vector<std::string> kernel_kind_names();

// "baked", "auto,conv1=dense": a kind for all, kinds for layers. Throws Error(usage).
KernelKinds parse_kernel_kinds(const std::string& text);

}  // namespace burin
