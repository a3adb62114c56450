// .safetensors: a JSON header and one block of tensors; and the index file that joins several such files.
#pragma once

#include <string>
#include <string_view>

#include "compiler/import/weights_tensor.h"

namespace burin {

// True when the bytes can only be meant as safetensors: a possible header length, then an opening brace.
bool looks_like_safetensors(std::string_view bytes);

// The tensors view `bytes`, in the order of their data. Throws Error(bad_input) for a header that is not what the
// format says, and for tensors that overlap, leave holes, leave the file, or do not have the size of their shape.
WeightsFile parse_safetensors(std::string_view bytes, const std::string& path);

// `bytes`: the content of the *.index.json at `path`. Opens the files that its weight_map names, which must lie in the
// folder of the index. Throws Error(bad_input).
WeightsFile open_sharded(std::string_view bytes, const std::string& path);

}  // namespace burin
