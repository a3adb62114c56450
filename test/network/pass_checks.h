// What tests of the graph passes have in common: small layers, and the check that a pass keeps what is computed.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "compiler/network/passes.h"
#include "test/catch.h"
#include "test/ir/small_network.h"
#include "test/network/same_outputs.h"

namespace burin_test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct ConvOptions {
  int kernel = 1;
  int pad = 0;
  int groups = 1;
  std::vector<float> bias = {};
  burin::Activation activation = burin::Activation::none;
  bool residual = false;
};

// Weights 0.5, 0.75, 1, ...; zero for the filters named in `empty`.
inline burin::ConvLayer conv(const std::string& name, int in, int out, const ConvOptions& options = {},
                             std::vector<int> empty = {}) {
  burin::ConvLayer layer;
  layer.name = name;
  burin::ConvShape& shape = layer.shape;
  shape.in_channels = in;
  shape.out_channels = out;
  shape.groups = options.groups;
  shape.kernel_h = shape.kernel_w = options.kernel;
  shape.pad = {options.pad, options.pad, options.pad, options.pad};
  shape.epilogue = {!options.bias.empty(), options.residual, burin::function_of(options.activation)};
  layer.bias = options.bias;
  for (int k = 0; k < out; ++k) {
    const bool is_empty = std::find(empty.begin(), empty.end(), k) != empty.end();
    for (int i = 0; i < in / options.groups * options.kernel * options.kernel; ++i) {
      layer.weights.push_back(is_empty ? 0.0F : 0.5F + 0.25F * static_cast<float>(k + i));
    }
  }
  return layer;
}

// Kinds of the operators in their order, "convolution elementwise".
inline std::string kinds(const burin::Network& network) {
  std::string text;
  for (const burin::Operator& op : network.operators) {
    if (!text.empty()) text += ' ';
    text += kind_name(op.kind);
  }
  return text;
}

// Runs the pass and checks that outputs stay as they were.
inline burin::Network after(burin::Rewritten (*pass)(burin::Network), const burin::Network& network, int changes) {
  REQUIRE(verify(network).empty());
  const burin::Rewritten result = pass(network);
  INFO(print(network));
  CHECK(result.changes == changes);
  check_same(network, result.network);
  if (changes == 0) CHECK(print(result.network) == print(network));
  return result.network;
}

inline void unchanged(burin::Rewritten (*pass)(burin::Network), const burin::Network& network) {
  after(pass, network, 0);
}

inline const burin::ChannelAffine kAffine2 = {{2, -3}, {0.5F, 1}};

}  // namespace burin_test
