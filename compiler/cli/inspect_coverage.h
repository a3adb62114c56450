// burin inspect --coverage: which operators of a model are read.
#pragma once

#include <string>

#include "compiler/import/import.h"

namespace burin {

// Prints a table, or JSON. The exit code: 0 when all of the model is read, else that of ErrorKind::unsupported.
int inspect_coverage(const std::string& path, const ImportOptions& options, bool json);

}  // namespace burin
