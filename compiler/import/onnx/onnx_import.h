// An ONNX model as a Network with its graph.
#pragma once

#include <string>
#include <string_view>

#include "compiler/import/coverage.h"
#include "compiler/import/import.h"
#include "ir/network.h"

namespace burin {

// `bytes`: the content of the file at `path`, in whose folder external data are looked for. The graph verifies; with
// options.layer_glob the network has the layers that match, and no graph. Throws Error.
Network import_onnx(std::string_view bytes, const std::string& path, const ImportOptions& options);

// What of it is read; options as above. Throws Error for what is no model that could be read at all.
Coverage cover_onnx(std::string_view bytes, const std::string& path, const ImportOptions& options);

}  // namespace burin
