// Whatever the bytes are, reading them as a package ends in a package that verifies or in Error(bad_input).
//
// Mutations rarely survive a zip file's checksums, so bytes that start like JSON go to the manifest's parser directly.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ir/error.h"
#include "ir/package/package.h"

namespace {

using namespace burin;

void require(bool holds) {
  if (!holds) std::abort();
}

void read_manifest(std::string_view text) {
  const Manifest manifest = parse_manifest(text);
  // Not a number is not equal to itself; a manifest that verifies has none.
  if (verify(manifest).empty()) require(parse_manifest(print(manifest)) == manifest);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    if (bytes.starts_with('{')) {
      read_manifest(bytes);
    } else {
      const Package package = read_package_from_memory(std::string(bytes), "fuzz.burin");
      require(verify(package).empty());
      check_contents(package);
    }
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::bad_input);
  }
  return 0;
}
