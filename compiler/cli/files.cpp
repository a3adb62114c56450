#include "compiler/cli/files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

#include "compiler/import/names.h"
#include "ir/error.h"
#include "ir/package/atomic_file.h"
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

// Paths that lead to the same file, whether it is there or not.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  const auto resolved_a = std::filesystem::weakly_canonical(a, error);
  if (error) return false;
  const auto resolved_b = std::filesystem::weakly_canonical(b, error);
  return !error && resolved_a == resolved_b;
}

// Does `check`, whose errors then begin with the option.
template <typename Check>
void naming(const std::string& option, const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", option, error.what());
  }
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

void check_output_file(const std::string& option, const std::string& path, const std::vector<std::string>& inputs) {
  naming(option, [&] { check_can_write(path); });
  if (std::ranges::any_of(inputs, [&](const std::string& input) { return same_file(input, path); })) {
    fail(ErrorKind::usage, "{}: {} is read by the same command, and would be overwritten; name another file", option,
         path);
  }
}

void check_output_files(const std::string& option, const std::vector<std::string>& paths,
                        const std::vector<std::string>& inputs) {
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    check_output_file(option, *path, inputs);
    if (std::any_of(paths.begin(), path, [&](const std::string& other) { return same_file(other, *path); })) {
      fail(ErrorKind::usage, "{}: {} is named for two outputs", option, *path);
    }
  }
}

void check_output_folder(const std::string& option, const std::string& path) {
  naming(option, [&] { check_can_fill_folder(path); });
}

}  // namespace burin
