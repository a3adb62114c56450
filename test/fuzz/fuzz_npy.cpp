// Any bytes as a .npy file.
#include <cstdint>
#include <string_view>

#include "compiler/import/npy.h"
#include "test/fuzz/import_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  burin_fuzz::expect_user_errors_only([&] {
    burin::WeightsFile file;
    file.path = "fuzz.npy";
    file.tensors.push_back(burin::parse_npy(bytes, file.path, "fuzz"));
    file.bare_array = true;
    burin_fuzz::build_both_ways(file);
  });
  return 0;
}
