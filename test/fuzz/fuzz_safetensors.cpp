// Any bytes as a .safetensors file; bytes that start like JSON are a geometry and an index of sharded files instead.
#include <cstdint>
#include <string_view>

#include "compiler/import/geometry.h"
#include "compiler/import/safetensors.h"
#include "test/fuzz/import_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace burin_fuzz;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with('{')) {
    expect_user_errors_only([&] { require(!burin::parse_geometry(bytes, "fuzz.json").layers.empty()); });
    // In a folder that does not exist, so that nothing is read, whatever the index names.
    expect_user_errors_only([&] { burin::open_sharded(bytes, "/nonexistent/folder/fuzz.index.json"); });
  } else {
    expect_user_errors_only([&] { build_both_ways(burin::parse_safetensors(bytes, "fuzz.safetensors")); });
  }
  return 0;
}
