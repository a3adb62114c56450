// Any bytes as the weights of a layer in a package.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ir/error.h"
#include "ir/layer_data.h"

namespace {

using namespace burin;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ConvShape shape;
  shape.in_channels = 300;
  shape.out_channels = 2;
  shape.epilogue.bias = true;
  try {
    const ConvLayer layer = decode_layer(bytes, "fuzz", shape);
    require(verify(layer).empty());
    // The same distances may have been written with more bytes.
    const std::string encoded = encode_layer(layer);
    require(encoded.size() <= size);
    const ConvLayer again = decode_layer(encoded, "fuzz", shape);
    require(again.weights == layer.weights && again.bias == layer.bias);
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::bad_input);
  }
  return 0;
}
