#include "compiler/import/pytorch_file.h"

#include <algorithm>

#include "compiler/import/names.h"

namespace burin {
namespace {

// The name of the archive's first file; empty where there is none.
std::string_view first_entry(std::string_view zip) {
  constexpr std::size_t kLengthOffset = 26, kNameOffset = 30;  // of a local file header
  if (!zip.starts_with("PK\x03\x04") || zip.size() < kNameOffset) return {};
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(zip[at])); };
  return zip.substr(kNameOffset, byte(kLengthOffset) | byte(kLengthOffset + 1) << 8U);
}

}  // namespace

bool is_pytorch_file(std::string_view bytes, const std::string& path) {
  const std::string_view entry = first_entry(bytes);
  if (entry.ends_with("/data.pkl")) return true;
  const bool named = std::ranges::any_of(std::initializer_list<std::string_view>{".pt", ".pth", ".ckpt"},
                                         [&](std::string_view ending) { return has_ending(path, ending); });
  const bool pickle = bytes.starts_with("\x80\x02") || bytes.starts_with("\x80\x04");
  return named && (pickle || !entry.empty());
}

std::string pytorch_advice() {
  return "is a PyTorch file, which burin does not read. In Python, export the network with "
         "torch.onnx.export(model.eval(), torch.zeros(1, 3, 224, 224), \"model.onnx\") for images of that size, or "
         "save its weights with safetensors.torch.save_file(model.state_dict(), \"model.safetensors\")";
}

}  // namespace burin
