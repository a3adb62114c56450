#include "compiler/import/weights_file.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>

#include "compiler/import/faults.h"
#include "compiler/import/mapped_file.h"
#include "compiler/import/names.h"
#include "compiler/import/npy.h"
#include "compiler/import/npz.h"
#include "compiler/import/pytorch_file.h"
#include "compiler/import/safetensors.h"

namespace burin {
namespace {

enum class Format { unknown, pytorch, npy, npz, safetensors, index };

Format format_of(std::string_view bytes, const std::string& path) {
  if (is_pytorch_file(bytes, path)) return Format::pytorch;
  if (bytes.starts_with(kNpyMagic)) return Format::npy;
  // An archive may be empty (its directory's end comes first) or split (refused by the zip reader).
  if (bytes.starts_with("PK\x03\x04") || bytes.starts_with("PK\x05\x06")) return Format::npz;
  if (looks_like_safetensors(bytes)) return Format::safetensors;
  const auto first = bytes.find_first_not_of(" \t\r\n");
  if (first != bytes.npos && bytes[first] == '{') return Format::index;
  // Broken content: the ending says what it was meant to be, so that the reader can say what is wrong with it.
  if (has_ending(path, ".npy")) return Format::npy;
  if (has_ending(path, ".npz")) return Format::npz;
  if (has_ending(path, ".safetensors")) return Format::safetensors;
  if (has_ending(path, ".json")) return Format::index;
  return Format::unknown;
}

// What else people have weights in, to say more than "unknown".
std::string_view foreign_format(std::string_view bytes) {
  if (bytes.starts_with("\x89HDF\r\n\x1a\n")) return "an HDF5 file";
  if (bytes.starts_with("GGUF")) return "a GGUF file";
  if (bytes.substr(0, 8).substr(std::min<std::size_t>(bytes.size(), 4)) == "TFL3") return "a TensorFlow Lite model";
  if (bytes.starts_with("\x1f\x8b")) return "gzip-compressed";
  if (bytes.starts_with("\xfd"
                        "7zXZ"))
    return "xz-compressed";
  if (bytes.starts_with("\x80\x02") || bytes.starts_with("\x80\x04")) return "a Python pickle";
  return {};
}

}  // namespace

WeightsFile open_weights_file(const std::string& path) {
  const auto file = std::make_shared<MappedFile>(path);
  WeightsFile result;
  switch (format_of(file->bytes(), path)) {
    case Format::npy:
      result.path = path;
      result.tensors.push_back(parse_npy(file->bytes(), path, std::filesystem::path(path).stem().string()));
      result.bare_array = true;
      break;
    case Format::npz:
      result = parse_npz(file->bytes(), path);
      break;
    case Format::safetensors:
      result = parse_safetensors(file->bytes(), path);
      break;
    case Format::index:
      result = open_sharded(file->bytes(), path);
      break;
    case Format::pytorch:
      bad_input(path, "{}", pytorch_advice());
    case Format::unknown: {
      const std::string_view foreign = foreign_format(file->bytes());
      bad_input(path,
                "{}; burin reads models as .onnx, and weights as .npy, .npz and .safetensors (or its *.index.json)",
                foreign.empty() ? "the content is no weights file that burin knows" : fmt::format("is {}", foreign));
    }
  }
  result.owners.push_back(file);
  return result;
}

}  // namespace burin
