#include "compiler/import/import.h"

#include "compiler/import/mapped_file.h"
#include "compiler/import/names.h"
#include "compiler/import/network_builder.h"
#include "compiler/import/onnx/onnx_import.h"
#include "compiler/import/weights_file.h"

namespace burin {

Network import_network(const std::string& path, const ImportOptions& options) {
  // A protobuf message has no magic to know it by.
  if (has_ending(path, ".onnx")) return import_onnx(MappedFile(path).bytes(), path, options);
  return build_network(open_weights_file(path), options);
}

}  // namespace burin
