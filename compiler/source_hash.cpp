#include "compiler/source_hash.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/SHA256.h>

namespace burin {

std::string source_hash(const ConvLayer& layer, const KernelPlan& plan, const std::string& edited) {
  llvm::SHA256 hash;
  const auto add = [&](llvm::StringRef part) {
    hash.update(std::to_string(part.size()) + ":");  // so that parts cannot run into each other
    hash.update(part);
  };
  add(BURIN_VERSION);
  add(layer.name);
  add(print(layer.shape));
  add({reinterpret_cast<const char*>(layer.weights.data()), layer.weights.size() * sizeof(float)});
  add({reinterpret_cast<const char*>(layer.bias.data()), layer.bias.size() * sizeof(float)});
  add(print(plan));
  add(edited);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

}  // namespace burin
