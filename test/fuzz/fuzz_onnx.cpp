// Any bytes as an .onnx file: reading them ends in a network that verifies or in an error of the user's kind, and so
// does the list of what is refused.
#include <cstdint>
#include <string_view>

#include "compiler/import/onnx/onnx_import.h"
#include "test/fuzz/import_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace burin_fuzz;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto import = [&](const burin::ImportOptions& options) {
    expect_user_errors_only([&] {
      // In a folder that does not exist, so that external data are never found.
      const burin::Network network = burin::import_onnx(bytes, "/nonexistent/folder/fuzz.onnx", options);
      require(!network.operators.empty());
      require(verify(network).empty());
      for (const burin::ConvLayer& layer : network.layers) require(verify(layer).empty());
    });
  };
  import({});
  expect_user_errors_only([&] { burin::cover_onnx(bytes, "/nonexistent/folder/fuzz.onnx", {}); });
  burin::ImportOptions options;
  options.flags.input_shape = "8x8";
  options.zero_threshold = 0.5F;
  import(options);
  options.layer_glob = "*";
  import(options);
  return 0;
}
