#include "compiler/import/coverage.h"

#include <algorithm>

#include "compiler/import/faults.h"
#include "compiler/import/mapped_file.h"
#include "compiler/import/names.h"
#include "compiler/import/onnx/onnx_import.h"

namespace burin {

int Coverage::nodes_read() const {
  return static_cast<int>(std::ranges::count(nodes, NodeState::read, &NodeCoverage::state));
}

bool Coverage::is_complete() const {
  return fault.empty() && std::ranges::all_of(nodes, [](const auto& node) { return node.state == NodeState::read; });
}

Coverage cover_model(const std::string& path, const ImportOptions& options) {
  if (!has_ending(path, ".onnx")) usage(path, "is no ONNX model; only a model has operators to read");
  return cover_onnx(MappedFile(path).bytes(), path, options);
}

}  // namespace burin
