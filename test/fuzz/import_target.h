// What the fuzzers of all weights formats share: whatever the bytes are, reading them ends in layers that verify or in
// an error of the user's kind.
#pragma once

#include <cstdlib>
#include <string>

#include "compiler/import/network_builder.h"
#include "ir/error.h"

namespace burin_fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

template <typename Action>
void expect_user_errors_only(Action action) {
  try {
    action();
  } catch (const burin::Error& error) {
    using burin::ErrorKind;
    require(error.kind() == ErrorKind::bad_input || error.kind() == ErrorKind::usage ||
            error.kind() == ErrorKind::unsupported);
    require(*error.what() != '\0');
  }
}

inline void build(const burin::WeightsFile& file, const burin::ImportOptions& options) {
  const burin::Network network = burin::build_network(file, options);
  require(!network.layers.empty());
  for (const burin::ConvLayer& layer : network.layers) require(verify(layer).empty());
}

// With the file's own geometry, and as one bare array with flags.
inline void build_both_ways(const burin::WeightsFile& file) {
  expect_user_errors_only([&] { build(file, {}); });
  burin::ImportOptions options;
  options.flags.input_shape = "8x8";
  options.flags.pad = "1";
  options.zero_threshold = 0.5F;
  expect_user_errors_only([&] { build(file, options); });
}

}  // namespace burin_fuzz
