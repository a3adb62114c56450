#include "compiler/import/import.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>

#include "compiler/import/faults.h"
#include "compiler/import/mapped_file.h"
#include "compiler/import/names.h"
#include "compiler/import/network_builder.h"
#include "compiler/import/npy.h"
#include "compiler/import/npz.h"
#include "compiler/import/onnx/onnx_import.h"
#include "compiler/import/safetensors.h"

namespace burin {

std::optional<std::optional<Elementwise>> ImportOptions::ending() const {
  if (own_activation != nullptr) return Elementwise{.function = ElementFunction::user, .user = own_activation};
  if (activation) return function_of(*activation);
  return std::nullopt;
}
namespace {

// The name of the archive's first file; empty where there is none.
std::string_view first_entry(std::string_view zip) {
  constexpr std::size_t kLengthOffset = 26, kNameOffset = 30;  // of a local file header
  if (!zip.starts_with("PK\x03\x04") || zip.size() < kNameOffset) return {};
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(zip[at])); };
  return zip.substr(kNameOffset, byte(kLengthOffset) | byte(kLengthOffset + 1) << 8U);
}

// Goes by the content (an archive that begins with "NAME/data.pkl", or a bare pickle), or the name.
bool is_pytorch_file(std::string_view bytes, const std::string& path) {
  const std::string_view entry = first_entry(bytes);
  if (entry.ends_with("/data.pkl")) return true;
  const bool named = std::ranges::any_of(std::initializer_list<std::string_view>{".pt", ".pth", ".ckpt"},
                                         [&](std::string_view ending) { return has_ending(path, ending); });
  const bool pickle = bytes.starts_with("\x80\x02") || bytes.starts_with("\x80\x04");
  return named && (pickle || !entry.empty());
}

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
      // A pickle is a program, and says nothing that a model must say.
      bad_input(path,
                "is a PyTorch file, which burin does not read. In Python, export the network with "
                "torch.onnx.export(model.eval(), torch.zeros(1, 3, 224, 224), \"model.onnx\") for images of that "
                "size, or save its weights with safetensors.torch.save_file(model.state_dict(), "
                "\"model.safetensors\")");
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

Network import_network(const std::string& path, const ImportOptions& options) {
  // A protobuf message has no magic to know it by.
  if (has_ending(path, ".onnx")) return import_onnx(MappedFile(path).bytes(), path, options);
  if (!options.outputs.empty()) usage(path, "holds weights; --outputs names the tensors of a model (.onnx)");
  return build_network(open_weights_file(path), options);
}

}  // namespace burin
