#include "compiler/packaged_kernel.h"

#include <fmt/format.h>

#include "compiler/source_hash.h"

namespace burin {

std::string add_data(PackagedKernel& kernel, const std::string& folder, std::string content) {
  constexpr std::size_t kDigits = 32;  // of the hash: 128 bits
  std::string path = fmt::format("{}/{}.bin", folder, content_hash({content}).substr(0, kDigits));
  kernel.files.emplace_back(path, std::move(content));
  return path;
}

void add_file(PackagedKernel& kernel, BinaryKind kind, const std::string& arch, const std::string& path,
              std::string content) {
  KernelBinary& binary = kernel.kernel.binaries.emplace_back();
  binary.kind = kind;
  binary.arch = arch;
  binary.path = path;
  binary.bytes = static_cast<std::int64_t>(content.size());
  kernel.files.emplace_back(path, std::move(content));
}

void add_cubin(PackagedKernel& kernel, const std::string& arch, AssembledKernel assembled) {
  const std::string path = "kernels/" + kernel.kernel.symbol + "." + arch + ".cubin";
  add_file(kernel, BinaryKind::cubin, arch, path, std::move(assembled.cubin));
  KernelBinary& binary = kernel.kernel.binaries.back();
  binary.registers = assembled.registers;
  binary.spill_bytes = assembled.spill_bytes;
  binary.stack_bytes = assembled.stack_bytes;
  binary.code_bytes = assembled.code_bytes;
}

void add_kernel(Package& package, PackagedKernel kernel) {
  package.manifest.kernels.push_back(std::move(kernel.kernel));
  for (auto& [path, content] : kernel.files) package.files[path] = std::move(content);
}

}  // namespace burin
