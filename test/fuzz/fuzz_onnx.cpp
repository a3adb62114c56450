// Any bytes as an .onnx file: reading them ends in a network that verifies or in an error of the user's kind, and so
// does the list of what is refused.
#include <cstdint>
#include <string_view>

#include "compiler/import/onnx/onnx_import.h"
#include "test/fuzz/import_target.h"

namespace {

// Gives every operator of a domain other than ONNX's, and one of its own, Bernoulli. Nothing of it is compiled.
class AnyFunction : public burin::FunctionSource {
 public:
  bool has(std::string_view name) const override { return name.find("::") != name.npos || name == "Bernoulli"; }
  burin::SharedFunction make(const std::string& name, int inputs,
                             std::vector<burin::UserAttribute> attributes) override {
    burin::UserFunction function{.name = name, .inputs = inputs, .attributes = std::move(attributes)};
    function.source_hash = std::string(64, '0');
    if (const auto faults = verify(function); !faults.empty()) {
      burin::fail(burin::ErrorKind::bad_input, "{}", faults.front());
    }
    return std::make_shared<burin::UserFunction>(std::move(function));
  }
};

}  // namespace

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
  burin::ImportOptions with_own;
  with_own.operators = std::make_shared<AnyFunction>();
  import(with_own);
  expect_user_errors_only([&] { burin::cover_onnx(bytes, "/nonexistent/folder/fuzz.onnx", {}); });
  burin::ImportOptions options;
  options.flags.input_shape = "8x8";
  options.zero_threshold = 0.5F;
  import(options);
  options.layer_glob = "*";
  import(options);
  return 0;
}
