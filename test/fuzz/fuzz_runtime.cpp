// Whatever a manifest says, the runtime refuses it, or launches its kernels and programs within the memory that it
// asked the driver for.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ir/error.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/run_package.h"

namespace {

using namespace burin;

constexpr std::int64_t kMostBytes = 4 << 20;  // of the package's files

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::shared_ptr<Package> package;
  try {
    package = burin_test::with_sample_files(parse_manifest(text), kMostBytes);
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::bad_input);
  }
  if (package == nullptr || !verify(*package).empty()) return 0;
  burin_test::FakeDriver fake;
  fake.has_real_memory = false;
  fake.knows(package);
  burin_test::run_package(package);
  require(fake.faults().empty());
  require(fake.live().empty());
  return 0;
}
