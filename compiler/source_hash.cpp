#include "compiler/source_hash.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/SHA256.h>

namespace burin {

std::string content_hash(const std::vector<std::string_view>& parts) {
  llvm::SHA256 hash;
  for (const std::string_view part : parts) {
    hash.update(std::to_string(part.size()) + ":");
    hash.update(llvm::StringRef(part));
  }
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

std::string source_hash(const ConvLayer& layer, const KernelPlan& plan, const std::string& edited) {
  const auto bytes = [](const std::vector<float>& values) {
    return std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  };
  return content_hash(
      {BURIN_VERSION, layer.name, print(layer.shape), bytes(layer.weights), bytes(layer.bias), print(plan), edited});
}

std::string source_hash(const OperatorPlan& plan, std::string_view weights) {
  return content_hash({BURIN_VERSION, print(plan), weights});
}

}  // namespace burin
