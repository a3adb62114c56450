#include "compiler/import/import.h"

#include "compiler/import/network_builder.h"
#include "compiler/import/weights_file.h"

namespace burin {

Network import_network(const std::string& path, const ImportOptions& options) {
  return build_network(open_weights_file(path), options);
}

}  // namespace burin
