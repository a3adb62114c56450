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

// What the assembler said of it.
void describe_cubin(KernelBinary& binary, const AssembledKernel& assembled);

// Of a PackagedKernel or a PackagedOperator: its record and its files.
template <typename Packaged>
void add_file(Packaged& kernel, BinaryKind kind, const std::string& arch, const std::string& path,
              std::string content) {
  KernelBinary& binary = kernel.record.binaries.emplace_back();
  binary.kind = kind;
  binary.arch = arch;
  binary.path = path;
  binary.bytes = static_cast<std::int64_t>(content.size());
  kernel.files.emplace_back(path, std::move(content));
}
template <typename Packaged>
void add_cubin(Packaged& kernel, const std::string& arch, AssembledKernel assembled) {
  add_file(kernel, BinaryKind::cubin, arch, "kernels/" + kernel.record.symbol + "." + arch + ".cubin",
           std::move(assembled.cubin));
  describe_cubin(kernel.record.binaries.back(), assembled);
}

void add_kernel(Package& package, PackagedKernel kernel);

}  // namespace burin
