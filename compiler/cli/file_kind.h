// Packages, and what people give in their place.
#pragma once

#include <string>

#include "ir/package/package.h"

namespace burin {

// A file named *.burin, or an archive whose first file is a package's manifest.
bool is_package(const std::string& path);

// read_package(). Where the file is a model or weights, the error says that it must be compiled first.
Package read_given_package(const std::string& path);

// Throws Error(bad_input) where `path`, which should be a model or weights, is a package. `what`: "--against", "INPUT".
void refuse_package(const std::string& what, const std::string& path);

}  // namespace burin
