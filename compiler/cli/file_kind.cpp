#include "compiler/cli/file_kind.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

#include "compiler/import/names.h"
#include "ir/error.h"
#include "ir/package/names.h"

namespace burin {
namespace {

// "a model", "weights": by the name, since that is what a person goes by. Nothing: the file may be anything.
std::optional<std::string> kind_by_name(const std::string& path) {
  if (has_ending(path, ".onnx")) return "a model";
  constexpr std::array<std::string_view, 4> kWeights = {".safetensors", ".npz", ".npy", ".index.json"};
  constexpr std::array<std::string_view, 3> kPyTorch = {".pt", ".pth", ".ckpt"};
  const auto ends = [&](std::string_view ending) { return has_ending(path, ending); };
  if (std::ranges::any_of(kWeights, ends)) return "a file of weights";
  if (std::ranges::any_of(kPyTorch, ends)) return "a PyTorch file";
  return std::nullopt;
}

}  // namespace

bool is_package(const std::string& path) {
  if (has_ending(path, ".burin")) return true;
  constexpr std::size_t kNameOffset = 30;  // of a zip's local file header
  std::array<char, kNameOffset + kManifestPath.size()> start = {};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(start.data(), start.size())) return false;
  const std::string_view bytes(start.data(), start.size());
  return bytes.starts_with("PK\x03\x04") && bytes.substr(kNameOffset) == kManifestPath;
}

Package read_given_package(const std::string& path) {
  const std::optional<std::string> kind = kind_by_name(path);
  if (!kind || is_package(path) || !std::filesystem::exists(path)) return read_package(path);
  if (*kind == "a PyTorch file") {
    fail(ErrorKind::bad_input, "{}: is {}, and a package is wanted; burin compile says how to make one of it", path,
         *kind);
  }
  const std::string name = std::filesystem::path(path).stem().string();
  fail(ErrorKind::bad_input, "{}: is {}, and a package is wanted: compile it first (burin compile {} -o {}.burin)",
       path, *kind, path, name);
}

void refuse_package(const std::string& what, const std::string& path) {
  if (!is_package(path) || !std::filesystem::exists(path)) return;
  std::string made_from;
  try {
    made_from = read_package(path).manifest.source;
  } catch (const Error&) {  // it is not even a whole one
  }
  fail(ErrorKind::bad_input, "{} {}: is a package already, and a model or weights are wanted{}", what, path,
       made_from.empty() ? "" : fmt::format("; it was compiled from {}", made_from));
}

}  // namespace burin
