// Files of PyTorch, which burin does not read: a pickle is a program, and says nothing that a model must say.
#pragma once

#include <string>
#include <string_view>

namespace burin {

// Goes by the content (an archive that begins with "NAME/data.pkl", or a bare pickle), or the name: .pt, .pth, .ckpt.
bool is_pytorch_file(std::string_view bytes, const std::string& path);

// What helps: how to export the model, and how to save its weights.
std::string pytorch_advice();

}  // namespace burin
