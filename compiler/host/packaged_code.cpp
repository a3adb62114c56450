#include "compiler/host/packaged_code.h"

#include <algorithm>
#include <cstring>

#include "ir/error.h"

namespace burin {

const std::string& bitcode_of(const Package& package, const Kernel& kernel) {
  const auto found = std::ranges::find(kernel.binaries, BinaryKind::bitcode, &KernelBinary::kind);
  if (found == kernel.binaries.end()) {
    fail(ErrorKind::unsupported,
         "{}: the package has no bitcode for the host executor; compile it without --no-bitcode, or use --device "
         "cuda:0",
         kernel.owner());
  }
  return package.files.at(found->path);
}

std::vector<std::uint32_t> words_of(const std::string& bytes) {
  std::vector<std::uint32_t> words(bytes.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint32_t));
  return words;
}

}  // namespace burin
