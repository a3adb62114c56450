#include "compiler/source_hash.h"

#include <fmt/ranges.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/SHA256.h>

#include "ir/kernel.h"

namespace burin {

std::string content_hash(const std::vector<std::string_view>& parts) {
  llvm::SHA256 hash;
  for (const std::string_view part : parts) {
    hash.update(std::to_string(part.size()) + ":");
    hash.update(llvm::StringRef(part));
  }
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

std::string task_hash(const Task& task) {
  const auto bytes = [](const std::vector<float>& values) {
    return std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  };
  std::vector<std::string_view> parts;
  KernelForm tensors{.tensors = task.reads, .launch = {}};
  tensors.tensors.push_back(task.writes);
  const std::string text = print(task) + print(tensors) +
                           fmt::format("{} {} {} {} {}", task.batch, fmt::join(task.archs, ","),
                                       to_string(task.precision), task.activity_maps, to_string(task.linear_storage));
  parts.push_back(text);
  if (task.layer != nullptr) {
    parts.push_back(bytes(task.layer->weights));
    parts.push_back(bytes(task.layer->bias));
  }
  if (const Linear* linear = task.get<Linear>()) {
    parts.push_back(bytes(linear->weights));
    parts.push_back(bytes(linear->bias));
  }
  if (const ChannelAffine* affine = task.get<ChannelAffine>()) {
    parts.push_back(bytes(affine->scale));
    parts.push_back(bytes(affine->shift));
  }
  return content_hash(parts);
}

std::string source_hash(const Task& task, const std::string& plan, const std::string& edited) {
  return content_hash({BURIN_VERSION, task_hash(task), plan, edited});
}

}  // namespace burin
