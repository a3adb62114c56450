// A kernel as it goes into a package: what the manifest says of it, and its files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/assemble/assemble.h"
#include "ir/package/package.h"

namespace burin {

struct PackagedKernel {
  Kernel kernel;
  std::vector<std::pair<std::string, std::string>> files;  // path in the package, content
  std::string edited_module;                               // what a person edited; it stays out of packages
};

// The file's name says what it holds, so that kernels share what is the same: "weights/1a2b.bin". Returns the path.
std::string add_data(PackagedKernel& kernel, const std::string& folder, std::string content);

void add_file(PackagedKernel& kernel, BinaryKind kind, const std::string& arch, const std::string& path,
              std::string content);
// Records what the assembler said of it as well.
void add_cubin(PackagedKernel& kernel, const std::string& arch, AssembledKernel assembled);

void add_kernel(Package& package, PackagedKernel kernel);

}  // namespace burin
