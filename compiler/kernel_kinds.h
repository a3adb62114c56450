// Which kinds of kernels the convolutions of a network may have: baked code, where every nonzero is an instruction, or
// a template with the weights as data (compiler/operators/plan_convolution.h).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace burin {

inline constexpr std::string_view kAutoKind = "auto";             // whatever is predicted to be fastest
inline constexpr std::string_view kBakedTemplate = "conv_baked";  // as a kind: "baked"

struct KernelKinds {
  // kAutoKind, or the name of a template. What a template cannot compute is baked all the same.
  std::string all = std::string(kAutoKind);
  std::map<std::string, std::string> of_layers;  // by name; here a template that cannot is an error

  const std::string& of(const std::string& layer) const;
};

// Names of templates without "conv_": "baked", then those with the weights as data.
std::vector<std::string> kernel_kind_names();

// "baked", "auto,conv1=dense": a kind for all, kinds for layers. Throws Error(usage).
KernelKinds parse_kernel_kinds(const std::string& text);

}  // namespace burin
