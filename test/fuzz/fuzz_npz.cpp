// Any bytes as a .npz archive.
#include <cstdint>
#include <string_view>

#include "compiler/import/npz.h"
#include "test/fuzz/import_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  burin_fuzz::expect_user_errors_only([&] { burin_fuzz::build_both_ways(burin::parse_npz(bytes, "fuzz.npz")); });
  return 0;
}
