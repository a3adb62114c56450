// A kernel as it goes into a package: its record and its files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/assemble/assemble.h"
#include "ir/conv_layer.h"
#include "ir/kernel_plan.h"
#include "ir/package/package.h"
#include "ir/sparse_pattern.h"

namespace burin {

struct PackagedKernel {
  KernelRecord record;
  std::vector<std::pair<std::string, std::string>> files;  // path in the package, content
};

// The architecture that every kernel of the package must run on: PTX is made for it.
std::string lowest_arch(const std::vector<std::string>& archs);

// All of the record but its binaries and source hash.
KernelRecord describe_kernel(const ConvLayer& layer, const SparsePattern& pattern, const KernelPlan& plan,
                             const std::string& symbol);

void add_file(PackagedKernel& kernel, BinaryKind kind, const std::string& arch, const std::string& path,
              std::string content);
void add_cubin(PackagedKernel& kernel, const std::string& arch, AssembledKernel assembled);

// What the assembler said of it.
void describe_cubin(KernelBinary& binary, const AssembledKernel& assembled);

void add_kernel(Package& package, PackagedKernel kernel);

}  // namespace burin
